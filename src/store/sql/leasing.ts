import type { Held } from "../store.ts";
import type { Statements, Works } from "./statements.ts";

/** Leases, and when there is something to do. */
export function leasing(
  sql: Statements,
): Pick<Works, "extendLeases" | "lostLeases" | "expireLeases" | "nextDue" | "shiftTimes"> {
  const lostOf = function* ({
    jobs,
    messages,
  }: {
    readonly jobs: readonly Held[];
    readonly messages: readonly Held[];
  }) {
    const heldJobs = jobs.length > 0 ? yield* sql.heldJobs({ held: JSON.stringify(jobs) }) : [];
    const heldMessages = messages.length > 0 ? yield* sql.heldMessages({ held: JSON.stringify(messages) }) : [];
    const held = new Set([...heldJobs, ...heldMessages].map(({ id }) => id));
    return { lost: [...jobs, ...messages].map(({ id }) => id).filter((id) => !held.has(id)) };
  };
  return {
    *extendLeases({ jobs, messages, leaseUntil }) {
      if (jobs.length > 0) yield* sql.extendJobLeases({ held: JSON.stringify(jobs), leaseUntil });
      if (messages.length > 0) yield* sql.extendMessageLeases({ held: JSON.stringify(messages), leaseUntil });
      return yield* lostOf({ jobs, messages });
    },
    lostLeases: lostOf,
    *expireLeases({ owner, now }) {
      yield* sql.expireJobLeases({ owner, now });
      yield* sql.expireMessageLeases({ owner, now });
    },
    *nextDue() {
      const pauses = new Map((yield* sql.listTroubles({})).map(({ target, pausedUntil }) => [target, pausedUntil]));
      const messages = (yield* sql.dueTargets({})).map(({ target, due }) => ({
        target,
        due: Math.max(due, pauses.get(target) ?? 0),
      }));
      const routes = (yield* sql.dueRoutes({})).map(({ due }) => due);
      return { jobs: routes.length > 0 ? Math.min(...routes) : undefined, messages };
    },
    *shiftTimes({ by }) {
      for (const shift of sql.shiftJobs) yield* shift({ by });
      for (const shift of sql.shiftMessages) yield* shift({ by });
      yield* sql.shiftClaims({ by });
      yield* sql.shiftTroubles({ by });
    },
  };
}
