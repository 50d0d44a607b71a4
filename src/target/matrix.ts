import { type Answer, Conversation, textOf } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { markdownToHtml } from "./markup/html.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { call, expectTaken } from "./matrix-answer.ts";
import { Rooms } from "./matrix-rooms.ts";
import { plainText } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { isPlain } from "./wording.ts";

const settings: Target["settings"] = {
  token: {
    kind: "secret",
    help: "Access token of the account that posts",
    env: ["MATRIX_ACCESS_TOKEN"],
    alternatives: ["access_token"],
    required: true,
  },
  base_url: {
    ...baseUrl("MATRIX", "Address of the homeserver's client API, without /_matrix", undefined, ["homeserver"]),
    env: ["MATRIX_BASE_URL", "MATRIX_HOMESERVER"],
  },
  home_channel: homeChannel("MATRIX_HOME_ROOM", "Room"),
  msgtype: {
    kind: "choice",
    help: 'How messages count: "text", or "notice", which bots do not answer and most clients do not ring for',
    choices: ["text", "notice"],
    default: "text",
  },
  allow_unencrypted: {
    kind: "boolean",
    help: "Post into rooms with encryption too, where the message then is one that is not encrypted",
    default: false,
  },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a room\'s id such as "!opaque:example.org", or its alias "#name:example.org"',
    pattern: /![\w.~=+/-]{1,200}(?::[\w.[\]:-]{1,200})?|#[\p{L}\p{N}_.~=+/-]{1,200}:[\w.[\]:-]{1,200}/u,
    alternatives: ["room_id"],
    homeChannel: true,
  },
  thread_event_id: {
    help: 'the id of the event that a thread hangs on, such as "$abc"',
    pattern: /\$[\w.~=+/-]{1,200}(?::[\w.[\]:-]{1,200})?/,
    alternatives: ["thread_id"],
  },
  format,
};

/**
 * An event may have 65,536 bytes with all that servers add (https://spec.matrix.org/latest/client-server-api/#size-limits).
 * JSON may need two bytes for one of the text.
 */
const maxTextBytes = 28_000;

/**
 * Matrix, unencrypted (https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid).
 * A transaction's id is good for one event of an access token: sent again, it answers with the event that there is.
 */
export function createMatrix(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000, now } = options;
  const rooms = new Rooms(now);
  return {
    name: "matrix",
    neutralName: "chat_target_06",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "bytes", max: maxTextBytes, parts: 10, numberedFrom: 3 },
    markup: "HTML, and plain text beside it",
    retried: "`M_LIMIT_EXCEEDED` after the time it names",
    repeats: "recognised",
    send: (part, values, tools) =>
      send(conversation("Cannot send to Matrix", values, tools, options), part, values, rooms),
    check: (values, tools) => check(conversation("Cannot use Matrix", values, tools, { timeoutMs }), values, rooms),
  };
}

/** The target of the registry. */
export const matrix: Target = createMatrix();

function conversation(
  action: string,
  { token }: SettingValues,
  { signal }: TargetTools,
  { timeoutMs = 30_000, now }: TargetOptions,
) {
  const clock = now === undefined ? {} : { now };
  return new Conversation({ service: "Matrix", action, secrets: [String(token)], timeoutMs, signal, ...clock });
}

async function send(talk: Conversation, part: Part, values: SettingValues, rooms: Rooms): Promise<Receipt> {
  const chat = String(part.address.chat_id);
  const answer = await put(talk, part, values, await rooms.idOf(talk, values, chat), rooms);
  const moved = isGone(answer) ? await rooms.movedTo(talk, values, chat) : undefined;
  const last = moved === undefined ? answer : await put(talk, part, values, moved, rooms);
  expectTaken(talk, last);
  const reference = textOf(last.json?.event_id);
  if (reference === undefined) throw talk.notAnAnswer(last);
  return { reference };
}

function isGone({ status }: Answer): boolean {
  return status === 403 || status === 404;
}

async function put(talk: Conversation, part: Part, values: SettingValues, room: string, rooms: Rooms): Promise<Answer> {
  await rooms.expectReadable(talk, values, room);
  const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${part.key}`;
  return call(talk, values, "PUT", path, contentOf(part, values));
}

/** `m.mentions` is there to say that nobody is mentioned, whatever the text says. */
function contentOf({ text, address }: Part, { msgtype }: SettingValues): object {
  const { thread_event_id: thread } = address;
  const clean = plainText(text);
  const { body, html }: Texts = isPlain(address) ? { body: clean } : textsOf(clean);
  return {
    msgtype: msgtype === "notice" ? "m.notice" : "m.text",
    body,
    ...(html === undefined ? {} : { format: "org.matrix.custom.html", formatted_body: html }),
    "m.mentions": {},
    ...(thread === undefined ? {} : { "m.relates_to": relationTo(thread) }),
  };
}

interface Texts {
  readonly body: string;
  readonly html?: string;
}

/** The HTML is left out where it would say no more than the text; what markup would make too long goes as it is. */
function textsOf(text: string): Texts {
  const html = markdownToHtml(text);
  const body = markdownToPlain(text);
  const hasMarkup = /<(?!\/?p>|br>)/.test(html);
  const ways: Texts[] = [...(hasMarkup ? [{ body, html }] : []), { body }];
  return ways.find((way) => Buffer.byteLength(JSON.stringify(way)) <= 2 * maxTextBytes) ?? { body: text };
}

/** https://spec.matrix.org/latest/client-server-api/#threading: clients without threads show it as an answer. */
function relationTo(thread: string) {
  return { rel_type: "m.thread", event_id: thread, is_falling_back: true, "m.in_reply_to": { event_id: thread } };
}

async function check(talk: Conversation, values: SettingValues, rooms: Rooms): Promise<readonly string[]> {
  const answer = await call(talk, values, "GET", "/account/whoami");
  expectTaken(talk, answer);
  const user = textOf(answer.json?.user_id);
  if (user === undefined) throw talk.notAnAnswer(answer);
  const who = `The account is "${user}"`;
  const { home_channel: home } = values;
  if (home === undefined) return [who];
  const room = await rooms.idOf(talk, values, String(home));
  await rooms.expectReadable(talk, values, room);
  // With "allow_unencrypted" nothing was asked of the room yet, and only a member may ask.
  const isSecret = await rooms.isEncrypted(talk, values, room);
  return [who, `The home room is in reach, ${isSecret ? "encrypted, and gets what is not" : "without encryption"}`];
}
