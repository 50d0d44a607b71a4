import type { Target } from "../target/target.ts";
import { destinationsOf } from "./outlets.ts";
import type { Route } from "./route.ts";

/**
 * The address fields that name a message's place: its chat, its address, its repository, and what leads elsewhere by itself.
 * A target that writes to one place only, whatever a route says, has none.
 */
export function placeFields({ address }: Target): string[] {
  const fields = Object.entries(address);
  const main = fields.find(([, { homeChannel }]) => homeChannel) ?? fields.find(([, { required }]) => required);
  return fields.filter((field) => field === main || field[1].leadsElsewhere).map(([name]) => name);
}

/** The keys of `deliver_extra` that can hold a field, the one that wins first. */
export function keysOf({ address }: Target, field: string): readonly string[] {
  return [field, ...(address[field]?.alternatives ?? [])];
}

/** Whether what a template gives depends on the payload. */
export function isOpen(template: string): boolean {
  return /\{[^{}\s]+\}/.test(template);
}

/** Whether a place is one of those that are allowed; a list of addresses, when each of them is. */
export function isAllowed(place: string, allowed: readonly string[]): boolean {
  return allowed.includes(place) || place.split(",").every((one) => allowed.includes(one.trim()));
}

/** Services that reach anybody, or cost money for each message. */
const reachAnybody = ["sms", "email", "http"];

/** The targets for which senders of a route can choose anybody, because nothing bounds the place that its template names. */
export function unboundedTargets(route: Route): string[] {
  if (route.allowChatIds !== undefined) return [];
  const unbounded = destinationsOf(route).filter(({ target, extra }) => {
    const keys = placeFields(target).flatMap((field) => keysOf(target, field));
    return reachAnybody.includes(target.name) && keys.some((key) => isOpen(extra[key] ?? ""));
  });
  return [...new Set(unbounded.map(({ target }) => target.name))];
}
