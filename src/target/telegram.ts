import { isObject } from "../core/json.ts";
import type { JsonObject } from "../core/types.ts";
import { exchange, type HttpResponse } from "../lib/http.ts";
import { type Answer, Conversation, textOf } from "./conversation.ts";
import { permanent, withoutAnswer } from "./failure.ts";
import { format } from "./fields.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { failed, isTopicGone, type Refusal, receipt, refusalIn } from "./telegram-answer.ts";
import { currentChat, rememberMove } from "./telegram-chats.ts";
import { countedText, type TelegramText, textWithEntities } from "./telegram-entities.ts";

const defaultBaseUrl = "https://api.telegram.org";
const maxAnswerBytes = 262_144;

const settings: Target["settings"] = {
  token: {
    kind: "secret",
    help: 'Token of the bot, from @BotFather, such as "123456:ABC-def"',
    env: ["TELEGRAM_BOT_TOKEN"],
    pattern: /\d+:[\w-]+/,
    required: true,
  },
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
  missing_thread: {
    kind: "choice",
    help: '"general" when a message whose forum topic is gone is to go into the chat itself',
    choices: ["refuse", "general"],
    isAsked: false,
    default: "refuse",
  },
  allow_mentions: {
    kind: "boolean",
    help: "Let @names in the text be links, and reach people",
    default: false,
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
  format,
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
 * Telegram through the Bot API's `sendMessage` (https://core.telegram.org/bots/api#sendmessage), as text with entities and
 * without link previews. A text whose entities are refused goes once more without them; a message to a group that became a
 * supergroup goes to its new number, then and later. The API has no idempotency key: after a lost answer nobody can tell
 * whether the message was taken.
 */
export function createTelegram(options: TargetOptions = {}): Target {
  const timeoutMs = options.timeoutMs ?? 30_000;
  return {
    name: "telegram",
    neutralName: "chat_target_01",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "utf16", max: 4096, parts: 10, numberedFrom: 3, rendered: countedText },
    markup: "entities: bold, italic, strike, code, links, quotes",
    retried: "429 after its `retry_after`",
    repeats: "doubled",
    pace,
    ownServer: "base_url",
    send: (part, settings, tools) => send(part, settings, tools, timeoutMs),
    check: (settings, tools) => check(settings, tools, timeoutMs),
  };
}

/** The target of the registry. */
export const telegram: Target = createTelegram();

async function send(part: Part, settings: SettingValues, tools: TargetTools, timeoutMs: number): Promise<Receipt> {
  const token = String(settings.token ?? "");
  const url = methodUrl(settings, "sendMessage", failed);
  const endsAt = performance.now() + timeoutMs;
  const post = (body: object) => {
    const leftMs = Math.max(1, Math.ceil(endsAt - performance.now()));
    return exchange(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      timeoutMs: leftMs,
      maxBytes: maxAnswerBytes,
      signal: tools.signal,
    });
  };
  try {
    const chat = await currentChat(tools.memory, String(part.address.chat_id));
    const { response, chat: reached } = await postUntilTaken(messageOf(part, chat, settings), post);
    await rememberIfMoved(chat, reached, part, tools);
    return receipt(response, token);
  } catch (error) {
    throw withoutAnswer(failed, error, [token]);
  }
}

/**
 * What makes a refused message one that may be taken, each at most once; a refusal says that nothing was sent. `undefined`
 * when something else was the matter.
 */
const remedies: readonly ((message: Message, why: Refusal) => Message | undefined)[] = [
  (message, { newChat }) => (newChat === undefined ? undefined : { ...message, chat: newChat }),
  // The words are worth more than how they look.
  (message, { description }) =>
    message.text.entities !== undefined && /entit/i.test(description)
      ? { ...message, text: { text: message.text.bare, bare: message.text.bare } }
      : undefined,
  (message, why) =>
    message.goesWithoutTopic && message.topic !== undefined && isTopicGone(why)
      ? { ...message, topic: undefined }
      : undefined,
];

async function postUntilTaken(message: Message, post: (body: object) => Promise<HttpResponse>) {
  const left = new Set(remedies);
  let current = message;
  for (;;) {
    const response = await post(bodyOf(current));
    const why = refusalIn(response);
    const mended = why === undefined ? undefined : mend(current, why, left);
    if (mended === undefined) return { response, chat: current.chat };
    current = mended;
  }
}

function mend(message: Message, why: Refusal, left: Set<(typeof remedies)[number]>): Message | undefined {
  for (const remedy of left) {
    const mended = remedy(message, why);
    if (mended === undefined) continue;
    left.delete(remedy);
    return mended;
  }
  return undefined;
}

/** The message may have gone there all the same, so a failure to remember is no failure of it. */
async function rememberIfMoved(from: string, to: string, part: Part, { memory, log }: TargetTools): Promise<void> {
  if (from === to) return;
  const fields = { target: "telegram", route: part.route, event: part.eventType, chat: from, new_chat: to };
  log.warn(fields, "The group became a supergroup with another number; write that into the configuration");
  try {
    await rememberMove(memory, from, to);
  } catch (error) {
    log.warn({ ...fields, error: String(error) }, "The group's new number could not be kept");
  }
}

/** What breaks the path of the address would send the token, and the message, elsewhere. */
function methodUrl({ token = "", base_url: base }: SettingValues, method: string, action: string): string {
  const isOne = /^[\w:.~-]+$/.test(String(token));
  if (!isOne) throw permanent(`${action}: the token is not one; copy it again from @BotFather`);
  return `${base ?? defaultBaseUrl}/bot${token}/${method}`;
}

/** A message as it is to be posted. */
interface Message {
  readonly chat: string;
  readonly topic: string | undefined;
  /** It may be posted outside of its topic when that is gone. */
  readonly goesWithoutTopic: boolean;
  readonly text: TelegramText;
}

function messageOf(part: Part, chat: string, { allow_mentions: mentions, missing_thread: missing }: SettingValues) {
  const topic = part.address.message_thread_id;
  const text = textWithEntities(part, { mentions: mentions === true });
  return { chat, topic, goesWithoutTopic: missing === "general", text };
}

function bodyOf({ chat, topic, text: { text, entities } }: Message): object {
  return {
    // As text, because a chat's number may have more digits than a JavaScript number.
    chat_id: chat,
    text,
    ...(entities === undefined ? {} : { entities }),
    link_preview_options: { is_disabled: true },
    // 1 is the General topic, which sendMessage takes only without its number (tdlib/telegram-bot-api issue 798).
    ...(topic === undefined || topic === "1" ? {} : { message_thread_id: Number(topic) }),
  };
}

/** https://core.telegram.org/bots/api#getme and #getchat: who the bot is, and whether it knows the home channel. */
async function check(values: SettingValues, tools: TargetTools, timeoutMs: number): Promise<readonly string[]> {
  const action = "Cannot use Telegram";
  const secrets = [String(values.token ?? "")];
  const talk = new Conversation({ service: "the Bot API", action, secrets, timeoutMs, signal: tools.signal });
  const ask = async (method: string, json: object) => {
    const url = methodUrl(values, method, action);
    return resultOf(talk, await talk.ask({ method: "POST", url, json, sends: false }));
  };
  const who = `The bot is "@${textOf((await ask("getMe", {})).username)}"`;
  if (values.home_channel === undefined) return [who];
  const home = await currentChat(tools.memory, String(values.home_channel));
  const { title, username, first_name: first } = await ask("getChat", { chat_id: home });
  return [who, `The home channel is "${textOf(title) ?? textOf(username) ?? textOf(first) ?? values.home_channel}"`];
}

const checkAdvice: Readonly<Record<number, string>> = {
  400: 'check the "home_channel", and that the bot was let into it',
  401: 'check the "token"',
  403: "let the bot into the chat",
  404: 'check the "token"',
};

function resultOf(talk: Conversation, answer: Answer): JsonObject {
  const { json, status } = answer;
  const words = textOf(json?.description);
  talk.expectSuccess(answer, words, checkAdvice);
  const result = json?.ok === true ? json.result : undefined;
  if (isObject(result ?? null)) return result as JsonObject;
  throw json?.ok === false ? talk.refused(answer, words, checkAdvice[status]) : talk.notAnAnswer(answer);
}
