import { type Config, loadConfig } from "../../config/load.ts";
import { targetNamed } from "../../config/platforms.ts";
import type { Route } from "../../config/route.ts";
import { type Checkup, checkTargets, targetsOf, targetsToAsk } from "../../gateway/checkup.ts";
import { silentLog } from "../../lib/log.ts";
import type { Memory } from "../../target/target.ts";
import { type CommonOptions, type Context, homeOf, print } from "../context.ts";
import { checkRoutes } from "../doctor/routes.ts";
import { openIfThere, shortMemory } from "./memory.ts";

/** A target that was asked, or that could not be: somebody began to set it up, but no route needs it. */
type Result = Checkup | { readonly target: string; readonly skipped: string };

/** Asks the named targets, else all that are set up or that a route uses, whether their settings work. */
export async function check(names: readonly string[], options: CommonOptions, context: Context): Promise<void> {
  const home = homeOf(context, options);
  const config = await loadConfig({ home, env: context.env });
  const { store, problem } = await openIfThere(home, config.store, "read");
  try {
    if (problem !== undefined) context.err(`What targets remember is not known: ${problem}\n`);
    const { routes } = await checkRoutes(home, config, store);
    const results = await examine(names, config, routes, shortMemory(store));
    if (results.some((result) => "failure" in result)) context.setExitCode(1);
    const lines = results.length === 0 ? ['No target is set up; see "postern target list"'] : results.flatMap(inWords);
    print(context, options, results.map(forMachines), lines);
  } finally {
    await store?.close();
  }
}

async function examine(
  names: readonly string[],
  config: Config,
  routes: readonly Route[],
  memory: Memory,
): Promise<Result[]> {
  const known = [...new Set(names.map((name) => targetNamed(name).name))];
  const wanted = known.length > 0 ? known : targetsToAsk(config, routes);
  const used = new Set([...known, ...targetsOf(routes)]);
  const skipped = wanted.filter((name) => !used.has(name)).flatMap((name) => unusable(name, config));
  const asked = wanted.filter((name) => !skipped.some(({ target }) => target === name));
  const secrets = () => config.secrets;
  const signal = new AbortController().signal;
  return [...(await checkTargets(asked, { config, memory, log: silentLog, secrets, signal })), ...skipped];
}

/** A stray variable of another program makes no target: what cannot be used is no failure when nobody asked for it. */
function unusable(name: string, { platforms }: Config): { target: string; skipped: string }[] {
  const platform = platforms.get(name);
  return platform && "unusable" in platform ? [{ target: name, skipped: platform.unusable }] : [];
}

function inWords(result: Result): string[] {
  const { target } = result;
  if ("failure" in result) return [`FAILED  ${target}: ${result.failure}`];
  if ("skipped" in result) return [`-       ${target}: cannot be used, and no route does: ${result.skipped}`];
  const [first = "", ...others] = result.said;
  return [`ok      ${target}: ${first}`, ...others.map((sentence) => `          ${sentence}`)];
}

function forMachines(result: Result) {
  const state = "said" in result ? "ok" : "failure" in result ? "failed" : "skipped";
  const { target, ...rest } = { said: [], failure: undefined, skipped: undefined, ...result };
  return { target, state, said: rest.said, reason: rest.failure ?? rest.skipped };
}
