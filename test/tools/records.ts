import { newId } from "../../src/core/id.ts";
import type { EventState, JobState } from "../../src/store/states.ts";
import type { EventRecord, JobRecord, MessageRecord } from "../../src/store/store.ts";
import { noon } from "./rows.ts";

export interface RecordParts {
  readonly at?: number;
  readonly id?: string;
  readonly route?: string;
  readonly deliveryId?: string;
  readonly state?: EventState;
  readonly reason?: string | null;
  readonly body?: Uint8Array;
  /** When its job had its last news; when it was received, if not set. */
  readonly newsAt?: number;
}

/** An event as a ledger gives it, in the state that is asked for, with one message to Telegram unless it was ignored. */
export function aRecord(parts: RecordParts = {}): EventRecord {
  const { at = noon, state = "done" } = parts;
  const id = parts.id ?? newId(at);
  return {
    ...{ id, route: parts.route ?? "reviews", type: "pull_request" },
    ...{ deliveryId: parts.deliveryId ?? `delivery of ${id}`, receivedAt: at, state },
    reason: parts.reason ?? (state === "ignored" ? "filter" : null),
    ignored: state === "ignored" ? (parts.reason ?? "filter") : null,
    ...{ headers: "{}", body: parts.body ?? Buffer.from("{}") },
    jobs: state === "ignored" ? [] : [aJob(state, at, parts)],
  };
}

function aJob(state: JobState, at: number, { route = "reviews", reason = null, newsAt = at }: RecordParts): JobRecord {
  return {
    ...{ id: newId(at), kind: state === "refused" ? "direct" : "agent", route, origin: null, onCrash: "rerun" },
    ...{ state, reason, plan: "{}", createdAt: at, updatedAt: newsAt, runAt: at, runs: [] },
    messages: [aMessage(state, at)],
  };
}

function aMessage(job: JobState, at: number): MessageRecord {
  const states = {
    done: "sent",
    dead: "dead",
    refused: "dead",
    cancelled: "cancelled",
    delivering: "pending",
  } as const;
  const state = job in states ? states[job as keyof typeof states] : "held";
  const text = state === "held" ? null : "Hello";
  return {
    ...{ id: newId(at), target: "telegram", extra: "{}", lane: null, text, state, reason: null, reference: null },
    ...{ refusal: null, fallback: null, replaces: null },
    ...{ partsSent: 0, readyAt: text === null ? null : at, dueAt: at, attempts: [] },
  };
}
