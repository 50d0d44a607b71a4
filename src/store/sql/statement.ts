/**
 * What the two stores share: statements, and operations as generators over them. An operation yields each statement it needs
 * and goes on with its result; the SQLite thread carries that out at once, the PostgreSQL driver waits for its server.
 */

export type Value = string | number | null | Uint8Array;

/** Named values of one statement, without the `:`. */
export type Values = Readonly<Record<string, Value>>;

/** One statement with `:names` for its values. The object itself is what drivers keep a prepared statement by. */
export interface Statement {
  readonly text: string;
  /** Whether it gives rows, or only says how many it changed. */
  readonly gives: "rows" | "changes";
}

/** A statement that an operation wants carried out. */
export interface Request {
  readonly statement: Statement;
  readonly values: Values;
}

export interface Result {
  readonly changes: number;
  readonly rows: readonly unknown[];
}

/** An operation under way: yields requests, is handed their results, and returns its answer. */
export type Work<Answer> = Generator<Request, Answer, Result>;

/** What the two databases write differently. */
export interface Dialect {
  /** Behind a `select` whose rows are about to be changed: waits for, or leaves out, what another transaction holds. */
  readonly locking: string;
  readonly skippingLocked: string;
  readonly least: string;
  readonly greatest: string;
  /** Gives one row `bytes`: what is kept takes up. */
  readonly measure: string;
  /** That a column is among the ids in the named value, a JSON list of `{"id": …}`. Finds few rows by the column's index. */
  isAmong(column: string, name: string): string;
  /** A table of the JSON list in the named value, its objects' members as columns. */
  rowsOf(name: string, columns: Readonly<Record<string, "text" | "bigint">>): string;
  /** Lets no other transaction pass this point under the same name until this one has ended. */
  queueUp(name: string): Work<void>;
}

/** A statement that changes rows; answers how many. */
export function changes(text: string): (values: Values) => Work<number> {
  const statement = { text, gives: "changes" } as const;
  return function* (values) {
    return (yield { statement, values }).changes;
  };
}

/** A statement that gives rows. `Row` is what its columns promise. */
export function rows<Row>(text: string): (values: Values) => Work<readonly Row[]> {
  const statement = { text, gives: "rows" } as const;
  return function* (values) {
    return (yield { statement, values }).rows as readonly Row[];
  };
}

/** A statement that gives one row or none. */
export function row<Row>(text: string): (values: Values) => Work<Row | undefined> {
  const all = rows<Row>(text);
  return function* (values) {
    return (yield* all(values))[0];
  };
}

/**
 * A query for the earliest time, as `due`, of each group of rows. It hops from group to group along an index on group and
 * time for rows of this state, however many there are of each. (Asked for `min`, PostgreSQL goes through all of them when
 * it last counted while there were few.)
 */
export function earliestOfEach(table: string, group: string, time: string, isMeant: string): string {
  return `with recursive found (name) as (
      select * from (select ${group} from ${table} where ${isMeant} order by ${group} limit 1) as first
      union all
      select (select t.${group} from ${table} t where t.${isMeant} and t.${group} > found.name order by t.${group} limit 1)
      from found where found.name is not null
    )
    select name as ${group},
      (select t.${time} from ${table} t where t.${isMeant} and t.${group} = found.name order by t.${time} limit 1) as due
    from found where name is not null`;
}

interface Move {
  readonly from: readonly string[];
  readonly to: string;
}

/**
 * A condition on the state a move starts from, for rows that are named. Written so that no index of a state is taken for it:
 * PostgreSQL may think that few rows are in it, and go through them all instead of to the row that is meant.
 */
export function from(move: Move): string {
  return `case when ${among(move.from)} then 1 end = 1`;
}

/** The same for all rows in that state, which are found by its index. */
export function allFrom(move: Move): string {
  return among(move.from);
}

/** The assignment of the state a move leads to. */
export function to(move: Move): string {
  return `state = ${quote(move.to)}`;
}

/**
 * A condition on a state. A single one is compared by "=", as in the conditions of the partial indexes: SQLite takes such an
 * index only for a query that says the same.
 */
export function among(states: readonly string[], column = "state"): string {
  const [first, ...others] = states.map(quote);
  return others.length === 0 && first !== undefined
    ? `${column} = ${first}`
    : `${column} in (${[first, ...others].join(", ")})`;
}

export function quote(word: string): string {
  return `'${word.replaceAll("'", "''")}'`;
}
