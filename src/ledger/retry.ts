import type { DeliveryError } from "../core/errors.ts";
import type { MessageRule } from "../core/retry.ts";
import type { TargetHealth } from "../store/store.ts";
import type { Target } from "../target/target.ts";

/** How waits grow from one failed try to the next. */
export type Backoff = Pick<MessageRule, "firstDelayMs" | "factor" | "longestDelayMs">;

/** A run costs money: twice more, and only for what is likely to pass. */
export const runRule: Backoff & { readonly tries: number } = {
  tries: 3,
  firstDelayMs: 5_000,
  factor: 6,
  longestDelayMs: 600_000,
};

/** What a service makes of a part that is sent to it twice. */
export type Repeats = Target["repeats"];

/** A try to send that failed, as the rule sees it. */
export interface FailedTry {
  /** Tries that failed so far, with this one. */
  readonly failures: number;
  /** When the message's text was known: its age counts from here. */
  readonly readyAt: number;
  readonly now: number;
  readonly error: DeliveryError;
  readonly repeats: Repeats;
}

/** What follows on a failed try: another one, or the end with a reason for people that holds the target's last words. */
export type NextTry = { readonly dueAt: number; readonly leaveLane: boolean } | { readonly giveUp: string };

/** However small the random number: a wait of nothing would hit a service that has just failed. */
const leastDelayMs = 250;
/** A service that asks for more than a day has not answered the question. */
const longestAskedMs = 86_400_000;
/** A service may take a moment to show what it took, and it is asked before the next try. */
const readBackMs = 5_000;

/** When the tries of so many messages in a row have failed, their target is paused: twice as long each time. */
const breaker = { threshold: 5, firstPauseMs: 5_000, longestPauseMs: 300_000 } as const;

/**
 * Milliseconds until the next try after `failures` failed ones, full jitter: anything up to the backoff's delay, so that
 * what failed together does not come back together. `random` gives numbers from 0 to 1.
 */
export function jitteredMs(backoff: Backoff, failures: number, random: () => number): number {
  const growth = Math.min(backoff.factor ** (failures - 1), Number.MAX_VALUE);
  const longest = Math.min(backoff.firstDelayMs * growth, backoff.longestDelayMs);
  return Math.round(Math.max(random() * longest, Math.min(leastDelayMs, longest)));
}

/** Decides what follows on a failed try. */
export function afterFailure(rule: MessageRule, failed: FailedTry, random: () => number): NextTry {
  const { failures, readyAt, now, error } = failed;
  if (error.retryAfterMs === "never") return { giveUp: error.message };
  if (error.sent === "maybe" && mustNotRepeat(rule, failed.repeats)) return { giveUp: unsureReason(error.message) };
  if (failures >= rule.tries) return { giveUp: `Given up after ${counted(failures)}: ${error.message}` };
  const lastAt = readyAt + rule.maxAgeMs;
  if (now >= lastAt) return { giveUp: `Given up after ${spoken(rule.maxAgeMs)}: ${error.message}` };
  const waitMs = Math.max(jitteredMs(rule, failures, random), leastWaitMs(failed));
  // The last try is made when the time is up, not never.
  const dueAt = Math.min(now + waitMs, lastAt);
  return { dueAt, leaveLane: dueAt > readyAt + rule.keepOrderMs };
}

/** Whether a part that the target may have taken must not be sent to it again. */
export function mustNotRepeat(rule: MessageRule, repeats: Repeats): boolean {
  return rule.whenUnknown === "at_most_once" && repeats === "doubled";
}

/** Why a message is given up that may have been sent. */
export function unsureReason(words: string): string {
  return `It may have been sent; not tried again because of at_most_once: ${words}`;
}

/** What a failed try says of its target: it asks for time, it has trouble, or (refused for good) nothing. */
export function healthAfter({ message: reason, retryAfterMs }: DeliveryError, now: number): TargetHealth | null {
  if (retryAfterMs === "never") return null;
  if (retryAfterMs === undefined) return { mark: "trouble", ...breaker, reason };
  return { mark: "busy", until: now + Math.min(retryAfterMs, longestAskedMs), reason };
}

/** What the service asks for, and what it may need. */
function leastWaitMs({ error, repeats }: FailedTry): number {
  const asked = typeof error.retryAfterMs === "number" ? Math.min(error.retryAfterMs, longestAskedMs) : 0;
  return error.sent === "maybe" && repeats === "findable" ? Math.max(asked, readBackMs) : asked;
}

function counted(tries: number): string {
  return tries === 1 ? "one try" : `${tries} tries`;
}

/** A length of time for people, in the largest unit that it fills. */
function spoken(ms: number): string {
  const [unit, length] = ms >= 3_600_000 ? ["h", 3_600_000] : ms >= 60_000 ? ["min", 60_000] : ["s", 1_000];
  return `${Math.round((ms / Number(length)) * 10) / 10} ${unit}`;
}
