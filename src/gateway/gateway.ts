import type { Config } from "../config/load.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Log } from "../lib/log.ts";
import type { Deliveries } from "./deliver.ts";
import type { Rates } from "./rates.ts";
import type { Routes } from "./routes.ts";

/** Everything a request or a job may reach, put together in `start.ts`. */
export interface Gateway {
  readonly config: Config;
  readonly routes: Routes;
  readonly rates: Rates;
  readonly ledger: Ledger;
  readonly deliveries: Deliveries;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Tells the worker that a job was accepted. */
  readonly wake: () => void;
}
