import { type Config, loadConfig } from "../../config/load.ts";
import { destinationsOf } from "../../config/outlets.ts";
import { targetNamed, targetNames } from "../../config/platforms.ts";
import type { Route } from "../../config/route.ts";
import type { Store, TargetTrouble } from "../../store/store.ts";
import { oneLine } from "../../target/neutralise.ts";
import type { SettingValues, Target } from "../../target/target.ts";
import { type CommonOptions, type Context, homeOf, print } from "../context.ts";
import { checkRoutes } from "../doctor/routes.ts";
import { table } from "../table.ts";
import { openIfThere } from "./memory.ts";

/** In the order in which they are shown. */
const states = ["paused", "ready", "unusable", "not set up"] as const;

interface Row {
  readonly name: string;
  readonly state: (typeof states)[number];
  /** The settings by which it is reached, for a service with several ways in. */
  readonly way: readonly string[] | undefined;
  readonly home: string | undefined;
  readonly routes: readonly string[];
  /** Why it cannot be used, or gets nothing now. */
  readonly reason: string | undefined;
  /** Unix time in milliseconds. */
  readonly pausedUntil: number | undefined;
}

/** Prints every target with what is known of it without asking anybody. */
export async function list(options: CommonOptions, context: Context): Promise<void> {
  const home = homeOf(context, options);
  const config = await loadConfig({ home, env: context.env });
  const { store, problem } = await openIfThere(home, config.store, "read");
  try {
    if (problem !== undefined) context.err(`Which targets are paused is not known: ${problem}\n`);
    const { routes } = await checkRoutes(home, config, store);
    const pauses = await pausesIn(store);
    const rows = targetNames.map((name) => rowOf(targetNamed(name), { config, routes, pauses }));
    rows.sort((one, other) => states.indexOf(one.state) - states.indexOf(other.state));
    print(context, options, rows, table(["NAME", "STATE", "WAY", "HOME", "ROUTES", "REASON"], rows.map(cellsOf)));
  } finally {
    await store?.close();
  }
}

/** What the ledger knows of services that kept failing. */
async function pausesIn(store: Store | undefined): Promise<readonly TargetTrouble[]> {
  if (!store) return [];
  const now = store.now();
  return (await store.listTroubles({})).filter(({ pausedUntil }) => pausedUntil > now);
}

interface Known {
  readonly config: Config;
  readonly routes: readonly Route[];
  readonly pauses: readonly TargetTrouble[];
}

function rowOf(target: Target, { config, routes, pauses }: Known): Row {
  const { name } = target;
  const platform = config.platforms.get(name);
  const users = routes.filter((route) => destinationsOf(route).some((one) => one.target === target));
  const common = { name, routes: users.map((route) => route.name) };
  if (!platform || "unusable" in platform) {
    const state = platform?.isSetUp ? "unusable" : "not set up";
    return { ...common, state, way: undefined, home: undefined, reason: platform?.unusable, pausedUntil: undefined };
  }
  const pause = pauses.find((one) => one.target === name);
  return {
    ...common,
    state: pause ? "paused" : "ready",
    way: wayOf(target, platform.values),
    home: homeChannelOf(platform.values),
    reason: pause && `${pause.reason ?? `${pause.failures} messages in a row failed`}`,
    pausedUntil: pause?.pausedUntil,
  };
}

/** The first way whose settings are all there: the one that the target takes. */
function wayOf({ ways }: Target, values: SettingValues): readonly string[] | undefined {
  return ways?.find((way) => way.every((name) => values[name] !== undefined));
}

function homeChannelOf({ home_channel: chat, home_thread_id: thread }: SettingValues): string | undefined {
  if (chat === undefined) return undefined;
  return thread === undefined ? String(chat) : `${chat} (thread ${thread})`;
}

function cellsOf({ name, state, way, home, routes, reason, pausedUntil }: Row): string[] {
  const until =
    pausedUntil === undefined ? "" : `until ${new Date(pausedUntil).toISOString().replace(/\.\d+Z$/, "Z")}: `;
  return [name, state, way?.join(" + ") ?? "", home ?? "", routes.join(", "), oneLine(`${until}${reason ?? ""}`)];
}
