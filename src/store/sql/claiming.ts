import type { ClaimedMessage, ClaimJobsArgs, ClaimMessagesArgs } from "../store.ts";
import { settleJob } from "./finishing.ts";
import { promoteNext } from "./lanes.ts";
import type { Work } from "./statement.ts";
import { idsOf, type Statements, type Works } from "./statements.ts";

const interruptedReason = "Interrupted: the gateway stopped during the run; it was started again";
const cutOffReason = "Interrupted: the gateway stopped before the target answered";

/** Taking work under a lease. */
export function claiming(sql: Statements): Pick<Works, "claimJobs" | "claimMessages" | "park" | "unpark"> {
  return {
    *claimJobs(args) {
      if (args.mayReclaim) yield* takeBackJobs(sql, args);
      const ids = args.limit > 0 ? yield* findJobs(sql, args) : [];
      if (ids.length === 0) return [];
      const { owner, leaseUntil, now } = args;
      yield* sql.claimJobs({ ids: idsOf(ids), owner, leaseUntil, now });
      yield* sql.openRuns({ ids: idsOf(ids), now });
      return yield* sql.readClaimedJobs({ ids: idsOf(ids) });
    },
    *claimMessages(args) {
      if (args.mayReclaim) yield* takeBackMessages(sql, args);
      const ids = args.limit > 0 ? yield* findMessages(sql, args) : [];
      if (ids.length === 0) return [];
      const { owner, leaseUntil, now } = args;
      yield* sql.claimMessages({ ids: idsOf(ids), owner, leaseUntil, now });
      yield* sql.openAttempts({ ids: idsOf(ids), now });
      const claimed = yield* sql.readClaimedMessages({ ids: idsOf(ids) });
      return claimed.map(({ unsure, ...message }): ClaimedMessage => ({ ...message, isUnsure: unsure === 1 }));
    },
    park: (args) => sql.parkJobs(args),
    unpark: (args) => sql.unparkJobs(args),
  };
}

function* takeBackJobs(sql: Statements, { now, owner, active, maxInterruptions }: ClaimJobsArgs): Work<void> {
  for (const { id, interruptions, onCrash } of yield* sql.findLostJobs({ now, owner, active: idsOf(active) })) {
    yield* sql.endOpenRun({ jobId: id, now, outcome: "interrupted", reason: interruptedReason });
    if (onCrash === "rerun" && interruptions + 1 < maxInterruptions) {
      yield* sql.reclaimJob({ id, now, reason: interruptedReason });
    } else {
      const reason =
        onCrash === "fail"
          ? 'The gateway stopped during the run, and the route says "on_crash: fail"'
          : `The gateway stopped during ${maxInterruptions} runs of this job; it may be what stops it`;
      yield* sql.abandonJob({ id, now, reason });
      yield* sql.dropMessages({ jobId: id, now, reason });
    }
  }
}

/** Due jobs, oldest first, of routes that may run more. */
function* findJobs(sql: Statements, { now, limit, limits }: ClaimJobsArgs): Work<readonly string[]> {
  const room = yield* roomFor(sql, limits);
  let found: readonly { readonly id: string; readonly runAt: number }[] = [];
  const routes = (yield* sql.dueRoutes({})).toSorted((one, other) => one.due - other.due);
  for (const { route, due } of routes) {
    const last = found[limit - 1];
    // What is due first of this route is later than all that were found, and so it is with those that follow.
    if (due > now || (last && last.runAt < due)) break;
    const most = Math.min(limit, room.get(route) ?? limit);
    if (most <= 0) continue;
    found = [...found, ...(yield* sql.findDueJobs({ route, now, limit: most }))].toSorted(byAge).slice(0, limit);
  }
  return found.map(({ id }) => id);
}

/** How many more may run of each route that has a limit. */
function* roomFor(sql: Statements, limits: ClaimJobsArgs["limits"]): Work<ReadonlyMap<string, number>> {
  const room = new Map(Object.entries(limits));
  if (room.size === 0) return room;
  // Counting and claiming must not be done by two gateways at once.
  yield* sql.queueUp("runs");
  for (const { route, count } of yield* sql.countRunning({})) {
    if (room.has(route)) room.set(route, (room.get(route) ?? 0) - count);
  }
  return room;
}

function byAge(one: { readonly id: string; readonly runAt: number }, other: typeof one): number {
  return one.runAt - other.runAt || (one.id < other.id ? -1 : 1);
}

/** Messages whose holder is gone. */
function* takeBackMessages(sql: Statements, { now, owner, active }: ClaimMessagesArgs): Work<void> {
  for (const { id } of yield* sql.findLostMessages({ now, owner, active: idsOf(active) })) {
    const job = yield* sql.holdJobOfMessage({ messageId: id });
    if (job?.kind === "direct") {
      if ((yield* sql.cutOffMessage({ id, now, until: now, reason: cutOffReason })) === 0) continue;
      yield* sql.interruptAttempt({ messageId: id, now, reason: cutOffReason });
      yield* settleJob(sql, job, now);
    } else if (job && job.stopReason !== null) {
      if ((yield* sql.stopLostMessage({ id, now, reason: job.stopReason })) === 0) continue;
      yield* sql.interruptAttempt({ messageId: id, now, reason: cutOffReason });
      yield* promoteNext(sql, (yield* sql.placeOf({ id }))?.lane ?? null, now);
      yield* settleJob(sql, job, now);
    } else if ((yield* sql.reclaimMessage({ id, now, reason: cutOffReason })) === 1) {
      yield* sql.interruptAttempt({ messageId: id, now, reason: cutOffReason });
    }
  }
}

/** Due messages, of each target no more than it may be sent now. */
function* findMessages(sql: Statements, { now, limit, limits }: ClaimMessagesArgs): Work<readonly string[]> {
  const waiting = (yield* sql.dueTargets({})).filter(({ due }) => due <= now);
  if (waiting.length === 0) return [];
  const troubles = new Map((yield* sql.listTroubles({})).map((trouble) => [trouble.target, trouble]));
  const ids: string[] = [];
  for (const { target } of waiting.toSorted((one, other) => one.due - other.due)) {
    const trouble = troubles.get(target);
    if (trouble && trouble.pausedUntil > now) continue;
    let most = Math.min(limit - ids.length, limits[target] ?? limit);
    if (trouble && trouble.pauses > 0) most = Math.min(most, yield* probesLeft(sql, target));
    if (most <= 0) continue;
    for (const { id } of yield* sql.findDueMessages({ target, now, limit: most })) ids.push(id);
  }
  return ids;
}

/** After a pause one message goes ahead; the others follow when it was taken. */
function* probesLeft(sql: Statements, target: string): Work<number> {
  yield* sql.queueUp(`target ${target}`);
  const sending = yield* sql.countSending({ target });
  return sending && sending.count > 0 ? 0 : 1;
}
