import { chmod, mkdtemp, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { StoreRefused, StoreUnavailable } from "../core/errors.ts";

/**
 * Copies a ledger's file as it is at one moment, beside a running gateway or without one. The copy is one file, mode 0600,
 * and stands at `copy` only when it has passed SQLite's own check and is on disk; what stood there before is replaced.
 * @throws StoreRefused when the copy does not pass: the ledger itself is damaged; StoreUnavailable when SQLite cannot copy.
 */
export async function backUpSqlite(path: string, copy: string): Promise<{ readonly bytes: number }> {
  // SQLite writes its own files beside the one it works on.
  const folder = await mkdtemp(join(dirname(copy), `.${basename(copy)}-`));
  const temporary = join(folder, "copy.db");
  try {
    await worded("The ledger cannot be copied", async () => {
      await copyPages(path, temporary);
      checkCopy(temporary);
    });
    await chmod(temporary, 0o600);
    await sync(temporary);
    const { size } = await stat(temporary);
    await rename(temporary, copy);
    await sync(dirname(copy));
    return { bytes: size };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** All pages in one step: between two of them another process's writing would make it begin anew, again and again. */
async function copyPages(path: string, copy: string): Promise<void> {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    await backup(database, copy, { rate: 2 ** 31 - 1 });
  } finally {
    database.close();
  }
}

function checkCopy(path: string): void {
  const database = new DatabaseSync(path);
  try {
    // Without a write-ahead log it is one file, however it is opened.
    database.exec("pragma journal_mode = delete");
    const [first] = database.prepare("pragma integrity_check(1)").all() as { integrity_check: string }[];
    if (first?.integrity_check === "ok") return;
    throw new StoreRefused(
      `The copy does not pass SQLite's check (${first?.integrity_check}): the ledger is damaged; see "postern ledger check"`,
    );
  } finally {
    database.close();
  }
}

async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Pages that one step gives back; the gateway's writing waits for no more than that. */
const pagesPerStep = 200;

/** Whether free space can be given back while a gateway runs. Ledgers of the first versions were not made for it. */
export function canCompactOnline(path: string): boolean {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    return pragma(database, "auto_vacuum") === incremental;
  } finally {
    database.close();
  }
}

const incremental = 2;

/**
 * Gives a file's free pages back in small steps with pauses, while others read and write it.
 * @throws StoreUnavailable when SQLite cannot; what was given back by then stays so.
 */
export function compactOnline(path: string): Promise<void> {
  return worded("The ledger cannot be compacted", () => freePages(path));
}

async function freePages(path: string): Promise<void> {
  const database = new DatabaseSync(path, { timeout: 5_000 });
  try {
    // A gateway that frees more meanwhile is not followed for ever.
    let left = pragma(database, "freelist_count");
    while (left > 0 && pragma(database, "freelist_count") > 0) {
      const startedAt = performance.now();
      database.exec(`pragma incremental_vacuum(${pagesPerStep})`);
      left -= pagesPerStep;
      await pause((performance.now() - startedAt) * 4);
    }
    shorten(database);
  } finally {
    database.close();
  }
}

/**
 * Writes a file anew without its free pages, which takes as much space again meanwhile; from then on it can be done online.
 * Nobody else may use it meanwhile.
 * @throws StoreUnavailable when SQLite cannot; the file is then as it was.
 */
export function compactAlone(path: string): Promise<void> {
  return worded("The ledger cannot be compacted", async () => {
    const database = new DatabaseSync(path, { timeout: 5_000 });
    try {
      database.exec("pragma auto_vacuum = incremental; vacuum");
      shorten(database);
    } finally {
      database.close();
    }
  });
}

/** SQLite's own words behind what could not be done. */
async function worded<Result>(what: string, action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (cause) {
    if (!(cause instanceof Error) || !("errcode" in cause)) throw cause;
    throw new StoreUnavailable(`${what}: ${cause.message}`, { cause });
  }
}

/** Only now the file gets shorter, and its log too. With a reader at work that is left to the next time. */
function shorten(database: DatabaseSync): void {
  database.exec("pragma busy_timeout = 1000; pragma wal_checkpoint(truncate)");
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`pragma ${name}`).get()?.[name]);
}

/**
 * Lets PostgreSQL use the space of what was forgotten again, and count its rows anew. Gateways go on meanwhile; the files
 * themselves get shorter only where their ends are free.
 * @throws StoreRefused when it is not a ledger this program knows; StoreUnavailable when it cannot be reached.
 */
export async function compactPostgres(place: {
  readonly url: string;
  readonly schema: string;
}): Promise<{ readonly before: number; readonly after: number }> {
  const { withSession } = await import("./postgres/session.ts");
  return withSession({ ...place, readOnly: false }, async (client) => {
    const size = async () => {
      const { rows } = await client.query<{ bytes: number }>(tableSizes, [place.schema]);
      return Number(rows[0]?.bytes);
    };
    const before = await size();
    const tables = await client.query<{ name: string }>(
      "select quote_ident(tablename) as name from pg_tables where schemaname = $1 and tableowner = current_user",
      [place.schema],
    );
    for (const { name } of tables.rows) await client.query(`vacuum (analyze) ${name}`);
    return { before, after: await size() };
  });
}

const tableSizes = `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r'`;
