import type { DeliveryError } from "../core/errors.ts";
import { isList, isObject } from "../core/json.ts";
import type { JsonObject } from "../core/types.ts";
import { type Answer, Conversation, numberOf, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { markdownToPlain } from "./markup/plain.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { longerWording, type Wording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  base_url: {
    ...baseUrl("BLUEBUBBLES", "Address of the BlueBubbles server", undefined, ["server_url"]),
    env: ["BLUEBUBBLES_BASE_URL", "BLUEBUBBLES_SERVER_URL"],
  },
  password: {
    kind: "secret",
    help: "The server's password",
    env: ["BLUEBUBBLES_PASSWORD"],
    alternatives: ["token"],
    required: true,
  },
  home_channel: homeChannel("BLUEBUBBLES_HOME_CHANNEL", "Chat"),
  private_api: {
    kind: "boolean",
    help: "The server has its Private API on: needed to write to a new address and to answer to a message",
    default: false,
  },
};

/** `iMessage;-;+15550100` is a chat with one person, `iMessage;+;chat123` a group. */
const chatGuid = /(?:iMessage|SMS|RCS|any);[-+];[\w+@.-]{1,200}/;
const newAddress = /\+[1-9]\d{4,14}|[\w.+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/;

const address: Target["address"] = {
  chat_id: {
    help: 'a chat\'s guid such as "iMessage;-;+15550100" or "iMessage;+;chat123", or with the Private API a number or an e-mail address',
    pattern: new RegExp(`${chatGuid.source}|${newAddress.source}`),
    alternatives: ["chat_guid"],
    homeChannel: true,
  },
  message_guid: {
    help: "the guid of the message to answer to; needs the Private API",
    pattern: /(?:p:\d{1,3}\/)?[A-Za-z0-9-]{8,64}/,
    alternatives: ["thread_id"],
  },
  format,
};

const wording: Wording = { markdown: markdownToPlain, plain: (text) => text };

/**
 * iMessage through a BlueBubbles server on a Mac (https://docs.bluebubbles.app/server). The server knows a repeated
 * `tempGuid` only as long as the first one waits to be sent.
 */
export function createBluebubbles(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  return {
    name: "bluebubbles",
    neutralName: "chat_target_13",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "utf16", max: 4000, parts: 10, numberedFrom: 3, rendered: longerWording(wording, "utf16") },
    markup: "none: plain text",
    retried: "as for all; not iMessage's own errors",
    repeats: "doubled",
    send: (part, values, tools) =>
      send(conversation("Cannot send to BlueBubbles", values, tools, timeoutMs), part, values),
    check: (values, tools) => check(conversation("Cannot use BlueBubbles", values, tools, timeoutMs), values),
  };
}

/** The target of the registry. */
export const bluebubbles: Target = createBluebubbles();

/** The password stands in each address, and so may stand in an error. */
function conversation(action: string, { password }: SettingValues, { signal }: TargetTools, timeoutMs: number) {
  const plain = String(password);
  const secrets = [plain, encodeURIComponent(plain), encodeURI(plain), inQuery(plain).slice("password=".length)];
  return new Conversation({ service: "BlueBubbles", action, secrets, timeoutMs, signal });
}

function inQuery(password: string): string {
  return new URLSearchParams({ password }).toString();
}

type Ask = { readonly method: "GET" | "POST"; readonly json?: object; readonly sends: boolean };

function call(talk: Conversation, { base_url: base, password }: SettingValues, path: string, ask: Ask) {
  return talk.ask({ ...ask, url: `${base}/api/v1${path}?${inQuery(String(password))}` });
}

async function send(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const { path, json } = requestOf(part, values);
  const answer = await call(talk, values, path, { method: "POST", json, sends: true });
  expectTaken(talk, answer);
  const { guid } = dataIn(answer);
  return { reference: textOf(guid) ?? part.key };
}

function requestOf(part: Part, values: SettingValues): { readonly path: string; readonly json: object } {
  const { chat_id: chat = "", message_guid: parent } = part.address;
  const isPrivate = values.private_api === true;
  if (!isPrivate && parent !== undefined) throw needsPrivateApi('"message_guid", to answer to a message,');
  const message = {
    tempGuid: part.key,
    message: worded(part, wording),
    method: isPrivate ? "private-api" : "apple-script",
  };
  if (new RegExp(`^(?:${chatGuid.source})$`).test(chat)) {
    const answered = parent === undefined ? {} : { selectedMessageGuid: parent };
    return { path: "/message/text", json: { chatGuid: chat, ...message, ...answered } };
  }
  if (!isPrivate) throw needsPrivateApi('"chat_id" that is not a chat\'s guid');
  return { path: "/chat/new", json: { addresses: [chat], service: "iMessage", ...message } };
}

function needsPrivateApi(what: string): DeliveryError {
  return permanent(
    `Cannot send to BlueBubbles: ${what} needs the server's Private API; set "private_api" when it is on`,
  );
}

/** Every answer says its status in its body. A message that failed on its way may be in `data` of one that says 200. */
function expectTaken(talk: Conversation, heard: Answer): void {
  const status = numberOf(heard.json?.status);
  // A success whose body says that it failed is what the body says.
  const answer = heard.status < 300 && status !== undefined && status >= 400 ? { ...heard, status } : heard;
  const { type, words } = errorIn(answer);
  if (answer.status === 400 && /already (?:queued|being sent)/i.test(words ?? "")) throw talk.unclear(answer, words);
  // iMessage itself said no; other 500s are the server's trouble.
  if (answer.status === 500 && type === "iMessage Error") throw talk.refused(answer, words);
  talk.expectSuccess(answer, words, { 401: 'check the "password"', 403: 'check the "password"' });
  if (status === undefined) throw talk.notAnAnswer(answer);
  const failed = numberOf(dataIn(answer).error) ?? 0;
  if (failed !== 0) throw talk.refused(answer, `iMessage error ${failed}`, "look at the message on the Mac");
}

function errorIn({ json }: Answer): { readonly type: string | undefined; readonly words: string | undefined } {
  const error = isObject(json?.error ?? null) ? (json?.error as JsonObject) : {};
  const said = [textOf(json?.message), textOf(error.message)].filter((words) => words !== undefined);
  return { type: textOf(error.type), words: said.length === 0 ? undefined : said.join(": ") };
}

function dataIn({ json }: Answer): JsonObject {
  return isObject(json?.data ?? null) ? (json?.data as JsonObject) : {};
}

async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  expectTaken(talk, await call(talk, values, "/ping", { method: "GET", sends: false }));
  const known = "The server takes the password";
  const { home_channel: home } = values;
  if (home === undefined) return [known];
  if (!String(home).includes(";"))
    return [known, "Whether the home channel can be reached cannot be tried without sending"];
  const json = { guid: home, limit: 1 };
  const answer = await call(talk, values, "/chat/query", { method: "POST", json, sends: false });
  expectTaken(talk, answer);
  const chats = answer.json?.data ?? null;
  if (!isList(chats)) throw talk.notAnAnswer(answer);
  if (chats.length === 0) throw talk.refused(answer, undefined, 'it has no chat with the guid of "home_channel"');
  return [known, "The home channel is there"];
}
