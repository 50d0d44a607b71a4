import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface SlackMessage extends Taken {
  /** Slack's id of it. */
  readonly ts: string;
  /** `undefined` when it came through the incoming webhook. */
  readonly channel: string | undefined;
  readonly threadTs: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeSlack extends FakeService<SlackMessage> {
  readonly token: string;
  /** The channel that the bot is in, beside `quiet`, in which nobody writes. */
  readonly channel: string;
  readonly quiet: string;
  /** The conversation with the person `U0000000001`. */
  readonly direct: string;
  readonly webhookUrl: string;
  /** False when the app may post but not read. */
  mayRead: boolean;
  /** Most messages of one page. */
  pageSize: number;
}

const webApi = ownSchema("slack");
const hooks = ownSchema("slack-incoming-webhook");
const hookPath = "/services/T000/B000/fakeSecretOfTheHook";

const person = "U0000000001";

/** Slack for one bot, with one incoming webhook. */
export async function startFakeSlack(token = "xoxb-1234-fakeTokenOfTheBot"): Promise<FakeSlack> {
  const places = { channel: "C0123456789", quiet: "C0000000002", direct: "D0000000003" };
  const known = [...Object.values(places), person];
  const service = await startService<SlackMessage>({
    // It has no description of the methods that only ask.
    schemas: [[webApi, hooks, { name: "questions", problems: ({ url }) => (isQuestion(url) ? [] : ["unknown"]) }]],
    aside: (heard) => (isQuestion(heard.url) || isOpening(heard.url) ? answerQuestion(heard, token, known) : undefined),
    looks: (heard, messages) => (isLook(heard.url) ? look(heard, messages, fake) : undefined),
    read: (heard, id) => {
      const isHook = heard.url.pathname.startsWith("/services/");
      const wrong = isHook ? hookFault(heard) : fault(heard, token, known);
      return wrong === undefined ? messageIn(heard, id, places.direct) : { wrong };
    },
    answers: ({ ts, channel }) => (channel === undefined ? hookAnswers : apiAnswers({ ts, channel })),
    misunderstood: () => refusal("invalid_arguments"),
  });
  const more = { token, ...places, webhookUrl: `${service.baseUrl}${hookPath}`, mayRead: true, pageSize: 100 };
  const fake: FakeSlack = Object.assign(service, more);
  return fake;
}

function isLook({ pathname }: URL): boolean {
  return /\/conversations\.(?:history|replies)$/.test(pathname);
}

function isOpening({ pathname }: URL): boolean {
  return pathname.endsWith("/conversations.open");
}

function isQuestion(url: URL): boolean {
  return isLook(url) || /\/(?:auth\.test|conversations\.info)$/.test(url.pathname);
}

/** The methods that read take a form only. */
function answerQuestion({ url, headers, form, json }: Heard, token: string, known: string[]): JsonAnswer | undefined {
  if (headers.authorization !== `Bearer ${token}`) return refusal("invalid_auth");
  if (isLook(url)) return undefined;
  if (url.pathname.endsWith("auth.test")) return { status: 200, body: { ok: true, user: "postern", team: "Fakes" } };
  if (isOpening(url)) return opened(json?.users);
  const id = form.get("channel") ?? "";
  if (!/^[CDG]/.test(id) || !known.includes(id)) return refusal("channel_not_found");
  return { status: 200, body: { ok: true, channel: { id, name: "ops" } } };
}

function opened(users: unknown): JsonAnswer {
  return users === person
    ? { status: 200, body: { ok: true, channel: { id: "D0000000003" } } }
    : refusal("user_not_found");
}

/** Newest first, with a cursor while there is more; replies oldest first, after the message they answer to. */
function look({ url, form }: Heard, messages: readonly SlackMessage[], fake: FakeSlack) {
  if (!fake.mayRead) return apiAnswers(missingScope);
  const isReplies = url.pathname.endsWith("replies");
  const here = messages.filter(({ channel, threadTs, ts }) => {
    if (channel !== form.get("channel") || Number(ts) < Number(form.get("oldest"))) return false;
    return isReplies ? threadTs === form.get("ts") : threadTs === undefined;
  });
  const ordered = isReplies ? here : here.toReversed();
  const from = Number(form.get("cursor") ?? 0);
  const to = from + Math.min(fake.pageSize, Number(form.get("limit")));
  const metadata = (one: SlackMessage) => (form.get("include_all_metadata") === "true" ? one.body.metadata : undefined);
  const shown = ordered.slice(from, to).map((one) => ({ ts: one.ts, text: one.raw, metadata: metadata(one) }));
  const hasMore = to < ordered.length;
  const next = { has_more: hasMore, response_metadata: { next_cursor: hasMore ? String(to) : "" } };
  return apiAnswers({ messages: shown, ...next });
}

const missingScope = { ok: false, error: "missing_scope", needed: "channels:history", provided: "chat:write" };

function refusal(error: string): JsonAnswer {
  return { status: 200, body: { ok: false, error } };
}

function fault(heard: Heard, token: string, known: string[]): JsonAnswer | undefined {
  if (heard.headers.authorization !== `Bearer ${token}`) return refusal("invalid_auth");
  if (!heard.headers["content-type"]?.includes("charset=utf-8")) return refusal("missing_charset");
  if (!known.includes(String(heard.json?.channel))) return refusal("channel_not_found");
  return String(heard.json?.text).trim() === "" ? refusal("no_text") : undefined;
}

function hookFault({ url, json }: Heard): JsonAnswer | undefined {
  if (url.pathname !== hookPath) return { status: 404, text: "no_service" };
  return String(json?.text).trim() === "" ? { status: 400, text: "no_text" } : undefined;
}

function apiAnswers(body: object) {
  return {
    ok: { status: 200, body: { ok: true, ...body } },
    refused: refusal("is_archived"),
    limited: { status: 429, headers: { "retry-after": "7" }, body: { ok: false, error: "ratelimited" } },
  };
}

const hookAnswers = {
  ok: { status: 200, text: "ok" },
  refused: { status: 410, text: "channel_is_archived" },
  limited: { status: 429, headers: { "retry-after": "7" }, text: "rate_limited" },
};

function messageIn({ json = {} }: Heard, id: number, direct: string): SlackMessage {
  const raw = String(json.text);
  const text = raw.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  return {
    ts: `${Math.floor(Date.now() / 1000)}.${String(id).padStart(6, "0")}`,
    channel: json.channel === person ? direct : (json.channel as string | undefined),
    threadTs: json.thread_ts as string | undefined,
    body: json,
    raw,
    text,
  };
}
