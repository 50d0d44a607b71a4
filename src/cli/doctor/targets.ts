import type { Config } from "../../config/load.ts";
import { destinationsOf } from "../../config/outlets.ts";
import type { Route } from "../../config/route.ts";
import { type Checkup, checkTargets, targetsToAsk } from "../../gateway/checkup.ts";
import { silentLog } from "../../lib/log.ts";
import { shortMemory } from "../target/memory.ts";
import { type Check, type Finding, findings } from "./finding.ts";

const { ok, warning, problem } = findings("targets");

/** Whether each target that a route uses, or that somebody set up, is set up as a whole, and works: its service is asked. */
export const checkServices: Check = async ({ config, routes, store }) => {
  if (!config) return [];
  const names = targetsToAsk(config, routes);
  const usable = names.filter((name) => whyUnusable(name, config) === undefined);
  const signal = new AbortController().signal;
  const tools = { config, memory: shortMemory(store), log: silentLog, secrets: () => config.secrets, signal };
  const checkups = new Map((await checkTargets(usable, tools)).map((one) => [one.target, one]));
  return names.map((name) => {
    const users = routes.filter((route) => uses(route, name)).map((route) => route.name);
    const checkup = checkups.get(name);
    return checkup ? judge(checkup, users) : notUsable(name, whyUnusable(name, config) ?? "", users);
  });
};

function uses(route: Route, name: string): boolean {
  return destinationsOf(route).some(({ target }) => target.name === name);
}

function whyUnusable(name: string, { platforms }: Config): string | undefined {
  const platform = platforms.get(name);
  if (!platform) return "it is not set up";
  return "unusable" in platform ? platform.unusable : undefined;
}

function inUse(users: readonly string[]): string {
  return users.length === 0 ? "no route uses it" : `used by ${users.join(", ")}`;
}

/** A static route whose target is not set up would have kept the gateway from starting. */
function notUsable(name: string, why: string, users: readonly string[]): Finding {
  const text = `"${name}" cannot be used (${inUse(users)}): ${why}`;
  return users.length > 0
    ? problem(text, "Set it up, or choose another target")
    : warning(text, "Set it up, or remove what there is of it");
}

function judge(checkup: Checkup, users: readonly string[]): Finding {
  const { target } = checkup;
  if ("said" in checkup) return ok(`"${target}" is set up (${inUse(users)})`, checkup.said);
  const text = `"${target}" does not work (${inUse(users)}): ${checkup.failure}`;
  const next = `Mend it, and see with "postern target check ${target}"`;
  return users.length > 0 ? problem(text, next) : warning(text, next);
}
