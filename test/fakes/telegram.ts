import type { IncomingMessage, ServerResponse } from "node:http";
import { bodyServer, listen, objectIn, stop } from "./http.ts";
import { answerAs, answerJson, type Fake, type JsonAnswer, type Mode, takes } from "./mode.ts";

export interface TelegramMessage {
  readonly id: number;
  /** As it came: text, or a number. */
  readonly chatId: string | number;
  readonly threadId: number | undefined;
  readonly text: string;
  /** The whole body. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeTelegram extends Fake<TelegramMessage> {
  /** For `platforms.telegram.extra.base_url` or TELEGRAM_BASE_URL. */
  readonly baseUrl: string;
  /** The one token it knows. */
  readonly token: string;
  /** Set, `refused` and `limited` are answered with these `parameters`. */
  parameters: Readonly<Record<string, unknown>> | undefined;
  /** Set, this is the answer in the modes `refused` and `limited`. */
  answer: JsonAnswer | undefined;
}

/** Every field that sendMessage takes (Bot API 10.1). */
const fields = [
  ...["business_connection_id", "chat_id", "message_thread_id", "direct_messages_topic_id", "text", "parse_mode"],
  ...["entities", "link_preview_options", "disable_notification", "protect_content", "allow_paid_broadcast"],
  ...["message_effect_id", "suggested_post_parameters", "reply_parameters", "reply_markup"],
];

/** A Bot API server on a free port of 127.0.0.1 that knows `sendMessage` and checks what it gets. */
export async function startFakeTelegram(token = "123456:fake-bot-token_ABC"): Promise<FakeTelegram> {
  const messages: TelegramMessage[] = [];
  const upcoming: Mode[] = [];
  const server = bodyServer((request, body, response) => {
    fake.tries += 1;
    const fault = faultOf(request, body, token);
    if (fault !== undefined) return refuse(response, ...fault);
    const mode = upcoming.shift() ?? fake.mode;
    const message = read(body, messages.length + 1);
    if (takes(mode)) messages.push(message);
    const answers = answersFor(message, fake.parameters);
    answerAs(mode, response, fake.answer ? { ...answers, refused: fake.answer, limited: fake.answer } : answers);
  });
  const port = await listen(server);
  const fake = {
    baseUrl: `http://127.0.0.1:${port}`,
    token,
    messages,
    upcoming,
    mode: "ok" as Mode,
    tries: 0,
    parameters: undefined as FakeTelegram["parameters"],
    answer: undefined as JsonAnswer | undefined,
    close: () => stop(server),
  };
  return fake;
}

function read(body: string, id: number): TelegramMessage {
  const fields = objectIn(body) ?? {};
  return {
    id,
    chatId: fields.chat_id as string | number,
    threadId: fields.message_thread_id as number | undefined,
    text: fields.text as string,
    body: fields,
  };
}

/** Status and description of what the real server would refuse. */
function faultOf(request: IncomingMessage, body: string, token: string): [number, string] | undefined {
  const [, givenToken, method] = /^\/bot([^/]+)\/(\w+)$/.exec(request.url ?? "") ?? [];
  if (givenToken === undefined || method !== "sendMessage") return [404, "Not Found"];
  if (givenToken !== token) return [401, "Unauthorized"];
  if (request.method !== "POST") return [405, "Method Not Allowed: POST is expected"];
  if (!request.headers["content-type"]?.startsWith("application/json")) return [400, "Bad Request: body is not JSON"];
  const message = objectIn(body);
  if (message === undefined) return [400, "Bad Request: can't parse JSON object"];
  const unknown = Object.keys(message).find((field) => !fields.includes(field));
  if (unknown !== undefined) return [400, `Bad Request: unknown field ${unknown}`];
  return faultOfMessage(message);
}

function faultOfMessage(message: Record<string, unknown>): [number, string] | undefined {
  const { chat_id: chat, text, message_thread_id: thread, link_preview_options: preview } = message;
  if (typeof chat === "number" ? !Number.isSafeInteger(chat) : !/^(-?\d{1,16}|@\w+)$/.test(String(chat ?? ""))) {
    return [400, "Bad Request: chat not found"];
  }
  if (typeof text !== "string" || text.trim() === "") return [400, "Bad Request: message text is empty"];
  if (text.length > 4096) return [400, "Bad Request: message is too long"];
  if (/\p{Cs}/u.test(text)) return [400, "Bad Request: strings must be encoded in UTF-8"];
  if (thread !== undefined && (!Number.isSafeInteger(thread) || thread === 1)) {
    return [400, "Bad Request: message thread not found"];
  }
  if (preview !== undefined && (typeof preview !== "object" || preview === null || Array.isArray(preview))) {
    return [400, "Bad Request: can't parse link preview options"];
  }
  return undefined;
}

function refuse(response: ServerResponse, status: number, description: string): void {
  answerJson(response, { status, body: { ok: false, error_code: status, description } });
}

function answersFor(message: TelegramMessage, parameters: FakeTelegram["parameters"]) {
  const chat = { id: Number(message.chatId) || 0, type: "private" };
  const result = { message_id: message.id, date: 1_700_000_000, chat, text: message.text };
  const refused = "Forbidden: bot was blocked by the user";
  const limited = "Too Many Requests: retry after 7";
  return {
    ok: { status: 200, body: { ok: true, result } },
    refused: { status: 403, body: { ok: false, error_code: 403, description: refused, parameters } },
    limited: {
      status: 429,
      body: { ok: false, error_code: 429, description: limited, parameters: parameters ?? { retry_after: 7 } },
    },
  };
}
