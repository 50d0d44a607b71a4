import type { DatabaseSync } from "node:sqlite";
import { beginnings } from "../states.ts";
import type { ClaimedJob, ClaimedMessage, FinishAttemptArgs, FinishRunArgs, NewEvent, Operations } from "../store.ts";
import { pack, unpack } from "./body.ts";
import { eventStatements } from "./events.ts";
import { jobStatements } from "./jobs.ts";
import { messageStatements } from "./messages.ts";

type Statements = ReturnType<typeof prepare>;

function prepare(database: DatabaseSync) {
  return { ...eventStatements(database), ...jobStatements(database), ...messageStatements(database) };
}

const cutOffReason = "Interrupted: the gateway stopped before the target answered";
const interruptedReason = "Interrupted: the gateway stopped during the run; it was started again";

/** The store's operations on one open database. The caller puts them in a transaction. */
export function createOperations(database: DatabaseSync): Operations {
  const sql = prepare(database);
  return { ...acceptance(sql), ...running(sql), ...sending(sql), ...leasing(sql), ...reading(sql) };
}

function acceptance(sql: Statements): Pick<Operations, "accept" | "ignore"> {
  const insertEvent = (event: NewEvent, ignored: string | null) =>
    sql.insertEvent({
      id: event.id,
      route: event.route,
      type: event.type,
      deliveryId: event.deliveryId,
      receivedAt: event.receivedAt,
      headers: event.headers,
      ...pack(event.body),
      ignored,
    });
  return {
    accept({ event, claimUntil, job, owner, leaseUntil }) {
      const now = event.receivedAt;
      const claim = { route: event.route, deliveryId: event.deliveryId, eventId: event.id, claimUntil, now };
      if (sql.claimDelivery(claim) === 0) return { duplicate: true };
      insertEvent(event, null);
      const begin = beginnings[job.kind];
      sql.insertJob({ id: job.id, eventId: event.id, kind: job.kind, state: begin.job, plan: job.plan, now });
      const isDirect = job.kind === "direct";
      for (const [position, { id, target, extra, text }] of job.messages.entries()) {
        const lease = isDirect ? { fence: 1, owner, leaseUntil } : { fence: 0, owner: null, leaseUntil: null };
        sql.insertMessage({ id, jobId: job.id, position, target, extra, text, state: begin.message, now, ...lease });
        if (isDirect) sql.insertAttempt({ messageId: id, number: 1, now });
      }
      return { duplicate: false };
    },
    ignore({ reason, ...event }) {
      insertEvent(event, reason);
    },
  };
}

function running(sql: Statements): Pick<Operations, "claimJobs" | "finishRun" | "park" | "unpark"> {
  return {
    claimJobs({ owner, now, leaseUntil, limit, maxInterruptions }) {
      for (const { id, interruptions } of sql.findLostJobs({ now, owner })) {
        sql.interruptRun({ jobId: id, now, reason: interruptedReason });
        if (interruptions + 1 < maxInterruptions) {
          sql.reclaimJob({ id, now, reason: interruptedReason });
        } else {
          const reason = `The gateway stopped during ${maxInterruptions} runs of this job; it may be what stops it`;
          sql.abandonJob({ id, now, reason });
          sql.dropMessages({ jobId: id, now, reason });
        }
      }
      return sql.findDueJobs({ now, limit }).map(({ id }) => {
        sql.claimJob({ id, owner, leaseUntil, now });
        const job = sql.readClaimedJob({ id }) as ClaimedJob;
        sql.insertRun({ jobId: id, number: job.fence, now });
        return job;
      });
    },
    finishRun(args) {
      if (!moveJob(sql, args)) return false;
      const { id, fence, now, result } = args;
      sql.finishRun({
        jobId: id,
        number: fence,
        now,
        outcome: result.outcome,
        reason: result.reason,
        answer: result.answer,
        transcript: result.transcript,
        inputTokens: result.inputTokens,
        outputTokens: result.outputTokens,
      });
      return true;
    },
    park: ({ reason, now }) => sql.parkJobs({ reason, now }),
    unpark: ({ now }) => sql.unparkJobs({ now }),
  };
}

/** Moves a job on after its run. False when the lease was lost, and then nothing has changed. */
function moveJob(sql: Statements, { id, fence, now, result, next }: FinishRunArgs): boolean {
  const { reason } = result;
  switch (next.move) {
    case "retry":
      return sql.retryJob({ id, fence, now, reason, runAt: next.runAt }) === 1;
    case "release":
      return sql.releaseJob({ id, fence, now, reason }) === 1;
    case "giveUp":
      if (sql.giveUpJob({ id, fence, now, reason }) === 0) return false;
      sql.dropMessages({ jobId: id, now, reason });
      return true;
    case "answer":
      if (sql.answerJob({ id, fence, now }) === 0) return false;
      if (next.silent) sql.keepMessages({ jobId: id, now, reason: "The agent answered [SILENT]" });
      else sql.prepareMessages({ jobId: id, now, text: result.answer });
      settleJob(sql, { id, kind: "agent" }, now);
      return true;
  }
}

/** Ends a job when none of its messages needs anything more. */
function settleJob(
  sql: Statements,
  job: { id: string; kind: "agent" | "direct"; eventId?: string },
  now: number,
): void {
  const tally = sql.tallyMessages({ jobId: job.id });
  if (!tally || tally.open > 0) return;
  const { id } = job;
  if (tally.dead === 0) {
    sql.finishJob({ id, now, reason: null });
  } else if (job.kind === "agent") {
    sql.failJob({ id, now, reason: tally.reason });
  } else if (sql.refuseJob({ id, now, reason: tally.reason }) === 1 && job.eventId !== undefined) {
    sql.freeClaim({ eventId: job.eventId });
  }
}

function sending(sql: Statements): Pick<Operations, "claimMessages" | "recordPart" | "finishAttempt"> {
  return {
    claimMessages({ owner, now, leaseUntil, limit }) {
      for (const { id } of sql.findLostMessages({ now, owner })) takeBack(sql, id, now);
      return sql.findDueMessages({ now, limit }).map(({ id }) => {
        sql.claimMessage({ id, owner, leaseUntil, now });
        const message = sql.readClaimedMessage({ id }) as ClaimedMessage;
        sql.insertAttempt({ messageId: id, number: message.fence, now });
        return message;
      });
    },
    recordPart: ({ id, fence, partsSent }) => sql.notePart({ id, fence, partsSent }) === 1,
    finishAttempt(args) {
      if (!moveMessage(sql, args)) return false;
      const { id, fence, now, outcome, error } = args;
      sql.finishAttempt({ messageId: id, number: fence, now, outcome, error });
      const job = sql.jobOfMessage({ messageId: id });
      if (job) settleJob(sql, job, now);
      return true;
    },
  };
}

/** A message whose sender is gone. */
function takeBack(sql: Statements, id: string, now: number): void {
  sql.interruptAttempt({ messageId: id, now, reason: cutOffReason });
  const job = sql.jobOfMessage({ messageId: id });
  if (job?.kind === "direct") {
    sql.cutOffMessage({ id, now, reason: cutOffReason });
    settleJob(sql, job, now);
  } else {
    sql.reclaimMessage({ id, now, reason: cutOffReason });
  }
}

function moveMessage(sql: Statements, args: FinishAttemptArgs): boolean {
  const { id, fence, now, error, reference, next } = args;
  switch (next.move) {
    case "take":
      return sql.takeMessage({ id, fence, now, reference }) === 1;
    case "retry":
      return sql.retryMessage({ id, fence, now, reason: error, dueAt: next.dueAt }) === 1;
    case "giveUp":
      return sql.giveUpMessage({ id, fence, now, reason: error }) === 1;
  }
}

function leasing(sql: Statements): Pick<Operations, "extendLeases" | "expireLeases" | "nextDue"> {
  return {
    extendLeases({ jobs, messages, leaseUntil }) {
      const lost = [
        ...jobs.filter(({ id, fence }) => sql.extendJobLease({ id, fence, leaseUntil }) === 0),
        ...messages.filter(({ id, fence }) => sql.extendMessageLease({ id, fence, leaseUntil }) === 0),
      ];
      return { lost: lost.map(({ id }) => id) };
    },
    expireLeases({ owner, now }) {
      sql.expireJobLeases({ owner, now });
      sql.expireMessageLeases({ owner, now });
    },
    nextDue: () => ({
      jobs: sql.nextJobDue({})?.due ?? undefined,
      messages: sql.nextMessageDue({})?.due ?? undefined,
    }),
  };
}

function reading(sql: Statements): Pick<Operations, "listEvents" | "readEvent"> {
  return {
    listEvents: ({ limit, route = null, state = null, before = null }) =>
      sql.listEvents({ limit, route, state, before }),
    readEvent({ id: wanted }) {
      const found = sql.findEvents({ id: wanted });
      const exact = found.find(({ id }) => id === wanted) ?? (found.length === 1 ? found[0] : undefined);
      const stored = exact && sql.readEvent({ id: exact.id });
      if (!stored) return undefined;
      const { codec, ...event } = stored;
      const jobs = sql.readJobs({ eventId: event.id }).map((job) => ({
        ...job,
        runs: sql.readRuns({ jobId: job.id }),
        messages: sql.readMessages({ jobId: job.id }).map((message) => ({
          ...message,
          attempts: sql.readAttempts({ messageId: message.id }),
        })),
      }));
      return { ...event, body: unpack(event.body, codec), jobs };
    },
  };
}
