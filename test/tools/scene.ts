import { createHmac } from "node:crypto";
import type { TestContext } from "node:test";
import { type Config, loadConfig } from "../../src/config/load.ts";
import { Rejection } from "../../src/core/errors.ts";
import type { Environment, HeaderMap } from "../../src/core/types.ts";
import { Deliveries, type Pacing } from "../../src/gateway/deliver.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { storeMemory } from "../../src/gateway/memory.ts";
import { Paces } from "../../src/gateway/pace.ts";
import type { Incoming } from "../../src/gateway/pipeline.ts";
import { LocalRates, type Rates } from "../../src/gateway/rates.ts";
import { Routes } from "../../src/gateway/routes.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { createLog, type Log } from "../../src/lib/log.ts";
import { sleep } from "../../src/lib/sleep.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { EventRecord, Store } from "../../src/store/store.ts";
import type { Memory } from "../../src/target/target.ts";
import { headersOf } from "../core/event.ts";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";
import { type Clock, makeClock } from "./clock.ts";
import { makeHome, type TestHome } from "./home.ts";
import { type Outage, withOutage } from "./outage.ts";

/** The secret of every route that has none of its own. */
export const globalSecret = "the secret of all routes";
export const leaseMs = 30_000;
export const claimMs = 3_600_000;

export interface SceneOptions {
  /** Routes as a configuration has them. */
  readonly routes?: Readonly<Record<string, object>>;
  /** Other keys of `platforms.webhook`. */
  readonly webhook?: object;
  /** Other sections of the configuration. */
  readonly sections?: object;
  /** Other keys of `platforms.telegram`. */
  readonly telegram?: object;
  /** Other sections of `platforms`. */
  readonly platforms?: Readonly<Record<string, object>>;
  /** Environment variables beside PATH. */
  readonly env?: Environment;
  readonly files?: Readonly<Record<string, string>>;
  /** The gateway this one follows, on the same home and clock. */
  readonly after?: Scene;
  /** The store says that other gateways may work on it too. */
  readonly isShared?: boolean;
  /** Keeps to the targets' pace by the scene's clock, which stands still until the test moves it on. */
  readonly isPaced?: boolean;
}

/** The parts of a gateway, put together as `start.ts` does, with a clock that is told the time and without a socket. */
export interface Scene {
  readonly home: TestHome;
  readonly config: Config;
  readonly clock: Clock;
  readonly outage: Outage;
  readonly ledger: Ledger;
  readonly memory: Memory;
  readonly rates: Rates;
  readonly routes: Routes;
  readonly deliveries: Deliveries;
  readonly gateway: Gateway;
  readonly log: Log;
  /** The log so far, one object per line, from level debug on. */
  readonly lines: readonly LogLine[];
  readonly telegram: FakeTelegram;
  readonly secrets: () => readonly string[];
  /** Aborted with the end of the test. */
  readonly end: AbortController;
  /** How often the worker was told of a job. */
  readonly wakes: () => number;
  /** Everything in the ledger, newest first. */
  events(): Promise<EventRecord[]>;
}

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Sets a scene; all of it is gone when the test ends. */
export async function setScene(t: TestContext, options: SceneOptions = {}): Promise<Scene> {
  const before = options.after;
  const telegram = before?.telegram ?? (await startTelegram(t));
  const home = before?.home ?? (await makeHome(t, options.files));
  // JSON is YAML too.
  if (!before) await home.write("config.yaml", JSON.stringify(configuration(options, telegram)));
  const clock = before?.clock ?? makeClock();
  const lines: LogLine[] = [];
  const config = await loadConfig({ home, env: { PATH: process.env.PATH, ...options.env } });
  let routes: Routes | undefined;
  const secrets = () => [...config.secrets, ...(routes?.secrets() ?? [])];
  const write = (line: string) => void lines.push(JSON.parse(line) as LogLine);
  const log = createLog({ level: "debug", pretty: false, secrets, write });
  routes = new Routes({ home, fixed: config.routes, context: config.routeContext, log });
  const store = await openSqlite({ path: `${home.folder}/ledger.db`, readOnly: false });
  const outage = withOutage(options.isShared ? asShared(store) : store);
  const memory = storeMemory(store);
  const end = new AbortController();
  t.after(async () => {
    end.abort();
    outage.bury();
    await store.close();
  });
  const owner = `gateway ${before ? "after" : "one"} ${++count}`;
  const ledger = new Ledger({
    ...{ store: outage.store, now: clock.now, random: () => 1, owner, leaseMs, claimMs, signal: end.signal },
  });
  const rates = new LocalRates(config.webhook.rateLimit, clock.now);
  const deliveries = new Deliveries({
    ...{ config, routes, ledger, memory, log, now: clock.now, secrets, signal: end.signal },
    paces: options.isPaced ? new Paces({ now: clock.now, sleep }) : unpaced,
  });
  let wakes = 0;
  const wake = () => {
    wakes += 1;
  };
  const gateway: Gateway = { config, routes, rates, ledger, deliveries, log, now: clock.now, wake };
  return {
    ...{
      home,
      config,
      clock,
      outage,
      ledger,
      memory,
      rates,
      routes,
      deliveries,
      gateway,
      log,
      lines,
      telegram,
      secrets,
    },
    end,
    wakes: () => wakes,
    async events() {
      const rows = await store.listEvents({ limit: 10_000 });
      const records = await Promise.all(rows.map(({ id }) => store.readEvent({ id })));
      return records.filter((record) => record !== undefined);
    },
  };
}

let count = 0;

/** Sends as fast as it can. */
const unpaced: Pacing = {
  allowance: () => Number.POSITIVE_INFINITY,
  nextAt: () => undefined,
  turn: async (_target, _place, { signal }) => !signal.aborted,
};

/** SQLite's file under a name that makes a gateway expect others: two scenes on one home are two such gateways. */
function asShared(store: Store): Store {
  return new Proxy(store, { get: (target, key) => (key === "isShared" ? true : Reflect.get(target, key)) });
}

async function startTelegram(t: TestContext): Promise<FakeTelegram> {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  return telegram;
}

function configuration(options: SceneOptions, telegram: FakeTelegram): object {
  const { routes, webhook, sections, telegram: own, platforms } = options;
  const extra = { base_url: telegram.baseUrl };
  return {
    platforms: {
      webhook: {
        ...{ enabled: true, host: "127.0.0.1", port: 0, secret: globalSecret },
        ...webhook,
        routes: routes ?? { ci: { prompt: "Look at {what}", deliver: "telegram" } },
      },
      telegram: { enabled: true, token: telegram.token, home_channel: "42", extra, ...own },
      ...platforms,
    },
    agent: { backend: "preview" },
    ...sections,
  };
}

export interface RequestParts {
  readonly route?: string;
  /** Text as it is; anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** The delivery id; none when not set. */
  readonly id?: string;
  readonly event?: string;
  /** What it is signed with; `null` leaves it unsigned. */
  readonly secret?: string | null;
}

/** A request as the server hands it to the pipeline. */
export interface Request extends Incoming {
  /** How often the body was read. */
  readonly reads: () => number;
}

/** A signed request. Its body is read as the server reads it: refused when it is longer than is allowed. */
export function request(parts: RequestParts = {}): Request {
  const { text, headers } = signed(parts);
  let reads = 0;
  return {
    route: parts.route ?? "ci",
    headers: headersOf(headers) as HeaderMap,
    reads: () => reads,
    async body(maxBytes) {
      reads += 1;
      const body = Buffer.from(text);
      if (body.length > maxBytes) throw new Rejection("payload_too_large", "The body is too long");
      return body;
    },
  };
}

/** Text and headers of a request that is signed the generic way. */
export function signed(parts: RequestParts): {
  readonly text: string;
  readonly headers: Record<string, string | string[]>;
} {
  const { body = { what: "this" }, id, event, secret = globalSecret } = parts;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const headers: Record<string, string | string[]> = { "content-type": "application/json" };
  if (secret !== null) headers["x-webhook-signature"] = createHmac("sha256", secret).update(text).digest("hex");
  if (id !== undefined) headers["x-request-id"] = id;
  if (event !== undefined) headers["x-github-event"] = event;
  return { text, headers: { ...headers, ...parts.headers } };
}
