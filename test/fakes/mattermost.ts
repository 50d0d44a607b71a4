import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface MattermostPost extends Taken {
  readonly id: string;
  /** `undefined` when it came through the incoming webhook. */
  readonly channel: string | undefined;
  readonly rootId: string | undefined;
  readonly pendingId: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
  readonly at: number;
}

export interface FakeMattermost extends FakeService<MattermostPost> {
  readonly token: string;
  readonly webhookUrl: string;
  /** Posts by others, in every channel. */
  foreignPosts: number;
}

/** The channels that the bot is in, a person, and the conversation with them. */
export const mattermostPlaces = {
  channel: "channel1channel1channel1ch",
  quiet: "channel2channel2channel2ch",
  person: "person1person1person1perso",
  direct: "direct1direct1direct1direc",
} as const;

const me = "botbotbotbotbotbotbotbotbo";
const hookPath = "/hooks/fakesecretofthehook";
const api = ownSchema("mattermost");
const hooks = ownSchema("mattermost-incoming-webhook");

/** Mattermost for one bot, with one incoming webhook. `hasForgotten`: 30 seconds later, when no pending id counts. */
export async function startFakeMattermost({ hasForgotten = false } = {}): Promise<FakeMattermost> {
  const token = "faketokenofthebotaccount12";
  const service = await startService<MattermostPost>({
    // It has no description of what only asks for channels.
    schemas: [[api, hooks, { name: "questions", problems: (heard) => (isQuestion(heard) ? [] : ["unknown"]) }]],
    aside: (heard) => aside(heard, token),
    looks: (heard, posts) => (isLook(heard.url) ? answersTo(look(heard, posts, fake)) : undefined),
    read: (heard, id) => read(heard, id),
    ...(hasForgotten ? {} : { keyOf: ({ pendingId }: MattermostPost) => pendingId }),
    answers: ({ id, channel }) => (channel === undefined ? hookAnswers : answersTo({ id, channel_id: channel }, 201)),
    misunderstood: () => fault(400, "api.context.invalid_body_param.app_error", "Invalid or missing parameter"),
  });
  const more = { token, webhookUrl: `${service.baseUrl}${hookPath}`, foreignPosts: 0 };
  const fake: FakeMattermost = Object.assign(service, more);
  return fake;
}

function fault(status: number, id: string, message: string): JsonAnswer {
  return { status, body: { id, message, request_id: "fake", status_code: status } };
}

const limited = { status: 429, headers: { "x-ratelimit-reset": "7" }, text: "limit exceeded" };

function answersTo(body: unknown, status = 200) {
  const refused = fault(403, "api.context.permissions.app_error", "You do not have the appropriate permissions");
  return { ok: { status, body }, refused, limited };
}

const hookAnswers = {
  ok: { status: 200, text: "ok" },
  refused: fault(400, "web.incoming_webhook.disabled.app_error", "Incoming webhooks have been disabled"),
  limited,
};

function isLook({ pathname }: URL): boolean {
  return /^\/api\/v4\/channels\/[^/]+\/posts$/.test(pathname);
}

function isQuestion({ method, url }: { method: string; url: URL }): boolean {
  return method === "GET" && (isLook(url) || /^\/api\/v4\/channels\/[^/]+$/.test(url.pathname));
}

const known: readonly string[] = Object.values(mattermostPlaces);

function aside(heard: Heard, token: string): JsonAnswer | undefined {
  const { pathname } = heard.url;
  if (pathname.startsWith("/hooks/")) return undefined;
  if (heard.headers.authorization !== `Bearer ${token}`)
    return fault(401, "api.context.session_expired.app_error", "Invalid or expired session, please login again.");
  if (pathname === "/api/v4/users/me") return { status: 200, body: { id: me, username: "postern" } };
  if (pathname === "/api/v4/channels/direct") {
    const isRight = heard.body === JSON.stringify([me, mattermostPlaces.person]);
    return isRight ? { status: 201, body: { id: mattermostPlaces.direct } } : fault(400, "x", "Invalid user id");
  }
  if (heard.method !== "GET" || isLook(heard.url)) return undefined;
  const id = pathname.split("/")[4] ?? "";
  if (!known.includes(id)) return fault(404, "app.channel.get.existing.app_error", "Unable to find the channel");
  return { status: 200, body: { id, display_name: "Ops" } };
}

function look({ url }: Heard, posts: readonly MattermostPost[], { foreignPosts }: FakeMattermost) {
  const channel = url.pathname.split("/")[4];
  const since = Number(url.searchParams.get("since"));
  const here = posts.filter((post) => post.channel === channel && post.at >= since);
  const own = here.map(({ id, raw, body }) => ({ id, message: raw, props: body.props }));
  const others = Array.from({ length: foreignPosts }, (_, index) => ({ id: `other${index}`, message: "x", props: {} }));
  const shown = [...others, ...own.toReversed()].slice(0, 1000);
  return { order: shown.map(({ id }) => id), posts: Object.fromEntries(shown.map((post) => [post.id, post])) };
}

function read({ url, json = {} }: Heard, id: number): MattermostPost | { wrong: JsonAnswer } {
  const isHook = url.pathname.startsWith("/hooks/");
  if (isHook && url.pathname !== hookPath)
    return { wrong: fault(400, "web.incoming_webhook.invalid.app_error", "Invalid webhook.") };
  const channel = json.channel_id as string | undefined;
  if (!isHook && !known.includes(String(channel)))
    return { wrong: fault(403, "api.context.permissions.app_error", "You do not have the appropriate permissions") };
  const raw = String(isHook ? json.text : json.message);
  if ([...raw].length > 16_383)
    return { wrong: fault(400, "model.post.is_valid.message_length.app_error", "Too long") };
  return {
    id: `post${String(id).padStart(22, "0")}`,
    channel,
    rootId: json.root_id as string | undefined,
    pendingId: json.pending_post_id as string | undefined,
    body: json,
    at: Date.now(),
    raw,
    text: shown(raw),
  };
}

function shown(raw: string): string {
  const text = raw.replaceAll("\u200b", "").replaceAll(/\\([!-/:-@[-`{-~])/g, "$1");
  return text.replaceAll("&lt;", "<").replaceAll("&amp;", "&");
}
