import { AccessTokens } from "./access-token.ts";
import { type Answer, Conversation, textOf } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { longFence, longSpan } from "./markup/code.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import { breakMentions } from "./neutralise.ts";
import {
  codeOf,
  expectToken,
  isExpired,
  isMarkdownRefused,
  isTokenStale,
  judgedReceipt,
  wordsIn,
} from "./qqbot-answer.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { isPlain, longerWording, type Wording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  app_id: { kind: "string", help: "The bot's AppID, in quotes", env: ["QQ_APP_ID"], required: true },
  client_secret: {
    kind: "secret",
    help: "The bot's AppSecret",
    env: ["QQ_CLIENT_SECRET"],
    alternatives: ["app_secret"],
    required: true,
  },
  home_channel: { ...homeChannel("QQBOT_HOME_CHANNEL", "Chat"), env: ["QQBOT_HOME_CHANNEL", "QQ_HOME_CHANNEL"] },
  markdown: {
    kind: "boolean",
    help: "Send Markdown as such; QQ must have allowed that to the bot, else plain text goes instead",
    default: false,
  },
  base_url: baseUrl(
    "QQBOT",
    "Address of the API; https://sandbox.api.sgroup.qq.com to try things",
    "https://api.sgroup.qq.com",
  ),
  token_url: {
    kind: "url",
    help: "Address of the service that gives access tokens",
    env: ["QQBOT_TOKEN_URL"],
    default: "https://bots.qq.com",
  },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a person\'s or a group\'s openid, a channel\'s id or a guild\'s for direct messages: "user:…", "group:…", "channel:…" or "dm:…"',
    pattern: /(?:user|group|channel|dm):[A-Za-z0-9_-]{1,128}/,
    homeChannel: true,
  },
  msg_id: {
    help: "the id of a message that the bot got minutes ago, to answer to: most bots may only answer",
    pattern: /[A-Za-z0-9_.:!=+/-]{1,200}/,
    alternatives: ["reply_to"],
  },
  format,
};

/** What QQ would read of a text as a mention, a channel, a sticker or a command. */
const tag = /<(?=[@#]|\/?(?:qqbot|emoji|facetype|at)\b)/gi;

function silenced(text: string): string {
  return breakMentions(text.replaceAll(tag, "<\u200b"), "mass");
}

/** Words are left as they are, but no text becomes a link or a picture. */
const dialect: Dialect = {
  escape: (text) => silenced(text).replaceAll("](", "]\u200b("),
  escapeCode: silenced,
  escapeUrl: (url) => url.replaceAll("(", "%28").replaceAll(")", "%29"),
  bold: ["**", "**"],
  italic: ["*", "*"],
  strike: ["~~", "~~"],
  code: longSpan,
  codeBlock: longFence,
  link: (text, url) => `[${text.replaceAll("\n", " ")}](${url})`,
  heading: (piece, level) => `${"#".repeat(level)} ${piece}`,
};

const asText: Wording = { markdown: (text) => silenced(markdownToPlain(text)), plain: silenced };
const asMarkdown: Wording = { markdown: (text) => renderMarkdown(text, dialect), plain: silenced };
const longerAsText = longerWording(asText, "utf16");
const longerAsMarkdown = longerWording(asMarkdown, "utf16");

/**
 * QQ's official bots (https://bot.q.qq.com/wiki/develop/api-v2/server-inter/message/send-receive/send.html). Most may only
 * answer to what they got, for some minutes and up to five times; a message sent twice is known by `msg_id` and `msg_seq`
 * then, and else not at all.
 */
export function createQqbot(options: TargetOptions = {}): Target {
  const tokens = new AccessTokens(options.now);
  return {
    name: "qqbot",
    neutralName: "chat_target_14",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "utf16", max: 3000, parts: 5, numberedFrom: 3, rendered: longest },
    markup: 'none: plain text; Markdown by the setting "markdown"',
    retried: "22009 and 40034100 after a minute, 11242 and the like",
    repeats: "doubled",
    ownServer: "base_url",
    send: (part, values, tools) => send(bot("Cannot send to QQ", values, tools, options, tokens), part, values),
    check: (values, tools) => check(bot("Cannot use QQ", values, tools, options, tokens), values),
  };
}

/** The target of the registry. */
export const qqbot: Target = createQqbot();

/** Which way it goes is not known before it is sent. */
function longest(text: string): string {
  const [one, other] = [longerAsText(text), longerAsMarkdown(text)];
  return one.length >= other.length ? one : other;
}

/** The bot's calls within one conversation. */
interface Bot {
  readonly talk: Conversation;
  call(method: "GET" | "POST", path: string, json?: object): Promise<Answer>;
}

function bot(
  action: string,
  values: SettingValues,
  { signal }: TargetTools,
  { timeoutMs = 30_000 }: TargetOptions,
  tokens: AccessTokens,
): Bot {
  const { app_id: appId, client_secret: clientSecret, base_url: base, token_url: tokenUrl } = values;
  // Tokens join it when they are known.
  const secrets = [String(clientSecret)];
  const talk = new Conversation({ service: "QQ", action, secrets, timeoutMs, signal });
  const grant = async () => {
    const json = { appId, clientSecret };
    return expectToken(
      talk,
      await talk.ask({ method: "POST", url: `${tokenUrl}/app/getAppAccessToken`, json, sends: false }),
    );
  };
  const call: Bot["call"] = (method, path, json) => {
    const use = (token: string) => {
      secrets.push(token);
      const headers = { authorization: `QQBot ${token}` };
      const body = json === undefined ? {} : { json };
      return talk.ask({ method, url: `${base}${path}`, headers, ...body, sends: json !== undefined });
    };
    return tokens.use([String(tokenUrl), String(appId), String(clientSecret)], grant, use, isTokenStale);
  };
  return { talk, call };
}

/** Once more without what QQ does not take: Markdown, or a message that is too old to answer to. */
async function send({ talk, call }: Bot, part: Part, values: SettingValues): Promise<Receipt> {
  const path = pathOf(part);
  const wants = {
    markdown: values.markdown === true && !isPlain(part.address),
    answer: part.address.msg_id !== undefined,
  };
  let answer = await call("POST", path, bodyOf(part, wants));
  if (wants.markdown && isMarkdownRefused(answer)) {
    wants.markdown = false;
    answer = await call("POST", path, bodyOf(part, wants));
  }
  if (wants.answer && isExpired(answer)) {
    wants.answer = false;
    answer = await call("POST", path, bodyOf(part, wants));
  }
  return judgedReceipt(talk, answer);
}

const paths: Readonly<Record<string, (id: string) => string>> = {
  user: (id) => `/v2/users/${id}/messages`,
  group: (id) => `/v2/groups/${id}/messages`,
  channel: (id) => `/channels/${id}/messages`,
  dm: (id) => `/dms/${id}/messages`,
};

function pathOf({ address: { chat_id: chat = "" } }: Part): string {
  const [kind = "", id = ""] = chat.split(":");
  return paths[kind]?.(encodeURIComponent(id)) ?? "";
}

function bodyOf(part: Part, wants: { readonly markdown: boolean; readonly answer: boolean }): object {
  const isGuild = /^(?:channel|dm):/.test(part.address.chat_id ?? "");
  const type = isGuild ? {} : { msg_type: wants.markdown ? 2 : 0 };
  const text = worded(part, wants.markdown ? asMarkdown : asText);
  const content = wants.markdown ? { markdown: { content: text } } : { content: text };
  if (!wants.answer) return { ...type, ...content };
  const sequence = isGuild ? {} : { msg_seq: sequenceOf(part) };
  return { ...type, ...content, msg_id: part.address.msg_id, ...sequence };
}

/** The same for each try, and most likely no other part's: QQ drops a second answer with the same number. From 1 to 65,535. */
function sequenceOf({ key }: Part): number {
  return (Number.parseInt(key.slice(0, 8), 16) % 65_535) + 1;
}

async function check({ talk, call }: Bot, values: SettingValues): Promise<readonly string[]> {
  const answer = await call("GET", "/users/@me");
  const code = codeOf(answer);
  if (code !== undefined) throw talk.refused(answer, wordsIn(answer));
  talk.expectSuccess(answer, wordsIn(answer));
  const name = textOf(answer.json?.username);
  if (name === undefined) throw talk.notAnAnswer(answer);
  const what = values.home_channel === undefined ? "a chat" : "the home channel";
  return [`The bot is "${name}"`, `Whether it may write to ${what} cannot be tried without sending`];
}
