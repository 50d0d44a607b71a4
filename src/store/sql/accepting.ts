import { beginnings } from "../states.ts";
import type { NewEvent, NewJob } from "../store.ts";
import { pack } from "./body.ts";
import { claimKey } from "./claims.ts";
import { settleJob } from "./finishing.ts";
import { prepareMessages } from "./lanes.ts";
import { newMessage, openAttempt } from "./rows.ts";
import type { Work } from "./statement.ts";
import type { Statements, Works } from "./statements.ts";

/** What a request asks of the ledger. */
export function accepting(sql: Statements): Pick<Works, "accept" | "withdraw" | "ignore" | "addJob"> {
  return {
    *accept(args) {
      const { event, claimUntil, job } = args;
      const { route, receivedAt: now } = event;
      const deliveryId = claimKey(event.deliveryId);
      if ((yield* sql.claimDelivery({ route, deliveryId, eventId: event.id, claimUntil, now })) === 0) {
        return { duplicate: true, isUnderWay: (yield* sql.isClaimUnderWay({ route, deliveryId })) !== undefined };
      }
      yield* insertEvent(sql, event, null);
      yield* insertJob(sql, event.id, job, now);
      for (const [position, message] of job.messages.entries()) {
        yield* sql.insertMessage(newMessage(args.job, message, position, args));
        if (job.kind === "direct") yield* sql.insertAttempt(openAttempt(message.id, 1, now));
      }
      return { duplicate: false };
    },
    *withdraw({ eventId, now, reason }) {
      for (const { id, kind } of yield* sql.holdOpenJobs({ eventId })) {
        if (kind !== "direct") continue;
        for (const message of yield* sql.openMessages({ jobId: id })) {
          yield* sql.interruptAttempt({ messageId: message.id, now, reason });
          yield* sql.cutOffMessage({ id: message.id, now, reason, until: Number.MAX_SAFE_INTEGER });
        }
        yield* settleJob(sql, { id, kind, eventId }, now);
      }
    },
    *ignore({ reason, ...event }) {
      yield* insertEvent(sql, event, reason);
    },
    *addJob({ eventId, now, job }) {
      if (!(yield* sql.holdEvent({ id: eventId }))) return false;
      yield* insertJob(sql, eventId, job, now);
      for (const [position, message] of job.messages.entries()) {
        yield* sql.insertMessage(newMessage(job, message, position, { event: { receivedAt: now } }));
      }
      if (job.kind === "delivery") yield* prepareMessages(sql, job.id, null, now);
      return true;
    },
  };
}

export function* insertEvent(sql: Statements, event: NewEvent, ignored: string | null): Work<void> {
  const { id, route, type, deliveryId, receivedAt, headers } = event;
  yield* sql.insertEvent({ id, route, type, deliveryId, receivedAt, headers, ignored });
  yield* sql.insertBody({ eventId: id, ...pack(event.body) });
}

function* insertJob(sql: Statements, eventId: string, job: NewJob, now: number): Work<void> {
  const { id, kind, route, origin, onCrash, plan } = job;
  yield* sql.insertJob({
    ...{ id, eventId, kind, route, origin, onCrash, plan },
    ...{ state: beginnings[kind].job, reason: null, runAt: now, fence: 0, failures: 0, createdAt: now, updatedAt: now },
  });
}
