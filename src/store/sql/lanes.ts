import type { Work } from "./statement.ts";
import type { Statements } from "./statements.ts";

// Messages for one place (a chat, a pull request) go one after the other: only the first of a lane is `pending` or
// `sending`, the others are `waiting`. Whoever puts one in or takes one out holds the lane's name meanwhile, so that no
// two transactions can both think that the other's message is first, or that nobody is left to call the next.

/** Sends a job's messages on their way, each to the end of its lane. `text` is `null` when they have theirs. */
export function* prepareMessages(sql: Statements, jobId: string, text: string | null, now: number): Work<void> {
  const messages = (yield* sql.openMessages({ jobId })).filter(({ state }) => state === "held");
  yield* holdLanes(
    sql,
    messages.map(({ lane }) => lane),
  );
  for (const { id, lane } of messages) {
    const isTaken = lane !== null && (yield* sql.isLaneTaken({ lane })) !== undefined;
    yield* isTaken ? sql.lineMessage({ id, text, now }) : sql.prepareMessage({ id, text, now });
  }
}

/** Calls the next message of a lane when nothing is before it any more. */
export function* promoteNext(sql: Statements, lane: string | null, now: number): Work<void> {
  if (lane === null) return;
  yield* sql.queueUp(`lane ${lane}`);
  const first = yield* sql.firstInLane({ lane });
  if (first?.state === "waiting") yield* sql.promoteMessage({ id: first.id, now });
}

/** In one order for all, so that no two can wait for each other. */
export function* holdLanes(sql: Statements, lanes: readonly (string | null)[]): Work<void> {
  const names = new Set(lanes.filter((lane) => lane !== null));
  for (const lane of [...names].sort()) yield* sql.queueUp(`lane ${lane}`);
}
