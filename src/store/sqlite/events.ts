import type { DatabaseSync } from "node:sqlite";
import type { EventRecord, EventRow } from "../store.ts";
import type { Codec } from "./body.ts";
import { changes, row, rows } from "./sql.ts";

type StoredEvent = Omit<EventRecord, "jobs"> & { readonly codec: Codec };

/** Statements on `events` and `claims`, one each. */
export function eventStatements(database: DatabaseSync) {
  return {
    insertEvent: changes(
      database,
      `insert into events (id, route, type, delivery_id, received_at, headers, body, body_codec, ignored)
       values (:id, :route, :type, :deliveryId, :receivedAt, :headers, :body, :codec, :ignored)`,
    ),
    // A claim that has run out counts as none: the same statement takes it over.
    claimDelivery: changes(
      database,
      `insert into claims (route, delivery_id, event_id, expires_at) values (:route, :deliveryId, :eventId, :claimUntil)
       on conflict (route, delivery_id) do update set event_id = excluded.event_id, expires_at = excluded.expires_at
       where claims.expires_at <= :now`,
    ),
    freeClaim: changes(
      database,
      `delete from claims where event_id = :eventId
         and (route, delivery_id) = (select route, delivery_id from events where id = :eventId)`,
    ),
    listEvents: rows<EventRow>(
      database,
      `${select(rowColumns)} where (:route is null or e.route = :route)
         and (:state is null or coalesce(j.state, 'ignored') = :state)
         and (:before is null or e.id < :before)
       order by e.id desc limit :limit`,
    ),
    // Two rows are enough to know that a beginning is not unique. "~" sorts after every character of an id.
    findEvents: rows<{ id: string }>(
      database,
      "select id from events where id >= :id and id < :id || '~' order by id limit 2",
    ),
    readEvent: row<StoredEvent>(
      database,
      `${select(`${rowColumns}, e.headers, e.body, e.body_codec as codec`)} where e.id = :id`,
    ),
  };
}

const rowColumns = `e.id, e.route, e.type, e.delivery_id as deliveryId, e.received_at as receivedAt,
  coalesce(j.state, 'ignored') as state, coalesce(j.reason, e.ignored) as reason`;

/** Events, each with its newest job, which says how it stands. */
function select(columns: string): string {
  return `select ${columns} from events e left join jobs j on j.id = (select max(id) from jobs where event_id = e.id)`;
}
