import { type RenderedMap, renderMap, type Scope } from "../compose/template.ts";
import type { Config } from "../config/load.ts";
import type { Platforms } from "../config/platforms.ts";
import type { Outlet, Route } from "../config/route.ts";
import { DeliveryError } from "../core/errors.ts";
import type { Event } from "../core/types.ts";
import type { Draft, Plan } from "../ledger/ledger.ts";
import { acceptsType } from "../select/events.ts";
import { matches } from "../select/filter.ts";
import { runScript } from "../select/script.ts";
import { readAddress } from "../target/settings.ts";
import type { Target } from "../target/target.ts";

/** What a route makes of an event: it declines it, or there is a text with the places it, or its answer, goes to. */
export type Shape = Declined | Composed;

export interface Declined {
  /** The clause that declined the event, and what it found. Holds no more of the payload than that value. */
  readonly ignored: string;
  /** What the sender is told of it. */
  readonly detail: { readonly event: string } | { readonly reason: "filter" | "script" };
}

export interface Composed {
  /** The prompt, or the message of a direct delivery. */
  readonly text: string;
  readonly drafts: readonly Draft[];
}

/** What an event's shape depends on beside its route. */
export type ShapeConfig = Pick<Config, "home" | "env" | "python" | "webhook" | "platforms">;

/**
 * Decides on a parsed event and composes what follows from it (specification section 4.2, steps 6 to 8). Changes nothing:
 * requests and replays ask the same.
 * @throws Rejection `unavailable` when a script could not decide, because it could not be started now.
 */
export async function shape(route: Route, event: Event, config: ShapeConfig): Promise<Shape> {
  if (!acceptsType(route.events, event)) {
    return { ignored: `the event type is not in "events"`, detail: { event: event.type } };
  }
  const mismatch = route.filter && (await matches(route.filter, event));
  if (mismatch) return { ignored: `${mismatch.clause}, found ${mismatch.value}`, detail: { reason: "filter" } };
  const scope = await transform(route, event, config);
  if ("ignored" in scope) return { ignored: scope.ignored, detail: { reason: "script" } };
  return { text: route.compose(scope), drafts: route.outlets.map((outlet) => draft(outlet, scope, route, config)) };
}

/** What a run is made from. */
export function planOf(route: Route, prompt: string): Plan {
  return { prompt, skills: route.skills, tools: route.tools };
}

/**
 * Names the place that a message goes to, so that one chat is one lane whether a route names it or it is the home channel.
 * `null`, which is in no order, for the log, and for an address that the send will refuse anyway.
 */
export function laneOf(target: Target, extra: Readonly<Record<string, string>>, platforms: Platforms): string | null {
  const platform = platforms.get(target.name);
  if (target.name === "log" || !platform || "unusable" in platform) return null;
  try {
    return JSON.stringify([target.name, readAddress(target, extra, platform.values)]);
  } catch (error) {
    if (error instanceof DeliveryError) return null;
    throw error;
  }
}

async function transform(
  route: Route,
  event: Event,
  config: ShapeConfig,
): Promise<Scope | { readonly ignored: string }> {
  if (route.script === undefined) return event;
  const result = await runScript({
    script: route.script,
    home: config.home.folder,
    event,
    python: config.python,
    timeoutMs: config.webhook.scriptTimeoutMs,
    env: config.env,
    extraEnv: route.scriptEnv,
  });
  return "ignored" in result ? result : { payload: result.payload, type: event.type };
}

function draft({ target, extra: templates }: Outlet, scope: Scope, route: Route, { platforms }: ShapeConfig): Draft {
  const extra = flat(renderMap(templates, scope));
  // The sender of a direct delivery waits: it cannot stand in a queue.
  return { target: target.name, extra, lane: route.isDirect ? null : laneOf(target, extra, platforms) };
}

/** Addresses are plain texts; a mapping inside one was refused when the route was loaded. */
function flat(map: RenderedMap): Record<string, string> {
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
