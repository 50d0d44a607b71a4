/** When a failed try is made again, and how often. */
export interface RetryRule {
  /** Tries in all, the first one included. */
  readonly tries: number;
  readonly firstDelayMs: number;
  /** Each delay is this many times the one before. */
  readonly factor: number;
  readonly longestDelayMs: number;
}

/** Eight tries over about eleven hours: long enough for a service's bad night, short enough to notice. */
export const messageRule: RetryRule = { tries: 8, firstDelayMs: 2_000, factor: 5, longestDelayMs: 12 * 3_600_000 };

/** A run costs money: twice more, and only for what is likely to pass. */
export const runRule: RetryRule = { tries: 3, firstDelayMs: 5_000, factor: 6, longestDelayMs: 600_000 };

/**
 * Milliseconds until the next try after `failures` failed ones, or `undefined` when there is none. Jitter takes up to half
 * of the delay off, so that what failed together does not come back together. `random` gives numbers from 0 to 1.
 */
export function nextDelayMs(rule: RetryRule, failures: number, random: () => number): number | undefined {
  if (failures >= rule.tries) return undefined;
  const delay = Math.min(rule.firstDelayMs * rule.factor ** (failures - 1), rule.longestDelayMs);
  return Math.round(delay * (1 - random() / 2));
}
