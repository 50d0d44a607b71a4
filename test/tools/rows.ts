import { newId } from "../../src/core/id.ts";
import type {
  AcceptArgs,
  ClaimedJob,
  ClaimedMessage,
  ClaimJobsArgs,
  ClaimMessagesArgs,
  FinishAttemptArgs,
  FinishRunArgs,
  NewJob,
  Place,
  RunResult,
} from "../../src/store/store.ts";

/** A moment for tests that have none of their own. */
export const noon = Date.UTC(2026, 0, 15, 12);

export interface EventParts {
  readonly at?: number;
  readonly id?: string;
  readonly route?: string;
  readonly type?: string;
  readonly deliveryId?: string;
  readonly body?: Uint8Array;
  readonly headers?: string;
}

export function newEvent(parts: EventParts = {}) {
  const at = parts.at ?? noon;
  const id = parts.id ?? newId(at);
  return {
    id,
    route: parts.route ?? "reviews",
    type: parts.type ?? "pull_request",
    deliveryId: parts.deliveryId ?? `delivery of ${id}`,
    receivedAt: at,
    headers: parts.headers ?? "{}",
    body: parts.body ?? Buffer.from("{}"),
  };
}

export interface AcceptParts extends EventParts {
  /** Targets of the messages. */
  readonly targets?: readonly string[];
  /** How long the delivery id is claimed. */
  readonly claimMs?: number;
  readonly owner?: string;
  readonly leaseMs?: number;
  readonly plan?: string;
  readonly onCrash?: "rerun" | "fail";
  /** Lane of every message; none when not set. */
  readonly lane?: string;
  /** Text of every message of a job without an agent. */
  readonly text?: string;
  /** Targets of every message's fallback; none when not set. */
  readonly fallback?: readonly string[];
  /** Lane of the fallbacks; none when not set. */
  readonly fallbackLane?: string;
}

/** An event that an agent is to work on. */
export function anAgentEvent(parts: AcceptParts = {}): AcceptArgs {
  return accepted("agent", parts);
}

/** An event whose text is sent at once. */
export function aDirectEvent(parts: AcceptParts = {}): AcceptArgs {
  return accepted("direct", parts);
}

function accepted(kind: "agent" | "direct", parts: AcceptParts): AcceptArgs {
  const event = newEvent(parts);
  const at = event.receivedAt;
  return {
    event,
    claimUntil: at + (parts.claimMs ?? 3_600_000),
    job: newJob(kind, parts),
    owner: parts.owner ?? "one",
    leaseUntil: at + (parts.leaseMs ?? 30_000),
  };
}

/** A job that is not in the store yet. */
export function newJob(kind: NewJob["kind"], parts: AcceptParts & { readonly origin?: string } = {}): NewJob {
  const at = parts.at ?? noon;
  // Messages that are due at the same time go in the order of their ids.
  const messages = (parts.targets ?? ["telegram"]).map((target, index) => ({
    id: newId(at + index),
    target,
    extra: "{}",
    lane: parts.lane ?? null,
    text: kind === "agent" ? null : (parts.text ?? "Hello"),
    refusal: null,
    fallback: aFallback(parts),
  }));
  const { route = "reviews", plan = "{}", onCrash = "rerun", origin = null } = parts;
  return { id: newId(at), kind, route, plan, onCrash, origin, messages };
}

function aFallback({ fallback = [], fallbackLane }: AcceptParts): string | null {
  const lane = fallbackLane ?? null;
  const places = fallback.map((target): Place => ({ target, extra: { chat_id: `at ${target}` }, lane, refusal: null }));
  return places.length === 0 ? null : JSON.stringify(places);
}

/** Ten of what is due, for the owner "one", who has forgotten what it took before. */
export function aClaim(
  parts: Partial<Omit<ClaimJobsArgs, "limits">> & { readonly limits?: Readonly<Record<string, number>> } = {},
): ClaimJobsArgs & ClaimMessagesArgs {
  const now = parts.now ?? noon;
  return {
    ...{ owner: "one", now, leaseUntil: now + 30_000, limit: 10, maxInterruptions: 10 },
    ...{ active: [], mayReclaim: true, limits: {} },
    ...parts,
  };
}

export function aResult(parts: Partial<RunResult> = {}): RunResult {
  return {
    outcome: "completed",
    reason: null,
    answer: "All is well",
    transcript: "[]",
    inputTokens: null,
    outputTokens: null,
    ...parts,
  };
}

/** How a claimed job's run ended; completed with an answer unless it says otherwise. */
export function anEndedRun(job: ClaimedJob, parts: Partial<FinishRunArgs> = {}): FinishRunArgs {
  const { id, fence } = job;
  return { id, fence, now: noon, result: aResult(), next: { move: "answer", silent: false }, ...parts };
}

/** How a try to send ended; the target took it unless it says otherwise. */
export function anEndedTry(
  message: Pick<ClaimedMessage, "id" | "fence">,
  parts: Partial<FinishAttemptArgs> = {},
): FinishAttemptArgs {
  const { id, fence } = message;
  const sent = { outcome: "sent", error: null, reference: null, next: { move: "take" }, health: null } as const;
  return { id, fence, now: noon, ...sent, ...parts };
}

/** How a try ended that is made again. */
export function aFailedTry(
  message: Pick<ClaimedMessage, "id" | "fence">,
  dueAt: number,
  parts: Partial<FinishAttemptArgs> & { readonly leaveLane?: boolean } = {},
): FinishAttemptArgs {
  const { leaveLane = false, ...rest } = parts;
  const next = { move: "retry", dueAt, leaveLane } as const;
  return anEndedTry(message, { outcome: "refused", error: "Too many requests", next, ...rest });
}

/** How a message's last try ended; its fallback is used, if it has one. */
export function aLastTry(
  message: Pick<ClaimedMessage, "id" | "fence">,
  parts: Partial<FinishAttemptArgs> = {},
): FinishAttemptArgs {
  const now = parts.now ?? noon;
  const next = { move: "giveUp", successor: { id: newId(now), leaseUntil: now + 30_000 } } as const;
  return anEndedTry(message, { outcome: "refused", error: "Chat not found", next, ...parts });
}
