import { DeliveryError, StoreUnavailable } from "../core/errors.ts";
import { sleep as realSleep } from "../lib/sleep.ts";
import { type Answer, Conversation } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { markdownToPlain } from "./markup/plain.ts";
import type { Memory, Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { recall } from "./weixin-memory.ts";
import { type PollOptions, poll, userId } from "./weixin-poll.ts";
import { baseInfo, codeOf, codes, expiredAdvice, headersFor, wordsOf } from "./weixin-protocol.ts";
import { longerWording, type Wording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  token: { kind: "secret", help: "Token of the account, from its login", env: ["WEIXIN_TOKEN"], required: true },
  account_id: {
    kind: "string",
    help: "Id of the account, from its login; what users wrote is remembered under it",
    env: ["WEIXIN_ACCOUNT_ID"],
    required: true,
  },
  home_channel: homeChannel("WEIXIN_HOME_CHANNEL", "User"),
  base_url: baseUrl("WEIXIN", "Address of iLink, from the login", "https://ilinkai.weixin.qq.com"),
};

const address: Target["address"] = {
  chat_id: {
    help: 'a user\'s id such as "o9cq80abc@im.wechat"',
    pattern: userId,
    alternatives: ["user_id"],
    homeChannel: true,
  },
  format,
};

/** Nobody has ever seen it read marks. */
const wording: Wording = { markdown: markdownToPlain, plain: (text) => text };

/** Options for tests. */
export type WeixinOptions = TargetOptions & Partial<Pick<PollOptions, "sleep" | "random">>;

/**
 * Weixin (personal WeChat) through iLink, as a bot account (https://github.com/Tencent/openclaw-weixin). It answers 200 whether
 * it took the message or not: the body tells. A message needs the context token of the user's last one, which `attend`
 * learns by asking what users write; without it, delivery is best effort. A user has to have written within a day, and
 * takes about ten messages for each one of theirs (field reports). Whether iLink drops a message whose `client_id` it has
 * seen is not known, so it counts as one that does not.
 */
export function createWeixin(options: WeixinOptions = {}): Target {
  const { timeoutMs = 30_000, sleep = realSleep, random = Math.random } = options;
  return {
    name: "weixin",
    neutralName: "chat_target_12",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "utf16", max: 4000, parts: 10, numberedFrom: 3, rendered: longerWording(wording, "utf16") },
    markup: "none: plain text",
    retried: "-2 (too many) after a minute, -1 (busy)",
    repeats: "doubled",
    // No limit is published; parts that come faster than a person writes were refused in field reports.
    pace: { perPlace: { field: "chat_id", count: 1, everyMs: 1000 } },
    ownServer: "base_url",
    send: (part, values, tools) =>
      send(conversation("Cannot send to Weixin", values, tools, timeoutMs), part, values, tools),
    check: (values, tools) => check(conversation("Cannot use Weixin", values, tools, timeoutMs), values, tools),
    attend: (values, tools) => poll(values, tools, { patienceMs: timeoutMs, sleep, random }),
  };
}

/** The target of the registry. */
export const weixin: Target = createWeixin();

function conversation(action: string, { token }: SettingValues, tools: TargetTools, timeoutMs: number): Conversation {
  return new Conversation({ service: "Weixin", action, secrets: [String(token)], timeoutMs, signal: tools.signal });
}

async function send(talk: Conversation, part: Part, values: SettingValues, tools: TargetTools): Promise<Receipt> {
  const context = await contextOf(String(part.address.chat_id), values, tools.memory);
  const first = await post(talk, part, values, context);
  // A token may have outlived its session; without one, the service may still take the message.
  const answer = context !== undefined && isStale(first) ? await post(talk, part, values, undefined) : first;
  expectTaken(talk, answer);
  return { reference: `taken as ${clientId(part)}, for iLink gives no id` };
}

async function contextOf(user: string, values: SettingValues, memory: Memory): Promise<string | undefined> {
  try {
    return (await recall(memory, values)).contexts.get(user);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    throw new DeliveryError("Cannot use Weixin: the ledger cannot be asked for the user's context token", {
      ...{ sent: "no", cause: error },
    });
  }
}

function post(talk: Conversation, part: Part, values: SettingValues, context: string | undefined): Promise<Answer> {
  const msg = {
    from_user_id: "",
    to_user_id: part.address.chat_id,
    client_id: clientId(part),
    // A message of a bot, which is finished.
    ...{ message_type: 2, message_state: 2 },
    ...(context === undefined ? {} : { context_token: context }),
    item_list: [{ type: 1, text_item: { text: worded(part, wording) } }],
  };
  return call(talk, "sendmessage", values, { msg, base_info: baseInfo }, true);
}

function clientId({ key }: Part): string {
  return `postern-${key}`;
}

function call(talk: Conversation, method: string, values: SettingValues, json: object, sends: boolean) {
  const headers = headersFor(String(values.token));
  return talk.ask({ method: "POST", url: `${values.base_url}/ilink/bot/${method}`, headers, json, sends });
}

/** The session of the context token is over: it says so, or that it does not know what is wrong. */
function isStale({ status, json }: Answer): boolean {
  if (status !== 200 || json === undefined) return false;
  const code = codeOf(json);
  return code === codes.expired || (code === codes.limited && wordsOf(json).toLowerCase() === "unknown error");
}

/** Field reports only: a rate that passes within a minute, or a spent number of messages, which no wait brings back. */
const limitedMs = 60_000;
const limitedAdvice = "a user takes about ten messages for each one of theirs, for a day; they may have to write again";

function expectTaken(talk: Conversation, answer: Answer): void {
  const { json } = answer;
  const said =
    json === undefined || (codeOf(json) === codes.taken && json.errmsg === undefined) ? undefined : wordsOf(json);
  talk.expectSuccess(answer, said, { 401: 'check the "token"' });
  if (json === undefined) throw talk.notAnAnswer(answer);
  const words = wordsOf(json);
  const code = codeOf(json);
  if (code === codes.taken) return;
  if (code === codes.expired) throw talk.refused(answer, words, expiredAdvice);
  // Its own trouble may have come after it took the message.
  if (code === codes.busy) throw talk.unclear(answer, words);
  if (code !== codes.limited) throw talk.refused(answer, words);
  const { message, retryAfterMs } = talk.later(answer, words, answer.waitMs ?? limitedMs);
  throw new DeliveryError(`${message}; ${limitedAdvice}`, { sent: "no", retryAfterMs });
}

/** Asks for what a client needs to show that it writes: it sends nothing, and is refused when the session is over. */
async function check(talk: Conversation, values: SettingValues, tools: TargetTools): Promise<readonly string[]> {
  const { home_channel: home, account_id: account } = values;
  if (home === undefined) return [`Whether the session of "${account}" is alive cannot be told without a home channel`];
  const context = await contextOf(String(home), values, tools.memory);
  const json = {
    ilink_user_id: home,
    ...(context === undefined ? {} : { context_token: context }),
    base_info: baseInfo,
  };
  expectTaken(talk, await call(talk, "getconfig", values, json, false));
  const heard = context === undefined ? "has not been heard from yet: let them write to the account once" : "is known";
  return [`The session of "${account}" is alive`, `The user of the home channel ${heard}`];
}
