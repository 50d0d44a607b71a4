import type { DatabaseSync } from "node:sqlite";
import { jobMoves } from "../states.ts";
import type { ClaimedJob, JobRecord, RunRecord } from "../store.ts";
import { changes, from, row, rows, to } from "./sql.ts";

/** Statements on `jobs` and `runs`, one each. */
export function jobStatements(database: DatabaseSync) {
  return { ...jobRows(database), ...jobMovements(database), ...runRows(database) };
}

function jobRows(database: DatabaseSync) {
  return {
    insertJob: changes(
      database,
      `insert into jobs (id, event_id, kind, state, plan, run_at, created_at, updated_at)
       values (:id, :eventId, :kind, :state, :plan, :now, :now, :now)`,
    ),
    findDueJobs: rows<{ id: string }>(
      database,
      `select id from jobs where ${from(jobMoves.claim)} and run_at <= :now order by run_at, id limit :limit`,
    ),
    findLostJobs: rows<{ id: string; interruptions: number }>(
      database,
      `select id, interruptions from jobs where ${from(jobMoves.reclaim)} and lease_until <= :now and owner <> :owner`,
    ),
    readClaimedJob: row<ClaimedJob>(
      database,
      `select j.id, j.fence, j.event_id as eventId, e.route, e.type as eventType, e.delivery_id as deliveryId, j.plan,
         j.failures
       from jobs j join events e on e.id = j.event_id where j.id = :id`,
    ),
    readJobs: rows<Omit<JobRecord, "runs" | "messages">>(
      database,
      `select id, kind, state, reason, plan, created_at as createdAt, updated_at as updatedAt, run_at as runAt
       from jobs where event_id = :eventId order by id`,
    ),
    jobOfMessage: row<{ id: string; kind: "agent" | "direct"; eventId: string }>(
      database,
      `select j.id, j.kind, j.event_id as eventId from messages m join jobs j on j.id = m.job_id where m.id = :messageId`,
    ),
    nextJobDue: row<{ due: number | null }>(
      database,
      `select min(run_at) as due from jobs where ${from(jobMoves.claim)}`,
    ),
  };
}

function jobMovements(database: DatabaseSync) {
  const held = "id = :id and fence = :fence";
  return {
    claimJob: changes(
      database,
      `update jobs set ${to(jobMoves.claim)}, reason = null, fence = fence + 1, owner = :owner,
         lease_until = :leaseUntil, updated_at = :now where id = :id and ${from(jobMoves.claim)}`,
    ),
    reclaimJob: changes(
      database,
      `update jobs set ${to(jobMoves.reclaim)}, reason = :reason, interruptions = interruptions + 1, owner = null,
         lease_until = null, run_at = :now, updated_at = :now where id = :id and ${from(jobMoves.reclaim)}`,
    ),
    abandonJob: changes(
      database,
      `update jobs set ${to(jobMoves.abandon)}, reason = :reason, owner = null, lease_until = null, updated_at = :now
       where id = :id and ${from(jobMoves.abandon)}`,
    ),
    answerJob: changes(
      database,
      `update jobs set ${to(jobMoves.answer)}, reason = null, owner = null, lease_until = null, updated_at = :now
       where ${held} and ${from(jobMoves.answer)}`,
    ),
    retryJob: changes(
      database,
      `update jobs set ${to(jobMoves.retry)}, reason = :reason, failures = failures + 1, run_at = :runAt, owner = null,
         lease_until = null, updated_at = :now where ${held} and ${from(jobMoves.retry)}`,
    ),
    releaseJob: changes(
      database,
      `update jobs set ${to(jobMoves.release)}, reason = :reason, owner = null, lease_until = null, run_at = :now,
         updated_at = :now where ${held} and ${from(jobMoves.release)}`,
    ),
    giveUpJob: changes(
      database,
      `update jobs set ${to(jobMoves.giveUp)}, reason = :reason, owner = null, lease_until = null, updated_at = :now
       where ${held} and ${from(jobMoves.giveUp)}`,
    ),
    finishJob: changes(
      database,
      `update jobs set ${to(jobMoves.finish)}, reason = :reason, updated_at = :now
       where id = :id and ${from(jobMoves.finish)}`,
    ),
    failJob: changes(
      database,
      `update jobs set ${to(jobMoves.fail)}, reason = :reason, updated_at = :now
       where id = :id and ${from(jobMoves.fail)}`,
    ),
    refuseJob: changes(
      database,
      `update jobs set ${to(jobMoves.refuse)}, reason = :reason, updated_at = :now
       where id = :id and ${from(jobMoves.refuse)}`,
    ),
    parkJobs: changes(
      database,
      `update jobs set ${to(jobMoves.park)}, reason = :reason, updated_at = :now where ${from(jobMoves.park)}`,
    ),
    unparkJobs: changes(
      database,
      `update jobs set ${to(jobMoves.unpark)}, reason = null, updated_at = :now where ${from(jobMoves.unpark)}`,
    ),
    extendJobLease: changes(
      database,
      `update jobs set lease_until = :leaseUntil where ${held} and ${from(jobMoves.reclaim)}`,
    ),
    expireJobLeases: changes(
      database,
      `update jobs set lease_until = :now where ${from(jobMoves.reclaim)} and owner <> :owner and lease_until > :now`,
    ),
  };
}

function runRows(database: DatabaseSync) {
  return {
    insertRun: changes(database, "insert into runs (job_id, number, started_at) values (:jobId, :number, :now)"),
    finishRun: changes(
      database,
      `update runs set ended_at = :now, outcome = :outcome, reason = :reason, answer = :answer, transcript = :transcript,
         input_tokens = :inputTokens, output_tokens = :outputTokens where job_id = :jobId and number = :number`,
    ),
    interruptRun: changes(
      database,
      `update runs set ended_at = :now, outcome = 'interrupted', reason = :reason
       where job_id = :jobId and outcome is null`,
    ),
    readRuns: rows<RunRecord>(
      database,
      `select number, started_at as startedAt, ended_at as endedAt, outcome, reason, answer, transcript,
         input_tokens as inputTokens, output_tokens as outputTokens
       from runs where job_id = :jobId order by number`,
    ),
  };
}
