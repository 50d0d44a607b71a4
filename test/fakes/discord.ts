import type { JsonAnswer } from "./mode.ts";
import { officialSchema, ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface DiscordMessage extends Taken {
  readonly id: string;
  /** The channel, thread or post it is in. */
  readonly channel: string;
  /** Of the forum's post that it began. */
  readonly title: string | undefined;
  readonly nonce: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeDiscord extends FakeService<DiscordMessage> {
  readonly token: string;
  readonly webhookUrl: string;
  /** False when the bot may post but not read. */
  mayRead: boolean;
  /** False when Discord takes away what nobody sees at a message's end. */
  keepsMarkers: boolean;
}

/** What there is: a channel with a thread, another channel with an old message, a forum, a person. */
export const discordPlaces = {
  channel: "1100000000000000001",
  thread: "1100000000000000002",
  quiet: "1100000000000000003",
  forum: "1100000000000000004",
  person: "1100000000000000005",
  direct: "1100000000000000006",
} as const;

const own = ownSchema("discord");
const official = officialSchema("discord");
const undescribed = {
  name: "official",
  problems: ({ method }: { method: string }) => (method === "GET" ? [] : ["unknown"]),
};
const hookToken = "fakeSecretOfTheHook";
const hookPath = `/webhooks/1200000000000000001/${hookToken}`;

/** Discord for one bot, with one webhook. `hasForgotten`: it is minutes later, when nonces count no more. */
export async function startFakeDiscord({ hasForgotten = false } = {}): Promise<FakeDiscord> {
  const token = "fake.Token-Of_TheBot";
  const service = await startService<DiscordMessage>({
    schemas: [[own], official.length === 0 ? [] : [...official, undescribed]],
    aside: (heard) => (isLook(heard) && isBot(heard, token) ? undefined : aside(heard, token)),
    looks: (heard, messages) => (isLook(heard) ? answersTo(look(heard, messages, fake)) : undefined),
    read: (heard, id) => read(heard, id, token),
    ...(hasForgotten ? {} : { keyOf: ({ nonce }: DiscordMessage) => nonce }),
    answers: (message) => answersTo(created(message), message.title !== undefined && !isHook(message.body) ? 201 : 200),
    misunderstood: () => fault(400, 50035, "Invalid Form Body"),
  });
  const more = {
    token,
    webhookUrl: `${service.baseUrl}/api${hookPath}`,
    mayRead: true,
    keepsMarkers: true,
    pageSize: 100,
  };
  const fake: FakeDiscord = Object.assign(service, more);
  return fake;
}

function fault(status: number, code: number, message: string): JsonAnswer {
  return { status, body: { message, code } };
}

function answersTo(body: unknown, status = 200) {
  return {
    ok: { status, body },
    refused: fault(403, 50013, "Missing Permissions"),
    limited: { status: 429, body: { message: "You are being rate limited.", retry_after: 6.9995, global: false } },
  };
}

function pathOf({ url }: Heard): string {
  return url.pathname.replace(/^\/api\/v10/, "");
}

function isBot({ headers }: Heard, token: string): boolean {
  return headers.authorization === `Bot ${token}`;
}

function isLook(heard: Heard): boolean {
  return heard.method === "GET" && pathOf(heard).endsWith("/messages");
}

function isHook(body: object): boolean {
  return "thread_name" in body;
}

const parents: Readonly<Record<string, string>> = { [discordPlaces.thread]: discordPlaces.channel };

function aside(heard: Heard, token: string): JsonAnswer | undefined {
  const path = pathOf(heard);
  if (path.startsWith("/webhooks/")) return heard.method === "GET" ? hookAnswer(path) : undefined;
  if (!isBot(heard, token)) return fault(401, 0, "401: Unauthorized");
  if (path === "/users/@me") return { status: 200, body: { id: "1", username: "postern" } };
  if (path === "/users/@me/channels") {
    if (heard.json?.recipient_id !== discordPlaces.person) return fault(400, 10013, "Unknown User");
    return { status: 200, body: { id: discordPlaces.direct, type: 1 } };
  }
  return heard.method === "GET" ? channelAnswer(path.slice("/channels/".length)) : undefined;
}

function hookAnswer(path: string): JsonAnswer {
  if (path !== hookPath) return fault(404, 10015, "Unknown Webhook");
  return { status: 200, body: { id: "1200000000000000001", name: "Builds" } };
}

function channelAnswer(id: string): JsonAnswer {
  const isPost = id.startsWith("13");
  if (!isPost && !(Object.values(discordPlaces) as string[]).includes(id)) return fault(404, 10003, "Unknown Channel");
  return { status: 200, body: { id, name: "ops", parent_id: isPost ? discordPlaces.forum : (parents[id] ?? null) } };
}

/** Newest first. A nonce is shown to nobody who asks later. */
function look(heard: Heard, messages: readonly DiscordMessage[], fake: FakeDiscord) {
  if (!fake.mayRead) return [];
  const channel = pathOf(heard).split("/")[2];
  const query = heard.url.searchParams;
  const before = BigInt(query.get("before") ?? "9999999999999999999");
  const old = channel === discordPlaces.quiet ? [{ id: snowflake(0), content: `Old ${"\u200b".repeat(33)}` }] : [];
  const here = messages
    .filter((one) => one.channel === channel)
    .map(({ id, raw }) => ({ id, content: kept(raw, fake) }));
  const shown = [...here.toReversed(), ...old].filter(({ id }) => BigInt(id) < before);
  return shown.slice(0, Number(query.get("limit")));
}

const unseen = / (?:\u200b|\u200c|\u200d|\u2060)+$/;

function kept(raw: string, { keepsMarkers }: FakeDiscord): string {
  return keepsMarkers ? raw : raw.replace(unseen, "");
}

function snowflake(id: number): string {
  return String((BigInt(Date.now() - 1_420_070_400_000 - (id === 0 ? 86_400_000 : 0)) << 22n) + BigInt(id));
}

function read(heard: Heard, id: number, token: string): DiscordMessage | { wrong: JsonAnswer } {
  const path = pathOf(heard);
  const { json = {} } = heard;
  if (path.startsWith("/webhooks/")) {
    if (path !== hookPath) return { wrong: fault(404, 10015, "Unknown Webhook") };
    const title = json.thread_name as string | undefined;
    const channel =
      heard.url.searchParams.get("thread_id") ?? (title === undefined ? discordPlaces.channel : postId(id));
    return messageIn(json, { id, channel, title, body: json });
  }
  if (!isBot(heard, token)) return { wrong: fault(401, 0, "401: Unauthorized") };
  const [, , channel = "", kind] = path.split("/");
  if (kind === "messages") {
    if (channel === discordPlaces.forum)
      return { wrong: fault(400, 50008, "Cannot send messages in a non-text channel") };
    return messageIn(json, { id, channel, title: undefined, body: json });
  }
  return messageIn(json.message as object, { id, channel: postId(id), title: String(json.name), body: json });
}

function postId(id: number): string {
  return `13${String(id).padStart(17, "0")}`;
}

type Rest = Pick<DiscordMessage, "channel" | "title" | "body"> & { readonly id: number };

function messageIn(message: Readonly<Record<string, unknown>> | object, { id, ...rest }: Rest): DiscordMessage {
  const raw = String("content" in message ? message.content : "");
  const nonce = "nonce" in message && "enforce_nonce" in message ? String(message.nonce) : undefined;
  return { ...rest, id: snowflake(id), raw, text: shown(raw), nonce };
}

function shown(raw: string): string {
  const text = raw.replace(unseen, "").replaceAll("\u200b", "");
  return text.replaceAll(/\\([^0-9A-Za-z\s])/g, "$1");
}

/** The channel of a forum's new post, or the message. */
function created({ id, channel, title, raw, body }: DiscordMessage) {
  if (title !== undefined && !isHook(body)) return { id: channel, name: title, parent_id: discordPlaces.forum };
  return { id, channel_id: channel, content: raw };
}
