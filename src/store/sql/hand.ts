import { settleJob } from "./finishing.ts";
import { holdLanes, promoteNext } from "./lanes.ts";
import type { Work } from "./statement.ts";
import type { Statements, Works } from "./statements.ts";

/** What a person asks of the ledger. */
export function byHand(sql: Statements): Pick<Works, "cancel"> {
  return {
    *cancel({ eventId, now, reason }) {
      let cancelled = 0;
      for (const job of yield* sql.holdOpenJobs({ eventId })) {
        if (yield* cancelJob(sql, job, { eventId, now, reason })) cancelled += 1;
      }
      return cancelled;
    },
  };
}

interface Cancellation {
  readonly eventId: string;
  readonly now: number;
  readonly reason: string;
}

/** True when something of the job was stopped. A try that is under way ends as it will, and there is no other. */
function* cancelJob(
  sql: Statements,
  job: { readonly id: string; readonly kind: string; readonly state: string },
  { now, reason }: Cancellation,
): Work<boolean> {
  const messages = yield* sql.openMessages({ jobId: job.id });
  // Those of messages that wait, too: one of them may be called to the front at this moment.
  const lanes = messages.filter(({ state }) => state !== "held").map(({ lane }) => lane);
  yield* holdLanes(sql, lanes);
  yield* sql.endOpenRun({ jobId: job.id, now, outcome: "cancelled", reason });
  const stopped = yield* sql.cancelMessages({ jobId: job.id, now, reason });
  for (const lane of lanes) yield* promoteNext(sql, lane, now);
  if (job.state !== "delivering") return (yield* sql.cancelJob({ id: job.id, now, reason })) === 1;
  // Looked for again: one of them may have been taken at this moment. What is sent while its sender waits is not tried again
  // anyway.
  const left = job.kind === "direct" ? [] : yield* sql.openMessages({ jobId: job.id });
  const isSending = left.some(({ state }) => state === "sending");
  if (isSending) yield* sql.stopJob({ id: job.id, reason });
  yield* settleJob(sql, { id: job.id, kind: "delivery" }, now);
  return stopped > 0 || isSending;
}
