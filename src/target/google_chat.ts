import { isObject } from "../core/json.ts";
import type { JsonObject } from "../core/types.ts";
import { Conversation, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import { format } from "./fields.ts";
import { shortFence, shortSpan } from "./markup/code.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { longerWording, type Wording, worded } from "./wording.ts";

const settings: Target["settings"] = {
  webhook_url: {
    kind: "secret_url",
    help: "Address of an incoming webhook, with its key and token; it posts to its one space",
    env: ["GOOGLE_CHAT_WEBHOOK_URL"],
    required: true,
  },
};

const address: Target["address"] = {
  thread_key: {
    help: 'a name for the thread to answer in, such as "owner/name#7"; the first message with it begins the thread',
    pattern: /[\w.:/#@+-]{1,300}/,
    alternatives: ["thread_id"],
  },
  format,
};

/** https://developers.google.com/workspace/chat/format-messages: it has no way to escape its marks. */
const dialect: Dialect = {
  escape: partMarkup,
  escapeCode: partMarkup,
  escapeUrl: (url) => url.replaceAll("|", "%7C").replaceAll("<", "%3C").replaceAll(">", "%3E"),
  bold: ["*", "*"],
  italic: ["_", "_"],
  strike: ["~", "~"],
  code: shortSpan,
  codeBlock: shortFence,
  link: (text, url) => `<${url}|${text.replaceAll("|", "\u00a6").replaceAll(">", "\u203a").replaceAll("\n", " ")}>`,
  bullet: (marker, isOrdered) => (isOrdered ? marker : "•"),
  checks: ["☐", "☑"],
};

const wording: Wording = { markdown: (text) => renderMarkdown(text, dialect), plain: partMarkup };

/** `<users/all>` reaches everybody, `<address|text>` is a link under another name: a space of no width parts them. */
function partMarkup(text: string): string {
  return text.replaceAll(/<(?=[^\s<>]{0,2000}[/:|])/g, "<\u200b");
}

/**
 * Google Chat through an incoming webhook (https://developers.google.com/workspace/chat/api/reference/rest/v1/spaces.messages/create).
 * A repeat with the same `requestId` gives the message that is there; no end of that is documented.
 */
export function createGoogleChat(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  return {
    name: "google_chat",
    isPlatform: true,
    settings,
    address,
    // It takes 32,000 with everything.
    limit: { unit: "bytes", max: 30_000, parts: 10, numberedFrom: 3, rendered: longerWording(wording, "bytes") },
    markup: "Google Chat's marks",
    retried: "as for all",
    repeats: "recognised",
    // https://developers.google.com/workspace/chat/limits: one a second in a space.
    pace: { overall: { count: 1, everyMs: 1000 } },
    send: (part, values, tools) => send(part, values, tools, timeoutMs),
    check: async (values) => [
      `${spaceOf("Cannot use Google Chat", values)} is the space; its webhook cannot be tried without posting`,
    ],
  };
}

/** The target of the registry. */
export const google_chat: Target = createGoogleChat();

async function send(part: Part, values: SettingValues, tools: TargetTools, timeoutMs: number): Promise<Receipt> {
  const action = "Cannot send to Google Chat";
  spaceOf(action, values);
  const talk = new Conversation({
    ...{ service: "Google Chat", action, addressSetting: "webhook_url" },
    ...{ secrets: secretsIn(values), timeoutMs, signal: tools.signal },
  });
  const { thread_key: threadKey } = part.address;
  const thread = threadKey === undefined ? {} : { thread: { threadKey } };
  const json = { text: worded(part, wording), ...thread };
  const answer = await talk.ask({ method: "POST", url: addressFor(part, values), json, sends: true });
  const { error = null, name } = answer.json ?? {};
  // Nobody else makes a message of this key.
  if (answer.status === 409 && statusIn(error) === "ALREADY_EXISTS") return { reference: "taken by an earlier try" };
  talk.expectSuccess(answer, wordsIn(error), advice);
  const reference = textOf(name);
  if (reference === undefined) throw talk.notAnAnswer(answer);
  return { reference };
}

/** `spaces/…` of the webhook's address. */
function spaceOf(action: string, { webhook_url: hook }: SettingValues): string {
  const { pathname = "" } = URL.parse(String(hook)) ?? {};
  const space = /^\/v1\/(spaces\/[\w-]+)\/messages$/.exec(pathname)?.[1];
  if (space === undefined) throw permanent(`${action}: "webhook_url" is not a webhook's address; copy it again`);
  return space;
}

/** The query holds a key and a token, either of which may be written in two ways. */
function secretsIn({ webhook_url: hook }: SettingValues): string[] {
  const query = URL.parse(String(hook))?.searchParams;
  const values = [query?.get("key"), query?.get("token")].filter((value) => typeof value === "string" && value !== "");
  return [String(hook), ...values.flatMap((value) => [String(value), encodeURIComponent(String(value))])];
}

function addressFor({ key, address }: Part, { webhook_url: hook }: SettingValues): string {
  const url = new URL(String(hook));
  url.searchParams.set("requestId", key.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"));
  if (address.thread_key !== undefined)
    url.searchParams.set("messageReplyOption", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD");
  return url.href;
}

const copied = 'copy the webhook\'s address again into "webhook_url"';

const advice: Readonly<Record<number, string>> = {
  401: copied,
  403: "see whether the space still allows webhooks",
  404: "see whether the space and its webhook still are there",
};

function statusIn(error: JsonObject[string]): string | undefined {
  return isObject(error) ? textOf(error.status) : undefined;
}

function wordsIn(error: JsonObject[string]): string | undefined {
  return isObject(error) ? (textOf(error.message) ?? textOf(error.status)) : undefined;
}
