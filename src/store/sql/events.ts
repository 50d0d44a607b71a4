import { finalJobStates } from "../states.ts";
import type { EventRecord, EventRow, ListArgs } from "../store.ts";
import type { Codec } from "./body.ts";
import { isOpen } from "./jobs.ts";
import { among, changes, type Dialect, quote, row, rows, type Value, type Work } from "./statement.ts";

type StoredEvent = Omit<EventRecord, "jobs"> & { readonly codec: Codec };

/** Statements on `events`, `bodies` and `claims`, one each. */
export function eventStatements(dialect: Dialect) {
  return { ...eventRows(dialect), ...claimRows(), ...oldRows(dialect) };
}

function eventRows(dialect: Dialect) {
  return {
    insertEvent: changes(
      `insert into events (id, route, type, delivery_id, received_at, headers, ignored)
       values (:id, :route, :type, :deliveryId, :receivedAt, :headers, :ignored)`,
    ),
    insertBody: changes("insert into bodies (event_id, body, codec) values (:eventId, :body, :codec)"),
    holdEvent: row<{ id: string }>(`select id from events where id = :id ${dialect.locking}`),
    // Two rows are enough to know that a beginning is not unique. "~" sorts after every character of an id.
    findEvents: rows<{ id: string }>(
      "select id from events where id >= :id and id < cast(:id as text) || '~' order by id limit 2",
    ),
    readEvent: row<StoredEvent>(
      `select ${rowColumns}, e.ignored, e.headers, b.body, b.codec
       from events e join bodies b on b.event_id = e.id left join jobs j on ${isNewestJob} where e.id = :id`,
    ),
  };
}

function claimRows() {
  return {
    // A claim that has run out counts as none: the same statement takes it over.
    claimDelivery: changes(
      `insert into claims (route, delivery_id, event_id, expires_at) values (:route, :deliveryId, :eventId, :claimUntil)
       on conflict (route, delivery_id) do update set event_id = excluded.event_id, expires_at = excluded.expires_at
       where claims.expires_at <= :now`,
    ),
    isClaimUnderWay: row<{ id: string }>(
      `select j.id from claims c join jobs j on j.event_id = c.event_id
       where c.route = :route and c.delivery_id = :deliveryId and j.kind = 'direct' and j.state = 'delivering'`,
    ),
    readClaimKey: row<{ route: string; deliveryId: string }>(
      `select route, delivery_id as "deliveryId" from events where id = :eventId`,
    ),
    freeClaim: changes("delete from claims where route = :route and delivery_id = :deliveryId and event_id = :eventId"),
    shiftClaims: changes("update claims set expires_at = expires_at + :by"),
    pruneClaims: changes(
      // Said again outside: somebody may be taking one of them over at this moment.
      `delete from claims where (route, delivery_id) in
         (select route, delivery_id from claims where expires_at <= :now order by expires_at limit :limit)
       and expires_at <= :now`,
    ),
  };
}

/** What becomes of events that nobody needs any more. */
function oldRows(dialect: Dialect) {
  const jobs = `(select id from jobs where ${dialect.isAmong("event_id", "ids")})`;
  return {
    // Held before they are looked at: a job that is being added to one of them is seen, or its adder waits.
    holdOldEvents: rows<{ id: string }>(
      `select id from events where id > :after order by id limit :limit ${dialect.skippingLocked}`,
    ),
    readFinished: rows<{ id: string; state: string; at: number }>(
      `select e.id, coalesce(j.state, 'ignored') as state, 
         coalesce((select max(u.updated_at) from jobs u where u.event_id = e.id), e.received_at) as at
       from events e left join jobs j on ${isNewestJob} where ${dialect.isAmong("e.id", "ids")}
         and not exists (select 1 from jobs u where u.event_id = e.id and not ${among(finalJobStates, "u.state")})`,
    ),
    forget: [
      `delete from attempts where message_id in (select id from messages where job_id in ${jobs})`,
      `delete from messages where job_id in ${jobs}`,
      `delete from runs where job_id in ${jobs}`,
      `delete from jobs where ${dialect.isAmong("event_id", "ids")}`,
      `delete from bodies where ${dialect.isAmong("event_id", "ids")}`,
      `delete from events where ${dialect.isAmong("id", "ids")}`,
    ].map(changes),
    measure: row<{ bytes: number }>(dialect.measure),
  };
}

const rowColumns = `e.id, e.route, e.type, e.delivery_id as "deliveryId", e.received_at as "receivedAt",
  coalesce(j.state, 'ignored') as state, case when j.id is null then e.ignored else j.reason end as reason`;

/** An event stands as its newest job does. */
const isNewestJob = "j.id = (select max(n.id) from jobs n where n.event_id = e.id)";

/** Event ids begin with their time (UUIDv7); machines may be a day apart. */
const slackMs = 86_400_000;

/** Lists events by a statement that is made for what is asked, so that each question finds its index. */
export function createListing(): (args: ListArgs) => Work<readonly EventRow[]> {
  const statements = new Map<string, ReturnType<typeof rows<EventRow>>>();
  return function* (args) {
    const { text, values } = listing(args);
    const statement = statements.get(text) ?? rows<EventRow>(text);
    statements.set(text, statement);
    return yield* statement(values);
  };
}

function listing({ limit, route, state, since, until, before }: ListArgs) {
  const { ahead = "", source, id, conditions } = sourceOf(state);
  const values: Record<string, Value> = { limit };
  const add = (condition: string, given: Readonly<Record<string, Value>>) => {
    conditions.push(condition);
    Object.assign(values, given);
  };
  if (route !== undefined) add("e.route = :route", { route });
  if (since !== undefined) {
    add(`e.received_at >= :since and ${id} >= :oldest`, { since, oldest: idAt(since - slackMs) });
  }
  if (until !== undefined) add(`e.received_at < :until and ${id} < :newest`, { until, newest: idAt(until + slackMs) });
  if (before !== undefined) add(`${id} < :before`, { before });
  const where = conditions.length > 0 ? `where ${conditions.join(" and ")}` : "";
  return { text: `${ahead} select ${rowColumns} from ${source} ${where} order by ${id} desc limit :limit`, values };
}

interface Source {
  /** What stands ahead of the query. */
  readonly ahead?: string;
  readonly source: string;
  /** The column with the event's id that is in the index by which the events are found. */
  readonly id: string;
  readonly conditions: string[];
}

/** Most events are done, so those are found by looking at all; the others have indexes of their own. */
function sourceOf(state: string | undefined): Source {
  if (state === undefined || state === "done" || state === "ignored") {
    const conditions: string[] = [];
    if (state === "done") conditions.push("j.state = 'done'");
    if (state === "ignored") conditions.push("e.ignored is not null and j.id is null");
    return { source: `events e left join jobs j on ${isNewestJob}`, id: "e.id", conditions };
  }
  // Compared with the newest by "=", PostgreSQL would expect next to no events, and would sort all that are in this state.
  const conditions = ["not exists (select 1 from jobs n where n.event_id = j.event_id and n.id > j.id)"];
  // Written out, not handed in: each index is for certain states only, and the database must see which one is meant.
  const isMeant = `state = ${quote(state)}`;
  if (state === "queued" || state === "running") {
    // Found first and then sorted: by itself SQLite would go through all jobs in the order of their events.
    const ahead = `with found as materialized (select id, event_id, state, reason from jobs where ${isMeant})`;
    return { ahead, source: "found j join events e on e.id = j.event_id", id: "j.event_id", conditions };
  }
  conditions.push(`j.${isMeant} and j.${isOpen}`);
  return { source: "jobs j join events e on e.id = j.event_id", id: "j.event_id", conditions };
}

/** The lowest id that an event of this time can have. */
function idAt(ms: number): string {
  const hex = Math.min(Math.max(Math.floor(ms), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
