import type { FinishAttemptArgs, FinishRunArgs } from "../store.ts";
import { freeClaim } from "./claims.ts";
import type { JobOfMessage } from "./jobs.ts";
import { prepareMessages, promoteNext } from "./lanes.ts";
import { heritageOf, succeed } from "./replacing.ts";
import type { Work } from "./statement.ts";
import type { Statements, Works } from "./statements.ts";
import { noteHealth } from "./troubles.ts";

/** How runs and attempts end, and what follows from it. */
export function finishing(sql: Statements): Pick<Works, "finishRun" | "recordPart" | "finishAttempt"> {
  return {
    *finishRun(args) {
      if (!(yield* moveJob(sql, args))) return false;
      const { id, fence, now, result } = args;
      yield* sql.finishRun({ jobId: id, number: fence, now, ...result });
      return true;
    },
    *recordPart({ id, fence, partsSent }) {
      return (yield* sql.notePart({ id, fence, partsSent })) === 1;
    },
    *finishAttempt(args) {
      const { id, fence, now, outcome, error, health, next } = args;
      const job = yield* sql.holdJobOfMessage({ messageId: id });
      const place = yield* sql.placeOf({ id });
      if (!job || !place) return false;
      // Read before it moves, which ends the lease of whoever holds it.
      const heritage = yield* heritageOf(sql, job, args);
      if (!(yield* moveMessage(sql, args, job, heritage !== undefined))) return false;
      yield* sql.finishAttempt({ messageId: id, number: fence, now, outcome, error });
      if (health) yield* noteHealth(sql, { message: id, target: place.target, now }, health);
      if (heritage) yield* succeed(sql, job, { id, lane: place.lane, now }, heritage);
      const isOver = next.move !== "retry" || job.stopReason !== null;
      if (isOver || next.leaveLane) yield* promoteNext(sql, place.lane, now);
      if (isOver) yield* settleJob(sql, job, now);
      return heritage ? "replaced" : true;
    },
  };
}

/** Moves a job on after its run. False when somebody else has it, and then nothing has changed. */
function* moveJob(sql: Statements, { id, fence, now, result, next }: FinishRunArgs): Work<boolean> {
  const { reason } = result;
  switch (next.move) {
    case "retry":
      return (yield* sql.retryJob({ id, fence, now, reason, runAt: next.runAt })) === 1;
    case "release":
      return (yield* sql.releaseJob({ id, fence, now, reason })) === 1;
    case "giveUp":
      if ((yield* sql.giveUpJob({ id, fence, now, reason })) === 0) return false;
      yield* sql.dropMessages({ jobId: id, now, reason });
      return true;
    case "answer":
      if ((yield* sql.answerJob({ id, fence, now })) === 0) return false;
      if (next.silent) yield* sql.keepMessages({ jobId: id, now, reason: "The agent answered [SILENT]" });
      else yield* prepareMessages(sql, id, result.answer, now);
      yield* settleJob(sql, { id, kind: "agent" }, now);
      return true;
  }
}

/** Ends a job when none of its messages needs anything more. */
export function* settleJob(
  sql: Statements,
  job: Pick<JobOfMessage, "id" | "kind"> & { readonly eventId?: string },
  now: number,
): Work<void> {
  const tally = yield* sql.tallyMessages({ jobId: job.id });
  if (!tally || tally.open > 0) return;
  const { id } = job;
  const { reason } = tally;
  if (tally.dead > 0 && job.kind === "direct") {
    if ((yield* sql.refuseJob({ id, now, reason })) === 1 && job.eventId !== undefined) {
      yield* freeClaim(sql, job.eventId);
    }
  } else if (tally.dead > 0) {
    yield* sql.failJob({ id, now, reason });
  } else if (tally.cancelled > 0) {
    yield* sql.cancelJob({ id, now, reason });
  } else {
    yield* sql.finishJob({ id, now, reason: null });
  }
}

function* moveMessage(
  sql: Statements,
  args: FinishAttemptArgs,
  { stopReason }: JobOfMessage,
  isReplaced: boolean,
): Work<boolean> {
  const { id, fence, now, outcome, error, reference, next } = args;
  const end = { id, fence, now, reason: error };
  switch (next.move) {
    case "take":
      return (yield* sql.takeMessage({ id, fence, now, reference })) === 1;
    case "retry": {
      if (stopReason !== null) return (yield* sql.stopMessage({ id, fence, now, reason: stopReason })) === 1;
      const failed = outcome === "released" ? 0 : 1;
      const unknown = outcome === "unknown" ? 1 : 0;
      const leaveLane = next.leaveLane ? 1 : 0;
      return (yield* sql.retryMessage({ ...end, dueAt: next.dueAt, failed, unknown, leaveLane })) === 1;
    }
    case "giveUp":
      return (yield* isReplaced ? sql.replaceMessage(end) : sql.giveUpMessage(end)) === 1;
  }
}
