import type { DeliveryError } from "../core/errors.ts";
import type { JsonObject } from "../core/types.ts";
import { type Answer, type Conversation, numberOf, textOf } from "./conversation.ts";

// What `code` in an answer of Feishu says: https://open.feishu.cn/document/server-docs/api-call-guide/generic-error-code,
// and each method's own page. A custom bot writes it as `StatusCode` as well.

/** The token is missing, wrong or over. */
const stale = new Set([99991661, 99991663, 99991664, 99991668, 99991671]);
/** Too many requests: of the app, in a chat, by custom bots. Nothing was taken. */
const busy = new Set([99991400, 230020, 11232]);
/** The service's own trouble, or an earlier try that it still works at (230049): the message may be there. */
const troubled = new Set([2200, 5000, 230049]);
/** What a post that the service cannot read gets: parameters, content; of a custom bot: a bad request, parameters. */
const unreadable = new Set([230001, 9499, 19002]);
const notAllowed = new Set([99991672, 99991679, 230027]);

const advice = new Map([
  [10003, 'check "app_id"'],
  [10014, 'check "app_secret"'],
  [230002, "add the bot to the group"],
  [230006, "turn the app's bot on and publish the app"],
  [230013, "let the app be available to that person"],
  [230018, "the group's settings keep bots from writing; ask its owner"],
  [230019, "the thread is gone; name another one"],
  [230022, "the service takes its words for sensitive"],
  [230027, "give the app the permission im:message:send_as_bot and publish it"],
  [99991672, "give the app the permission that it names and publish it"],
  [19021, 'check "webhook_secret" and the clock of this machine'],
  [19022, "add this machine's address to the custom bot's list, or take the list away"],
  [19024, "take the keyword out of the custom bot's settings, or write it in every message"],
  [19001, 'check "webhook_url"'],
]);

export function isStale(answer: Answer): boolean {
  return stale.has(codeOf(answer) ?? 0);
}

/** The service cannot read what it was sent; it has taken nothing. */
export function isUnreadable(answer: Answer): boolean {
  return answer.status < 500 && unreadable.has(codeOf(answer) ?? 0);
}

export function isNotAllowed(answer: Answer): boolean {
  return notAllowed.has(codeOf(answer) ?? 0);
}

/**
 * The body of an answer that says that all is well.
 * @throws DeliveryError for any other answer.
 */
export function taken(talk: Conversation, answer: Answer): JsonObject {
  const code = codeOf(answer);
  const words = wordsIn(answer, code);
  if (code !== undefined && code !== 0 && answer.status < 500) throw judged(talk, answer, code, words);
  talk.expectSuccess(answer, words);
  if (code === undefined || answer.json === undefined) throw talk.notAnAnswer(answer);
  return answer.json;
}

/** A code that is not known is a refusal: the service's own trouble mostly comes with a status of its own, 5xx. */
function judged(talk: Conversation, answer: Answer, code: number, words: string | undefined): DeliveryError {
  if (busy.has(code) || answer.status === 429) return talk.later(answer, words, waitIn(answer));
  if (troubled.has(code)) return talk.unclear(answer, words);
  return talk.refused(answer, words, advice.get(code));
}

/** How long an app that asked too often must wait. */
function waitIn({ headers, waitMs }: Answer): number | undefined {
  const seconds = Number(headers.get("x-ogw-ratelimit-reset") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds > 0 ? Math.ceil(seconds * 1000) : waitMs;
}

function codeOf({ json }: Answer): number | undefined {
  return numberOf(json?.code) ?? numberOf(json?.StatusCode);
}

function wordsIn({ json }: Answer, code: number | undefined): string | undefined {
  if (code === undefined) return undefined;
  return `${code} ${textOf(json?.msg) ?? textOf(json?.StatusMessage) ?? ""}`.trim();
}
