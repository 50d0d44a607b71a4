// Finished events as rows of the ledger's tables, the same for both stores.
import { randomBytes } from "node:crypto";
import { newId } from "../src/core/id.ts";
import { pack } from "../src/store/sql/body.ts";
import { makeRandom, type Random } from "./fuzz-random.ts";

/** The columns that are filled in. The others have their defaults. */
export const columns = {
  events: ["id", "route", "type", "delivery_id", "received_at", "headers", "ignored"],
  bodies: ["event_id", "body", "codec"],
  claims: ["route", "delivery_id", "event_id", "expires_at"],
  jobs: [
    ...["id", "event_id", "kind", "route", "on_crash", "state", "reason", "plan", "run_at", "fence", "created_at"],
    ...["updated_at"],
  ],
  runs: ["job_id", "number", "started_at", "ended_at", "outcome", "reason", "answer", "transcript"],
  messages: [
    ...["id", "job_id", "position", "target", "extra", "lane", "text", "state", "reason", "reference", "ready_at"],
    ...["due_at", "fence", "updated_at"],
  ],
  attempts: ["message_id", "number", "started_at", "ended_at", "outcome", "error"],
} as const;

export type Table = keyof typeof columns;
type Cell = string | number | null | Uint8Array;
/** Takes one row, its cells in the order of `columns`. */
export type Put = (table: Table, cells: readonly Cell[]) => void;

/** Everything was received within this time, up to now. */
export const spanMs = 30 * 86_400_000;
const claimMs = 3_600_000;

/** Names of the routes; the last one gets few events. */
export const routes = ["pull-requests", "issues", "deploys", "alerts", "payments", "rare"] as const;

/** Shares in a thousand: how events end. */
const endings = { done: 780, ignored: 100, direct: 70, dead: 30, silent: 10, refused: 5, cancelled: 5 } as const;
type Ending = keyof typeof endings;

const answer = "Two remarks on the change. ".repeat(16);
const transcript = JSON.stringify([{ kind: "answer", text: answer }]);
const headers = JSON.stringify({ "user-agent": "GitHub-Hookshot/044aadd", "x-github-event": "pull_request" });
const bodies = Array.from({ length: 64 }, (_, index) => pack(bodyOf(index)));

/** Shrinks to about 1 KB. */
function bodyOf(index: number): Buffer {
  const pull = {
    number: index,
    title: `Change ${index}`,
    user: { login: "ada" },
    diff: randomBytes(700).toString("hex"),
  };
  return Buffer.from(
    JSON.stringify({ action: "opened", pull_request: pull, repository: { full_name: "acme/website" } }),
  );
}

/** Gives the rows of `count` events, oldest first, received in equal steps over `spanMs` before `now`. */
export function putFinished(count: number, now: number, put: Put, from = 0, to = count): void {
  for (let index = from; index < to; index += 1) {
    const receivedAt = Math.floor(now - spanMs + (spanMs * (index + 1)) / count);
    putEvent(makeRandom(7, index), receivedAt, now, put);
  }
}

function putEvent(random: Random, receivedAt: number, now: number, put: Put): void {
  const ending = endingOf(random.below(1000));
  const route = random.below(10_000) === 0 ? "rare" : random.pick(routes.slice(0, -1));
  const id = newId(receivedAt);
  const deliveryId = random.bytes(16).toString("hex");
  const ignored = ending === "ignored" ? '[1] action in ["opened"], found "closed"' : null;
  put("events", [id, route, "pull_request", deliveryId, receivedAt, headers, ignored]);
  const { body, codec } = random.pick(bodies);
  put("bodies", [id, body, codec]);
  if (ending === "ignored") return;
  const isClaimed = receivedAt + claimMs > now && ending !== "refused";
  if (isClaimed) put("claims", [route, deliveryId, id, receivedAt + claimMs]);
  putJob({ ending, id, route, receivedAt, random }, put);
}

function endingOf(number: number): Ending {
  let sum = 0;
  for (const [ending, share] of Object.entries(endings)) {
    sum += share;
    if (number < sum) return ending as Ending;
  }
  return "done";
}

const jobStates = { done: "done", direct: "done", silent: "done", dead: "dead", refused: "refused" } as const;
const messageStates = { done: "sent", direct: "sent", silent: "kept", dead: "dead", refused: "dead" } as const;

interface Finished {
  readonly ending: Exclude<Ending, "ignored">;
  readonly id: string;
  readonly route: string;
  readonly receivedAt: number;
  readonly random: Random;
}

function putJob({ ending, id: eventId, route, receivedAt, random }: Finished, put: Put): void {
  const id = newId(receivedAt);
  const isDirect = ending === "direct" || ending === "refused";
  const isCancelled = ending === "cancelled";
  const state = isCancelled ? "cancelled" : jobStates[ending];
  const failed = "Telegram answered 403: bot was blocked by the user";
  const reason = isCancelled ? "Cancelled by hand" : state === "done" ? null : failed;
  const answeredAt = receivedAt + 20_000;
  const plan = isDirect ? "{}" : JSON.stringify({ prompt: "Review this change. ".repeat(10), skills: [], tools: [] });
  const runs = isDirect || isCancelled ? 0 : 1;
  put("jobs", [
    ...[id, eventId, isDirect ? "direct" : "agent", route, isDirect ? "fail" : "rerun", state, reason, plan],
    ...[receivedAt, runs, receivedAt, answeredAt + 500],
  ]);
  if (runs > 0) put("runs", [id, 1, receivedAt + 5, answeredAt, "completed", null, answer, transcript]);
  const messageId = newId(receivedAt);
  const chat = String(random.below(200));
  const lane = isDirect ? null : JSON.stringify(["telegram", { chat_id: chat }]);
  const messageState = isCancelled ? "cancelled" : messageStates[ending];
  const isTried = messageState === "sent" || messageState === "dead";
  put("messages", [
    ...[
      messageId,
      id,
      0,
      "telegram",
      JSON.stringify({ chat_id: chat }),
      lane,
      isCancelled ? null : answer,
      messageState,
    ],
    ...[messageState === "sent" ? null : reason, messageState === "sent" ? "4711" : null, answeredAt, answeredAt],
    ...[isTried ? 1 : 0, answeredAt + 500],
  ]);
  if (!isTried) return;
  const outcome = messageState === "sent" ? "sent" : "refused";
  put("attempts", [messageId, 1, answeredAt + 5, answeredAt + 500, outcome, outcome === "sent" ? null : failed]);
}
