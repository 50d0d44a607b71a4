import type { DatabaseSync } from "node:sqlite";
import { finalMessageStates, messageMoves } from "../states.ts";
import type { AttemptRecord, ClaimedMessage, MessageRecord } from "../store.ts";
import { changes, from, quote, row, rows, to } from "./sql.ts";

/** Statements on `messages` and `attempts`, one each. */
export function messageStatements(database: DatabaseSync) {
  return { ...messageRows(database), ...messageMovements(database), ...attemptRows(database) };
}

function messageRows(database: DatabaseSync) {
  return {
    insertMessage: changes(
      database,
      `insert into messages (id, job_id, position, target, extra, text, state, fence, owner, lease_until, due_at, updated_at)
       values (:id, :jobId, :position, :target, :extra, :text, :state, :fence, :owner, :leaseUntil, :now, :now)`,
    ),
    findDueMessages: rows<{ id: string }>(
      database,
      `select id from messages where ${from(messageMoves.claim)} and due_at <= :now order by due_at, job_id, position limit :limit`,
    ),
    findLostMessages: rows<{ id: string }>(
      database,
      `select id from messages where ${from(messageMoves.reclaim)} and lease_until <= :now and owner <> :owner`,
    ),
    readClaimedMessage: row<ClaimedMessage>(
      database,
      `select m.id, m.fence, m.job_id as jobId, m.target, m.extra, m.text, m.parts_sent as partsSent, m.failures,
         e.route, e.type as eventType
       from messages m join jobs j on j.id = m.job_id join events e on e.id = j.event_id where m.id = :id`,
    ),
    readMessages: rows<Omit<MessageRecord, "attempts">>(
      database,
      `select id, target, extra, text, state, reason, reference, parts_sent as partsSent, due_at as dueAt
       from messages where job_id = :jobId order by position`,
    ),
    nextMessageDue: row<{ due: number | null }>(
      database,
      `select min(due_at) as due from messages where ${from(messageMoves.claim)}`,
    ),
    // How a job's messages stand: how many need more, how many are dead, and the reason of the first of those.
    tallyMessages: row<{ open: number; dead: number; reason: string | null }>(
      database,
      `select count(*) filter (where state not in (${finalMessageStates.map(quote).join(", ")})) as open,
         count(*) filter (where state = 'dead') as dead,
         (select reason from messages where job_id = :jobId and state = 'dead' order by position limit 1) as reason
       from messages where job_id = :jobId`,
    ),
  };
}

function messageMovements(database: DatabaseSync) {
  const held = "id = :id and fence = :fence";
  return {
    prepareMessages: changes(
      database,
      `update messages set ${to(messageMoves.prepare)}, text = :text, due_at = :now, updated_at = :now
       where job_id = :jobId and ${from(messageMoves.prepare)}`,
    ),
    keepMessages: changes(
      database,
      `update messages set ${to(messageMoves.keep)}, reason = :reason, updated_at = :now
       where job_id = :jobId and ${from(messageMoves.keep)}`,
    ),
    dropMessages: changes(
      database,
      `update messages set ${to(messageMoves.drop)}, reason = :reason, updated_at = :now
       where job_id = :jobId and ${from(messageMoves.drop)}`,
    ),
    claimMessage: changes(
      database,
      `update messages set ${to(messageMoves.claim)}, fence = fence + 1, owner = :owner, lease_until = :leaseUntil,
         updated_at = :now where id = :id and ${from(messageMoves.claim)}`,
    ),
    reclaimMessage: changes(
      database,
      `update messages set ${to(messageMoves.reclaim)}, reason = :reason, owner = null, lease_until = null,
         due_at = :now, updated_at = :now where id = :id and ${from(messageMoves.reclaim)}`,
    ),
    cutOffMessage: changes(
      database,
      `update messages set ${to(messageMoves.cutOff)}, reason = :reason, owner = null, lease_until = null,
         updated_at = :now where id = :id and ${from(messageMoves.cutOff)}`,
    ),
    notePart: changes(
      database,
      `update messages set parts_sent = :partsSent, updated_at = updated_at where ${held} and ${from(messageMoves.take)}`,
    ),
    takeMessage: changes(
      database,
      `update messages set ${to(messageMoves.take)}, reason = null, reference = :reference, owner = null,
         lease_until = null, updated_at = :now where ${held} and ${from(messageMoves.take)}`,
    ),
    retryMessage: changes(
      database,
      `update messages set ${to(messageMoves.retry)}, reason = :reason, failures = failures + 1, due_at = :dueAt,
         owner = null, lease_until = null, updated_at = :now where ${held} and ${from(messageMoves.retry)}`,
    ),
    giveUpMessage: changes(
      database,
      `update messages set ${to(messageMoves.giveUp)}, reason = :reason, failures = failures + 1, owner = null,
         lease_until = null, updated_at = :now where ${held} and ${from(messageMoves.giveUp)}`,
    ),
    extendMessageLease: changes(
      database,
      `update messages set lease_until = :leaseUntil where ${held} and ${from(messageMoves.reclaim)}`,
    ),
    expireMessageLeases: changes(
      database,
      `update messages set lease_until = :now
       where ${from(messageMoves.reclaim)} and owner <> :owner and lease_until > :now`,
    ),
  };
}

function attemptRows(database: DatabaseSync) {
  return {
    insertAttempt: changes(
      database,
      "insert into attempts (message_id, number, started_at) values (:messageId, :number, :now)",
    ),
    finishAttempt: changes(
      database,
      `update attempts set ended_at = :now, outcome = :outcome, error = :error
       where message_id = :messageId and number = :number`,
    ),
    interruptAttempt: changes(
      database,
      `update attempts set ended_at = :now, outcome = 'interrupted', error = :reason
       where message_id = :messageId and outcome is null`,
    ),
    readAttempts: rows<AttemptRecord>(
      database,
      `select number, started_at as startedAt, ended_at as endedAt, outcome, error
       from attempts where message_id = :messageId order by number`,
    ),
  };
}
