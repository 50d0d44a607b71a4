import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { StoreRefused } from "../../core/errors.ts";

/** "PSTN": tells our files from other programs' databases (SQLite file format, section 1.3.11). */
const applicationId = 0x5053544e;

/**
 * Opens the ledger's file, makes it when it is not there, and brings its schema up to date.
 * @throws StoreRefused when the file is not ours, is damaged, or was written by a newer Postern. It is left as it is.
 */
export function openDatabase(path: string, options: { readonly readOnly: boolean }): DatabaseSync {
  const isNew = !existsSync(path) || statSync(path).size === 0;
  const database = new DatabaseSync(path, { readOnly: options.readOnly, timeout: 5000 });
  try {
    database.exec(
      options.readOnly
        ? "pragma query_only = on"
        : `pragma journal_mode = wal; pragma synchronous = full; pragma fullfsync = on; pragma foreign_keys = on;
           pragma wal_autocheckpoint = 1000; pragma temp_store = memory`,
    );
    checkIsOurs(database, path, isNew);
    if (!options.readOnly) migrate(database, path);
    return database;
  } catch (error) {
    database.close();
    throw isDamage(error)
      ? new StoreRefused(
          `The ledger "${path}" is damaged or is not a SQLite database; move it aside and restore a backup`,
          { cause: error },
        )
      : error;
  }
}

function checkIsOurs(database: DatabaseSync, path: string, isNew: boolean): void {
  if (isNew) return;
  const id = pragma(database, "application_id");
  if (id === applicationId) return;
  // An interrupted first start leaves a file without our mark, but also without any table.
  const tables = database.prepare("select count(*) as count from sqlite_schema").get() as { count: number };
  if (id === 0 && tables.count === 0) return;
  throw new StoreRefused(`"${path}" is not a ledger of Postern; move it aside, or set POSTERN_HOME to another folder`);
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
function migrate(database: DatabaseSync, path: string): void {
  const all = migrations();
  const newest = all.at(-1)?.number ?? 0;
  const reached = pragma(database, "user_version");
  if (reached > newest) {
    throw new StoreRefused(
      `The ledger "${path}" has schema ${reached}, and this Postern knows ${newest}; install the newer Postern that wrote it`,
    );
  }
  for (const { number, sql } of all) {
    if (number <= reached) continue;
    database.exec("begin immediate");
    try {
      database.exec(`${sql}; pragma application_id = ${applicationId}; pragma user_version = ${number}`);
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
