import type { DeliveryError } from "../core/errors.ts";
import type { JsonObject } from "../core/types.ts";
import type { AccessTokens, Granted } from "./access-token.ts";
import { type Answer, type Conversation, numberOf, type Question, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import type { Part, Receipt, SettingValues, TargetTools } from "./target.ts";
import { fateOf } from "./wecom-codes.ts";
import { contentOf } from "./wecom-text.ts";

/** Posts to the one chat of a group robot (https://developer.work.weixin.qq.com/document/path/91770). */
export async function sendByRobot(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const url = String(values.webhook_url);
  expectTaken(talk, await talk.ask({ method: "POST", url, json: contentOf(part), sends: true }));
  return { reference: "posted by the robot, which gives no id" };
}

/** What an app's API is asked with. */
export interface AppTools {
  readonly talk: Conversation;
  readonly values: SettingValues;
  readonly tokens: AccessTokens;
}

/**
 * Sends as an app (https://developer.work.weixin.qq.com/document/path/90236), or to a chat that the app has made
 * (path/90248). The service can drop a text that it has just taken; it is not asked to, because it would drop the second
 * of two equal messages as well.
 */
export async function sendByApp(app: AppTools, part: Part, log: TargetTools["log"]): Promise<Receipt> {
  const to = receiversOf(String(part.address.chat_id));
  if (to.key === "chatid") {
    await call(app, "appchat/send", { chatid: to.ids.join(), ...contentOf(part) });
    return { reference: "posted to the chat, which gives no id" };
  }
  const message = { [to.key]: to.ids.join("|"), agentid: app.values.agent_id, ...contentOf(part) };
  const json = await call(app, "message/send", message);
  return receiptOf(json, to.ids, part, log);
}

interface Receivers {
  readonly key: "touser" | "toparty" | "totag" | "chatid";
  readonly ids: readonly string[];
}

const kinds: ReadonlyMap<string, Receivers["key"]> = new Map([
  ["user", "touser"],
  ["party", "toparty"],
  ["tag", "totag"],
  ["chat", "chatid"],
]);

function receiversOf(chatId: string): Receivers {
  const [, kind = "user", list = ""] = /^(?:(\w+):)?(.*)$/.exec(chatId) ?? [];
  const ids = list.split("|");
  const key = kinds.get(kind) ?? "touser";
  if (key === "chatid" && ids.length > 1) throw permanent("Cannot send to WeCom: a message goes to one chat; name one");
  const isNumber = (id: string) => /^\d{1,10}$/.test(id);
  if ((key === "toparty" || key === "totag") && !ids.every(isNumber)) {
    throw permanent(`Cannot send to WeCom: departments and tags are numbers, such as "${kind}:1|2"`);
  }
  return { key, ids };
}

/** Says who did not get it; that nobody did is a refusal, although the service calls it a success. */
function receiptOf(json: JsonObject, ids: readonly string[], part: Part, log: TargetTools["log"]): Receipt {
  const lists = [json.invaliduser, json.invalidparty, json.invalidtag, json.unlicenseduser];
  const rejected = lists.flatMap((list) => (textOf(list) ?? "").split("|")).filter((id) => id !== "");
  const reference = textOf(json.msgid) ?? "taken, without an id";
  if (rejected.length === 0) return { reference };
  // The service answers with ids in lower case.
  const missed = new Set(rejected.map((id) => id.toLowerCase()));
  if (ids.every((id) => missed.has(id.toLowerCase()))) {
    throw permanent(`Cannot send to WeCom: it took the message for nobody; check "${ids.slice(0, 5).join("|")}"`);
  }
  log.warn(
    { target: "wecom", route: part.route, event: part.eventType, rejected },
    "WeCom took the message for some recipients only",
  );
  return { reference: `${reference}, not taken for ${rejected.join(", ")}` };
}

/** Looks who the app is. */
export async function checkApp(app: AppTools): Promise<readonly string[]> {
  const query = new URLSearchParams({ agentid: String(app.values.agent_id) });
  const { name } = await call(app, `agent/get?${query}`, undefined);
  const who = `The app is "${textOf(name) ?? app.values.agent_id}"`;
  if (app.values.home_channel === undefined) return [who];
  return [who, "Whether the home channel can be reached cannot be told without sending"];
}

/** Posts a message, or asks when there is none. A token that has ended is replaced once. */
async function call({ talk, values, tokens }: AppTools, method: string, message: object | undefined) {
  const base = `${values.base_url}/cgi-bin`;
  const ask = (token: string) => {
    const url = `${base}/${method}${method.includes("?") ? "&" : "?"}access_token=${encodeURIComponent(token)}`;
    const post: Question = { method: "POST", url, json: message, sends: true };
    return talk.ask(message === undefined ? { method: "GET", url, sends: false } : post);
  };
  const credentials = [base, String(values.corp_id), String(values.secret)];
  const isStale = ({ json }: Answer) => [40014, 42001].includes(numberOf(json?.errcode) ?? 0);
  return expectTaken(talk, await tokens.use(credentials, () => grant(talk, values, base), ask, isStale));
}

/** https://developer.work.weixin.qq.com/document/path/91039 */
async function grant(talk: Conversation, values: SettingValues, base: string): Promise<Granted> {
  const query = new URLSearchParams({ corpid: String(values.corp_id), corpsecret: String(values.secret) });
  const answer = await talk.ask({ method: "GET", url: `${base}/gettoken?${query}`, sends: false });
  const json = expectTaken(talk, answer);
  const token = textOf(json.access_token);
  if (token === undefined) throw talk.notAnAnswer(answer);
  return { token, lastsMs: (numberOf(json.expires_in) ?? 7200) * 1000 };
}

/** The answer's body, when it says that all went well. */
function expectTaken(talk: Conversation, answer: Answer): JsonObject {
  const { json } = answer;
  const code = numberOf(json?.errcode);
  const words = code === undefined ? undefined : `${code} ${textOf(json?.errmsg) ?? ""}`.trim();
  talk.expectSuccess(answer, words);
  if (json === undefined || code === undefined) throw talk.notAnAnswer(answer);
  if (code === 0) return json;
  throw judged(talk, answer, code, words);
}

function judged(talk: Conversation, answer: Answer, code: number, words: string | undefined): DeliveryError {
  const fate = fateOf(code);
  return fate.as === "later"
    ? talk.later(answer, words, fate.waitMs ?? answer.waitMs)
    : talk.refused(answer, words, fate.advice);
}
