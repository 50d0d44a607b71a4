import type { IncomingMessage, ServerResponse } from "node:http";
import { bodyServer, listen, objectIn, stop } from "./http.ts";
import { answerAs, answerJson, type Fake, type JsonAnswer, type Mode, takes } from "./mode.ts";
import type { ApiSchema } from "./schema.ts";

export interface TelegramMessage {
  readonly id: number;
  /** As it came: text, or a number. */
  readonly chatId: string | number;
  readonly threadId: number | undefined;
  readonly text: string;
  /** The text, with the addresses that its links lead to and the names that Telegram finds in it. */
  readonly raw: string;
  /** The whole body. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeTelegram extends Fake<TelegramMessage> {
  /** For `platforms.telegram.extra.base_url` or TELEGRAM_BASE_URL. */
  readonly baseUrl: string;
  /** The one token it knows. */
  readonly token: string;
  /** What was wrong with requests, by the descriptions of the API that were given. */
  readonly mismatches: readonly string[];
  /** Set, `refused` and `limited` are answered with these `parameters`. */
  parameters: Readonly<Record<string, unknown>> | undefined;
  /** Set, this is the answer in the modes `refused` and `limited`. */
  answer: JsonAnswer | undefined;
  /** Groups that became supergroups: old numbers, with the new ones. */
  readonly moved: Map<string, number>;
  /** Forum topics that are gone. */
  readonly goneTopics: Set<number>;
}

/** Every field that sendMessage takes (Bot API 10.1). */
const fields = [
  ...["business_connection_id", "chat_id", "message_thread_id", "direct_messages_topic_id", "text", "parse_mode"],
  ...["entities", "link_preview_options", "disable_notification", "protect_content", "allow_paid_broadcast"],
  ...["message_effect_id", "suggested_post_parameters", "reply_parameters", "reply_markup"],
];

/** The one token, when no other is given. */
const knownToken = "123456:fake-bot-token_ABC";

/**
 * A Bot API server on a free port of 127.0.0.1 that knows `sendMessage`, `getMe` and `getChat`, and checks what it gets. The
 * one chat that is not there is `@nowhere`.
 */
export async function startFakeTelegram(token = knownToken, schemas: readonly ApiSchema[] = []): Promise<FakeTelegram> {
  const messages: TelegramMessage[] = [];
  const mismatches: string[] = [];
  const upcoming: Mode[] = [];
  const server = bodyServer((request, body, response) => {
    for (const schema of schemas) mismatches.push(...schema.problems(heard(request, body)));
    const aside = answerAside(request, body, token);
    if (aside) return answerJson(response, aside);
    fake.tries += 1;
    const fault = faultOf(request, body, token);
    if (fault !== undefined) return refuse(response, ...fault);
    const lost = faultOfPlace(objectIn(body) ?? {}, fake);
    if (lost !== undefined) return answerJson(response, lost);
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
    mismatches,
    upcoming,
    mode: "ok" as Mode,
    tries: 0,
    parameters: undefined as FakeTelegram["parameters"],
    answer: undefined as JsonAnswer | undefined,
    moved: new Map<string, number>(),
    goneTopics: new Set<number>(),
    close: () => stop(server),
  };
  return fake;
}

function heard(
  { method = "", url = "/", headers }: IncomingMessage,
  body: string,
): Parameters<ApiSchema["problems"]>[0] {
  const one = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]);
  return { method, url: new URL(url, "http://127.0.0.1"), headers: Object.fromEntries(one), body };
}

/** Questions, which send nothing. */
function answerAside(request: IncomingMessage, body: string, token: string): JsonAnswer | undefined {
  const [, givenToken, method] = /^\/bot([^/]+)\/(getMe|getChat)$/.exec(request.url ?? "") ?? [];
  if (method === undefined) return undefined;
  if (givenToken !== token) return failure(401, "Unauthorized");
  const { chat_id: chat } = objectIn(body) ?? {};
  if (chat === "@nowhere") return failure(400, "Bad Request: chat not found");
  const me = { id: 123456, is_bot: true, first_name: "Postern", username: "postern_bot" };
  const result = method === "getMe" ? me : { id: Number(chat) || 1, type: "supergroup", title: "Ops" };
  return { status: 200, body: { ok: true, result } };
}

function failure(status: number, description: string): JsonAnswer {
  return { status, body: { ok: false, error_code: status, description } };
}

function read(body: string, id: number): TelegramMessage {
  const fields = objectIn(body) ?? {};
  const entities = Array.isArray(fields.entities) ? (fields.entities as Entity[]) : [];
  const links = entities.flatMap(({ url }) => (url === undefined ? [] : `a link leads to ${url}`));
  return {
    id,
    chatId: fields.chat_id as string | number,
    threadId: fields.message_thread_id as number | undefined,
    text: fields.text as string,
    raw: [fields.text, ...links, ...mentionsIn(String(fields.text), entities)].join("\n"),
    body: fields,
  };
}

interface Entity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
}

/** As Telegram finds them, which leaves out what is within code or a link: `MessageEntity.cpp` of tdlib. */
function mentionsIn(text: string, entities: readonly Entity[]): string[] {
  const aside = entities.filter(({ type }) => ["code", "pre", "text_link"].includes(type));
  return [...text.matchAll(/(?<![\p{L}\p{N}_])@[A-Za-z0-9_]{2,32}(?![\p{L}\p{N}_])/gu)]
    .filter(({ index, 0: { length } }) =>
      aside.every((one) => index + length <= one.offset || one.offset + one.length <= index),
    )
    .map(([name]) => `a mention reaches ${name}`);
}

function faultOfPlace(
  { chat_id: chat, message_thread_id: topic }: Record<string, unknown>,
  { moved, goneTopics }: Pick<FakeTelegram, "moved" | "goneTopics">,
): JsonAnswer | undefined {
  const newChat = moved.get(String(chat));
  if (newChat !== undefined) {
    const description = "Bad Request: group chat was upgraded to a supergroup chat";
    const parameters = { migrate_to_chat_id: newChat };
    return { status: 400, body: { ok: false, error_code: 400, description, parameters } };
  }
  return goneTopics.has(Number(topic)) ? failure(400, "Bad Request: message thread not found") : undefined;
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
  answerJson(response, failure(status, description));
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
