import { DeliveryError } from "../core/errors.ts";
import { isList, isObject } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { type Answer, Conversation, type Question, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import { format, homeChannel } from "./fields.ts";
import { mattermostWording } from "./mattermost-text.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { longerWording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  token: { kind: "secret", help: "Token of the bot account", env: ["MATTERMOST_TOKEN"] },
  base_url: {
    kind: "url",
    help: "Address of the server, which the bot needs",
    env: ["MATTERMOST_URL", "MATTERMOST_BASE_URL"],
    alternatives: ["url"],
  },
  webhook_url: {
    kind: "secret_url",
    help: "Address of an incoming webhook, in place of a token; it posts to its one channel, and into no thread",
    env: ["MATTERMOST_WEBHOOK_URL"],
  },
  home_channel: homeChannel("MATTERMOST_HOME_CHANNEL", "Channel, or user:ID,"),
  link_previews: { kind: "boolean", help: "Let Mattermost show what links point to", default: false },
  allow_mentions: {
    kind: "boolean",
    help: "Let texts reach people and whole channels that they mention",
    default: false,
  },
};

const id = /[a-z0-9]{26}/;

const address: Target["address"] = {
  chat_id: {
    help: "a channel's id of 26 letters and digits, or \"user:\" and a person's id",
    pattern: new RegExp(`(?:user:)?${id.source}`),
    alternatives: ["channel_id"],
    homeChannel: true,
    unlessSet: "webhook_url",
  },
  root_id: { help: "the id of the post to answer to", pattern: id, alternatives: ["thread_id"] },
  format,
};

/** The webhook's way writes more for a `<`. */
const longestWording = longerWording(mattermostWording({ mentions: false, isHook: true }), "codepoints");
const looking = "Cannot look whether Mattermost has it";

/**
 * Mattermost, as a bot (https://developers.mattermost.com/api-documentation/#/operations/CreatePost) or through an incoming
 * webhook. It knows a repeated `pending_post_id` for 30 seconds only: after a lost answer the bot looks for the post by a
 * property that nobody sees. A webhook cannot look.
 */
export function createMattermost(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  const open = (action: string, values: SettingValues, tools: TargetTools) =>
    conversation(action, values, tools, timeoutMs);
  return {
    name: "mattermost",
    neutralName: "chat_target_07",
    isPlatform: true,
    settings,
    ways: [["token", "base_url"], ["webhook_url"]],
    address,
    // It takes 16,383.
    limit: { unit: "codepoints", max: 16_000, parts: 10, numberedFrom: 3, rendered: longestWording },
    markup: "Mattermost's Markdown",
    retried: "429 after its `X-RateLimit-Reset`",
    repeats: "findable",
    ownServer: "base_url",
    send: (part, values, tools) => send(open("Cannot send to Mattermost", values, tools), part, values),
    find: (part, values, tools) => find(open(looking, values, tools), part, values),
    check: (values, tools) => check(open("Cannot use Mattermost", values, tools), values),
  };
}

/** The target of the registry. */
export const mattermost: Target = createMattermost();

function isBot(values: SettingValues): boolean {
  return values.token !== undefined && values.base_url !== undefined;
}

function conversation(action: string, values: SettingValues, tools: TargetTools, timeoutMs: number): Conversation {
  const { token, webhook_url: hook } = values;
  const secrets = [token, hook].filter((secret) => secret !== undefined).map(String);
  const key = hook === undefined ? [] : [String(hook).replace(/^.*\//, "")];
  const addressSetting = isBot(values) ? "base_url" : "webhook_url";
  const common = { service: "Mattermost", action, timeoutMs, signal: tools.signal, addressSetting };
  return new Conversation({ ...common, secrets: [...secrets, ...key] });
}

function send(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  return isBot(values) ? sendAsBot(talk, part, values) : sendByWebhook(talk, part, values);
}

async function sendAsBot(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const { root_id: root } = part.address;
  const json = {
    channel_id: await channelOf(talk, part, values),
    message: worded(part, wordingFor(values)),
    ...(root === undefined ? {} : { root_id: root }),
    pending_post_id: part.key,
    props: { ...props(values), [marker]: part.key },
  };
  return { reference: idIn(talk, await call(talk, values, { method: "POST", url: "/posts", json, sends: true })) };
}

/** A property of the post, which nobody sees. */
const marker = "postern_key";

function wordingFor(values: SettingValues) {
  return mattermostWording({ mentions: values.allow_mentions === true, isHook: !isBot(values) });
}

/** What the program itself sets when somebody closes a preview. */
function props({ link_previews: previews }: SettingValues): Record<string, string> {
  return previews === true ? {} : { remove_link_preview: "true" };
}

/** The successful answer of the API of version 4. */
async function call(talk: Conversation, { base_url: base, token }: SettingValues, question: Question): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await talk.ask({ ...question, url: `${base}/api/v4${question.url}`, headers });
  expectTaken(talk, answer);
  return answer;
}

const advice: Readonly<Record<number, string>> = {
  401: 'check the "token"',
  403: "let the bot into the channel",
  404: 'check the ids in "chat_id" and "root_id", and that the bot is in the channel',
  413: "the server takes less text in one post",
};

function expectTaken(talk: Conversation, answer: Answer): void {
  // The limiter in front of the server answers in plain text, and names the seconds until it is over in a header of its own.
  const seconds = Number(answer.headers.get("x-ratelimit-reset") ?? Number.NaN);
  if (answer.status === 429 && answer.waitMs === undefined && seconds >= 0 && seconds <= 86_400) {
    throw talk.later(answer, textOf(answer.json?.message), Math.ceil(seconds * 1000));
  }
  talk.expectSuccess(answer, textOf(answer.json?.message), advice);
}

/** The conversation with a person is a channel as well, which is there once it was asked for. */
async function channelOf(talk: Conversation, { address }: Part, values: SettingValues): Promise<string> {
  const chat = String(address.chat_id);
  if (!chat.startsWith("user:")) return chat;
  const me = await idIn(talk, await call(talk, values, { method: "GET", url: "/users/me", sends: false }));
  const json = [me, chat.slice("user:".length)];
  return idIn(talk, await call(talk, values, { method: "POST", url: "/channels/direct", json, sends: false }));
}

function idIn(talk: Conversation, answer: Answer): string {
  const found = textOf(answer.json?.id);
  if (found === undefined || !/^[a-z0-9]{26}$/.test(found)) throw talk.notAnAnswer(answer);
  return found;
}

/** https://developers.mattermost.com/integrate/webhooks/incoming: answers `ok` as plain text, or an error as JSON. */
async function sendByWebhook(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  if (part.address.root_id !== undefined)
    throw permanent('Cannot send to Mattermost: an incoming webhook cannot answer to a post; leave "root_id" out');
  const json = { text: worded(part, wordingFor(values)), props: props(values) };
  const answer = await talk.ask({ method: "POST", url: String(values.webhook_url), json, sends: true });
  expectTaken(talk, answer);
  if (answer.text.trim() !== "ok") throw talk.notAnAnswer(answer);
  return { reference: "posted by the incoming webhook, which gives no id" };
}

/** More posts are never shown at once (https://docs.mattermost.com/api/reference/get-posts-for-channel). */
const mostPosts = 1000;
const maxListBytes = 8_388_608;
/** How far the server's clock may be behind the gateway's. */
const clockDifferenceMs = 120_000;

async function find(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt | undefined> {
  if (!isBot(values)) throw permanent(`${looking}: an incoming webhook shows nothing; look into its channel`);
  const channel = await channelOf(talk, part, values);
  const since = Math.max(1, part.firstTriedAt - clockDifferenceMs);
  const url = `/channels/${channel}/posts?since=${since}`;
  const { json } = await call(talk, values, { method: "GET", url, sends: false, maxBytes: maxListBytes });
  const posts = postsIn(json);
  const found = posts.find(({ props = null }) => isObject(props) && props[marker] === part.key);
  if (found !== undefined) return { reference: textOf(found.id) ?? "found" };
  if (posts.length < mostPosts) return undefined;
  throw permanent(`${looking}: too many posts are new since the first try; look for it there`);
}

function postsIn(json: JsonObject | undefined): readonly JsonObject[] {
  const { order = null, posts = null }: { order?: Json; posts?: Json } = json ?? {};
  if (isList(order) && isObject(posts)) return Object.values(posts).filter(isObject);
  throw new DeliveryError(`${looking}: the answer is no list of posts`, { sent: "no" });
}

async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  if (!isBot(values)) return ["An incoming webhook cannot be tried without posting"];
  const me = await call(talk, values, { method: "GET", url: "/users/me", sends: false });
  if (textOf(me.json?.username) === undefined) throw talk.notAnAnswer(me);
  const who = `The bot is "${textOf(me.json?.username)}"`;
  const home = values.home_channel === undefined ? undefined : String(values.home_channel);
  if (home === undefined) return [who];
  if (home.startsWith("user:"))
    return [who, "The home channel is a person, which cannot be tried without writing to them"];
  const { json } = await call(talk, values, { method: "GET", url: `/channels/${home}`, sends: false });
  return [who, `The home channel is "${textOf(json?.display_name) ?? home}"`];
}
