import type { DatabaseSync, SQLInputValue } from "node:sqlite";

/** Named values of one statement, without the `:`. */
export type Values = Readonly<Record<string, SQLInputValue>>;

/** One prepared statement that changes rows; answers how many. */
export function changes(database: DatabaseSync, sql: string): (values: Values) => number {
  const statement = database.prepare(sql);
  return (values) => Number(statement.run(values).changes);
}

/** One prepared statement that gives rows. `Row` is what its columns promise. */
export function rows<Row>(database: DatabaseSync, sql: string): (values: Values) => Row[] {
  const statement = database.prepare(sql);
  return (values) => statement.all(values) as Row[];
}

/** One prepared statement that gives one row or none. */
export function row<Row>(database: DatabaseSync, sql: string): (values: Values) => Row | undefined {
  const statement = database.prepare(sql);
  return (values) => statement.get(values) as Row | undefined;
}

/** A condition on the state a move starts from, and the assignment of the one it leads to. Both are our own constants. */
export function from(move: { readonly from: readonly string[] }): string {
  return `state in (${move.from.map(quote).join(", ")})`;
}

export function to(move: { readonly to: string }): string {
  return `state = ${quote(move.to)}`;
}

export function quote(word: string): string {
  return `'${word.replaceAll("'", "''")}'`;
}
