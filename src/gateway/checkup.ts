import type { Config } from "../config/load.ts";
import { destinationsOf } from "../config/outlets.ts";
import { findTarget } from "../config/platforms.ts";
import { DeliveryError } from "../core/errors.ts";
import { redact } from "../core/text.ts";
import type { Log } from "../lib/log.ts";
import type { Memory, SettingValues, Target } from "../target/target.ts";
import type { Routes } from "./routes.ts";

/** What came of asking a target whether its settings work: sentences without a full stop. */
export type Checkup =
  | { readonly target: string; readonly said: readonly string[] }
  | { readonly target: string; readonly failure: string };

export interface CheckupTools {
  readonly config: Pick<Config, "platforms" | "env">;
  readonly memory: Memory;
  readonly log: Log;
  /** Values that must not stand in an answer. */
  readonly secrets: () => readonly string[];
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** For each target; 30 seconds when not set. */
  readonly timeoutMs?: number;
}

/** Asks targets at the same time whether their settings work (`Target.check`). Sends nothing. Never rejects. */
export function checkTargets(names: readonly string[], tools: CheckupTools): Promise<Checkup[]> {
  return Promise.all(names.map((name) => checkTarget(name, tools)));
}

async function checkTarget(name: string, tools: CheckupTools): Promise<Checkup> {
  const clean = (text: string) => redact(text, tools.secrets());
  const target = findTarget(name);
  const platform = target && tools.config.platforms.get(target.name);
  if (!target || !platform) return { target: name, failure: "This version has no such target" };
  if ("unusable" in platform) return { target: name, failure: `It cannot be used: ${clean(platform.unusable)}` };
  try {
    return { target: name, said: (await ask(target, platform.values, tools)).map(clean) };
  } catch (error) {
    if (!(error instanceof DeliveryError)) tools.log.debug({ err: error, target: name }, "A check failed unexpectedly");
    const why = error instanceof Error ? error.message : String(error);
    return { target: name, failure: clean(error instanceof DeliveryError ? why : `The check failed: ${why}`) };
  }
}

/** A target keeps a time limit by itself; this one holds whatever it does. */
async function ask(target: Target, values: SettingValues, tools: CheckupTools): Promise<readonly string[]> {
  const { config, memory, log, signal, timeoutMs = 30_000 } = tools;
  const end = new AbortController();
  const { promise: cut, reject } = Promise.withResolvers<never>();
  const give = (why: string) => () => {
    reject(new DeliveryError(why, { sent: "no" }));
    end.abort();
  };
  const timer = setTimeout(give(`No answer within ${timeoutMs / 1000} seconds`), timeoutMs);
  const stop = give("Not waited for: it was stopped");
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (signal.aborted) stop();
    return await Promise.race([target.check(values, { env: config.env, log, memory, signal: end.signal }), cut]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

type Routed = Parameters<typeof destinationsOf>[0];

/** The targets whose working matters, by name: those that a route uses, and those that somebody began to set up. */
export function targetsToAsk({ platforms }: Pick<Config, "platforms">, routes: readonly Routed[]): string[] {
  const setUp = [...platforms].flatMap(([name, { isSetUp }]) => (isSetUp ? [name] : []));
  return [...new Set([...targetsOf(routes), ...setUp])].sort();
}

/** The targets, by name, that messages of these routes may go to. */
export function targetsOf(routes: readonly Routed[]): string[] {
  return [...new Set(routes.flatMap(destinationsOf).map(({ target }) => target.name))].sort();
}

/**
 * Asks the targets that routes use, for a gateway that has just started: one line of the log for each that does not work.
 * Nothing waits for it, and nothing is refused because of it: the service may be back when the first message comes.
 */
export async function checkTargetsInUse(tools: CheckupTools & { readonly routes: Pick<Routes, "all"> }): Promise<void> {
  const { routes, config, log, signal } = tools;
  const names = targetsOf(routes.all()).filter((name) => "values" in (config.platforms.get(name) ?? {}));
  for (const one of await checkTargets(names, tools)) {
    if ("said" in one) log.debug({ target: one.target, said: one.said }, "The target works");
    else if (!signal.aborted) log.warn({ target: one.target, reason: one.failure }, notWorking);
  }
}

const notWorking = 'A target that routes use does not work now; see "postern target check"';
