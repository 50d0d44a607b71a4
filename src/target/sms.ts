import { segmentCount } from "../core/segments.ts";
import { splitText } from "../core/split.ts";
import { type Answer, Conversation, numberOf, textOf } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { plainText } from "./neutralise.ts";
import type { Part, Receipt, Setting, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

/** Segments of which Twilio takes no more in one message: 1,600 characters. */
const mostSegments = 10;

/** https://www.twilio.com/docs/glossary/what-is-a-sid: two letters that say what it is of, and 32 hex digits. */
function sid(kind: "AC" | "SK" | "MG", help: string, variable: string): Setting {
  return { kind: "string", help, env: [variable], pattern: new RegExp(`${kind}[\\da-fA-F]{32}`) };
}

const settings: Target["settings"] = {
  account_sid: {
    ...sid("AC", 'The account\'s SID, "AC" and 32 hex digits', "TWILIO_ACCOUNT_SID"),
    required: true,
  },
  auth_token: {
    kind: "secret",
    help: "The account's auth token",
    env: ["TWILIO_AUTH_TOKEN"],
    alternatives: ["token"],
  },
  api_key: sid("SK", 'SID of an API key, "SK" and 32 hex digits, in place of the auth token', "TWILIO_API_KEY"),
  api_secret: { kind: "secret", help: "Secret of the API key", env: ["TWILIO_API_SECRET"] },
  from: {
    kind: "string",
    help: 'The number that messages come from, such as "+15005550006", or a name where the country has those',
    env: ["TWILIO_PHONE_NUMBER"],
    alternatives: ["phone_number"],
  },
  messaging_service_sid: sid(
    "MG",
    'SID of a messaging service, "MG" and 32 hex digits, in place of a number',
    "TWILIO_MESSAGING_SERVICE_SID",
  ),
  home_channel: homeChannel("SMS_HOME_CHANNEL", "Number"),
  max_segments: {
    kind: "integer",
    help: `Segments of one message, from 1 to ${mostSegments}, each of which costs: 160 characters, or 70 with other letters than those of GSM`,
    env: ["SMS_MAX_SEGMENTS"],
    pattern: new RegExp(Array.from({ length: mostSegments }, (_, index) => index + 1).join("|")),
    default: 4,
  },
  base_url: {
    ...baseUrl("SMS", "Address of Twilio's API, for another region", "https://api.twilio.com"),
    env: ["SMS_BASE_URL", "TWILIO_BASE_URL"],
  },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a telephone number with its country, such as "+4915112345678"',
    pattern: /\+[1-9]\d{5,14}/,
    alternatives: ["to"],
    homeChannel: true,
  },
  format,
};

const logins = [["auth_token"], ["api_key", "api_secret"]];
const origins = [["from"], ["messaging_service_sid"]];

/**
 * SMS through Twilio (https://www.twilio.com/docs/messaging/api/message-resource), one message of a few segments, as plain
 * text. Twilio takes a message long before it is on a telephone, and has no idempotency key.
 */
export function createSms({ timeoutMs = 30_000 }: TargetOptions = {}): Target {
  const converse = (action: string, values: SettingValues, { signal }: TargetTools) =>
    new Conversation({ service: "Twilio", action, secrets: secretsOf(values), timeoutMs, signal });
  return {
    name: "sms",
    isPlatform: true,
    settings,
    ways: logins.flatMap((login) => origins.map((origin) => [...login, ...origin])),
    address,
    limit: { unit: "segments", max: mostSegments, parts: 1, rendered: markdownToPlain },
    boundedBy: "max_segments",
    markup: "none: plain text",
    retried: "429 (20429), a full queue (21611)",
    repeats: "doubled",
    ownServer: "base_url",
    send: (part, values, tools) => send(converse("Cannot send the SMS", values, tools), part, values),
    check: (values, tools) => check(converse("Cannot use Twilio", values, tools), values),
  };
}

/** The target of the registry. */
export const sms: Target = createSms();

function secretsOf({ auth_token: token, api_secret: secret }: SettingValues): string[] {
  return [token, secret].filter((one) => one !== undefined).map(String);
}

async function send(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const { from, messaging_service_sid: service } = values;
  const text = textFor(part, values);
  const origin: Record<string, string> =
    service === undefined ? { From: String(from) } : { MessagingServiceSid: String(service) };
  // Typographic quotes and the like would make the whole message one of 70 characters a segment.
  const form = { To: part.address.chat_id ?? "", ...origin, Body: text, SmartEncoded: "true" };
  const url = `${accountUrl(values)}/Messages.json`;
  const answer = await talk.ask({ method: "POST", url, headers: headersOf(values), form, sends: true });
  expectSuccess(talk, answer);
  const [id, status] = [textOf(answer.json?.sid), textOf(answer.json?.status)];
  if (id === undefined) throw talk.notAnAnswer(answer);
  if (status === "failed" || status === "undelivered") throw talk.refused(answer, wordsOf(answer) ?? status);
  return { reference: `${id}, accepted by Twilio (${status}), ${segmentCount(text)} segments; not yet delivered` };
}

/** What is longer than the operator wants to pay for is cut. The gateway has cut by Twilio's own limit before. */
function textFor({ text, address }: Part, { max_segments: max = 4 }: SettingValues): string {
  const plain = plainText(address.format === "plain" ? text : markdownToPlain(text));
  return splitText(plain, { unit: "segments", max: Number(max), parts: 1 })[0] ?? plain;
}

function accountUrl({ base_url: base, account_sid: account }: SettingValues): string {
  return `${base}/2010-04-01/Accounts/${encodeURIComponent(String(account))}`;
}

function headersOf(values: SettingValues): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(loginOf(values)).toString("base64")}` };
}

function loginOf({ account_sid: account, auth_token: token, api_key: key, api_secret: secret }: SettingValues): string {
  return key === undefined || secret === undefined ? `${account}:${token}` : `${key}:${secret}`;
}

const advice = new Map([
  [20003, 'check "account_sid" and "auth_token", or the API key'],
  [20404, 'check "account_sid"'],
  [21211, "correct the number"],
  [21212, 'correct "from"'],
  [21408, "allow messages to that country in Twilio's console"],
  [21606, 'choose a "from" that belongs to the account and can send SMS'],
  [21610, "the recipient has answered STOP; only START from there lets messages through again"],
  [21614, "the number takes no SMS"],
]);

/** A queue that is full for now (https://www.twilio.com/docs/api/errors/21611), and too many requests. */
const passing = new Set([20429, 21611]);

/** Twilio may change its codes, so the status comes first, and unknown codes of a refusal last. */
function expectSuccess(talk: Conversation, answer: Answer): void {
  const code = numberOf(answer.json?.code) ?? 0;
  const words = wordsOf(answer);
  if (passing.has(code) && answer.status < 500) throw talk.later(answer, words);
  const how = advice.get(code);
  talk.expectSuccess(answer, words, how === undefined ? {} : { [answer.status]: how });
}

function wordsOf({ json }: Answer): string | undefined {
  const [message, code] = [textOf(json?.message), textOf(json?.code ?? json?.error_code)];
  return message === undefined ? undefined : code === undefined ? message : `${message} (${code})`;
}

/** A key may be kept from the account itself, but not from its messages. */
async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const hasKey = values.api_key !== undefined && values.api_secret !== undefined;
  const url = hasKey ? `${accountUrl(values)}/Messages.json?PageSize=1` : `${accountUrl(values)}.json`;
  const answer = await talk.ask({ method: "GET", url, headers: headersOf(values), sends: false });
  expectSuccess(talk, answer);
  if (answer.json === undefined) throw talk.notAnAnswer(answer);
  const home = "Whether a number can be reached cannot be told without a message";
  if (hasKey) return ["The API key is good", home];
  const [name, status] = [textOf(answer.json.friendly_name), textOf(answer.json.status)];
  if (status !== "active") throw talk.refused(answer, `the account is ${status}`, "see to it in Twilio's console");
  return [`The account is "${name}"`, home];
}
