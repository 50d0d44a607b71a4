import { finalJobStates, finalMessageStates } from "../states.ts";
import type { EventRecord, ImportArgs, JobRecord, MessageRecord } from "../store.ts";
import { pack } from "./body.ts";
import { claimKey } from "./claims.ts";
import { settleJob } from "./finishing.ts";
import { prepareMessages } from "./lanes.ts";
import type { Work } from "./statement.ts";
import type { Statements, Works } from "./statements.ts";

const interruptedReason = "Interrupted: the ledger was moved";
const failedReason = `${interruptedReason} during the run, and the route says "on_crash: fail"`;

/** Keeping events as another ledger had them. */
export function importing(sql: Statements): Pick<Works, "importEvent"> {
  return {
    *importEvent(args) {
      const { record, claimUntil, now } = args;
      if (yield* sql.holdEvent({ id: record.id })) return false;
      const { id, route, type, deliveryId, receivedAt, headers, ignored } = record;
      yield* sql.insertEvent({ id, route, type, deliveryId, receivedAt, headers, ignored });
      yield* sql.insertBody({ eventId: id, ...pack(record.body) });
      if (claimUntil !== null) {
        yield* sql.claimDelivery({ route, deliveryId: claimKey(deliveryId), eventId: id, claimUntil, now });
      }
      for (const job of record.jobs) yield* importJob(sql, record, job, args);
      return true;
    },
  };
}

function* importJob(sql: Statements, event: EventRecord, job: JobRecord, args: ImportArgs): Work<void> {
  const { now, unfinished } = args;
  const isFinal = (finalJobStates as readonly string[]).includes(job.state);
  const end = isFinal ? undefined : endOf(job, unfinished);
  const { id, kind, route, origin, onCrash, plan, runAt, createdAt, updatedAt } = job;
  yield* sql.insertJob({
    ...{ id, eventId: event.id, kind, route, origin, onCrash, plan, runAt, createdAt, updatedAt },
    state: isFinal ? job.state : (end?.state ?? (job.state === "delivering" ? "delivering" : "queued")),
    reason: end?.reason ?? job.reason,
    fence: job.runs.at(-1)?.number ?? 0,
    failures: job.runs.filter(({ outcome }) => outcome === "failed" || outcome === "timeout").length,
  });
  for (const run of job.runs) {
    const open = { outcome: "interrupted", endedAt: now, reason: interruptedReason };
    yield* sql.insertRun({ jobId: id, ...run, ...(run.outcome === null ? open : {}) });
  }
  for (const [position, message] of job.messages.entries()) {
    yield* importMessage(sql, job, { message, position, end, now });
  }
  if (end || job.state !== "delivering") return;
  if (kind !== "direct") yield* prepareMessages(sql, id, null, now);
  yield* settleJob(sql, { id, kind, eventId: event.id }, now);
}

interface End {
  readonly state: "dead" | "cancelled";
  readonly reason: string;
}

/** How an unfinished job ends here; `undefined` when it goes on. */
function endOf({ state, onCrash }: JobRecord, unfinished: ImportArgs["unfinished"]): End | undefined {
  if (unfinished !== "resume") return { state: "cancelled", reason: unfinished.cancel };
  return state === "running" && onCrash === "fail" ? { state: "dead", reason: failedReason } : undefined;
}

interface Imported {
  readonly message: MessageRecord;
  readonly position: number;
  /** When its job ends here, so does it. */
  readonly end: End | undefined;
  readonly now: number;
}

/** A message that is still to be sent comes in as `held`, and is put in its lane with its job's others. */
function* importMessage(sql: Statements, job: JobRecord, { message, position, end, now }: Imported): Work<void> {
  const isFinal = (finalMessageStates as readonly string[]).includes(message.state);
  const isCutOff = !isFinal && job.kind === "direct";
  const { id, target, extra, lane, text, reference, partsSent, readyAt, dueAt, attempts } = message;
  const { refusal, fallback, replaces } = message;
  yield* sql.insertMessage({
    ...{ id, jobId: job.id, position, target, extra, lane, text, reference, partsSent, readyAt, dueAt, now },
    ...{ refusal, fallback, replaces },
    state: isFinal ? message.state : isCutOff ? "dead" : (end?.state ?? "held"),
    reason: isFinal ? message.reason : isCutOff ? interruptedReason : (end?.reason ?? message.reason),
    // Which part a try was about is not known any more, so that any whose end is unknown counts.
    unsure: attempts.some(({ outcome }) => outcome === null || outcome === "unknown" || outcome === "interrupted")
      ? 1
      : 0,
    fence: attempts.at(-1)?.number ?? 0,
    failures: attempts.filter(({ outcome }) => outcome === "refused" || outcome === "unknown").length,
    ...{ owner: null, leaseUntil: null },
  });
  for (const attempt of attempts) {
    const open = { outcome: "interrupted", endedAt: now, error: interruptedReason };
    yield* sql.insertAttempt({ messageId: id, ...attempt, ...(attempt.outcome === null ? open : {}) });
  }
}
