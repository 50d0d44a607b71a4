import { createHmac } from "node:crypto";
import { redact } from "../core/text.ts";
import type { Guard } from "../lib/guarded-http.ts";
import type { HttpRequest } from "../lib/http.ts";
import { type Answer, Conversation, unsent } from "./conversation.ts";
import { permanent, withoutAnswer } from "./failure.ts";
import { plainText } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

/** A key that is cut short by what is no base64, or empty, would be anybody's. */
const signingKey = /whsec_(?=.)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?|(?!whsec_)[\s\S]+/;

const settings: Target["settings"] = {
  url: {
    kind: "secret_url",
    help: "Address that messages are posted to when a route names none",
    env: ["HTTP_TARGET_URL"],
  },
  secret: {
    kind: "secret",
    help: 'Key of the signature: "whsec_" and base64, or text that begins otherwise',
    env: ["HTTP_TARGET_SECRET"],
    pattern: signingKey,
    required: true,
  },
  previous_secret: {
    kind: "secret",
    help: 'The key before that one, "whsec_" and base64 or text that begins otherwise: while it is set, messages carry the signatures of both',
    env: ["HTTP_TARGET_PREVIOUS_SECRET"],
    pattern: signingKey,
  },
  headers: {
    kind: "secret",
    help: 'Further headers, each on a line of its own: "Name: value"',
    env: ["HTTP_TARGET_HEADERS"],
  },
  allow_private: {
    kind: "boolean",
    help: "Let addresses of one's own network and of this machine be posted to, also by plain http",
    env: ["HTTP_TARGET_ALLOW_PRIVATE"],
    default: false,
  },
};

const address: Target["address"] = {
  url: {
    help: 'an address such as "https://example.com/hook", without user and password',
    pattern:
      /https?:\/\/(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?(?:[/?][A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,2000})?/,
    required: true,
    alternatives: ["chat_id"],
    unlessSet: "url",
  },
};

/** Options for tests. */
export interface HttpTargetOptions extends TargetOptions, Pick<Guard, "resolve"> {}

/**
 * Any server that takes JSON, signed by https://www.standardwebhooks.com. `webhook-id` is the same for every try of a part,
 * and a receiver should take each once; whether it does, nobody knows. Only public addresses are posted to, unless the
 * operator allows others: the address may come from the payload of an event.
 */
export function createHttp(options: HttpTargetOptions = {}): Target {
  return {
    name: "http",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "bytes", max: 262_144, parts: 10 },
    markup: "none: the text as it is, in JSON",
    retried: "every 4xx but 410 and 413",
    repeats: "doubled",
    send: (part, values, tools) => send(part, values, tools, options),
    check: (values) => check(values, options),
  };
}

/** The target of the registry. */
export const http: Target = createHttp();

async function send(
  part: Part,
  values: SettingValues,
  tools: TargetTools,
  options: HttpTargetOptions,
): Promise<Receipt> {
  const action = "Cannot post the message";
  const json = contentOf(part);
  const headers = { ...ownHeaders(action, values), ...signature(json.id, JSON.stringify(json), values, options) };
  const talk = conversation(action, values, tools, options);
  const answer = await talk.ask({ method: "POST", url: urlOf(part.address.url, values), headers, json, sends: true });
  judge(talk, answer);
  return { reference: `${json.id}, answered ${answer.status}` };
}

function urlOf(url: string | undefined, values: SettingValues): string {
  return url ?? String(values.url);
}

/** Without what changes from try to try: a receiver may compare. */
function contentOf({ key, text, route, eventType: event, index, count, firstTriedAt }: Part) {
  return {
    id: `msg_${key}`,
    type: "postern.message",
    timestamp: new Date(firstTriedAt).toISOString(),
    data: { text: plainText(text), route, event, part: { index, count } },
  };
}

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#signature-scheme */
function signature(id: string, body: string, values: SettingValues, { now }: TargetOptions) {
  const seconds = Math.floor((now ?? Date.now)() / 1000);
  const sign = (secret: string) =>
    createHmac("sha256", keyIn(secret)).update(`${id}.${seconds}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": signingSecrets(values)
      .map((secret) => `v1,${sign(secret)}`)
      .join(" "),
  };
}

function signingSecrets({ secret, previous_secret: previous }: SettingValues): string[] {
  return [secret, previous].filter((secret) => secret !== undefined).map(String);
}

function keyIn(secret: string): Buffer {
  return secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret);
}

/** What the exchange itself decides, and what would change whom the request is for. */
const reserved = /^(?:host|connection|content-.*|transfer-encoding|expect|upgrade|te|trailer|proxy-.*|webhook-.*)$/i;

function ownHeaders(action: string, values: SettingValues): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "postern" };
  for (const line of headerLines(values)) {
    const [, name = "", value = ""] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+):[\t ]*([\t\x20-\x7e]+)$/.exec(line) ?? [];
    if (name === "") throw permanent(`${action}: a line of "headers" is not "Name: value"; correct it`);
    if (reserved.test(name)) throw permanent(`${action}: "headers" may not set "${name}"; remove it`);
    headers[name.toLowerCase()] = value;
  }
  return headers;
}

function headerLines({ headers = "" }: SettingValues): string[] {
  const lines = String(headers)
    .split("\n")
    .map((line) => line.trim());
  return lines.filter((line) => line !== "");
}

function conversation(action: string, values: SettingValues, tools: TargetTools, options: HttpTargetOptions) {
  const { timeoutMs = 30_000, now } = options;
  const secrets = secretsOf(values);
  return new Conversation({
    ...{ service: "the receiver", action, secrets, timeoutMs, signal: tools.signal, addressSetting: "url" },
    ...(now === undefined ? {} : { now }),
    exchange: async (url: string, request: HttpRequest) => {
      try {
        const { guardedExchange } = await guarded();
        return await guardedExchange(url, request, guardOf(values, options));
      } catch (error) {
        throw await refusedForGood(action, error, values);
      }
    },
  });
}

function secretsOf(values: SettingValues): string[] {
  const inHeaders = headerLines(values).map((line) => line.slice(line.indexOf(":") + 1).trim());
  return [...signingSecrets(values), ...(values.url === undefined ? [] : [String(values.url)]), ...inHeaders];
}

function guardOf({ allow_private: isOpen }: SettingValues, { resolve }: HttpTargetOptions): Guard {
  return { allowPrivate: isOpen === true, ...(resolve === undefined ? {} : { resolve }) };
}

/** Node's own clients of HTTP take as long to load as all targets together. */
const guarded = () => import("../lib/guarded-http.ts");

/** The address itself is at fault: no time will mend it. */
async function refusedForGood(action: string, error: unknown, values: SettingValues): Promise<unknown> {
  const { AddressRefused } = await guarded();
  if (!(error instanceof AddressRefused)) return error;
  const how =
    values.allow_private === true ? "correct it" : 'correct it, or set "allow_private" if the receiver is yours';
  return permanent(`${action}: the address is refused: ${redact(error.message, secretsOf(values))}; ${how}`);
}

const gone = "the receiver wants no more messages; remove it from the route, or ask whoever runs it";

/**
 * By the standard any 2xx is a success, 410 means never again, and whatever else is wrong is tried again: a receiver that
 * is being renewed or set up answers 404 or 401 for a while.
 */
function judge(talk: Conversation, answer: Answer): void {
  const { status } = answer;
  const words = wordsOf(answer);
  if (status === 410) throw talk.refused(answer, words, gone);
  if (status === 413) throw talk.refused(answer, words, "let the receiver take longer messages");
  if (status >= 400 && status < 500 && status !== 408) throw talk.later(answer, words);
  talk.expectSuccess(answer, words);
}

/** The beginning of a short answer in plain text or JSON; a page of HTML says nothing in a line. */
function wordsOf({ text, headers }: Answer): string | undefined {
  const isPage = /html/i.test(headers.get("content-type") ?? "") || text.trimStart().startsWith("<");
  return isPage || text.trim() === "" ? undefined : text;
}

async function check(values: SettingValues, options: HttpTargetOptions): Promise<readonly string[]> {
  const action = "Cannot use the receiver";
  ownHeaders(action, values);
  if (values.url === undefined)
    return ['No "url" is set: each route names its own, and none can be tried without posting'];
  try {
    const { checkDestination } = await guarded();
    await checkDestination(String(values.url), guardOf(values, options));
  } catch (error) {
    throw unsent(withoutAnswer(action, await refusedForGood(action, error, values), secretsOf(values)));
  }
  return ["The address may be posted to; whether the receiver takes messages cannot be told without posting"];
}
