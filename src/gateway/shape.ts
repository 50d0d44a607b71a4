import { type RenderedMap, renderMap, type Scope } from "../compose/template.ts";
import type { Config } from "../config/load.ts";
import type { Destination, Outlet } from "../config/outlets.ts";
import { isAllowed, isOpen, keysOf, placeFields } from "../config/places.ts";
import { findTarget, type Platforms } from "../config/platforms.ts";
import type { Route } from "../config/route.ts";
import { DeliveryError } from "../core/errors.ts";
import type { Event } from "../core/types.ts";
import type { Draft } from "../ledger/fallback.ts";
import type { Plan } from "../ledger/ledger.ts";
import { acceptsType } from "../select/events.ts";
import { matches } from "../select/filter.ts";
import { runScript } from "../select/script.ts";
import type { Place } from "../store/store.ts";
import { readAddress } from "../target/address.ts";
import { quote } from "../target/failure.ts";
import type { Address, Target } from "../target/target.ts";

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
export function planOf(route: Route, { text, drafts }: Composed, { platforms }: Pick<Config, "platforms">): Plan {
  const hopeless = whyHopeless(drafts, platforms);
  return { prompt: text, skills: route.skills, tools: route.tools, ...(hopeless !== undefined && { hopeless }) };
}

/**
 * Why a run would be made for nothing: none of the messages, and none of their fallbacks, can go where it is addressed to.
 * `undefined` as soon as one can, or may when a target is set up again.
 */
export function whyHopeless(drafts: readonly Draft[], platforms: Platforms): string | undefined {
  const reasons = drafts.flatMap(({ fallback, ...first }) => [first, ...fallback]).map(obstacleIn(platforms));
  return reasons.every((reason) => reason !== undefined) ? reasons[0] : undefined;
}

function obstacleIn(platforms: Platforms): (place: Place) => string | undefined {
  return ({ target: name, extra, refusal }) => {
    if (refusal !== null) return refusal;
    const target = findTarget(name);
    const address = target && addressOf(target, extra, platforms);
    return address && "refused" in address ? address.refused : undefined;
  };
}

/**
 * Names the place that a message goes to, so that one chat is one lane whether a route names it or it is the home channel.
 * `null`, which is in no order, for the log, and for an address that the send will refuse anyway.
 */
export function laneOf(target: Target, extra: Readonly<Record<string, string>>, platforms: Platforms): string | null {
  const address = target.name === "log" ? undefined : addressOf(target, extra, platforms);
  return address && "known" in address ? JSON.stringify([target.name, address.known]) : null;
}

/** The address that the send will find, or why it will refuse it; `undefined` when the target is not set up. */
function addressOf(
  target: Target,
  extra: Readonly<Record<string, string>>,
  platforms: Platforms,
): { readonly known: Address } | { readonly refused: string } | undefined {
  const platform = platforms.get(target.name);
  if (!platform || "unusable" in platform) return undefined;
  try {
    return { known: readAddress(target, extra, platform.values) };
  } catch (error) {
    if (error instanceof DeliveryError) return { refused: error.message };
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

function draft({ fallback, ...first }: Outlet, scope: Scope, route: Route, { platforms }: ShapeConfig): Draft {
  const place = (destination: Destination) => placeOf(destination, scope, route, platforms);
  return { ...place(first), fallback: fallback.map(place) };
}

function placeOf(destination: Destination, scope: Scope, route: Route, platforms: Platforms): Place {
  const { target } = destination;
  const extra = flat(renderMap(destination.extra, scope));
  const refusal = refusalOf(destination, extra, route, platforms);
  // The sender of a direct delivery waits: it cannot stand in a queue.
  return { target: target.name, extra, lane: route.isDirect ? null : laneOf(target, extra, platforms), refusal };
}

/** Why the route does not let a message go where the payload leads it. What the operator has written is not questioned. */
function refusalOf(
  { target, extra: templates }: Destination,
  extra: Readonly<Record<string, string>>,
  { allowChatIds }: Route,
  platforms: Platforms,
): string | null {
  const address = allowChatIds && addressOf(target, extra, platforms);
  // What is no address at all is refused for that when it is sent.
  if (!address || !("known" in address)) return null;
  for (const field of placeFields(target)) {
    const key = keysOf(target, field).find((name) => (extra[name] ?? "").trim() !== "");
    const place = address.known[field];
    if (key === undefined || place === undefined || !isOpen(templates[key] ?? "")) continue;
    if (isAllowed(place, allowChatIds)) continue;
    return `Cannot send to "${target.name}": "${key}" is ${quote(place, 100)}, which is not in "allow_chat_ids" of the route`;
  }
  return null;
}

/** Addresses are plain texts; a mapping inside one was refused when the route was loaded. */
function flat(map: RenderedMap): Record<string, string> {
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
