import { finalMessageStates, messageMoves } from "../states.ts";
import type { AttemptRecord, ClaimedMessage, MessageRecord } from "../store.ts";
import { allFrom, among, changes, type Dialect, earliestOfEach, from, row, rows, to } from "./statement.ts";

/** Statements on `messages` and `attempts`, one each. */
export function messageStatements(dialect: Dialect) {
  return {
    ...messageRows(dialect),
    ...messageClaims(dialect),
    ...laneRows(),
    ...messageMovements(),
    ...messageLeases(dialect),
    ...attemptRows(dialect),
  };
}

function messageRows(dialect: Dialect) {
  return {
    insertMessage: changes(
      `insert into messages (id, job_id, position, target, extra, lane, text, refusal, fallback, replaces, state, reason,
         reference, parts_sent, ready_at, due_at, unsure, fence, failures, owner, lease_until, updated_at)
       values (:id, :jobId, :position, :target, :extra, :lane, :text, :refusal, :fallback, :replaces, :state, :reason,
         :reference, :partsSent, :readyAt, :dueAt, :unsure, :fence, :failures, :owner, :leaseUntil, :now)`,
    ),
    readMessages: rows<Omit<MessageRecord, "attempts"> & { readonly jobId: string }>(
      `select job_id as "jobId", id, target, extra, lane, text, refusal, fallback, replaces, state, reason, reference,
         parts_sent as "partsSent", ready_at as "readyAt", due_at as "dueAt"
       from messages where ${dialect.isAmong("job_id", "jobs")}
       order by job_id, position`,
    ),
    openMessages: rows<{ id: string; state: MessageRecord["state"]; lane: string | null }>(
      `select id, state, lane from messages where job_id = :jobId and not ${among(finalMessageStates)} order by position`,
    ),
    placeOf: row<{ target: string; lane: string | null }>("select target, lane from messages where id = :id"),
    // What of a message its successor takes over.
    readHeritage: row<HeritageRow>("select text, fallback, owner from messages where id = :id"),
    nextPosition: row<{ position: number }>("select max(position) + 1 as position from messages where job_id = :jobId"),
    // How a job's messages stand: how many need more, how many went wrong, and the reason of the first of those.
    tallyMessages: row<{ open: number; dead: number; cancelled: number; reason: string | null }>(
      `select count(*) filter (where not ${among(finalMessageStates)}) as open,
         count(*) filter (where state = 'dead') as dead,
         count(*) filter (where state = 'cancelled') as cancelled,
         (select reason from messages where job_id = :jobId and state in ('dead', 'cancelled')
          order by case state when 'dead' then 0 else 1 end, position limit 1) as reason
       from messages where job_id = :jobId`,
    ),
  };
}

/** What of a message its successor takes over. */
export interface HeritageRow {
  readonly text: string;
  readonly fallback: string | null;
  readonly owner: string | null;
}

function messageClaims(dialect: Dialect) {
  const isFound = dialect.isAmong("id", "ids");
  const isPending = allFrom(messageMoves.claim);
  return {
    dueTargets: rows<{ target: string; due: number }>(earliestOfEach("messages", "target", "due_at", isPending)),
    findDueMessages: rows<{ id: string }>(
      `select id from messages where ${isPending} and target = :target and due_at <= :now
       order by due_at, id limit :limit ${dialect.skippingLocked}`,
    ),
    countSending: row<{ count: number }>(
      `select count(*) as count from messages where ${allFrom(messageMoves.reclaim)} and target = :target`,
    ),
    // Found first and then sorted: by itself SQLite would go through all messages in the order that is asked for.
    findLostMessages: rows<{ id: string }>(
      `with lost as materialized (
         select id, job_id, position from messages where ${allFrom(messageMoves.reclaim)} and lease_until <= :now
           and (owner <> :owner or id not in (select id from ${dialect.rowsOf("active", { id: "text" })}))
       ) select id from lost order by job_id, position`,
    ),
    claimMessages: changes(
      `update messages set ${to(messageMoves.claim)}, fence = fence + 1, owner = :owner, lease_until = :leaseUntil,
         updated_at = :now where ${isFound} and ${from(messageMoves.claim)}`,
    ),
    openAttempts: changes(
      `insert into attempts (message_id, number, started_at)
       select id, fence, cast(:now as bigint) from messages where ${isFound}`,
    ),
    readClaimedMessages: rows<Omit<ClaimedMessage, "isUnsure"> & { readonly unsure: number }>(
      `select m.id, m.fence, m.job_id as "jobId", m.target, m.extra, m.text, m.refusal, m.fallback,
         m.parts_sent as "partsSent", m.failures, m.ready_at as "readyAt", m.unsure, j.route, e.type as "eventType"
       from messages m join jobs j on j.id = m.job_id join events e on e.id = j.event_id
       where ${dialect.isAmong("m.id", "ids")} order by m.due_at, m.id`,
    ),
  };
}

/** The states in which a message has its place in a lane; written the same everywhere, so that the index is found. */
const isInLane = `lane is not null and ${among(["waiting", "pending", "sending"])}`;

function laneRows() {
  return {
    isLaneTaken: row<{ id: string }>(`select id from messages where lane = :lane and ${isInLane} limit 1`),
    // "pending" and "sending" stand before "waiting" in the index, so this is one of those, or else the next to be called.
    firstInLane: row<{ id: string; state: MessageRecord["state"] }>(
      `select id, state from messages where lane = :lane and ${isInLane} order by state, ready_at, id limit 1`,
    ),
    prepareMessage: changes(
      `update messages set ${to(messageMoves.prepare)}, text = coalesce(cast(:text as text), text),
         ready_at = coalesce(ready_at, :now), due_at = :now, updated_at = :now
       where id = :id and ${from(messageMoves.prepare)}`,
    ),
    lineMessage: changes(
      `update messages set ${to(messageMoves.line)}, text = coalesce(cast(:text as text), text),
         ready_at = coalesce(ready_at, :now), due_at = :now, updated_at = :now
       where id = :id and ${from(messageMoves.line)}`,
    ),
    promoteMessage: changes(
      `update messages set ${to(messageMoves.promote)}, due_at = :now, updated_at = :now
       where id = :id and ${from(messageMoves.promote)}`,
    ),
  };
}

const noLease = "owner = null, lease_until = null, updated_at = :now";

function messageMovements() {
  const held = "id = :id and fence = :fence";
  return {
    keepMessages: changes(
      `update messages set ${to(messageMoves.keep)}, reason = :reason, updated_at = :now
       where job_id = :jobId and ${from(messageMoves.keep)}`,
    ),
    dropMessages: changes(
      `update messages set ${to(messageMoves.drop)}, reason = :reason, updated_at = :now
       where job_id = :jobId and ${from(messageMoves.drop)}`,
    ),
    cancelMessages: changes(
      `update messages set ${to(messageMoves.cancel)}, reason = :reason, updated_at = :now
       where job_id = :jobId and ${from(messageMoves.cancel)}`,
    ),
    reclaimMessage: changes(
      `update messages set ${to(messageMoves.reclaim)}, reason = :reason, unsure = 1, due_at = :now, ${noLease}
       where id = :id and ${from(messageMoves.reclaim)} and lease_until <= :now`,
    ),
    cutOffMessage: changes(
      `update messages set ${to(messageMoves.cutOff)}, reason = :reason, ${noLease}
       where id = :id and ${from(messageMoves.cutOff)} and lease_until <= :until`,
    ),
    // The next part has not been tried before.
    notePart: changes(
      `update messages set parts_sent = :partsSent, unsure = 0 where ${held} and ${from(messageMoves.take)}`,
    ),
    takeMessage: changes(
      `update messages set ${to(messageMoves.take)}, reason = null, reference = :reference, unsure = 0, ${noLease}
       where ${held} and ${from(messageMoves.take)}`,
    ),
    retryMessage: changes(
      `update messages set ${to(messageMoves.retry)}, reason = :reason, failures = failures + :failed, due_at = :dueAt,
         unsure = case when :unknown = 1 then 1 else unsure end, lane = case when :leaveLane = 1 then null else lane end,
         ${noLease}
       where ${held} and ${from(messageMoves.retry)}`,
    ),
    stopLostMessage: changes(
      `update messages set ${to(messageMoves.stop)}, reason = :reason, ${noLease}
       where id = :id and ${from(messageMoves.stop)} and lease_until <= :now`,
    ),
    stopMessage: changes(
      `update messages set ${to(messageMoves.stop)}, reason = :reason, failures = failures + 1, ${noLease}
       where ${held} and ${from(messageMoves.stop)}`,
    ),
    giveUpMessage: changes(
      `update messages set ${to(messageMoves.giveUp)}, reason = :reason, failures = failures + 1, ${noLease}
       where ${held} and ${from(messageMoves.giveUp)}`,
    ),
    replaceMessage: changes(
      `update messages set ${to(messageMoves.replace)}, reason = :reason, failures = failures + 1, ${noLease}
       where ${held} and ${from(messageMoves.replace)}`,
    ),
  };
}

function messageLeases(dialect: Dialect) {
  const isHeld = `${dialect.isAmong("id", "held")} and ${from(messageMoves.reclaim)}
    and (id, fence) in (select id, fence from ${dialect.rowsOf("held", { id: "text", fence: "bigint" })})`;
  return {
    extendMessageLeases: changes(`update messages set lease_until = :leaseUntil where ${isHeld}`),
    heldMessages: rows<{ id: string }>(`select id from messages where ${isHeld}`),
    expireMessageLeases: changes(
      `update messages set lease_until = :now
       where ${allFrom(messageMoves.reclaim)} and owner <> :owner and lease_until > :now`,
    ),
    // One statement for each index.
    shiftMessages: ["state = 'pending'", "state = 'sending'", `${isInLane} and state = 'waiting'`].map((isMeant) =>
      changes(
        `update messages set due_at = due_at + :by, ready_at = ready_at + :by, lease_until = lease_until + :by
         where ${isMeant}`,
      ),
    ),
  };
}

function attemptRows(dialect: Dialect) {
  return {
    insertAttempt: changes(
      `insert into attempts (message_id, number, started_at, ended_at, outcome, error)
       values (:messageId, :number, :startedAt, :endedAt, :outcome, :error)`,
    ),
    finishAttempt: changes(
      `update attempts set ended_at = :now, outcome = :outcome, error = :error
       where message_id = :messageId and number = :number`,
    ),
    interruptAttempt: changes(
      `update attempts set ended_at = :now, outcome = 'interrupted', error = :reason
       where message_id = :messageId and outcome is null`,
    ),
    readAttempts: rows<AttemptRecord & { readonly messageId: string }>(
      `select message_id as "messageId", number, started_at as "startedAt", ended_at as "endedAt", outcome, error
       from attempts where ${dialect.isAmong("message_id", "messages")} order by number`,
    ),
  };
}
