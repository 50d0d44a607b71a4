import type { QueryConfig } from "pg";
import type { Request, Statement, Value } from "../sql/statement.ts";

interface Bound {
  readonly name: string;
  readonly text: string;
  /** Names of the values, in the order of `$1`, `$2`, … */
  readonly names: readonly string[];
}

const bound = new WeakMap<Statement, Bound>();
let count = 0;

/** A request in the words of `pg`: numbered values, and a name under which the server keeps the statement prepared. */
export function bind({ statement, values }: Request): QueryConfig {
  const { name, text, names } = bound.get(statement) ?? translate(statement);
  return { name, text, values: names.map((one) => plain(values[one] ?? null)) };
}

function translate(statement: Statement): Bound {
  const names: string[] = [];
  const text = statement.text.replaceAll(/:([A-Za-z]\w*)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  count += 1;
  const made = { name: `postern_${count}`, text, names };
  bound.set(statement, made);
  return made;
}

/**
 * PostgreSQL's texts hold neither the character 0 nor halves of surrogate pairs, and strangers write what they like. Bodies
 * are bytes and stay as they are.
 */
export function plain(value: Value): Value {
  return typeof value === "string" ? value.replaceAll("\0", "\uFFFD").toWellFormed() : value;
}
