import { isObject } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { type Answer, Conversation, numberOf, textOf } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { markdownToRanges, type RangeKind } from "./markup/ranges.ts";
import { plainText } from "./neutralise.ts";
import { recipientOf } from "./signal-recipient.ts";
import { fateOf, type RecipientResult, reportPartial } from "./signal-results.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { isPlain, longerWording, type Wording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  base_url: {
    ...baseUrl("SIGNAL", "Address of signal-cli's daemon or of the REST API", undefined, ["http_url"]),
    env: ["SIGNAL_BASE_URL", "SIGNAL_HTTP_URL"],
  },
  account: {
    kind: "string",
    help: 'Number of the account that sends, such as "+15550100"; in quotes',
    env: ["SIGNAL_ACCOUNT"],
    alternatives: ["number"],
    required: true,
  },
  api: {
    kind: "choice",
    help: 'What answers at "base_url": "daemon" (signal-cli daemon --http) or "rest" (signal-cli-rest-api)',
    env: ["SIGNAL_API"],
    choices: ["daemon", "rest"],
    default: "daemon",
  },
  home_channel: homeChannel("SIGNAL_HOME_CHANNEL", "Person or group"),
};

const address: Target["address"] = {
  chat_id: {
    help: 'a number "+15550100", an account\'s UUID, a user name "u:ana.01", or a group "group:<id>" or "group.<id>"',
    pattern:
      /\+[1-9]\d{6,14}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?:u:)?[a-z_][a-z0-9_]{2,31}\.\d{2,20}|group[:.][A-Za-z0-9+/]{20,200}={0,2}/i,
    alternatives: ["recipient"],
    homeChannel: true,
  },
  format,
};

const styles = new Map<RangeKind, string>([
  ["bold", "BOLD"],
  ["heading", "BOLD"],
  ["italic", "ITALIC"],
  ["strike", "STRIKETHROUGH"],
  ["code", "MONOSPACE"],
  ["pre", "MONOSPACE"],
]);

function styledText(text: string) {
  return markdownToRanges(text, [...styles.keys()]);
}

const wording: Wording = { markdown: (text) => styledText(text).text, plain: (text) => text };

/**
 * Signal through signal-cli: its daemon's JSON-RPC (https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc),
 * which takes Markdown as styles, or signal-cli-rest-api, which is sent plain text. Nothing tells a message that is sent
 * twice. A group's message that some members cannot get counts as delivered; a warning says how many.
 */
export function createSignal(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  return {
    name: "signal",
    neutralName: "chat_target_04",
    isPlatform: true,
    settings,
    address,
    // Signal tells of no limit: what is too long for it, signal-cli attaches as a text file.
    limit: { unit: "utf16", max: 4000, parts: 10, numberedFrom: 3, rendered: longerWording(wording, "utf16") },
    markup: "style ranges: bold, italic, strike, code",
    retried: "-5 after its `retryAfterSeconds`, -3, failures of the network",
    repeats: "doubled",
    send: (part, values, tools) => {
      const talk = conversation("Cannot send to Signal", tools, timeoutMs);
      return values.api === "rest" ? sendByRest(talk, part, values) : sendByDaemon(talk, part, values, tools);
    },
    check: (values, tools) => {
      const talk = conversation("Cannot use Signal", tools, timeoutMs);
      return values.api === "rest" ? checkRest(talk, values) : checkDaemon(talk, values);
    },
  };
}

/** The target of the registry. */
export const signal: Target = createSignal();

function conversation(action: string, { signal }: TargetTools, timeoutMs: number): Conversation {
  return new Conversation({ service: "signal-cli", action, secrets: [], timeoutMs, signal });
}

/** `textStyle` is a list of "start:length:STYLE" in UTF-16 units. */
function messageOf({ text, address }: Part): { readonly message: string; readonly textStyle?: readonly string[] } {
  if (isPlain(address)) return { message: plainText(text) };
  const { text: message, ranges } = styledText(plainText(text));
  const textStyle = ranges.map(({ offset, length, kind }) => `${offset}:${length}:${styles.get(kind)}`);
  return textStyle.length === 0 ? { message } : { message, textStyle };
}

async function sendByDaemon(talk: Conversation, part: Part, values: SettingValues, tools: TargetTools) {
  const recipient = recipientOf(String(part.address.chat_id));
  const to = {
    person: () => ({ recipient: [recipient.id] }),
    username: () => ({ username: [recipient.id] }),
    group: () => ({ groupId: recipient.id }),
  }[recipient.kind]();
  const params = { account: values.account, ...to, ...messageOf(part) };
  const json = { jsonrpc: "2.0", id: part.key, method: "send", params };
  const answer = await talk.ask({ method: "POST", url: `${values.base_url}/api/v1/rpc`, json, sends: true });
  const { id, error, result } = answer.json ?? {};
  // The error of a request that could not be read has none (https://www.jsonrpc.org/specification#response_object).
  const isOurs = id === part.key || (id === null && isOne(error));
  if (isOurs && isOne(error)) throw failureOf(talk, answer, error);
  talk.expectSuccess(answer, undefined);
  if (!isOurs || !isOne(result)) throw talk.notAnAnswer(answer);
  return receiptOf(talk, answer, result, part, tools);
}

function isOne(value: Json | undefined): value is JsonObject {
  return isObject(value ?? null);
}

function receiptOf(talk: Conversation, answer: Answer, result: JsonObject, part: Part, tools: TargetTools): Receipt {
  const results = resultsIn(result);
  const reference = textOf(result.timestamp);
  const isTaken = results.length === 0 || results.some(({ type }) => type === "SUCCESS");
  if (!isTaken) throw fateOf(talk, answer, "Failed to send message", results);
  if (reference === undefined) throw talk.notAnAnswer(answer);
  const left = reportPartial(results, part, tools.log);
  return { reference: left === undefined ? reference : `${reference} ${left}` };
}

/** Of each recipient: a group has many. */
function resultsIn(response: JsonObject): RecipientResult[] {
  const list = Array.isArray(response.results) ? response.results : [];
  return list.filter(isOne).map((one) => ({
    type: textOf(one.type) ?? "",
    retryAfterSeconds: numberOf(one.retryAfterSeconds),
    needsCaptcha: textOf(one.token) !== undefined,
  }));
}

/** Errors of JSON-RPC: those from -32768 to -32000 are its own, the others signal-cli's. */
function failureOf(talk: Conversation, answer: Answer, error: JsonObject) {
  const words = textOf(error.message) ?? "an error without words";
  const code = numberOf(error.code);
  const data = isOne(error.data) ? error.data : {};
  const results = resultsIn(isOne(data.response) ? data.response : data);
  // What each recipient's result says is more than the code: -1 also stands for a network that is down.
  if (results.length > 0 || code === rateLimited) return fateOf(talk, answer, words, results, code === rateLimited);
  // It broke off on the way to Signal (-3), or within signal-cli (-2, -32603).
  if (code === -3 || code === -2 || code === -32603) return talk.unclear(answer, words);
  return talk.refused(answer, words, code === undefined ? undefined : advice.get(code));
}

const rateLimited = -5;

const advice = new Map([
  [-4, 'trust the new key of the recipient with signal-cli\'s "trust"'],
  [-6, "solve a new captcha"],
  [-32602, 'check "account", and that signal-cli knows it'],
  [-32601, "update signal-cli"],
]);

async function sendByRest(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const recipient = recipientOf(String(part.address.chat_id));
  const json = {
    number: values.account,
    recipients: [recipient.restId],
    message: worded(part, { markdown: markdownToPlain, plain: (text) => text }),
    text_mode: "normal",
  };
  const answer = await talk.ask({ method: "POST", url: `${values.base_url}/v2/send`, json, sends: true });
  const error = textOf(answer.json?.error);
  if (answer.status === 400 && error !== undefined) throw restFailure(talk, answer, error);
  const captcha =
    answer.json?.challenge_tokens === undefined ? "" : "; solve a captcha, see signal-cli's submitRateLimitChallenge";
  talk.expectSuccess(answer, error === undefined ? undefined : error + captcha);
  const reference = textOf(answer.json?.timestamp);
  if (reference === undefined) throw talk.notAnAnswer(answer);
  return { reference };
}

/** It answers 400 to whatever goes wrong; only the words, which are signal-cli's, tell what passes. */
function restFailure(talk: Conversation, answer: Answer, error: string) {
  if (/rate.?limit|\[429\]|too many requests/i.test(error)) return talk.later(answer, error);
  if (/network|time[d ]?.?out|connect|closed|unavailable|ioexception/i.test(error)) return talk.unclear(answer, error);
  return talk.refused(answer, error);
}

/** `/api/v1/check` says only that the daemon is there. */
async function checkDaemon(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const answer = await talk.ask({ method: "GET", url: `${values.base_url}/api/v1/check`, sends: false });
  talk.expectSuccess(answer, undefined);
  return ["signal-cli's daemon answers", untried(values)];
}

async function checkRest(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const answer = await talk.ask({ method: "GET", url: `${values.base_url}/v1/accounts`, sends: false });
  talk.expectSuccess(answer, textOf(answer.json?.error));
  const accounts = listIn(answer.text);
  if (accounts === undefined) throw talk.notAnAnswer(answer);
  if (!accounts.includes(values.account)) {
    throw talk.refused(answer, undefined, `"${values.account}" is none of its accounts; register or link it there`);
  }
  return ["signal-cli-rest-api answers, and has the account", untried(values)];
}

function untried({ home_channel: home }: SettingValues): string {
  const what = home === undefined ? "Whether messages arrive" : "Whether the home channel can be reached";
  return `${what} cannot be tried without sending`;
}

function listIn(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
