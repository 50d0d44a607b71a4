import { keyOf } from "../../core/id.ts";
import type { Work } from "./statement.ts";
import type { Statements } from "./statements.ts";

/** PostgreSQL indexes texts of up to about 2700 bytes, and senders write their ids as long as they like. */
const longestKey = 512;

/** What a delivery id is claimed by: itself, or a digest of a long one. */
export function claimKey(deliveryId: string): string {
  if (deliveryId.length <= longestKey) return deliveryId;
  // As it comes back from the database, so that it is found again.
  return `sha256 ${keyOf(deliveryId.toWellFormed().replaceAll("\0", "\uFFFD"))}`;
}

/** The same for a lane. */
export function laneKey(lane: string | null): string | null {
  return lane === null ? null : claimKey(lane);
}

/** Lets the delivery id of an event be accepted again. */
export function* freeClaim(sql: Statements, eventId: string): Work<void> {
  const event = yield* sql.readClaimKey({ eventId });
  if (event) yield* sql.freeClaim({ route: event.route, deliveryId: claimKey(event.deliveryId), eventId });
}
