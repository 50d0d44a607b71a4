import { beginnings } from "../states.ts";
import type { AcceptArgs, NewEvent, NewJob } from "../store.ts";
import { laneKey } from "./claims.ts";

type Lease = Pick<AcceptArgs, "owner" | "leaseUntil">;

/** A new message as a row; one of a direct delivery is being sent from the start. */
export function newMessage(
  job: Pick<NewJob, "id" | "kind">,
  message: NewJob["messages"][number],
  position: number,
  { event, owner, leaseUntil }: Partial<Lease> & { readonly event: Pick<NewEvent, "receivedAt"> },
) {
  const { id, target, extra, lane, text, refusal, fallback } = message;
  const now = event.receivedAt;
  const isDirect = job.kind === "direct";
  return {
    ...{ id, jobId: job.id, position, target, extra, lane: laneKey(lane), text, state: beginnings[job.kind].message },
    ...{ refusal, fallback, replaces: null },
    ...{ reason: null, reference: null, partsSent: 0, readyAt: isDirect ? now : null, dueAt: now, unsure: 0 },
    ...{ fence: isDirect ? 1 : 0, failures: 0, now },
    owner: isDirect ? (owner ?? null) : null,
    leaseUntil: isDirect ? (leaseUntil ?? null) : null,
  };
}

/** The beginning of a try. */
export function openAttempt(messageId: string, number: number, now: number) {
  return { messageId, number, startedAt: now, endedAt: null, outcome: null, error: null };
}
