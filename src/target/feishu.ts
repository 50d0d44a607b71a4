import { createHmac } from "node:crypto";
import { isObject } from "../core/json.ts";
import { AccessTokens, type Granted } from "./access-token.ts";
import { type Answer, Conversation, numberOf, type Question, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import { isNotAllowed, isStale, isUnreadable, taken } from "./feishu-code.ts";
import { longestPost, postOf, wordsOf } from "./feishu-post.ts";
import { format, homeChannel } from "./fields.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

const servers: Readonly<Record<string, string>> = {
  feishu: "https://open.feishu.cn",
  lark: "https://open.larksuite.com",
};

const settings: Target["settings"] = {
  app_id: { kind: "string", help: 'Id of the app, "cli_…"', env: ["FEISHU_APP_ID"] },
  app_secret: {
    kind: "secret",
    help: "Its secret; the app has to be a bot and needs the permission im:message:send_as_bot",
    env: ["FEISHU_APP_SECRET"],
  },
  webhook_url: {
    kind: "secret_url",
    help: "Address of a group's custom bot, in place of an app; it posts to its one group",
    env: ["FEISHU_WEBHOOK_URL"],
  },
  webhook_secret: {
    kind: "secret",
    help: "Secret of the custom bot, when its security settings ask for a signature",
    env: ["FEISHU_WEBHOOK_SECRET"],
    alternatives: ["secret"],
  },
  domain: {
    kind: "choice",
    help: '"lark" for Lark, the service outside of China',
    env: ["FEISHU_DOMAIN"],
    choices: ["feishu", "lark"],
    default: "feishu",
  },
  home_channel: homeChannel("FEISHU_HOME_CHANNEL", "Chat or person"),
  base_url: { kind: "url", help: "Address of the API, when it is not the one of the domain", env: ["FEISHU_BASE_URL"] },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a chat\'s id such as "oc_5ad1…", a person\'s ("ou_…", "on_…"), or a person\'s e-mail address',
    pattern: /o[cun]_[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}@[A-Za-z0-9][A-Za-z0-9.-]{0,190}/,
    homeChannel: true,
    unlessSet: "webhook_url",
  },
  thread_id: {
    help: 'the id of a message to answer to in its thread ("om_…") or of a thread ("omt_…"); a webhook has no threads',
    pattern: /omt?_[A-Za-z0-9_-]{1,64}/,
    alternatives: ["message_id"],
    leadsElsewhere: true,
  },
  format,
};

/**
 * https://open.feishu.cn/document/server-docs/im-v1/message/create: at most one message of a `uuid` within an hour. A part may
 * wait for its turn before it is sent again, so some minutes are left for that.
 */
const recognisedMs = 3_300_000;

/**
 * Feishu, or Lark by `domain`: as an app (https://open.feishu.cn/document/server-docs/im-v1/message/create) or by a group's
 * custom bot (https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot). `code` in the body tells whether a message
 * was taken, whatever the status.
 *
 * An app's message has a `uuid` by which the service recognises a repeat for one hour, a custom bot's has nothing. So a part
 * whose fate is not known is sent again without a thought within that hour. After it, and by a custom bot always, the rule of
 * the message decides (`when_unknown`): neither way tells which messages there are by anything that the gateway chose.
 */
export function createFeishu(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000, now = Date.now } = options;
  const tokens = new AccessTokens(now);
  const open = (action: string, values: SettingValues, tools: TargetTools) =>
    new Conversation({ ...{ service: "Feishu", action, timeoutMs, now }, signal: tools.signal, ...manners(values) });
  return {
    name: "feishu",
    neutralName: "chat_target_10",
    isPlatform: true,
    settings,
    ways: [["app_id", "app_secret"], ["webhook_url"]],
    address,
    // A post's request may have 30 KB, a custom bot's 20 KB.
    limit: { unit: "bytes", max: 18_000, parts: 10, rendered: longestPost, numberedFrom: 3 },
    markup: "Feishu's rich text (`post`)",
    retried: "99991400, 230020, 11232 after the time it names; 2200, 5000",
    repeats: "findable",
    find: async (part, values) => lookBack(part, values, now()),
    // 5 a second in a chat, which all of its bots share; a custom bot may send 100 a minute.
    pace: {
      overall: { count: 50, everyMs: 1000 },
      perPlace: { field: "chat_id", count: 5, everyMs: 3000 },
    },
    ownServer: "base_url",
    send: (part, values, tools) => {
      const talk = open("Cannot send to Feishu", values, tools);
      return isByApp(part, values)
        ? sendAsApp({ talk, tokens, values }, part)
        : sendByBot(talk, part, values, Math.floor(now() / 1000));
    },
    check: (values, tools) => check({ talk: open("Cannot use Feishu", values, tools), tokens, values }),
  };
}

/** The target of the registry. */
export const feishu: Target = createFeishu();

function manners({ app_id: app, app_secret: secret, webhook_url: hook, webhook_secret: sign }: SettingValues) {
  const token = hook === undefined ? undefined : new URL(String(hook)).pathname.split("/").at(-1);
  const secrets = [secret, hook, token, sign].filter((one) => one !== undefined && one !== "").map(String);
  return { secrets, ...(app === undefined ? { addressSetting: "webhook_url" } : {}) };
}

/** With both ways set, a custom bot takes what has no chat of its own. */
function isByApp({ address: { chat_id: chat } }: Pick<Part, "address">, { app_id: app }: SettingValues): boolean {
  return app !== undefined && chat !== undefined;
}

/** Nothing can be looked up. Fulfils with `undefined` where a repeat does no harm. */
function lookBack(part: Part, values: SettingValues, now: number): undefined {
  const action = "Cannot look whether Feishu has it";
  if (!isByApp(part, values)) throw permanent(`${action}: a custom bot cannot read`);
  if (now - part.firstTriedAt >= recognisedMs) throw permanent(`${action}: it knows repeats for one hour only`);
  return undefined;
}

interface App {
  readonly talk: Conversation;
  readonly tokens: AccessTokens;
  readonly values: SettingValues;
}

async function sendAsApp(app: App, part: Part): Promise<Receipt> {
  const send = (content: Content) => ask(app, { method: "POST", ...letter(part, content), sends: true });
  const { data = null } = taken(app.talk, await inWordsAtLast(send, part));
  const reference = isObject(data) ? textOf(data.message_id) : undefined;
  return reference === undefined ? {} : { reference };
}

interface Content {
  readonly type: "post" | "text";
  readonly content: object;
}

/** Sends a post, and once more as plain text when the service cannot read the post. */
async function inWordsAtLast(send: (content: Content) => Promise<Answer>, part: Part): Promise<Answer> {
  const answer = await send({ type: "post", content: { zh_cn: postOf(part) } });
  return isUnreadable(answer) ? send({ type: "text", content: { text: wordsOf(part) } }) : answer;
}

/** Where the message goes, and what it says. */
function letter({ address, key }: Part, { type, content }: Content): { url: string; json: object } {
  const { chat_id: chat = "", thread_id: thread } = address;
  const json = { msg_type: type, content: JSON.stringify(content), uuid: key };
  if (thread?.startsWith("om_"))
    return { url: `im/v1/messages/${thread}/reply`, json: { ...json, reply_in_thread: true } };
  const receiver = thread ?? chat;
  return { url: `im/v1/messages?receive_id_type=${kindOf(receiver)}`, json: { receive_id: receiver, ...json } };
}

const kinds = { oc_: "chat_id", ou_: "open_id", on_: "union_id", omt: "thread_id" } as const;

function kindOf(receiver: string): string {
  if (receiver.includes("@")) return "email";
  const prefix = receiver.slice(0, 3);
  return Object.hasOwn(kinds, prefix) ? kinds[prefix as keyof typeof kinds] : "chat_id";
}

/** Asks the API, by a path behind /open-apis/, with a token; once more with a new one when it does not know that. */
async function ask({ talk, tokens, values }: App, question: Omit<Question, "headers">): Promise<Answer> {
  const { base_url: own, domain = "feishu", app_id: app, app_secret: secret } = values;
  const base = `${own ?? servers[String(domain)]}/open-apis`;
  const use = (token: string) =>
    talk.ask({ ...question, url: `${base}/${question.url}`, headers: { authorization: `Bearer ${token}` } });
  const credentials = [base, String(app), String(secret)];
  return tokens.use(credentials, () => grant(talk, base, { app_id: app, app_secret: secret }), use, isStale);
}

/** https://open.feishu.cn/document/server-docs/authentication-management/access-token/tenant_access_token_internal */
async function grant(talk: Conversation, base: string, json: object): Promise<Granted> {
  const url = `${base}/auth/v3/tenant_access_token/internal`;
  const answer = await talk.ask({ method: "POST", url, json, sends: false });
  const { tenant_access_token: token, expire } = taken(talk, answer);
  if (typeof token !== "string" || token === "") throw talk.notAnAnswer(answer);
  return { token, lastsMs: (numberOf(expire) ?? 0) * 1000 };
}

async function sendByBot(talk: Conversation, part: Part, values: SettingValues, seconds: number): Promise<Receipt> {
  const url = String(values.webhook_url);
  const sign = signature(values.webhook_secret, String(seconds));
  const send = ({ type, content }: Content) => {
    const json = { ...sign, msg_type: type, content: type === "post" ? { post: content } : content };
    return talk.ask({ method: "POST", url, json, sends: true });
  };
  taken(talk, await inWordsAtLast(send, part));
  return { reference: "posted by the custom bot, which gives no id" };
}

/** An empty text under a key made of the time and the secret. The time is in seconds. */
function signature(secret: SettingValues[string], timestamp: string): object {
  if (secret === undefined) return {};
  return { timestamp, sign: createHmac("sha256", `${timestamp}\n${secret}`).digest("base64") };
}

async function check(app: App): Promise<readonly string[]> {
  const { app_id: id, home_channel: home, webhook_url: hook } = app.values;
  const untried = hook === undefined ? [] : ["A custom bot cannot be tried without posting"];
  if (id === undefined) return untried;
  const { bot = null } = taken(app.talk, await ask(app, { method: "GET", url: "bot/v3/info", sends: false }));
  const who = `The bot is "${(isObject(bot) ? textOf(bot.app_name) : undefined) ?? id}"`;
  return [who, ...(home === undefined ? [] : [await checkHome(app, String(home))]), ...untried];
}

async function checkHome(app: App, home: string): Promise<string> {
  if (!home.startsWith("oc_")) return `Whether "${home}" can be reached cannot be told without sending`;
  const answer = await ask(app, { method: "GET", url: `im/v1/chats/${home}`, sends: false });
  if (isNotAllowed(answer)) return `The home channel was not tried: the app lacks the permission im:chat:readonly`;
  const { data = null } = taken(app.talk, answer);
  return `The home channel is "${(isObject(data) ? textOf(data.name) : undefined) ?? home}"`;
}
