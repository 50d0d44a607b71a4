import { DeliveryError } from "../core/errors.ts";
import { isObject, parseJson } from "../core/json.ts";
import { redact } from "../core/text.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { exchange, type HttpResponse, retryAfterMs } from "../lib/http.ts";
import { permanent, quote, withoutAnswer } from "./failure.ts";
import { plainText } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetTools } from "./target.ts";

/** Options for tests. */
export interface TelegramOptions {
  /** Whole exchange; 30 seconds when not set. */
  readonly timeoutMs?: number;
}

const defaultBaseUrl = "https://api.telegram.org";
const maxAnswerBytes = 262_144;
const failed = "Cannot send to Telegram";

const settings: Target["settings"] = {
  token: { kind: "secret", help: "Token of the bot, from @BotFather", env: ["TELEGRAM_BOT_TOKEN"], required: true },
  home_channel: {
    kind: "string",
    help: "Chat that messages go to when a route names none",
    env: ["TELEGRAM_HOME_CHANNEL"],
  },
  base_url: {
    kind: "url",
    help: "Address of the Bot API, for a server of your own",
    env: ["TELEGRAM_BASE_URL"],
    default: defaultBaseUrl,
  },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a chat\'s number such as "-1001234567890", or a channel\'s "@name"',
    pattern: /-?\d{1,16}|@[A-Za-z0-9_]{1,64}/,
    homeChannel: true,
  },
  message_thread_id: {
    help: "the number of a forum topic",
    pattern: /[1-9]\d{0,14}/,
    alternatives: ["thread_id"],
  },
};

/**
 * https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this. A group takes only 20 a minute, and
 * which chats are groups is not always known: there its `retry_after` is what counts.
 */
const pace: Target["pace"] = {
  overall: { count: 30, everyMs: 1000 },
  perPlace: { field: "chat_id", count: 1, everyMs: 1000 },
};

/**
 * Telegram through the Bot API's `sendMessage` (https://core.telegram.org/bots/api#sendmessage), as plain text without
 * link previews. The API has no idempotency key: after a lost answer nobody can tell whether the message was taken.
 */
export function createTelegram(options: TelegramOptions = {}): Target {
  const timeoutMs = options.timeoutMs ?? 30_000;
  return {
    name: "telegram",
    neutralName: "chat_target_01",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "utf16", max: 4096, parts: 10 },
    repeats: "doubled",
    pace,
    ownServer: "base_url",
    send: (part, settings, tools) => send(part, settings, tools, timeoutMs),
  };
}

/** The target of the registry. */
export const telegram: Target = createTelegram();

async function send(part: Part, settings: SettingValues, tools: TargetTools, timeoutMs: number): Promise<Receipt> {
  const token = String(settings.token ?? "");
  // What breaks the path of the address would send the token, and the message, elsewhere.
  if (!/^[\w:.~-]+$/.test(token)) throw permanent(`${failed}: the token is not one; copy it again from @BotFather`);
  try {
    const response = await exchange(`${settings.base_url ?? defaultBaseUrl}/bot${token}/sendMessage`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(requestBody(part)),
      timeoutMs,
      maxBytes: maxAnswerBytes,
      signal: tools.signal,
    });
    return receipt(response, token);
  } catch (error) {
    throw withoutAnswer(failed, error, [token]);
  }
}

function requestBody(part: Part): Record<string, unknown> {
  const topic = part.address.message_thread_id;
  return {
    // As text, because a chat's number may have more digits than a JavaScript number.
    chat_id: part.address.chat_id,
    text: plainText(part.text),
    link_preview_options: { is_disabled: true },
    // 1 is the General topic, which sendMessage takes only without its number (tdlib/telegram-bot-api issue 798).
    ...(topic === undefined || topic === "1" ? {} : { message_thread_id: Number(topic) }),
  };
}

/** Success is what the body says: an intermediary can answer 200 as well. */
function receipt(response: HttpResponse, token: string): Receipt {
  const answer = parsed(response.text);
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

function parsed(text: string): JsonObject | undefined {
  try {
    const answer = parseJson(text);
    return isObject(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
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
  const said = `${failed}: it answered ${response.status} ${redact(quote(description), [token])}`;
  const waitSeconds = parameters.retry_after;
  if (typeof waitSeconds === "number" && waitSeconds >= 0) {
    return new DeliveryError(said, { sent: "no", retryAfterMs: Math.ceil(waitSeconds * 1000) });
  }
  if (response.status === 429) return new DeliveryError(said, { sent: "no", retryAfterMs: headerWaitMs(response) });
  return permanent(said + advice(response.status, parameters.migrate_to_chat_id));
}

function advice(status: number, newChat: Json | undefined): string {
  if (typeof newChat === "number") return `; the group became a supergroup: set "chat_id" to "${newChat}"`;
  if (status === 401 || status === 404) return '; check the "token"';
  if (status === 403) return "; let the bot into the chat";
  return "";
}
