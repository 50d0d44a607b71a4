import { DeliveryError } from "../core/errors.ts";
import type { Granted } from "./access-token.ts";
import { type Answer, type Conversation, numberOf, textOf } from "./conversation.ts";
import type { Receipt } from "./target.ts";

// https://bot.q.qq.com/wiki/develop/api-v2/openapi/error/error.html, and codes that bots meet without finding them there.

/** The message that is answered to is too old, or has had its answers. */
const expired = new Set([
  304_027, 304_103, 40_034_005, 40_034_024, 40_034_025, 40_034_026, 40_034_027, 40_034_031, 40_034_128,
]);
/** The bot may not send Markdown, or not this one. */
const markdownRefused = new Set([304_036, 40_034_008, 40_034_009, 40_034_010, 40_034_011, 40_034_124, 40_034_127]);
/** An answer with this `msg_id` and `msg_seq` is there already. */
const repeated = 40_054_005;
/** It is kept for a review; what comes of that is told to the bot's socket only. */
const inReview = new Set([304_023, 304_024]);
/** Too much at once. QQ rarely says for how long, so a minute is a guess: it is what the services like it count by. */
const tooOften = new Set([22_009, 40_034_100]);
const tooOftenMs = 60_000;
/** A failure within QQ of which its documentation says to try again. */
const passing = new Set([11_242, 11_252, 11_263, 11_281]);
/** The token is not good, or not any more. */
const staleToken = new Set([11_243, 11_244]);

const onlyAnswers = 'QQ lets most bots only answer: set "msg_id" to a message that the bot got';

const advice = new Map([
  [40_034_102, onlyAnswers],
  [40_034_105, `this chat has switched messages of the bot off; ${onlyAnswers}`],
  [40_054_002, "the bot is muted there; ask for an end of that"],
  [40_054_003, "add the bot to the group"],
  [40_034_101, "add the bot to the group"],
  [40_054_004, "the person must add the bot as a friend"],
  [40_054_010, "register the addresses that the text names for the bot, or leave them out"],
  [304_003, "register the addresses that the text names for the bot, or leave them out"],
]);

/** QQ's own number of an error, also of one in an answer with status 200. */
export function codeOf({ json }: Answer): number | undefined {
  const code = numberOf(json?.code);
  return code === 0 ? undefined : code;
}

export function wordsIn(answer: Answer): string | undefined {
  const code = codeOf(answer);
  const message = textOf(answer.json?.message);
  return code === undefined ? message : `${message ?? "no words"} (${code})`;
}

export function isTokenStale(answer: Answer): boolean {
  return answer.status === 401 || staleToken.has(codeOf(answer) ?? 0);
}

export function isExpired(answer: Answer): boolean {
  return expired.has(codeOf(answer) ?? 0);
}

export function isMarkdownRefused(answer: Answer): boolean {
  return markdownRefused.has(codeOf(answer) ?? 0);
}

/** Statuses 201 and 202 are no success: their bodies say what became of the message. */
export function judgedReceipt(talk: Conversation, answer: Answer): Receipt {
  const code = codeOf(answer);
  if (code === repeated) return { reference: "sent by an earlier try" };
  if (code !== undefined) throw judged(talk, answer, code);
  talk.expectSuccess(answer, wordsIn(answer));
  const reference = textOf(answer.json?.id);
  if (reference === undefined || answer.status !== 200) throw talk.notAnAnswer(answer);
  return { reference };
}

/** A code that is not known here lasts, as most do, unless the status says that it is QQ's fault. */
function judged(talk: Conversation, answer: Answer, code: number): DeliveryError {
  const words = wordsIn(answer);
  if (inReview.has(code)) return held(talk.refused(answer, words, "QQ reviews it first, so it may arrive later"));
  if (tooOften.has(code)) return talk.later(answer, words, answer.waitMs ?? tooOftenMs);
  if (passing.has(code) || answer.status === 429) return talk.later(answer, words);
  if (answer.status >= 500 && !advice.has(code)) return talk.unclear(answer, words);
  return talk.refused(answer, words, advice.get(code));
}

/** Sent again, it would be reviewed, and perhaps shown, a second time. */
function held({ message }: DeliveryError): DeliveryError {
  return new DeliveryError(message, { sent: "maybe", retryAfterMs: "never" });
}

/** `expires_in` is text, in seconds (https://bot.q.qq.com/wiki/develop/api-v2/dev-prepare/interface-framework/api-use.html). */
export function expectToken(talk: Conversation, answer: Answer): Granted {
  const code = codeOf(answer);
  const how = 'check "app_id" and "client_secret"';
  if (code !== undefined && tooOften.has(code)) throw judged(talk, answer, code);
  if (code !== undefined && passing.has(code)) throw talk.later(answer, wordsIn(answer));
  if (code !== undefined && answer.status < 500) throw talk.refused(answer, wordsIn(answer), how);
  talk.expectSuccess(answer, wordsIn(answer));
  const token = textOf(answer.json?.access_token);
  const seconds = numberOf(answer.json?.expires_in);
  // What could not stand in a header is no token.
  if (token === undefined || !/^[\x21-\x7e]{1,2000}$/.test(token) || seconds === undefined)
    throw talk.notAnAnswer(answer);
  return { token, lastsMs: seconds * 1000 };
}
