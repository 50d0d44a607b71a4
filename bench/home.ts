import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { StoreSettings } from "../src/store/settings.ts";
import { secret } from "./load.ts";
import { main, start } from "./process.ts";

const bare = fileURLToPath(new URL("./bare.ts", import.meta.url));

export interface HomeOptions {
  /** Text of more sections of `config.yaml`. */
  readonly more?: string;
}

const homes = new Set<string>();
process.once("exit", () => {
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

/**
 * Makes a home for one run, which is gone when this program ends, with one route that takes the sample of `load.ts`. No model is set unless `more` says so: then
 * the jobs wait, so that accepting is measured and nothing else.
 */
export function makeHome({ more = "" }: HomeOptions = {}): string {
  const home = mkdtempSync(join(tmpdir(), "postern-bench-"));
  homes.add(home);
  const config = `
platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    rate_limit: 1000000
    secret: ${secret}
    routes:
      bench:
        events: [pull_request]
        filters: [{ field: action, in: [opened] }]
        prompt: "Review #{number} of {repository.full_name}: {pull_request.title}"
${more}`;
  writeFileSync(join(home, "config.yaml"), config);
  return home;
}

/** Where the ledger of a home is, when it is not in a database. */
export function fileOf(home: string): StoreSettings & { readonly kind: "sqlite" } {
  return { kind: "sqlite", path: join(home, "data", "ledger.db") };
}

export interface GatewayOptions {
  readonly home: string;
  /** The database, when the ledger is not in the home. */
  readonly url?: string;
  /** For Node itself. */
  readonly nodeArgs?: readonly string[];
  /** Called before it has printed anything. */
  readonly watch?: (child: ChildProcess) => void;
}

export interface Gateway {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
}

/** Starts a gateway; it listens when the promise fulfils. */
export async function startGateway({ home, url, nodeArgs = [], watch }: GatewayOptions): Promise<Gateway> {
  const env = { POSTERN_HOME: home, ...(url === undefined ? {} : { POSTERN_STORE_URL: url }) };
  const args = [...nodeArgs, main, "gateway", "run"];
  const { child, match } = await start(args, /listens on 127\.0\.0\.1:(\d+)/, env, watch);
  return { child, pid: child.pid ?? 0, port: Number(match) };
}

/** Starts the server that does no more than every receiver of webhooks must. */
export async function startBare(): Promise<Gateway> {
  const { child, match } = await start([bare], /(\d+)/);
  return { child, pid: child.pid ?? 0, port: Number(match) };
}
