import type { DeliveryError } from "../core/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Answer, Conversation } from "./conversation.ts";
import type { Part } from "./target.ts";

/** What became of a message for one recipient: a member of a group, say. */
export interface RecipientResult {
  /** `SUCCESS`, or what failed. */
  readonly type: string;
  readonly retryAfterSeconds: number | undefined;
  readonly needsCaptcha: boolean;
}

const advice = new Map([
  ["IDENTITY_FAILURE", "the recipient's key is new; trust it with signal-cli's \"trust\""],
  ["UNREGISTERED_FAILURE", "the recipient is not on Signal; check the number"],
  ["INVALID_PRE_KEY_FAILURE", "the recipient's keys are not good; they mend it by opening Signal"],
]);

/** The failure of a message that reached nobody. */
export function fateOf(
  talk: Conversation,
  answer: Answer,
  words: string,
  results: readonly RecipientResult[],
  isLimited = false,
): DeliveryError {
  const types = new Set(results.map(({ type }) => type));
  const said = types.size === 0 ? words : `${words} (${[...types].join(", ")})`;
  // Nobody knows whether it went out before the network failed.
  if (types.has("NETWORK_FAILURE")) return talk.unclear(answer, said);
  if (isLimited || types.has("RATE_LIMIT_FAILURE")) return limited(talk, answer, said, results);
  const [type = ""] = types;
  return talk.refused(answer, said, advice.get(type));
}

function limited(talk: Conversation, answer: Answer, said: string, results: readonly RecipientResult[]): DeliveryError {
  const waits = results.map(({ retryAfterSeconds: wait }) => wait).filter((wait) => wait !== undefined && wait >= 0);
  const waitMs = waits.length === 0 ? undefined : Math.ceil(Math.max(...(waits as number[])) * 1000);
  const needsCaptcha = results.some((result) => result.needsCaptcha);
  const how = needsCaptcha ? "; a captcha ends it sooner, see signal-cli's submitRateLimitChallenge" : "";
  return talk.later(answer, said + how, waitMs);
}

/**
 * Some got it and some did not: trying again would reach those a second time who have it. Answers with a note for the
 * receipt, and warns; `undefined` when all got it.
 */
export function reportPartial(results: readonly RecipientResult[], part: Part, log: Log): string | undefined {
  const failed = results.filter(({ type }) => type !== "SUCCESS");
  if (failed.length === 0) return undefined;
  const reasons = [...new Set(failed.map(({ type }) => type))].join(", ");
  const left = `not to ${failed.length} of ${results.length} (${reasons})`;
  log.warn(
    { target: "signal", route: part.route, event: part.eventType, failed: failed.length, reasons },
    "Signal took the message for some members of the group only",
  );
  return left;
}
