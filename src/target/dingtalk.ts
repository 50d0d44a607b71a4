import { createHmac } from "node:crypto";
import type { DeliveryError } from "../core/errors.ts";
import { isList } from "../core/json.ts";
import type { JsonObject } from "../core/types.ts";
import { AccessTokens, type Granted } from "./access-token.ts";
import { type Answer, Conversation, numberOf, textOf } from "./conversation.ts";
import { expectPosted, expectTaken, isStale } from "./dingtalk-code.ts";
import { contentOf, longestContent } from "./dingtalk-content.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

const settings: Target["settings"] = {
  client_id: { kind: "string", help: "Client id of the app (its AppKey)", env: ["DINGTALK_CLIENT_ID"] },
  client_secret: {
    kind: "secret",
    help: "Its client secret; the app has to be a robot and needs the permission qyapi_robot_sendmsg",
    env: ["DINGTALK_CLIENT_SECRET"],
  },
  robot_code: {
    kind: "string",
    help: "Code of the app's robot, when it is not the client id",
    env: ["DINGTALK_ROBOT_CODE"],
  },
  webhook_url: {
    kind: "secret_url",
    help: "Address of a group's custom robot, in place of an app; it posts to its one group",
    env: ["DINGTALK_WEBHOOK_URL"],
  },
  webhook_secret: {
    kind: "secret",
    help: 'Secret of the custom robot, "SEC…", when its security settings ask for a signature',
    env: ["DINGTALK_WEBHOOK_SECRET", "DINGTALK_SECRET"],
    alternatives: ["secret"],
  },
  home_channel: homeChannel("DINGTALK_HOME_CHANNEL", "Group or person"),
  base_url: baseUrl("DINGTALK", "Address of the API", "https://api.dingtalk.com"),
};

const user = "[A-Za-z0-9_.@-]{1,64}";
const group = /^cid[A-Za-z0-9+/]{16,80}={0,2}$/;

const address: Target["address"] = {
  chat_id: {
    help: "a group's openConversationId, \"cid…==\", or a person's user id, or up to 20 of them with commas",
    pattern: new RegExp(`cid[A-Za-z0-9+/]{16,80}={0,2}|${user}(?:,${user}){0,19}`),
    homeChannel: true,
    unlessSet: "webhook_url",
  },
  format,
};

/**
 * DingTalk, as an app's robot (https://help.dingtalk.io/open/development/the-robot-sends-a-group-message,
 * https://help.dingtalk.io/open/development/chatbots-send-one-on-one-chat-messages-in-batches) or by a group's custom robot
 * (https://help.dingtalk.io/open/development/custom-robots-send-group-messages), whose answer has the status 200 in any
 * case: `errcode` tells. A custom robot's message has a key, `msgUuid`, by which the service knows repeats, for a time that
 * it does not say; an app's has none. So repeats count as doubled: the rule of the message decides (`when_unknown`).
 *
 * When the service takes a message for some people only, it counts as delivered: a second try would reach those again who
 * have it. The others are named in the receipt and in a warning.
 */
export function createDingtalk(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000, now = Date.now } = options;
  const tokens = new AccessTokens(now);
  const open = (action: string, values: SettingValues, tools: TargetTools) =>
    new Conversation({ ...{ service: "DingTalk", action, timeoutMs, now }, signal: tools.signal, ...manners(values) });
  return {
    name: "dingtalk",
    neutralName: "chat_target_09",
    isPlatform: true,
    settings,
    ways: [["client_id", "client_secret"], ["webhook_url"]],
    address,
    // An app's `msgParam` may have 15,000 bytes, a custom robot's request 20,000.
    limit: { unit: "bytes", max: 14_500, parts: 10, rendered: longestContent, numberedFrom: 3 },
    markup: "DingTalk's subset of Markdown",
    retried: "130101 and the like after a minute, -1; `Throttling`, flow control",
    repeats: "doubled",
    // A robot that sends more than 20 a minute to a group is silent for ten minutes; an app may ask 20 times a second.
    pace: {
      overall: { count: 20, everyMs: 1000 },
      perPlace: { field: "chat_id", count: 20, everyMs: 60_000 },
    },
    ownServer: "base_url",
    send: (part, values, tools) => {
      const talk = open("Cannot send to DingTalk", values, tools);
      return isByApp(part, values)
        ? sendAsApp({ talk, tokens, values }, part, tools)
        : sendByRobot(talk, part, values, now());
    },
    check: (values, tools) => check(open("Cannot use DingTalk", values, tools), values),
  };
}

/** The target of the registry. */
export const dingtalk: Target = createDingtalk();

function manners({ client_id: app, client_secret: secret, webhook_url: hook, webhook_secret: sign }: SettingValues) {
  const token = hook === undefined ? null : new URL(String(hook)).searchParams.get("access_token");
  const secrets = [secret, hook, token ?? undefined, sign].filter((one) => one !== undefined && one !== "").map(String);
  return { secrets, ...(app === undefined ? { addressSetting: "webhook_url" } : {}) };
}

/** With both ways set, a custom robot takes what has no chat of its own. */
function isByApp({ address: { chat_id: chat } }: Part, { client_id: app }: SettingValues): boolean {
  return app !== undefined && chat !== undefined;
}

interface App {
  readonly talk: Conversation;
  readonly tokens: AccessTokens;
  readonly values: SettingValues;
}

async function sendAsApp(app: App, part: Part, tools: TargetTools): Promise<Receipt> {
  const chat = part.address.chat_id ?? "";
  const content = contentOf(part);
  const isGroup = group.test(chat);
  const json = {
    robotCode: app.values.robot_code ?? app.values.client_id,
    ...(isGroup ? { openConversationId: chat } : { userIds: chat.split(",") }),
    msgKey: "title" in content ? "sampleMarkdown" : "sampleText",
    msgParam: JSON.stringify(content),
  };
  const answer = await post(app, isGroup ? "groupMessages/send" : "oToMessages/batchSend", json);
  return receiptOf(app.talk, answer, isGroup ? [] : chat.split(","), part, tools);
}

/** Calls the API with a token; once more with a new one when it does not know that. */
async function post({ talk, tokens, values }: App, method: string, json: object): Promise<Answer> {
  const { base_url: base, client_id: id, client_secret: secret } = values;
  const url = `${base}/v1.0/robot/${method}`;
  const use = (token: string) =>
    talk.ask({ method: "POST", url, headers: { "x-acs-dingtalk-access-token": token }, json, sends: true });
  return tokens.use([String(base), String(id), String(secret)], () => grant(talk, values), use, isStale);
}

/** https://open.dingtalk.com/document/orgapp/obtain-the-access_token-of-an-internal-app */
async function grant(talk: Conversation, values: SettingValues): Promise<Granted> {
  const { base_url: base, client_id: appKey, client_secret: appSecret } = values;
  const url = `${base}/v1.0/oauth2/accessToken`;
  const answer = await talk.ask({ method: "POST", url, json: { appKey, appSecret }, sends: false });
  expectTaken(talk, answer, 'check "client_id" and "client_secret"');
  const { accessToken: token, expireIn } = answer.json ?? {};
  if (typeof token !== "string" || token === "") throw talk.notAnAnswer(answer);
  return { token, lastsMs: (numberOf(expireIn) ?? 0) * 1000 };
}

/** Of those that a message was for, some may not get it, although the answer is a success. */
function receiptOf(
  talk: Conversation,
  answer: Answer,
  people: readonly string[],
  part: Part,
  tools: TargetTools,
): Receipt {
  expectTaken(talk, answer);
  const { json = {} } = answer;
  const slowed = namesIn(json, "flowControlledStaffIdList");
  const missed = [...slowed, ...namesIn(json, "invalidStaffIdList"), ...namesIn(json, "filteredStaffIdList")];
  const out = people.filter((one) => missed.includes(one));
  if (people.length > 0 && out.length === people.length) throw nobody(talk, answer, out, slowed);
  const reference = textOf(json.processQueryKey);
  if (reference === undefined) throw talk.notAnAnswer(answer);
  if (out.length === 0) return { reference };
  const { route, eventType: event } = part;
  const fields = { target: "dingtalk", route, event, rejected: out };
  tools.log.warn(fields, "DingTalk took the message for some people only");
  return { reference: `${reference}, not taken for ${out.join(", ")}` };
}

function nobody(talk: Conversation, answer: Answer, out: readonly string[], slowed: readonly string[]): DeliveryError {
  const isSlowed = out.some((one) => slowed.includes(one));
  if (isSlowed) return talk.later(answer, `too many messages to ${out.join(", ")}`);
  return talk.refused(answer, `nobody to take it: ${out.join(", ")}`, "check the user ids, and who may use the app");
}

function namesIn(json: JsonObject, key: string): string[] {
  const list = json[key] ?? null;
  return isList(list) ? list.flatMap((one) => (typeof one === "string" ? [one] : [])) : [];
}

async function sendByRobot(talk: Conversation, part: Part, values: SettingValues, now: number): Promise<Receipt> {
  const content = contentOf(part);
  const json = {
    ...("title" in content ? { msgtype: "markdown", markdown: content } : { msgtype: "text", text: content }),
    at: { atMobiles: [], atUserIds: [], isAtAll: false },
    msgUuid: part.key,
  };
  const answer = await talk.ask({ method: "POST", url: signed(values, now), json, sends: true });
  expectPosted(talk, answer);
  return { reference: "posted by the custom robot, which gives no id" };
}

/** https://open.dingtalk.com/document/orgapp/customize-robot-security-settings; the time is in milliseconds. */
function signed({ webhook_url: hook, webhook_secret: secret }: SettingValues, now: number): string {
  const url = new URL(String(hook));
  if (secret === undefined) return url.href;
  const sign = createHmac("sha256", String(secret)).update(`${now}\n${secret}`).digest("base64");
  url.searchParams.set("timestamp", String(now));
  url.searchParams.set("sign", sign);
  return url.href;
}

async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const { client_id: id, home_channel: home, webhook_url: hook } = values;
  const untried = hook === undefined ? [] : ["A custom robot cannot be tried without posting"];
  if (id === undefined) return untried;
  await grant(talk, values);
  const where = home === undefined ? "its groups and people" : `"${home}"`;
  return [
    `The app "${id}" gets a token`,
    `Whether its robot reaches ${where} cannot be told without sending`,
    ...untried,
  ];
}
