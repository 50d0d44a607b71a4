/** A clock that stands still until it is told to go on. */
export interface Clock {
  /** Unix milliseconds. */
  readonly now: () => number;
  advance(ms: number): void;
}

export function makeClock(startsAt = Date.UTC(2026, 0, 15, 12)): Clock {
  let now = startsAt;
  return {
    now: () => now,
    advance(ms) {
      now += ms;
    },
  };
}
