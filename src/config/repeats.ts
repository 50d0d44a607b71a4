import { type Outlet, placeOf } from "./outlets.ts";
import type { Platforms } from "./platforms.ts";
import type { Route } from "./route.ts";
import type { RouteConfig } from "./schema.ts";

/** What a route names more often than once, as warnings: whoever is there gets a message twice, or not even at last. */
export function repeats(route: Route, config: RouteConfig, platforms: Platforms): string[] {
  const places = route.outlets.map((outlet) => placeOf(outlet, platforms));
  const twice = route.outlets.filter((_, index) => places.indexOf(places[index] ?? "") < index);
  const again = route.outlets.filter((outlet) => isInVain(outlet, config, platforms));
  return [
    ...namesOf(twice).map(
      (name) => `"${route.name}" sends to "${name}" twice at the same place; leave one of them out`,
    ),
    ...namesOf(again).map(
      (name) =>
        `A fallback of "${name}" in "${route.name}" is a place that has given the message up already; name another`,
    ),
  ];
}

function namesOf(outlets: readonly Outlet[]): string[] {
  return [...new Set(outlets.map(({ target }) => target.name))];
}

function isInVain({ fallback, ...first }: Outlet, config: RouteConfig, platforms: Platforms): boolean {
  const places = [first, ...fallback].map((one) => placeOf(one, platforms));
  return new Set(places).size < places.length || lostFallback(fallback, config);
}

/** The fallback of a route is for all its entries, and each goes without itself; with one entry that helps nobody. */
function lostFallback(fallback: Outlet["fallback"], { deliver, fallback: common }: RouteConfig): boolean {
  const [only, ...others] = deliver;
  const hasOwn = typeof only === "object" && only.fallback !== undefined;
  return others.length === 0 && !hasOwn && fallback.length < common.length;
}
