import type { TargetHealth } from "../store.ts";
import type { Work } from "./statement.ts";
import type { Statements } from "./statements.ts";

interface Tried {
  readonly target: string;
  /** Id of the message. */
  readonly message: string;
  readonly now: number;
}

/** Keeps account of how a target takes what it is sent: a circuit breaker's states, as one row while there is trouble. */
export function* noteHealth(sql: Statements, { target, message, now }: Tried, health: TargetHealth): Work<void> {
  if (health.mark === "well") {
    yield* noteSuccess(sql, target, now);
    return;
  }
  yield* sql.insertTrouble({ target });
  const before = yield* sql.holdTrouble({ target });
  if (!before) return;
  const { reason } = health;
  if (health.mark === "busy") {
    const busyUntil = Math.max(before.busyUntil, health.until);
    const pausedUntil = Math.max(before.pausedUntil, busyUntil);
    yield* sql.writeTrouble({ ...before, pauses: Math.max(before.pauses, 1), pausedUntil, busyUntil, reason });
    return;
  }
  // One message that nobody can deliver is no reason to keep the others waiting: messages are counted, not tries.
  const failures = before.failures + (before.lastMessage === message ? 0 : 1);
  const isProbe = before.pauses > 0 && before.pausedUntil <= now;
  const pauses = isProbe || (before.pauses === 0 && failures >= health.threshold) ? before.pauses + 1 : before.pauses;
  const pauseMs = Math.min(health.firstPauseMs * 2 ** (pauses - 1), health.longestPauseMs);
  const pausedUntil = pauses > before.pauses ? now + pauseMs : before.pausedUntil;
  yield* sql.writeTrouble({ ...before, failures, lastMessage: message, pauses, pausedUntil, reason });
}

/** What was on its way before may be taken during a pause; a target that asked to be left alone is left alone all the same. */
function* noteSuccess(sql: Statements, target: string, now: number): Work<void> {
  const before = yield* sql.holdTrouble({ target });
  if (!before) return;
  if (before.busyUntil <= now) yield* sql.endTrouble({ target });
  else yield* sql.writeTrouble({ ...before, failures: 0, lastMessage: "", pauses: 1, pausedUntil: before.busyUntil });
}
