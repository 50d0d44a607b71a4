import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath, pathToFileURL } from "node:url";
import { StoreRefused } from "../../core/errors.ts";

/** "PSTN": tells our files from other programs' databases (SQLite file format, section 1.3.11). */
const applicationId = 0x5053544e;

/**
 * Opens the ledger's file, makes it when it is not there, and brings its schema up to date.
 * @throws StoreRefused when the file is not ours, is damaged, or was written by a newer Postern. It is left as it is.
 */
export function openDatabase(path: string, options: { readonly readOnly: boolean }): DatabaseSync {
  if (existsSync(path) && statSync(path).size > 0) refusingDamage(path, () => refuseOthers(path));
  else if (options.readOnly) throw new StoreRefused(`There is no ledger at "${path}" yet; start the gateway once`);
  // Made here for its mode, which the files beside it take over. With "a" one that somebody else makes meanwhile will do.
  else closeSync(openSync(path, "a", 0o600));
  return refusingDamage(path, () => {
    const database = new DatabaseSync(path, { readOnly: options.readOnly, timeout: 5000 });
    try {
      // First of all: the settings write.
      refuseNewer(database, path);
      database.exec(options.readOnly ? "pragma query_only = on" : writerSettings);
      if (options.readOnly) refuseOlder(database, path);
      else migrate(database);
      database.exec("pragma foreign_keys = on");
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
}

/** Says of damage what it is, since trying again will not help. */
export function refusingDamage<Result>(path: string, action: () => Result): Result {
  try {
    return action();
  } catch (cause) {
    if (!isDamage(cause)) throw cause;
    throw new StoreRefused(damaged(path), { cause });
  }
}

function damaged(path: string): string {
  return `The ledger "${path}" is damaged or is not a SQLite database; look with "postern ledger check", then move it aside and restore a backup`;
}

// "auto_vacuum" has an effect on a new file only, and there only before anything else is written. Migrations rebuild tables,
// so that references are looked after only when they are done.
const writerSettings = `pragma auto_vacuum = incremental; pragma journal_mode = wal; pragma synchronous = full;
  pragma fullfsync = on; pragma foreign_keys = off; pragma wal_autocheckpoint = 1000; pragma temp_store = memory`;

/**
 * Refuses another program's file before SQLite may touch it, by its header (SQLite file format, section 1.3). Looks at no
 * more than that when the file is ours: what a crash left there may be unfinished, and its log puts it right.
 */
function refuseOthers(path: string): void {
  const id = markOf(path);
  // A first start that was cut off leaves a file without our mark, but also without any table; or all is in its log still.
  if (id === applicationId || (id === 0 && (existsSync(`${path}-wal`) ? isOursInLog(path) : isBlank(path)))) return;
  throw new StoreRefused(
    `"${path}" is not a ledger of Postern ("postern ledger check" tells more); move it aside, or set POSTERN_HOME to another folder`,
  );
}

/** The application id of a database file. Refuses what is no SQLite database. */
function markOf(path: string): number {
  const header = Buffer.alloc(100);
  const file = openSync(path, "r");
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  if (header.toString("latin1", 0, 16) !== "SQLite format 3\0") {
    throw new StoreRefused(damaged(path));
  }
  return header.readUInt32BE(68);
}

/** Whether the database is ours, or has no table, as its log has it. */
function isOursInLog(path: string): boolean {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  try {
    return pragma(database, "application_id") === applicationId || hasNoTable(database);
  } finally {
    database.close();
  }
}

function isBlank(path: string): boolean {
  const address = pathToFileURL(path);
  // Reading must leave no files beside it.
  address.searchParams.set("immutable", "1");
  const database = new DatabaseSync(address, { readOnly: true });
  try {
    return hasNoTable(database);
  } finally {
    database.close();
  }
}

function hasNoTable(database: DatabaseSync): boolean {
  const { tables } = database.prepare("select count(*) as tables from sqlite_schema").get() as { tables: number };
  return tables === 0;
}

function refuseNewer(database: DatabaseSync, path: string): void {
  const reached = pragma(database, "user_version");
  const newest = migrations().at(-1)?.number ?? 0;
  if (reached <= newest) return;
  throw new StoreRefused(
    `The ledger "${path}" has schema ${reached}, and this Postern knows ${newest}; install the newer Postern that wrote it`,
  );
}

function refuseOlder(database: DatabaseSync, path: string): void {
  const reached = pragma(database, "user_version");
  const newest = migrations().at(-1)?.number ?? 0;
  if (reached === newest) return;
  throw new StoreRefused(
    `The ledger "${path}" has schema ${reached}, and this Postern needs ${newest}; start the gateway once, which brings it up to date`,
  );
}

function pragma(database: DatabaseSync, name: string): number {
  const values = database.prepare(`pragma ${name}`).get() as Record<string, number>;
  return values[name] ?? 0;
}

interface Migration {
  readonly number: number;
  readonly sql: string;
}

function migrations(): Migration[] {
  const folder = fileURLToPath(new URL("../migrations/sqlite/", import.meta.url));
  return readdirSync(folder)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort()
    .map((name) => ({ number: Number(name.slice(0, 4)), sql: readFileSync(`${folder}${name}`, "utf8") }));
}

/** Carries out the migrations that the file has not seen, each in a transaction together with its number. */
function migrate(database: DatabaseSync): void {
  const reached = pragma(database, "user_version");
  for (const { number, sql } of migrations()) {
    if (number <= reached) continue;
    database.exec("begin immediate");
    try {
      // Another process may have done it meanwhile.
      const isDone = number <= pragma(database, "user_version");
      if (!isDone) database.exec(`${sql}; pragma application_id = ${applicationId}; pragma user_version = ${number}`);
      database.exec("commit");
    } catch (error) {
      database.exec("rollback");
      throw error;
    }
  }
}

/** The primary result code of an SQLite error (sqlite.org/rescode.html), or `undefined` for any other error. */
export function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}

function isDamage(error: unknown): boolean {
  const code = resultCode(error);
  return code === 11 || code === 26;
}
