import { hostname } from "node:os";
import { join } from "node:path";
import * as agents from "./agent/registry.ts";
import { changesThatWait } from "./config/kept.ts";
import type { Config } from "./config/load.ts";
import { filePlace, storePlace } from "./config/subscriptions.ts";
import { UserError } from "./core/errors.ts";
import { newId } from "./core/id.ts";
import { Attendants } from "./gateway/attendants.ts";
import { checkTargetsInUse } from "./gateway/checkup.ts";
import { ClockWatch } from "./gateway/clock-watch.ts";
import { Deliveries } from "./gateway/deliver.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { storeMemory } from "./gateway/memory.ts";
import { LocalRates } from "./gateway/rates.ts";
import { Reload } from "./gateway/reload.ts";
import { Retention } from "./gateway/retention.ts";
import { Routes } from "./gateway/routes.ts";
import { SharedRates } from "./gateway/shared-rates.ts";
import { Worker } from "./gateway/worker.ts";
import { Ledger } from "./ledger/ledger.ts";
import { openStore } from "./ledger/open.ts";
import { makePrivateFolder } from "./lib/file.ts";
import { type Lock, takeLock } from "./lib/lock.ts";
import { createLog, type Log } from "./lib/log.ts";
import * as sandboxes from "./sandbox/registry.ts";
import { listen } from "./server/server.ts";
import type { News, Store } from "./store/store.ts";

/** What a gateway does of the whole: receive and work, or one of both. Apart only where gateways share a database. */
export type Role = "all" | "ingest" | "worker";

/** A gateway that listens and works. */
export interface Running {
  /** Where it listens; `undefined` for a worker, which does not. */
  readonly address: Address | undefined;
  readonly routes: readonly string[];
  readonly log: Log;
  /** The configuration it was started with. */
  readonly config: Config;
  /** Reads the configuration again now. Answers whether it was right and is in force. */
  reload(): Promise<boolean>;
  /** Stops accepting, lets what runs end within `shutdown_timeout`, gives the rest back. What waits stays in the ledger. */
  stop(): Promise<void>;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

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
export async function startGateway(load: () => Promise<Config>, sink: LogSink, role: Role = "all"): Promise<Running> {
  const config = await load();
  await makePrivateFolder(config.home.folder);
  await makePrivateFolder(config.home.data);
  const lock = lockHome(config, role);
  try {
    return await startLocked(config, load, sink, { role, lock });
  } catch (error) {
    lock?.release();
    throw error;
  }
}

/** A ledger in a file has one gateway; a database may have many, even on one home. */
function lockHome(config: Config, role: Role): Lock | undefined {
  if (config.store.kind === "postgres") return undefined;
  if (role !== "all") {
    throw new UserError(
      `"--role ${role}" needs a database that gateways share; set "store.url" or POSTERN_STORE_URL to a PostgreSQL database`,
    );
  }
  const lock = takeLock(join(config.home.data, "gateway.lock"), lockWaitMs);
  if (lock) return lock;
  throw new UserError(
    `Another gateway is running on "${config.home.folder}"; stop it, or start this one with --profile or another POSTERN_HOME`,
  );
}

interface Place {
  readonly role: Role;
  readonly lock: Lock | undefined;
}

async function startLocked(
  first: Config,
  load: () => Promise<Config>,
  sink: LogSink,
  { role, lock }: Place,
): Promise<Running> {
  const end = new AbortController();
  const parts = await assemble(first, sink, role, end.signal);
  const { gateway, worker, ledger, routes, log } = parts;
  const reload = new Reload({
    load,
    files: [first.home.config, first.home.dotenv],
    apply: (next) => replace(parts, first, next, role),
    log,
    everyMs: reloadMs,
  });
  const server = await openDoor(parts, role);
  worker.start();
  // A gateway that only receives sends no messages of its own but direct ones, for which targets open what they need.
  if (role !== "ingest") parts.attendants.reconsider();
  await reload.start();
  const checkup = parts.checkUp();
  return {
    config: first,
    address: server,
    routes: routes.names(),
    log,
    reload: () => reload.now(),
    async stop() {
      reload.stop();
      const { shutdownTimeoutMs } = gateway.config;
      log.info({ timeoutMs: shutdownTimeoutMs }, "Stopping: no more requests are taken, what runs may finish");
      await Promise.all([server?.close(shutdownTimeoutMs), worker.drain(shutdownTimeoutMs)]);
      end.abort();
      const keepers = [parts.attendants, parts.retention, parts.clockWatch];
      await Promise.all([worker.settle(), checkup, ...keepers.map((keeper) => keeper.stop())]);
      await ledger.close();
      lock?.release();
      log.info({}, "Stopped");
    },
  };
}

/** Listens, unless it is a worker; closes the ledger when that fails. */
async function openDoor({ gateway, ledger, retention, clockWatch }: Parts, role: Role): Promise<Door | undefined> {
  try {
    await clockWatch.start();
    const server = role === "worker" ? undefined : await listen(gateway);
    retention.start();
    return server;
  } catch (error) {
    await clockWatch.stop();
    await ledger.close();
    throw error;
  }
}

type Door = Awaited<ReturnType<typeof listen>>;
type Parts = Awaited<ReturnType<typeof assemble>>;

/** Makes the parts of a gateway that does not listen yet. */
async function assemble(first: Config, sink: LogSink, role: Role, signal: AbortSignal) {
  const inForce = { config: first };
  const secrets = () => [...inForce.config.secrets, ...(routes?.secrets() ?? [])];
  const log = createLog({ level: first.logLevel, secrets, ...sink });
  const store = await openStore(first.store, { readOnly: false });
  const { leaseMs } = first;
  const owner = `${hostname()}/${process.pid}/${newId(Date.now())}`;
  const now = () => store.now();
  const ledger = new Ledger({ store, now, random: Math.random, owner, leaseMs, claimMs, signal });
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
    place: store.isShared ? storePlace(store) : filePlace(first.home.subscriptions),
    ledger,
    memory: storeMemory(store),
    log,
    now,
    leaseMs,
    secrets,
    signal,
    lanes: role !== "ingest",
  };
  const routes: Routes | undefined = new Routes(common);
  const { rateLimit } = first.webhook;
  const rates = store.isShared ? new SharedRates(store, rateLimit, now) : new LocalRates(rateLimit, now);
  const withRoutes = Object.assign(common, { routes });
  const deliveries = new Deliveries(withRoutes);
  const worker = new Worker(Object.assign(withRoutes, { deliveries }));
  const wake = () => {
    worker.wake();
    store.announce("jobs");
  };
  const gateway: Gateway = Object.assign(withRoutes, { deliveries, rates, wake });
  const { memory } = common;
  const { isShared } = store;
  const settings = () => inForce.config;
  const attendants = new Attendants({ settings, memory, log, owner, isShared, leaseMs, now });
  const retention = new Retention({ store, settings: () => inForce.config.retention, log, now });
  const clockWatch = watchClock(store, retention, log);
  await ledger.takeOver();
  await routes.refresh();
  store.watch((news) => hear(news, worker, routes));
  const checkUp = async () => (role === "ingest" ? undefined : checkTargetsInUse(withRoutes));
  return { inForce, gateway, worker, ledger, routes, rates, attendants, retention, clockWatch, checkUp, log };
}

/** The ledger goes by this machine's clock, or by its database's; either may be set. */
function watchClock(store: Store, retention: Retention, log: Log): ClockWatch {
  const monotonicMs = () => performance.now();
  return new ClockWatch({ store, log, now: store.now, monotonicMs, jumped: () => retention.clockJumped() });
}

/** Another process did something. */
function hear(news: News, worker: Worker, routes: Routes): void {
  if (news === "subscriptions") routes.heard();
  else worker.hear(news);
}

/** Puts another configuration in force. */
function replace(parts: Parts, first: Config, next: Config, role: Role): void {
  const { inForce, rates, routes, worker, attendants, log } = parts;
  const keys = changesThatWait(first, next);
  if (keys.length > 0) log.warn({ keys }, "These changes take effect at the next start");
  inForce.config = next;
  rates.limit = next.webhook.rateLimit;
  routes.rebuild();
  worker.reconsider();
  if (role !== "ingest") attendants.reconsider();
}
