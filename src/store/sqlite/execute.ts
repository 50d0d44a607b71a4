import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Request, Result, Statement, Work } from "../sql/statement.ts";

/** Carries out an operation's work, statement by statement, at once. */
export type Execute = <Answer>(work: Work<Answer>) => Answer;

/** Execution on one open database, with its prepared statements. */
export function createExecution(database: DatabaseSync): Execute {
  const prepared = new Map<Statement, StatementSync>();
  const prepare = (statement: Statement): StatementSync => {
    const known = prepared.get(statement) ?? database.prepare(statement.text);
    prepared.set(statement, known);
    return known;
  };
  const carryOut = ({ statement, values }: Request): Result => {
    const ready = prepare(statement);
    if (statement.gives === "rows") return { changes: 0, rows: ready.all(values) };
    return { changes: Number(ready.run(values).changes), rows: [] };
  };
  return (work) => {
    let step = work.next({ changes: 0, rows: [] });
    while (!step.done) step = work.next(carryOut(step.value));
    return step.value;
  };
}
