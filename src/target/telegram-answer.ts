import { DeliveryError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { redact } from "../core/text.ts";
import type { JsonObject } from "../core/types.ts";
import { type HttpResponse, retryAfterMs } from "../lib/http.ts";
import { objectIn, textOf } from "./conversation.ts";
import { permanent, quote } from "./failure.ts";
import type { Receipt } from "./target.ts";

/** Opens the sentence of every error of a message that was not sent. */
export const failed = "Cannot send to Telegram";

/** What the Bot API refused for good in a request: nothing of it was sent. */
export interface Refusal {
  /** In the words of the Bot API. */
  readonly description: string;
  /** The number that the chat has now, when that is why. */
  readonly newChat: string | undefined;
}

/** Why a request was refused with 400, or `undefined` for any other answer. */
export function refusalIn({ status, text }: HttpResponse): Refusal | undefined {
  const answer = objectIn(text);
  if (status !== 400 || answer?.ok !== false) return undefined;
  return { description: textOf(answer.description) ?? "", newChat: newChatIn(answer) };
}

/** The topic that the message names is gone. */
export function isTopicGone({ description }: Refusal): boolean {
  return /message thread not found|topic_deleted/i.test(description);
}

function newChatIn({ parameters = null }: JsonObject): string | undefined {
  const chat = isObject(parameters) ? textOf(parameters.migrate_to_chat_id) : undefined;
  return chat !== undefined && /^-?\d{1,16}$/.test(chat) ? chat : undefined;
}

/**
 * The receipt of a message that was taken. Success is what the body says: an intermediary can answer 200 as well.
 * @throws DeliveryError for any other answer.
 */
export function receipt(response: HttpResponse, token: string): Receipt {
  const answer = objectIn(response.text);
  if (answer?.ok === true && response.status < 300) {
    const message = answer.result;
    const id = isObject(message) ? message.message_id : undefined;
    return typeof id === "number" ? { reference: String(id) } : {};
  }
  // Also when the Bot API itself says so: its server passes on what happened behind it, and may have sent before that.
  if (response.status >= 500) throw unclear(`Telegram answered ${response.status}`, headerWaitMs(response));
  if (answer?.ok !== false) throw notTelegram(response);
  throw refusal(answer, response, token);
}

function unclear(what: string, waitMs?: number): DeliveryError {
  const said = `${failed} for certain: ${what}; look into the chat whether it is there`;
  return new DeliveryError(said, { sent: "maybe", retryAfterMs: waitMs });
}

function headerWaitMs(response: HttpResponse): number | undefined {
  return retryAfterMs(response.headers.get("retry-after"), Date.now());
}

/** An answer that is not the Bot API's. One that succeeds may hide that the message went through. */
function notTelegram(response: HttpResponse): DeliveryError {
  const { status } = response;
  if (status < 300) return unclear(`the answer ${status} is not the Bot API's`);
  if (status === 429 || status === 408) {
    return new DeliveryError(`${failed}: the answer was ${status}`, {
      sent: "no",
      retryAfterMs: headerWaitMs(response),
    });
  }
  return permanent(`${failed}: the answer ${status} is not the Bot API's; check "base_url" and the network's proxy`);
}

function refusal(answer: JsonObject, response: HttpResponse, token: string): DeliveryError {
  const parameters = isObject(answer.parameters) ? answer.parameters : {};
  const description = typeof answer.description === "string" ? answer.description : "no description";
  const said = `${failed}: it answered ${response.status} ${quote(redact(description, [token]))}`;
  const waitSeconds = parameters.retry_after;
  if (typeof waitSeconds === "number" && waitSeconds >= 0) {
    return new DeliveryError(said, { sent: "no", retryAfterMs: Math.ceil(waitSeconds * 1000) });
  }
  if (response.status === 429) return new DeliveryError(said, { sent: "no", retryAfterMs: headerWaitMs(response) });
  return permanent(said + advice(response.status, { description, newChat: newChatIn(answer) }));
}

function advice(status: number, why: Refusal): string {
  if (why.newChat !== undefined) return `; the group became a supergroup: set "chat_id" to "${why.newChat}"`;
  if (isTopicGone(why)) return '; name another topic, or set "missing_thread" to "general"';
  if (status === 401 || status === 404) return '; check the "token"';
  if (status === 403) return "; let the bot into the chat";
  return "";
}
