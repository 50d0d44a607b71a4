import { hostname } from "node:os";
import { join } from "node:path";
import * as agents from "./agent/registry.ts";
import type { Config } from "./config/load.ts";
import { UserError } from "./core/errors.ts";
import { newId } from "./core/id.ts";
import { Deliveries } from "./gateway/deliver.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { Rates } from "./gateway/rates.ts";
import { Reload } from "./gateway/reload.ts";
import { Routes } from "./gateway/routes.ts";
import { Worker } from "./gateway/worker.ts";
import { Ledger } from "./ledger/ledger.ts";
import { makePrivateFolder } from "./lib/file.ts";
import { type Lock, takeLock } from "./lib/lock.ts";
import { createLog, type Log } from "./lib/log.ts";
import * as sandboxes from "./sandbox/registry.ts";
import { listen } from "./server/server.ts";
import * as stores from "./store/registry.ts";

/** A gateway that listens and works. */
export interface Running {
  readonly host: string;
  readonly port: number;
  readonly routes: readonly string[];
  readonly log: Log;
  /** The configuration it was started with. */
  readonly config: Config;
  /** Reads the configuration again now. Answers whether it was right and is in force. */
  reload(): Promise<boolean>;
  /** Stops accepting, lets what runs end within `shutdown_timeout`, gives the rest back. What waits stays in the ledger. */
  stop(): Promise<void>;
}

const leaseMs = 30_000;
const claimMs = 3_600_000;
/** A gateway that was just killed may take a moment to be gone. */
const lockWaitMs = 3_000;

/** Where the log's lines go, and whether a person reads them. */
export interface LogSink {
  readonly pretty: boolean;
  readonly write: (line: string) => void;
  readonly flush: () => Promise<void>;
}

/** How often the configuration's files are looked at for changes. */
const reloadMs = 1_000;

/**
 * Puts a gateway together and starts it. `load` reads the configuration, now and whenever it changed.
 * @throws UserError when the home is in use or the address cannot be listened on; StoreRefused when its ledger is not ours.
 */
export async function startGateway(load: () => Promise<Config>, sink: LogSink): Promise<Running> {
  const config = await load();
  await makePrivateFolder(config.home.folder);
  await makePrivateFolder(config.home.data);
  const lock = lockHome(config);
  try {
    return await startLocked(config, load, sink, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function lockHome(config: Config): Lock {
  const lock = takeLock(join(config.home.data, "gateway.lock"), lockWaitMs);
  if (lock) return lock;
  throw new UserError(
    `Another gateway is running on "${config.home.folder}"; stop it, or start this one with --profile or another POSTERN_HOME`,
  );
}

async function startLocked(first: Config, load: () => Promise<Config>, sink: LogSink, lock: Lock): Promise<Running> {
  const end = new AbortController();
  const parts = await assemble(first, sink, end.signal);
  const { gateway, worker, ledger, routes, log } = parts;
  const reload = new Reload({
    load,
    files: [first.home.config, first.home.dotenv],
    apply: (next) => replace(parts, first, next),
    log,
    everyMs: reloadMs,
  });
  const server = await listen(gateway).catch(async (error: unknown) => {
    await ledger.close();
    throw error;
  });
  worker.start();
  await reload.start();
  return {
    config: first,
    host: server.host,
    port: server.port,
    routes: routes.names(),
    log,
    reload: () => reload.now(),
    async stop() {
      reload.stop();
      const { shutdownTimeoutMs } = gateway.config;
      log.info({ timeoutMs: shutdownTimeoutMs }, "Stopping: no more requests are taken, what runs may finish");
      await Promise.all([server.close(shutdownTimeoutMs), worker.drain(shutdownTimeoutMs)]);
      end.abort();
      await worker.settle();
      await ledger.close();
      lock.release();
      log.info({}, "Stopped");
    },
  };
}

type Parts = Awaited<ReturnType<typeof assemble>>;

/** Makes the parts of a gateway that does not listen yet. */
async function assemble(first: Config, sink: LogSink, signal: AbortSignal) {
  const inForce = { config: first };
  const secrets = () => [...inForce.config.secrets, ...(routes?.secrets() ?? [])];
  const log = createLog({ level: first.logLevel, secrets, ...sink });
  const store = await stores.sqlite({ path: first.home.ledger, readOnly: false });
  const owner = `${hostname()}/${process.pid}/${newId(Date.now())}`;
  const ledger = new Ledger({ store, now: Date.now, random: Math.random, owner, leaseMs, claimMs });
  await ledger.takeOver();
  // One object for all, because a copy of it would not follow when the configuration is replaced.
  const common = {
    get config() {
      return inForce.config;
    },
    get agent() {
      return agents[inForce.config.agent.backend];
    },
    get sandbox() {
      return sandboxes[inForce.config.sandbox];
    },
    get fixed() {
      return inForce.config.routes;
    },
    get context() {
      return { ...inForce.config.routeContext, warn: (message: string) => log.warn({}, message) };
    },
    home: first.home,
    ledger,
    log,
    now: Date.now,
    leaseMs,
    secrets,
    signal,
  };
  const routes: Routes | undefined = new Routes(common);
  await routes.refresh();
  const rates = new Rates(first.webhook.rateLimit, common.now);
  const deliveries = new Deliveries(common);
  const worker = new Worker(Object.assign(common, { deliveries }));
  const gateway: Gateway = Object.assign(common, { routes, rates, deliveries, wake: () => worker.wake() });
  return { inForce, gateway, worker, ledger, routes, rates, log };
}

/** Puts another configuration in force. */
function replace({ inForce, rates, routes, worker, log }: Parts, first: Config, next: Config): void {
  tellWhatWaits(first, next, log);
  inForce.config = next;
  rates.limit = next.webhook.rateLimit;
  routes.rebuild();
  worker.reconsider();
}

/** Says which changes a running gateway cannot follow. */
function tellWhatWaits(first: Config, next: Config, log: Log): void {
  const before = { host: first.webhook.host, port: first.webhook.port, "log.level": first.logLevel };
  const after = { host: next.webhook.host, port: next.webhook.port, "log.level": next.logLevel };
  const keys = (Object.keys(before) as (keyof typeof before)[]).filter((key) => before[key] !== after[key]);
  if (keys.length > 0) log.warn({ keys }, "These changes take effect at the next start");
}
