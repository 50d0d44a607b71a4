import { finalJobStates, type JobState, jobMoves, jobStates } from "../states.ts";
import type { ClaimedJob, JobRecord, RunRecord } from "../store.ts";
import { allFrom, among, changes, type Dialect, earliestOfEach, from, row, rows, to } from "./statement.ts";

/** Statements on `jobs` and `runs`, one each. */
export function jobStatements(dialect: Dialect) {
  return { ...jobRows(dialect), ...jobClaims(dialect), ...jobMovements(), ...jobLeases(dialect), ...runRows(dialect) };
}

const unfinished = `not ${among(finalJobStates)}`;
const unfinishedStates = Object.keys(jobStates).filter((state) => !finalJobStates.some((final) => final === state));

/**
 * Says nothing new of a job in one of the other states, but lets the index of those be found (`jobs_open`). Those that are
 * queued or running have indexes of their own, and PostgreSQL must not be able to take another for theirs: it does not always
 * know how many they are.
 */
export const isOpen = "state not in ('done', 'queued', 'running')";

function jobRows(dialect: Dialect) {
  return {
    insertJob: changes(
      `insert into jobs (id, event_id, kind, route, origin, on_crash, state, reason, plan, run_at, fence, failures,
         created_at, updated_at)
       values (:id, :eventId, :kind, :route, :origin, :onCrash, :state, :reason, :plan, :runAt, :fence, :failures,
         :createdAt, :updatedAt)`,
    ),
    readJobs: rows<Omit<JobRecord, "runs" | "messages">>(
      `select id, kind, route, origin, on_crash as "onCrash", state, reason, plan, created_at as "createdAt",
         updated_at as "updatedAt", run_at as "runAt"
       from jobs where event_id = :eventId order by id`,
    ),
    // The job is held first, then its messages, whoever comes: so no two can wait for each other.
    holdJobOfMessage: row<JobOfMessage>(
      `select id, kind, event_id as "eventId", stop_reason as "stopReason" from jobs where id = (select job_id from messages where id = :messageId)
       ${dialect.locking}`,
    ),
    holdOpenJobs: rows<{ id: string; kind: JobRecord["kind"]; state: JobState }>(
      `select id, kind, state from jobs where event_id = :eventId and ${unfinished} order by id ${dialect.locking}`,
    ),
    tallyJobs: rows<{ state: JobState; count: number }>(
      `select state, count(*) as count from jobs where ${isOpen} group by state
       union all
       select 'queued', count(*) from jobs where state = 'queued' having count(*) > 0
       union all
       select 'running', count(*) from jobs where state = 'running' having count(*) > 0`,
    ),
  };
}

export interface JobOfMessage {
  readonly id: string;
  readonly kind: JobRecord["kind"];
  readonly eventId: string;
  /** Why its messages are not to be tried again. */
  readonly stopReason: string | null;
}

function jobClaims(dialect: Dialect) {
  const isFound = dialect.isAmong("id", "ids");
  return {
    dueRoutes: rows<{ route: string; due: number }>(earliestOfEach("jobs", "route", "run_at", allFrom(jobMoves.claim))),
    findDueJobs: rows<{ id: string; runAt: number }>(
      `select id, run_at as "runAt" from jobs where ${allFrom(jobMoves.claim)} and route = :route and run_at <= :now
       order by run_at, id limit :limit ${dialect.skippingLocked}`,
    ),
    // Found first and then sorted: by itself SQLite would go through all jobs in the order that is asked for.
    findLostJobs: rows<{ id: string; interruptions: number; onCrash: JobRecord["onCrash"] }>(
      `with lost as materialized (
         select id, interruptions, on_crash as "onCrash" from jobs where ${allFrom(jobMoves.reclaim)} and lease_until <= :now
           and (owner <> :owner or id not in (select id from ${dialect.rowsOf("active", { id: "text" })}))
         ${dialect.skippingLocked}
       ) select * from lost order by id`,
    ),
    countRunning: rows<{ route: string; count: number }>(
      `select route, count(*) as count from jobs where ${allFrom(jobMoves.reclaim)} group by route`,
    ),
    claimJobs: changes(
      `update jobs set ${to(jobMoves.claim)}, reason = null, fence = fence + 1, owner = :owner,
         lease_until = :leaseUntil, updated_at = :now where ${isFound} and ${from(jobMoves.claim)}`,
    ),
    openRuns: changes(
      `insert into runs (job_id, number, started_at) select id, fence, cast(:now as bigint) from jobs where ${isFound}`,
    ),
    readClaimedJobs: rows<ClaimedJob>(
      `select j.id, j.fence, j.event_id as "eventId", j.route, e.type as "eventType", e.delivery_id as "deliveryId",
         j.plan, j.failures
       from jobs j join events e on e.id = j.event_id where ${dialect.isAmong("j.id", "ids")} order by j.run_at, j.id`,
    ),
  };
}

const noLease = "owner = null, lease_until = null, updated_at = :now";

function jobMovements() {
  const held = "id = :id and fence = :fence";
  return {
    reclaimJob: changes(
      `update jobs set ${to(jobMoves.reclaim)}, reason = :reason, interruptions = interruptions + 1, run_at = :now,
         ${noLease} where id = :id and ${from(jobMoves.reclaim)}`,
    ),
    abandonJob: changes(
      `update jobs set ${to(jobMoves.abandon)}, reason = :reason, ${noLease} where id = :id and ${from(jobMoves.abandon)}`,
    ),
    answerJob: changes(
      `update jobs set ${to(jobMoves.answer)}, reason = null, ${noLease} where ${held} and ${from(jobMoves.answer)}`,
    ),
    retryJob: changes(
      `update jobs set ${to(jobMoves.retry)}, reason = :reason, failures = failures + 1, run_at = :runAt, ${noLease}
       where ${held} and ${from(jobMoves.retry)}`,
    ),
    releaseJob: changes(
      `update jobs set ${to(jobMoves.release)}, reason = :reason, run_at = :now, ${noLease}
       where ${held} and ${from(jobMoves.release)}`,
    ),
    giveUpJob: changes(
      `update jobs set ${to(jobMoves.giveUp)}, reason = :reason, ${noLease} where ${held} and ${from(jobMoves.giveUp)}`,
    ),
    finishJob: ended("finish"),
    failJob: ended("fail"),
    refuseJob: ended("refuse"),
    cancelJob: ended("cancel"),
    stopJob: changes("update jobs set stop_reason = :reason where id = :id"),
    parkJobs: changes(
      `update jobs set ${to(jobMoves.park)}, reason = :reason, updated_at = :now where ${allFrom(jobMoves.park)}`,
    ),
    unparkJobs: changes(
      `update jobs set ${to(jobMoves.unpark)}, reason = null, updated_at = :now
       where ${allFrom(jobMoves.unpark)} and ${isOpen}`,
    ),
  };
}

function ended(move: "finish" | "fail" | "refuse" | "cancel") {
  return changes(
    `update jobs set ${to(jobMoves[move])}, reason = :reason, ${noLease} where id = :id and ${from(jobMoves[move])}`,
  );
}

function jobLeases(dialect: Dialect) {
  const isHeld = `${dialect.isAmong("id", "held")} and ${from(jobMoves.reclaim)}
    and (id, fence) in (select id, fence from ${dialect.rowsOf("held", { id: "text", fence: "bigint" })})`;
  return {
    extendJobLeases: changes(`update jobs set lease_until = :leaseUntil where ${isHeld}`),
    heldJobs: rows<{ id: string }>(`select id from jobs where ${isHeld}`),
    expireJobLeases: changes(
      `update jobs set lease_until = :now where ${allFrom(jobMoves.reclaim)} and owner <> :owner and lease_until > :now`,
    ),
    // One statement for each index.
    shiftJobs: ["state = 'queued'", "state = 'running'", `${among(unfinishedStates)} and ${isOpen}`].map((isMeant) =>
      changes(`update jobs set run_at = run_at + :by, lease_until = lease_until + :by where ${isMeant}`),
    ),
  };
}

function runRows(dialect: Dialect) {
  return {
    insertRun: changes(
      `insert into runs (job_id, number, started_at, ended_at, outcome, reason, answer, transcript, input_tokens,
         output_tokens)
       values (:jobId, :number, :startedAt, :endedAt, :outcome, :reason, :answer, :transcript, :inputTokens,
         :outputTokens)`,
    ),
    finishRun: changes(
      `update runs set ended_at = :now, outcome = :outcome, reason = :reason, answer = :answer, transcript = :transcript,
         input_tokens = :inputTokens, output_tokens = :outputTokens where job_id = :jobId and number = :number`,
    ),
    endOpenRun: changes(
      `update runs set ended_at = :now, outcome = :outcome, reason = :reason
       where job_id = :jobId and outcome is null`,
    ),
    readRuns: rows<RunRecord & { readonly jobId: string }>(
      `select job_id as "jobId", number, started_at as "startedAt", ended_at as "endedAt", outcome, reason, answer,
         transcript, input_tokens as "inputTokens", output_tokens as "outputTokens"
       from runs where ${dialect.isAmong("job_id", "jobs")} order by number`,
    ),
  };
}
