// The writer thread: the only place that touches the ledger's file in a running gateway.
import type { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { StoreRefused } from "../../core/errors.ts";
import { createWorks } from "../sql/operations.ts";
import type { Work } from "../sql/statement.ts";
import type { Operations } from "../store.ts";
import { openDatabase, refusingDamage, resultCode } from "./database.ts";
import { dialect } from "./dialect.ts";
import { createExecution, type Execute } from "./execute.ts";

/** One operation asked for; `id` links its answer to it. */
export interface Call {
  readonly id: number;
  readonly name: keyof Operations;
  readonly args: unknown;
}

/** What became of a call. `unavailable`: nothing of it took effect; `refused`: this file cannot be used at all. */
export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: "unavailable" | "refused" | "bug"; readonly message: string };

export interface ThreadOptions {
  readonly path: string;
  readonly readOnly: boolean;
}

interface Open {
  readonly database: DatabaseSync;
  readonly execute: Execute;
  readonly transaction: Readonly<Record<"begin" | "commit" | "save" | "release", () => void>>;
}

// Primary result codes that say the storage cannot serve now: busy, locked, no memory, read-only, I/O error, corrupt, full,
// cannot open, not a database. Everything else (a broken constraint, a wrong type) is a bug of ours.
const storageCodes = new Set([5, 6, 7, 8, 10, 11, 13, 14, 26]);

const works = createWorks(dialect);
const options = workerData as ThreadOptions;
let current: Open | undefined;

function open(): Open {
  if (current) return current;
  const database = openDatabase(options.path, options);
  current = { database, execute: createExecution(database), transaction: transactionStatements(database) };
  return current;
}

/** Prepared once: each event needs two of them. */
function transactionStatements(database: DatabaseSync): Open["transaction"] {
  const prepared = (sql: string) => {
    const statement = database.prepare(sql);
    return () => void statement.run();
  };
  return {
    begin: prepared(options.readOnly ? "begin" : "begin immediate"),
    commit: prepared("commit"),
    save: prepared("savepoint one"),
    release: prepared("release one"),
  };
}

/** After a storage error the connection is opened anew: its view of the file may no longer be true. */
function reopenNextTime(): void {
  try {
    current?.database.close();
  } catch {
    // What could not be rolled back is discarded by SQLite when the file is opened again.
  }
  current = undefined;
}

/** Carries out a group of calls in one transaction: one sync to disk serves them all (group commit). */
function commitGroup(calls: readonly Call[]): Answer[] {
  try {
    // Damage may show at any statement.
    return refusingDamage(options.path, () => {
      const ready = open();
      ready.transaction.begin();
      const answers = calls.map((call) => carryOut(ready, call));
      ready.transaction.commit();
      return answers;
    });
  } catch (error) {
    reopenNextTime();
    const failure = error instanceof StoreRefused ? "refused" : "unavailable";
    return calls.map(({ id }) => ({ id, failure, message: messageOf(error) }));
  }
}

/** One call inside the group: a bug in one must not undo its neighbours, a storage error ends the whole group. */
function carryOut({ database, execute, transaction }: Open, { id, name, args }: Call): Answer {
  transaction.save();
  try {
    const value = execute((works[name] as (args: unknown) => Work<unknown>)(args));
    transaction.release();
    return { id, value };
  } catch (error) {
    if (storageCodes.has(resultCode(error) ?? -1)) throw error;
    database.exec("rollback to one; release one");
    return { id, failure: "bug", message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

parentPort?.on("message", (message: readonly Call[] | "close") => {
  if (message === "close") {
    reopenNextTime();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(commitGroup(message));
});
