import type { Place } from "../store/store.ts";

/** A message as the request path composes it. */
export interface Draft extends Place {
  /** Where it goes instead, one after the other, when it is given up. */
  readonly fallback: readonly Place[];
}

/** A fallback as the store keeps it; `null` when there is none. */
export function fallbackText(places: readonly Place[]): string | null {
  // No more than these: what stands beside them is nobody's business.
  const kept = places.map(({ target, extra, lane, refusal }) => ({ target, extra, lane, refusal }));
  return kept.length === 0 ? null : JSON.stringify(kept);
}

/** Reads what `fallbackText` wrote. */
export function placesIn(fallback: string | null): readonly Place[] {
  return JSON.parse(fallback ?? "[]") as Place[];
}
