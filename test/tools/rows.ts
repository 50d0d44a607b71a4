import { newId } from "../../src/core/id.ts";
import type {
  AcceptArgs,
  ClaimArgs,
  ClaimedJob,
  ClaimedMessage,
  ClaimJobsArgs,
  FinishAttemptArgs,
  FinishRunArgs,
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
  const text = kind === "direct" ? "Hello" : null;
  // Messages that are due at the same time go in the order of their ids.
  const messages = (parts.targets ?? ["telegram"]).map((target, index) => ({
    id: newId(at + index),
    target,
    extra: "{}",
    text,
  }));
  return {
    event,
    claimUntil: at + (parts.claimMs ?? 3_600_000),
    job: { id: newId(at), kind, plan: parts.plan ?? "{}", messages },
    owner: parts.owner ?? "one",
    leaseUntil: at + (parts.leaseMs ?? 30_000),
  };
}

export function aClaim(parts: Partial<ClaimJobsArgs> = {}): ClaimJobsArgs & ClaimArgs {
  const now = parts.now ?? noon;
  return { owner: "one", now, leaseUntil: now + 30_000, limit: 10, maxInterruptions: 10, ...parts };
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
  return { id, fence, now: noon, outcome: "sent", error: null, reference: null, next: { move: "take" }, ...parts };
}
