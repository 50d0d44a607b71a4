import { DeliveryError } from "../core/errors.ts";
import { isList, isObject } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { Conversation, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { shortFence, shortSpan } from "./markup/code.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import { call } from "./slack-api.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { isPlain, longerWording, type Wording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  token: {
    kind: "secret",
    help: 'Token of the bot, "xoxb-…"; it needs the scope chat:write, and channels:history (groups:history, im:history) to look for lost answers',
    env: ["SLACK_BOT_TOKEN"],
  },
  webhook_url: {
    kind: "secret_url",
    help: "Address of an incoming webhook, in place of a token; it posts to its one channel",
    env: ["SLACK_WEBHOOK_URL"],
  },
  home_channel: homeChannel("SLACK_HOME_CHANNEL", "Channel"),
  base_url: baseUrl("SLACK", "Address of the Web API, which ends in /api", "https://slack.com/api"),
  link_previews: { kind: "boolean", help: "Let Slack show what links point to", default: false },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a channel\'s id such as "C0123456789", a person\'s ("U…") or a conversation\'s ("D…", "G…")',
    pattern: /[CDGUW][A-Z0-9]{2,30}/,
    alternatives: ["channel"],
    homeChannel: true,
    unlessSet: "webhook_url",
  },
  thread_ts: {
    help: 'the time stamp of the message to answer to, such as "1712345678.123456"',
    pattern: /\d{1,15}\.\d{1,10}/,
    alternatives: ["thread_id"],
  },
  format,
};

/** https://docs.slack.dev/messaging/formatting-message-text: it has no way to escape its other marks. */
const mrkdwn: Dialect = {
  escape: escapeText,
  bold: ["*", "*"],
  italic: ["_", "_"],
  strike: ["~", "~"],
  code: shortSpan,
  codeBlock: shortFence,
  link: (text, url) => `<${url.replaceAll("|", "%7C")}|${text.replaceAll("|", "\u00a6").replaceAll("\n", " ")}>`,
  bullet: (marker, isOrdered) => (isOrdered ? marker : "•"),
  checks: ["☐", "☑"],
};

const wording: Wording = { markdown: (text) => renderMarkdown(text, mrkdwn), plain: escapeText };

/**
 * Slack, as a bot (https://docs.slack.dev/reference/methods/chat.postMessage) or through an incoming webhook. The Web API
 * answers 200 whether it took the message or not: its body tells. It has no idempotency key: after a lost answer the bot
 * looks for the message by its metadata, if its scopes let it read the channel. A webhook cannot look.
 */
export function createSlack(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  return {
    name: "slack",
    neutralName: "chat_target_03",
    isPlatform: true,
    settings,
    ways: [["token"], ["webhook_url"]],
    address,
    limit: { unit: "utf16", max: 4000, parts: 10, rendered: longerWording(wording, "utf16"), numberedFrom: 3 },
    markup: "Slack's mrkdwn",
    retried: "`ratelimited` after its `Retry-After`, `service_unavailable`, `internal_error`",
    repeats: "findable",
    // https://docs.slack.dev/apis/web-api/rate-limits: one message a second in a channel, with some more for a moment.
    pace: { perPlace: { field: "chat_id", count: 1, everyMs: 1000 } },
    ownServer: "base_url",
    send: (part, values, tools) => {
      const talk = conversation("Cannot send to Slack", values, tools, timeoutMs);
      return values.token === undefined ? sendByWebhook(talk, part, values) : sendAsBot(talk, part, values);
    },
    find: (part, values, tools) =>
      find(conversation("Cannot look whether Slack has it", values, tools, timeoutMs), part, values),
    check: (values, tools) => check(conversation("Cannot use Slack", values, tools, timeoutMs), values),
  };
}

/** The target of the registry. */
export const slack: Target = createSlack();

function conversation(
  action: string,
  { token, webhook_url: hook }: SettingValues,
  tools: TargetTools,
  timeoutMs: number,
) {
  const secrets = [token, hook].filter((secret) => secret !== undefined).map(String);
  return new Conversation({ service: "Slack", action, secrets, timeoutMs, signal: tools.signal });
}

async function sendAsBot(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const json = {
    channel: part.address.chat_id,
    ...message(part, values),
    metadata: { event_type: markerType, event_payload: { key: part.key } },
  };
  const answer = await call(talk, values, "chat.postMessage", { json, sends: true });
  return receipt(answer.ts);
}

function receipt(ts: Json | undefined): Receipt {
  const reference = textOf(ts);
  return reference === undefined ? {} : { reference };
}

/** Nothing in the text becomes a mention or an address of Slack's own accord. */
function message(part: Part, { link_previews: previews }: SettingValues) {
  const { thread_ts: thread } = part.address;
  return {
    text: worded(part, wording),
    mrkdwn: !isPlain(part.address),
    parse: "none",
    link_names: false,
    unfurl_links: previews === true,
    unfurl_media: previews === true,
    ...(thread === undefined ? {} : { thread_ts: thread }),
  };
}

/** https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks: answers `ok` or an error, as plain text. */
async function sendByWebhook(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const json = message(part, values);
  const answer = await talk.ask({ method: "POST", url: String(values.webhook_url), json, sends: true });
  const words = /^[a-z_]{2,60}$/.test(answer.text.trim()) ? answer.text.trim() : undefined;
  talk.expectSuccess(answer, words);
  if (words !== "ok") throw talk.notAnAnswer(answer);
  return { reference: "posted by the incoming webhook, which gives no id" };
}

const markerType = "postern_message";
const perPage = 100;
const mostPages = 10;
/** Messages of 40,000 characters, with their metadata. */
const maxPageBytes = 8_388_608;
/** How far Slack's clock may be behind the gateway's. */
const clockDifferenceMs = 120_000;

/**
 * Newest first, down to the first try (https://docs.slack.dev/reference/methods/conversations.history). Looking into a
 * channel needs a scope of its own for each kind of channel: without it nothing can be told.
 */
async function find(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt | undefined> {
  if (values.token === undefined)
    throw permanent("Cannot look whether Slack has it: an incoming webhook shows nothing; look into its channel");
  const { thread_ts: thread } = part.address;
  const method = thread === undefined ? "conversations.history" : "conversations.replies";
  const form = {
    channel: await openChannel(talk, part, values),
    ...(thread === undefined ? {} : { ts: thread }),
    oldest: String(Math.max(0, part.firstTriedAt - clockDifferenceMs) / 1000),
    include_all_metadata: "true",
    limit: String(perPage),
  };
  let cursor: string | undefined;
  for (let page = 1; page <= mostPages; page += 1) {
    const question = { form: { ...form, ...(cursor === undefined ? {} : { cursor }) }, sends: false };
    const answer = await call(talk, values, method, { ...question, maxBytes: maxPageBytes });
    const found = messagesIn(answer).find((one) => isMarked(one, part.key));
    if (found !== undefined) return receipt(found.ts);
    cursor = nextCursor(answer);
    if (cursor === undefined) return undefined;
  }
  throw permanent(`Cannot look whether Slack has it: too many messages are new since the first try; look for it there`);
}

/** A person's id stands for the conversation with them where one posts, but not where one reads. */
async function openChannel(talk: Conversation, { address }: Part, values: SettingValues): Promise<string> {
  const id = String(address.chat_id);
  if (!/^[UW]/.test(id)) return id;
  const { channel = null } = await call(talk, values, "conversations.open", { json: { users: id }, sends: false });
  return (isObject(channel) ? textOf(channel.id) : undefined) ?? id;
}

function messagesIn({ messages = null }: JsonObject): readonly JsonObject[] {
  if (isList(messages)) return messages.filter(isObject);
  throw new DeliveryError("Cannot look whether Slack has it: the answer is no list of messages", { sent: "no" });
}

function isMarked({ metadata = null }: JsonObject, key: string): boolean {
  if (!isObject(metadata) || metadata.event_type !== markerType) return false;
  return isObject(metadata.event_payload) && metadata.event_payload.key === key;
}

function nextCursor({ has_more: hasMore, response_metadata: metadata = null }: JsonObject): string | undefined {
  return hasMore === true && isObject(metadata) ? textOf(metadata.next_cursor) : undefined;
}

async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  if (values.token === undefined) return ["An incoming webhook cannot be tried without posting"];
  const { user, team } = await call(talk, values, "auth.test", { form: {}, sends: false });
  const who = `The bot is "${textOf(user)}" in "${textOf(team)}"`;
  if (values.home_channel === undefined) return [who];
  return [who, await checkHome(talk, values)];
}

async function checkHome(talk: Conversation, values: SettingValues): Promise<string> {
  const home = String(values.home_channel);
  if (/^[UW]/.test(home)) return "The home channel is a person, which cannot be tried without writing to them";
  // The methods that read take no JSON.
  const { channel = null } = await call(talk, values, "conversations.info", { form: { channel: home }, sends: false });
  return `The home channel is "${(isObject(channel) ? textOf(channel.name) : undefined) ?? home}"`;
}

/** https://docs.slack.dev/messaging/formatting-message-text#escaping: what else makes mentions and links of text. */
function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
