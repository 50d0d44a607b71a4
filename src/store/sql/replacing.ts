import type { FinishAttemptArgs, Place, Successor } from "../store.ts";
import type { JobOfMessage } from "./jobs.ts";
import { holdLanes, prepareMessages } from "./lanes.ts";
import type { HeritageRow } from "./messages.ts";
import { newMessage, openAttempt } from "./rows.ts";
import type { Work } from "./statement.ts";
import type { Statements } from "./statements.ts";

/** What goes on in another message when one is given up. */
interface Heritage {
  readonly successor: Successor;
  readonly place: Place;
  /** Those behind it in the fallback. */
  readonly rest: readonly Place[];
  readonly row: HeritageRow;
}

/** `undefined` when the message is not given up, has no fallback left, or nobody wants one. */
export function* heritageOf(
  sql: Statements,
  { stopReason }: JobOfMessage,
  { id, next }: Pick<FinishAttemptArgs, "id" | "next">,
): Work<Heritage | undefined> {
  if (next.move !== "giveUp" || !next.successor || stopReason !== null) return undefined;
  const row = yield* sql.readHeritage({ id });
  const [place, ...rest] = JSON.parse(row?.fallback ?? "[]") as Place[];
  return row && place && { successor: next.successor, place, rest, row };
}

interface Replaced {
  readonly id: string;
  readonly lane: string | null;
  readonly now: number;
}

/** Begins the message that goes instead of one that was given up. Its tries and its age are counted from now. */
export function* succeed(
  sql: Statements,
  job: JobOfMessage,
  { id: replaces, lane, now }: Replaced,
  { successor, place, rest, row }: Heritage,
): Work<void> {
  const { id, leaseUntil } = successor;
  const fallback = rest.length > 0 ? JSON.stringify(rest) : null;
  const message = { ...place, id, extra: JSON.stringify(place.extra), text: row.text, fallback };
  const position = (yield* sql.nextPosition({ jobId: job.id }))?.position ?? 0;
  const lease = { event: { receivedAt: now }, owner: row.owner ?? "", leaseUntil };
  const begun = { ...newMessage(job, message, position, lease), replaces };
  // Both at once, in the order that all keep: the end of the first one calls the next of its own lane.
  yield* holdLanes(sql, [lane, begun.lane]);
  yield* sql.insertMessage(begun);
  if (job.kind === "direct") yield* sql.insertAttempt(openAttempt(id, 1, now));
  else yield* prepareMessages(sql, job.id, null, now);
}
