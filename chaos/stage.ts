import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeRandom } from "../bench/fuzz-random.ts";
import type { StoreSettings } from "../src/store/settings.ts";
import { type Network, startNetwork } from "../test/tools/network.ts";
import { stablePort } from "../test/tools/port.ts";
import type { OwnPostgresServer } from "../test/tools/postgres.ts";
import { watchedAgent } from "./agent.ts";
import { type Disk, mountDisk } from "./disk.ts";
import { ChaosGateway } from "./gateway.ts";
import type { ChaosOptions, RoundPlan } from "./plan.ts";
import type { Copy, Lookup } from "./road.ts";
import { chaosRoutes } from "./routes.ts";
import { type Access, openServices } from "./services.ts";

export const secret = "the-secret-of-all-routes-of-the-chaos";

/** Everything that takes part in a round. */
export interface Stage {
  readonly folder: string;
  /** Where the agents write down when they ran. */
  readonly runsFile: string;
  readonly gateways: readonly ChaosGateway[];
  /** The way from each gateway to the database; none with SQLite. */
  readonly networks: readonly Network[];
  readonly server: OwnPostgresServer | undefined;
  readonly disk: Disk | undefined;
  /** Where the ledger is, reached without the ways that faults happen to. */
  readonly ledger: StoreSettings;
  readonly copies: readonly Copy[];
  readonly lookups: readonly Lookup[];
  /** Kills what runs and removes the folder, unless it is to be kept. */
  close(keep: boolean): Promise<void>;
}

/** Enough for a round; the gateway writes about a third of it. */
const diskBytes = 48 * 1_048_576;
const schema = "postern";

/** Sets the stage of a round in `folder`; nothing runs yet. */
export async function setStage(
  plan: RoundPlan,
  options: ChaosOptions,
  folder: string,
  server: OwnPostgresServer | undefined,
): Promise<Stage> {
  const copies: Copy[] = [];
  const lookups: Lookup[] = [];
  await mkdir(folder, { recursive: true });
  const random = makeRandom(options.seed, 1_000_000 + plan.number);
  const { sabotage } = options;
  const road = { random, isHonest: plan.isStrict, sabotage, copies, lookups };
  const services = await openServices(folder, plan.roles.length, road);
  const url = await server?.createDatabase();
  const networks = await Promise.all(plan.roles.map(() => (server ? startNetwork(server.port) : undefined)));
  const runsFile = join(folder, "runs");
  const gateways = await Promise.all(
    plan.roles.map(async (role, index) => {
      const home = join(folder, `gateway-${index + 1}`);
      const port = await stablePort();
      const access = services.access[index]!;
      const via = url === undefined ? undefined : through(url, networks[index]!);
      await writeHome(home, configuration(plan, options, access, port, via, runsFile));
      return new ChaosGateway({ index, home, role, port, env: access.env });
    }),
  );
  const data = join(gateways[0]!.settings.home, "data");
  const disk = plan.faults.some(({ kind }) => kind === "disk") ? mountDisk(data, diskBytes) : undefined;
  const ledger = url === undefined ? sqliteAt(data) : ({ kind: "postgres", url, schema } as const);
  return {
    ...{ folder, runsFile, gateways, server, disk, ledger, copies, lookups },
    networks: networks.filter((network) => network !== undefined),
    async close(keep) {
      await Promise.all(gateways.map((gateway) => gateway.kill()));
      disk?.unmount(keep);
      await Promise.all([services.close(), ...networks.map((network) => network?.close())]);
      if (!keep) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function sqliteAt(data: string): StoreSettings {
  return { kind: "sqlite", path: join(data, "ledger.db") };
}

function through(url: string, { port }: Network): string {
  const via = new URL(url);
  via.port = String(port);
  return via.href;
}

async function writeHome(home: string, config: object): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  // JSON is YAML too.
  await writeFile(join(home, "config.yaml"), JSON.stringify(config, undefined, 2), { mode: 0o600 });
}

function configuration(
  plan: RoundPlan,
  { leaseMs }: ChaosOptions,
  { telegram }: Access,
  port: number,
  url: string | undefined,
  runsFile: string,
): object {
  const routes = Object.entries(chaosRoutes).map(([name, { config }]) => [name, config]);
  const lease = `${leaseMs}ms`;
  return {
    platforms: {
      webhook: {
        ...{ enabled: true, host: "127.0.0.1", port, rate_limit: 1_000_000, secret },
        routes: Object.fromEntries(routes),
      },
      telegram: { enabled: true, token: telegram.token, extra: { base_url: telegram.baseUrl } },
    },
    agent: {
      ...(plan.agent === "preview" ? { backend: "preview" } : { backend: "command", command: watchedAgent(runsFile) }),
      max_concurrent: 8,
    },
    store: url === undefined ? { lease } : { url, schema, lease },
    shutdown_timeout: "20s",
  };
}
