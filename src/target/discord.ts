import { DeliveryError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { truncate } from "../core/text.ts";
import { Conversation, textOf } from "./conversation.ts";
import { ask, type Door, type Strangers } from "./discord-api.ts";
import { findMessage } from "./discord-find.ts";
import { postOf, rememberPost } from "./discord-post.ts";
import { discordWording, marker, markerLength } from "./discord-text.ts";
import { permanent } from "./failure.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { oneLine } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { longerWording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  token: { kind: "secret", help: "Token of the bot, from the Developer Portal", env: ["DISCORD_BOT_TOKEN"] },
  webhook_url: {
    kind: "secret_url",
    help: "Address of a webhook, in place of a token; it posts to its one channel",
    env: ["DISCORD_WEBHOOK_URL"],
  },
  home_channel: homeChannel("DISCORD_HOME_CHANNEL", "Channel, or user:ID,"),
  base_url: baseUrl("DISCORD", "Address of Discord, for a proxy", "https://discord.com"),
  link_previews: { kind: "boolean", help: "Let Discord show what links point to", default: false },
  allow_mentions: { kind: "boolean", help: "Let texts reach people and roles that they mention", default: false },
};

const snowflake = /[1-9]\d{14,19}/;

const address: Target["address"] = {
  chat_id: {
    help: 'a channel\'s id such as "1122334455667788990", or "user:" and a person\'s id',
    pattern: new RegExp(`(?:user:)?${snowflake.source}`),
    alternatives: ["channel_id"],
    homeChannel: true,
    unlessSet: "webhook_url",
  },
  thread_id: { help: "the id of a thread or of a forum's post in the channel", pattern: snowflake },
  thread_name: {
    help: "the title of a new post, for a channel that is a forum; cut after 100 characters",
    pattern: /[^\p{Cc}\p{Zl}\p{Zp}]{1,1000}/u,
  },
  format,
};

const quiet = discordWording({ mentions: false });
const loud = discordWording({ mentions: true });
const longestTitle = 100;

/**
 * Discord, as a bot (https://docs.discord.com/developers/resources/message#create-message) or through a webhook. A repeat
 * with the same nonce gives the message that is there, but only for "a few minutes", and no nonce shows later: so after a
 * lost answer the bot looks for the hidden marker at the end of its messages. A webhook cannot look.
 */
export function createDiscord(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000, now = Date.now } = options;
  const desk: Desk = { timeoutMs, now, strangers: new Map() };
  return {
    name: "discord",
    neutralName: "chat_target_02",
    isPlatform: true,
    settings,
    ways: [["token"], ["webhook_url"]],
    address,
    limit: {
      ...{ unit: "codepoints", max: 2000 - markerLength, parts: 10, numberedFrom: 3 },
      rendered: longerWording(quiet, "codepoints"),
    },
    markup: "Discord's Markdown",
    retried: "429 after its `retry_after`, slow mode",
    repeats: "findable",
    // https://docs.discord.com/developers/topics/rate-limits; a channel's own limit is told by its answers alone.
    pace: { overall: { count: 50, everyMs: 1000 }, perPlace: { field: "chat_id", count: 5, everyMs: 5000 } },
    ownServer: "base_url",
    send: (part, values, tools) => send(open("Cannot send to Discord", values, tools, desk), part, tools),
    find: (part, values, tools) => find(open("Cannot look whether Discord has it", values, tools, desk), part, tools),
    check: (values, tools) => check(open("Cannot use Discord", values, tools, desk)),
  };
}

/** The target of the registry. */
export const discord: Target = createDiscord();

interface Desk {
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly strangers: Strangers;
}

/** One call of the target: as whom it speaks, and where. */
interface Call {
  readonly talk: Conversation;
  readonly door: Door;
  readonly values: SettingValues;
  /** Where the API is; for a webhook, its own address. */
  readonly base: string;
}

function open(action: string, values: SettingValues, tools: TargetTools, { timeoutMs, now, strangers }: Desk): Call {
  const { token, webhook_url: hook } = values;
  const isBot = token !== undefined;
  const base = isBot ? `${values.base_url}/api/v10` : webhookAddress(action, String(hook));
  const secrets = isBot ? [String(token)] : [String(hook), base, base.slice(base.lastIndexOf("/") + 1)];
  const addressSetting = isBot ? "base_url" : "webhook_url";
  const common = { service: "Discord", action, timeoutMs, signal: tools.signal, now, addressSetting };
  const headers: Record<string, string> = isBot ? { authorization: `Bot ${token}` } : {};
  const door = { credential: isBot ? String(token) : base, headers, strangers, now };
  return { talk: new Conversation({ ...common, secrets }), door, values, base };
}

/** As copied it names no version of the API, which stands for one that is no longer kept up. */
function webhookAddress(action: string, text: string): string {
  const { origin = "", pathname = "" } = URL.parse(text) ?? {};
  const [, before, id, token] = /^(.*)\/api(?:\/v\d+)?\/webhooks\/(\d+)\/([\w-]+)\/?$/.exec(pathname) ?? [];
  if (token === undefined) throw permanent(`${action}: "webhook_url" is not a webhook's address; copy it again`);
  return `${origin}${before}/api/v10/webhooks/${id}/${token}`;
}

async function send(call: Call, part: Part, tools: TargetTools): Promise<Receipt> {
  const thread = part.address.thread_id ?? (await postOf(part, tools));
  return call.values.token === undefined
    ? sendByWebhook(call, part, thread, tools)
    : sendAsBot(call, part, thread, tools);
}

async function sendAsBot(call: Call, part: Part, thread: string | undefined, tools: TargetTools): Promise<Receipt> {
  const { talk, door, base } = call;
  const { thread_name: title } = part.address;
  const channel = await channelOf(call, part, thread);
  if (title !== undefined && thread === undefined) {
    const json = { name: titled(title), message: content(part, call.values) };
    const url = `${base}/channels/${channel}/threads`;
    const answer = await ask(talk, door, { method: "POST", url, json, sends: true });
    return received(call, answer, part, tools, "id");
  }
  // Discord takes up to 25 characters.
  const json = { ...content(part, call.values), nonce: part.key.slice(0, 25), enforce_nonce: true };
  const answer = await ask(talk, door, {
    method: "POST",
    url: `${base}/channels/${channel}/messages`,
    json,
    sends: true,
  });
  return received(call, answer, part, tools);
}

async function sendByWebhook(call: Call, part: Part, thread: string | undefined, tools: TargetTools): Promise<Receipt> {
  const { thread_name: title } = part.address;
  const isNew = thread === undefined && title !== undefined;
  // Without `wait` Discord says nothing of messages that it does not keep.
  const url = `${call.base}?wait=true${thread === undefined ? "" : `&thread_id=${thread}`}`;
  const json = { ...content(part, call.values), ...(isNew ? { thread_name: titled(title) } : {}) };
  const answer = await ask(call.talk, call.door, { method: "POST", url, json, sends: true });
  return received(call, answer, part, tools, isNew ? "channel_id" : undefined);
}

function titled(title: string): string {
  return truncate(oneLine(title), longestTitle).trim() || "Postern";
}

/** Discord's flag SUPPRESS_EMBEDS. */
const withoutPreviews = 4;

function content(part: Part, { link_previews: previews, allow_mentions: mentions }: SettingValues) {
  const parse = mentions === true ? ["users", "roles", "everyone"] : [];
  return {
    content: worded(part, mentions === true ? loud : quiet) + marker(part.key),
    allowed_mentions: { parse, replied_user: false },
    ...(previews === true ? {} : { flags: withoutPreviews }),
  };
}

/** `post` is the answer's key that names the forum's post which was begun, where the other parts go. */
async function received(
  { talk }: Call,
  answer: Awaited<ReturnType<typeof ask>>,
  part: Part,
  tools: TargetTools,
  post?: string,
): Promise<Receipt> {
  const reference = textOf(answer.json?.id);
  if (reference === undefined) throw talk.notAnAnswer(answer);
  const thread = post === undefined ? undefined : textOf(answer.json?.[post]);
  if (thread !== undefined) await rememberPost(part, thread, tools);
  return { reference };
}

/** A thread is a channel of its own, and may be one of another channel than the route is for. */
async function channelOf(call: Call, part: Part, thread: string | undefined): Promise<string> {
  const chat = String(part.address.chat_id);
  if (thread !== undefined && thread !== chat) return threadOf(call, chat, thread);
  if (!chat.startsWith("user:")) return chat;
  const json = { recipient_id: chat.slice("user:".length) };
  const question = { method: "POST", url: `${call.base}/users/@me/channels`, json, sends: false } as const;
  const answer = await ask(call.talk, call.door, question);
  const id = textOf(answer.json?.id);
  if (id === undefined) throw call.talk.notAnAnswer(answer);
  return id;
}

async function threadOf({ talk, door, base }: Call, chat: string, thread: string): Promise<string> {
  const answer = await ask(talk, door, { method: "GET", url: `${base}/channels/${thread}`, sends: false });
  if (textOf(answer.json?.id) !== thread) throw talk.notAnAnswer(answer);
  if (textOf(answer.json?.parent_id) === chat) return thread;
  throw permanent(`Cannot send to Discord: "${thread}" is no thread of the channel "${chat}"; correct "thread_id"`);
}

async function find(call: Call, part: Part, tools: TargetTools): Promise<Receipt | undefined> {
  const action = "Cannot look whether Discord has it";
  if (call.values.token === undefined) throw permanent(`${action}: a webhook shows nothing; look into its channel`);
  const thread = part.address.thread_id ?? (await postOf(part, tools));
  if (part.address.thread_name !== undefined && thread === undefined)
    throw permanent(`${action}: it is not known which post it would be; look into the forum`);
  const channel = await channelOf(call, part, thread);
  const question = { method: "GET", url: `${call.base}/channels/${channel}/messages`, sends: false } as const;
  return findMessage(part, action, (query, maxBytes) =>
    ask(call.talk, call.door, { ...question, url: `${question.url}?${query}`, maxBytes }),
  );
}

async function check(call: Call): Promise<readonly string[]> {
  const { talk, door, base, values } = call;
  const look = (url: string) => ask(talk, door, { method: "GET", url, sends: false });
  if (values.token === undefined)
    return [`The webhook is "${textOf((await look(base)).json?.name) ?? "without a name"}"`];
  const { json } = await look(`${base}/users/@me`);
  if (!isObject(json)) throw new DeliveryError("Cannot use Discord: the answer is not one of Discord", { sent: "no" });
  const who = `The bot is "${textOf(json.username)}"`;
  const home = values.home_channel === undefined ? undefined : String(values.home_channel);
  if (home === undefined) return [who];
  if (home.startsWith("user:"))
    return [who, "The home channel is a person, which cannot be tried without writing to them"];
  const channel = await look(`${base}/channels/${home}`);
  return [who, `The home channel is "${textOf(channel.json?.name) ?? home}"`];
}
