import { truncate } from "../core/text.ts";
import { type Answer, Conversation, numberOf, textOf } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { oneLine, plainText } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

const settings: Target["settings"] = {
  token: { kind: "secret", help: 'Access token, "tk_…"', env: ["NTFY_TOKEN"] },
  username: { kind: "string", help: "Name of a login, in place of a token", env: ["NTFY_USERNAME"] },
  password: { kind: "secret", help: "Its password", env: ["NTFY_PASSWORD"] },
  home_channel: {
    ...homeChannel("NTFY_HOME_CHANNEL", "Topic"),
    env: ["NTFY_HOME_CHANNEL", "NTFY_TOPIC"],
    alternatives: ["topic"],
  },
  markdown: {
    kind: "boolean",
    help: "Send Markdown as it is, for apps that show it; images are left out",
    env: ["NTFY_MARKDOWN"],
    default: false,
  },
  base_url: {
    ...baseUrl("NTFY", "Address of the ntfy server", "https://ntfy.sh", ["url"]),
    env: ["NTFY_BASE_URL", "NTFY_URL"],
  },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a topic such as "builds", of letters, digits, "-" and "_"',
    pattern: /[-_A-Za-z0-9]{1,64}/,
    alternatives: ["topic"],
    homeChannel: true,
  },
  title: { help: "the title of the notification; none when not set", pattern: /[\s\S]*/ },
  priority: {
    help: '"min", "low", "default", "high" or "max", or the number from 1 to 5',
    pattern: /[1-5]|min|low|default|high|max|urgent/,
  },
  tags: {
    help: 'tags, with commas between them, such as "warning,ci"; ntfy shows some as emoji',
    pattern: /[A-Za-z0-9_+-]{1,40}(?:,[A-Za-z0-9_+-]{1,40}){0,9}/,
  },
  format,
};

const priorities = ["min", "low", "default", "high", "max"];
const longestTitle = 250;

/**
 * ntfy (https://docs.ntfy.sh/publish/#publish-as-json). A topic without access control belongs to whoever knows its name,
 * to read and to write. There is no idempotency key.
 */
export function createNtfy({ timeoutMs = 30_000 }: TargetOptions = {}): Target {
  const converse = (action: string, values: SettingValues, { signal }: TargetTools) =>
    new Conversation({ service: "ntfy", action, secrets: secretsOf(values), timeoutMs, signal });
  return {
    name: "ntfy",
    isPlatform: true,
    settings,
    // A topic of one's own choice is a login of a kind.
    ways: [["token"], ["username", "password"], ["home_channel"]],
    address,
    // What is longer than 4,096 bytes becomes an attachment.
    limit: { unit: "bytes", max: 4000, parts: 10, numberedFrom: 3, rendered: longestForm },
    markup: 'none: plain text; Markdown by the setting "markdown"',
    retried: "as for all",
    repeats: "doubled",
    // https://docs.ntfy.sh/publish/#limitations: 60 at once, then one in five seconds.
    pace: { overall: { count: 60, everyMs: 300_000 } },
    ownServer: "base_url",
    send: (part, values, tools) => send(converse("Cannot publish by ntfy", values, tools), part, values),
    check: (values, tools) => check(converse("Cannot use ntfy", values, tools), values),
  };
}

/** The target of the registry. */
export const ntfy: Target = createNtfy();

/** How the part is sent is told by settings, which the split does not see: whichever form is longer. */
function longestForm(text: string): string {
  const [plain, source] = [markdownToPlain(text), withoutImages(text)];
  return Buffer.byteLength(plain) > Buffer.byteLength(source) ? plain : source;
}

function secretsOf({ token, password }: SettingValues): string[] {
  return [token, password].filter((one) => one !== undefined).map(String);
}

async function send(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const [url, headers, json] = [`${values.base_url}/`, headersOf(values), contentOf(part, values)];
  const answer = await talk.ask({ method: "POST", url, headers, json, sends: true });
  expectSuccess(talk, answer);
  const id = textOf(answer.json?.id);
  if (id === undefined) throw talk.notAnAnswer(answer);
  return { reference: id };
}

function headersOf({ token, username, password }: SettingValues): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (username === undefined || password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
}

/** As JSON, in which no text becomes a header or one of ntfy's other fields. */
function contentOf({ text, address }: Part, { markdown }: SettingValues): object {
  const { chat_id: topic, title, priority, tags, format } = address;
  const isMarkdown = markdown === true && format !== "plain";
  const message = isMarkdown ? withoutImages(text) : plainText(format === "plain" ? text : markdownToPlain(text));
  return {
    topic,
    message,
    ...(isMarkdown ? { markdown: true } : {}),
    ...(title === undefined ? {} : { title: truncate(oneLine(title), longestTitle) }),
    ...(priority === undefined ? {} : { priority: priorityOf(priority) }),
    ...(tags === undefined ? {} : { tags: tags.split(",") }),
  };
}

/** An image is loaded when the message is read, and so tells who reads it and when; a link is not. */
function withoutImages(text: string): string {
  return plainText(text).replaceAll("![", "!\u200b[");
}

function priorityOf(priority: string): number {
  if (/^\d$/.test(priority)) return Number(priority);
  return priorities.indexOf(priority === "urgent" ? "max" : priority) + 1;
}

const advice: Readonly<Record<number, string>> = {
  401: "check the login",
  403: "give the login the right to write to the topic",
  404: 'check "base_url"',
  413: "let the server take longer messages",
};

/** https://docs.ntfy.sh/publish/#limitations: `code` begins with the status, `error` has the words. */
function expectSuccess(talk: Conversation, answer: Answer): void {
  const [words, code] = [textOf(answer.json?.error), numberOf(answer.json?.code)];
  const said = words === undefined || code === undefined ? words : `${words} (${code})`;
  talk.expectSuccess(answer, said, advice);
}

async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const url = `${values.base_url}/v1/account`;
  const answer = await talk.ask({ method: "GET", url, headers: headersOf(values), sends: false });
  expectSuccess(talk, answer);
  const name = textOf(answer.json?.username);
  if (name === undefined) throw talk.notAnAnswer(answer);
  const where = "Whether it may write to a topic cannot be told without writing";
  return [name === "*" ? "Nobody is logged in" : `The login is "${name}"`, where];
}
