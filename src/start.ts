import { hostname } from "node:os";
import { join } from "node:path";
import * as agents from "./agent/registry.ts";
import type { Config } from "./config/load.ts";
import { UserError } from "./core/errors.ts";
import { newId } from "./core/id.ts";
import { Deliveries } from "./gateway/deliver.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { Rates } from "./gateway/rates.ts";
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
}

/**
 * Puts a gateway together and starts it.
 * @throws UserError when the home is in use or the address cannot be listened on; StoreRefused when its ledger is not ours.
 */
export async function startGateway(config: Config, sink: LogSink): Promise<Running> {
  await makePrivateFolder(config.home.folder);
  await makePrivateFolder(config.home.data);
  const lock = lockHome(config);
  try {
    return await startLocked(config, sink, lock);
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

async function startLocked(config: Config, sink: LogSink, lock: Lock): Promise<Running> {
  const now = Date.now;
  const end = new AbortController();
  const secrets = () => [...config.secrets, ...(routes?.secrets() ?? [])];
  const log = createLog({ level: config.logLevel, secrets, ...sink });
  const context = { ...config.routeContext, warn: (message: string) => log.warn({}, message) };
  const routes: Routes | undefined = new Routes({ home: config.home, fixed: config.routes, context, log });
  const store = await stores.sqlite({ path: config.home.ledger, readOnly: false });
  const owner = `${hostname()}/${process.pid}/${newId(now())}`;
  const ledger = new Ledger({ store, now, random: Math.random, owner, leaseMs, claimMs });
  await ledger.takeOver();
  await routes.refresh();
  const common = { config, ledger, log, now, secrets, signal: end.signal };
  const deliveries = new Deliveries(common);
  const agent = agents[config.agent.backend];
  const worker = new Worker({ ...common, deliveries, agent, sandbox: sandboxes[config.sandbox], leaseMs });
  const rates = new Rates(config.webhook.rateLimit, now);
  const gateway: Gateway = { config, routes, rates, ledger, deliveries, log, now, wake: () => worker.wake() };
  const server = await listen(gateway).catch(async (error: unknown) => {
    await ledger.close();
    throw error;
  });
  worker.start();
  return {
    host: server.host,
    port: server.port,
    routes: routes.names(),
    log,
    async stop() {
      await Promise.all([server.close(config.shutdownTimeoutMs), worker.drain(config.shutdownTimeoutMs)]);
      end.abort();
      await worker.settle();
      await ledger.close();
      lock.release();
    },
  };
}
