import type { TestContext } from "node:test";
import { newId } from "../../src/core/id.ts";
import { makePrivateFolder } from "../../src/lib/file.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { EventRecord, FinishAttemptArgs, FinishRunArgs, NewJob, Place, Store } from "../../src/store/store.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { aClaim, anEndedRun, anEndedTry, newEvent } from "../tools/rows.ts";

/** A telegram target that nobody calls, a route with an agent and one without. */
export const twoRoutes = {
  platforms: {
    webhook: {
      ...{ enabled: true, host: "127.0.0.1", port: 0, secret: "the-global-secret" },
      routes: {
        reviews: {
          events: ["pull_request"],
          filters: [{ field: "action", equals: "opened" }],
          prompt: "Review {title}",
          skills: ["careful"],
          deliver: "telegram",
          deliver_extra: { chat_id: "{chat}" },
        },
        alerts: { prompt: "Alert: {title}", deliver: "telegram", deliver_only: true },
        off: { prompt: "x", enabled: false },
      },
    },
    telegram: { enabled: true, token: "1:token", home_channel: "42", extra: { base_url: "http://127.0.0.1:9" } },
  },
  agent: { backend: "preview" },
};

/** A home with a ledger that a test writes a past into. Its clock is the real one: commands see the same. */
export interface Past {
  readonly home: TestHome;
  readonly store: Store;
  read(id: string): Promise<EventRecord>;
}

export async function makePast(t: TestContext, config: object = twoRoutes): Promise<Past> {
  // JSON is YAML too.
  const home = await makeHome(t, { "config.yaml": JSON.stringify(config) });
  await makePrivateFolder(home.data);
  const store = await openSqlite({ path: home.ledger, readOnly: false });
  t.after(() => store.close());
  const read = async (id: string) => {
    const record = await store.readEvent({ id });
    if (!record) throw new Error(`There is no event ${id}`);
    return record;
  };
  return { home, store, read };
}

export interface Arrival {
  /** Milliseconds ago. */
  readonly agoMs?: number;
  readonly route?: string;
  readonly type?: string;
  readonly deliveryId?: string;
  readonly payload?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly kind?: NewJob["kind"];
  readonly prompt?: string;
  readonly text?: string;
  readonly onCrash?: "rerun" | "fail";
  /** Chats of its messages to telegram. */
  readonly chats?: readonly string[];
  /** More of the plan. */
  readonly plan?: object;
  /** Where each of them goes instead. */
  readonly fallback?: readonly Place[];
}

const defaultPayload = { action: "opened", title: "a fix", chat: "7" };

/** An event that came in, with the job that follows it. Answers the event's id. */
export async function arrive({ store }: Past, arrival: Arrival = {}): Promise<string> {
  const event = arrived(arrival);
  const { receivedAt: at, route } = event;
  const { kind = "agent", chats = ["7"], prompt = "Review a fix", text = "Alert: a fix" } = arrival;
  const plan = kind === "agent" ? { prompt, skills: ["careful"], tools: ["terminal"], ...arrival.plan } : {};
  const messages = chats.map((chat) => ({
    id: newId(at),
    target: "telegram",
    extra: JSON.stringify({ chat_id: chat }),
    lane: kind === "direct" ? null : JSON.stringify(["telegram", { chat_id: chat }]),
    text: kind === "agent" ? null : text,
    refusal: null,
    fallback: arrival.fallback === undefined ? null : JSON.stringify(arrival.fallback),
  }));
  const { onCrash = "rerun" } = arrival;
  const job = { id: newId(at), kind, route, plan: JSON.stringify(plan), onCrash, origin: null, messages };
  await store.accept({ event, claimUntil: at + 3_600_000, job, owner: "one", leaseUntil: at + 30_000 });
  return event.id;
}

/** An event that its route declined. */
export async function decline({ store }: Past, reason: string, arrival: Arrival = {}): Promise<string> {
  const event = arrived(arrival);
  await store.ignore({ ...event, reason });
  return event.id;
}

function arrived({ agoMs = 60_000, route = "reviews", type = "pull_request", ...parts }: Arrival) {
  const headers = parts.headers ?? { "x-github-event": type, "content-type": "application/json" };
  const { deliveryId, payload = defaultPayload } = parts;
  const body = Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload));
  return newEvent({ at: Date.now() - agoMs, route, type, deliveryId, body, headers: JSON.stringify(headers) });
}

/** The next due job is run, with this end. */
export async function work({ store }: Past, end: Partial<FinishRunArgs> = {}): Promise<void> {
  const now = Date.now();
  const [job] = await store.claimJobs(aClaim({ now, limit: 1 }));
  if (!job) throw new Error("No job is due");
  await store.finishRun(anEndedRun(job, { now, ...end }));
}

/** The next due message is tried, with this end. */
export async function send({ store }: Past, end: Partial<FinishAttemptArgs> = {}): Promise<void> {
  const now = Date.now();
  const [message] = await store.claimMessages(aClaim({ now, limit: 1 }));
  if (!message) throw new Error("No message is due");
  await store.finishAttempt(anEndedTry(message, { now, ...end }));
}

/** A direct delivery's only message is tried by the gateway that took the event in, with this end. */
export async function sendDirectly(past: Past, id: string, end: Partial<FinishAttemptArgs> = {}): Promise<void> {
  const [message] = (await past.read(id)).jobs[0]?.messages ?? [];
  await past.store.finishAttempt(anEndedTry({ id: message?.id ?? "", fence: 1 }, { now: Date.now(), ...end }));
}

/** The service said no for good. */
export const refused = {
  outcome: "refused",
  error: "Telegram: chat not found",
  next: { move: "giveUp" },
} as const;

/** The same, and what goes instead begins. */
export function replaced() {
  const successor = { id: newId(Date.now()), leaseUntil: Date.now() + 30_000 };
  return { ...refused, next: { move: "giveUp", successor } } as const;
}

/** Another chat of Telegram to go to. */
export function elsewhere(chat: string): Place {
  const lane = JSON.stringify(["telegram", { chat_id: chat }]);
  return { target: "telegram", extra: { chat_id: chat }, lane, refusal: null };
}
