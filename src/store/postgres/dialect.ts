import { type Dialect, rows } from "../sql/statement.ts";

/**
 * PostgreSQL's words. Transactions run beside each other at "read committed", so that what is read to decide on is held
 * first. `schema` is part of the names that are queued up for, because those count for the whole database.
 */
export function createDialect(schema: string): Dialect {
  const waitForTurn = rows<object>("select pg_advisory_xact_lock(hashtextextended(cast(:name as text), 0))");
  return {
    locking: "for update",
    skippingLocked: "for update skip locked",
    least: "least",
    greatest: "greatest",
    measure,
    // An array is thought to be short. Of what a list gives, a hundred rows are expected, and small tables read from end to end.
    isAmong: (column, name) =>
      `${column} = any (array(select id from json_to_recordset(cast(:${name} as json)) as given_${name} (id text)))`,
    rowsOf(name, columns) {
      const members = Object.entries(columns).map(([column, type]) => `${column} ${type}`);
      return `json_to_recordset(cast(:${name} as json)) as given_${name} (${members.join(", ")})`;
    },
    *queueUp(name) {
      yield* waitForTurn({ name: `postern ${schema} ${name}` });
    },
  };
}

/** Rows without their long texts, with their entries in the indexes: about this many bytes for each event. */
const bytesPerEvent = 2_000;

/** Pages of a table that are looked at, at most. What a larger one holds is known to a few percent. */
const mostPages = 2_000;

// The size of the files would be no measure: what is deleted leaves room in them that is used again.
const measure = `select cast(
    ${sumOf("bodies", "pg_column_size(body)")}
    + ${sumOf("jobs", "pg_column_size(plan)")}
    + ${sumOf("runs", "coalesce(pg_column_size(transcript), 0) + coalesce(pg_column_size(answer), 0)")}
    + ${sumOf("messages", "coalesce(pg_column_size(text), 0)")}
    + ${sumOf("events", String(bytesPerEvent))}
  as bigint) as bytes`;

/** A sum over a table's rows, estimated from some of its pages when it is large: always the same ones, so that it is steady. */
function sumOf(table: string, bytes: string): string {
  const size = `greatest(1, pg_relation_size('${table}'))`;
  const percent = `least(100, 100.0 * ${mostPages} * cast(current_setting('block_size') as bigint) / ${size})`;
  const sample = `${table} tablesample system (${percent}) repeatable (1)`;
  return `coalesce((select sum(${bytes}) from ${sample}), 0) * 100 / ${percent}`;
}
