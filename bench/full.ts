// Ledgers that are full of finished events.
import { createHash } from "node:crypto";
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { openPostgres } from "../src/store/postgres.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { columns, putFinished, type Table } from "./finished.ts";

const tables = Object.keys(columns) as Table[];
const cache = join(tmpdir(), "postern-bench-cache");

/** Puts a SQLite ledger of `count` finished events at `path`, made anew or copied from one that was kept. */
export async function placeSqlite(path: string, count: number): Promise<void> {
  const kind = fingerprint();
  const kept = join(cache, `ledger-${count}-${kind}.db`);
  if (!existsSync(kept)) {
    mkdirSync(cache, { recursive: true });
    for (const name of readdirSync(cache)) if (!name.includes(kind)) rmSync(join(cache, name));
    const unfinished = `${kept}.${process.pid}`;
    await fillSqlite(unfinished, count);
    renameSync(unfinished, kept);
  }
  copyFileSync(kept, path, constants.COPYFILE_FICLONE);
}

/** Removes the ledgers that were kept. */
export function forgetKept(): void {
  rmSync(cache, { recursive: true, force: true });
}

/** Changes with the schema, and with what is filled in; and with the day, because finished events grow old. */
function fingerprint(): string {
  const folder = fileURLToPath(new URL("../src/store/migrations/sqlite/", import.meta.url));
  const files = [...readdirSync(folder).map((name) => join(folder, name)), new URL("./finished.ts", import.meta.url)];
  const hash = createHash("sha256").update(new Date().toISOString().slice(0, 10));
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest("hex").slice(0, 16);
}

const perTransaction = 20_000;

async function fillSqlite(path: string, count: number): Promise<void> {
  rmSync(path, { force: true });
  await (await openSqlite({ path, readOnly: false })).close();
  const database = new DatabaseSync(path);
  // A crash of this machine may cost the file; nothing else changes.
  database.exec("pragma synchronous = off; pragma cache_size = -200000; pragma foreign_keys = off");
  const inserts = Object.fromEntries(
    tables.map((table) => {
      const names = columns[table];
      const places = names.map(() => "?").join(", ");
      return [table, database.prepare(`insert into ${table} (${names.join(", ")}) values (${places})`)];
    }),
  );
  const now = Date.now();
  for (let from = 0; from < count; from += perTransaction) {
    database.exec("begin");
    const to = Math.min(count, from + perTransaction);
    putFinished(count, now, (table, cells) => inserts[table]!.run(...cells), from, to);
    database.exec("commit");
  }
  database.exec("pragma wal_checkpoint(truncate)");
  database.close();
}

const perStatement = 5_000;

/** Fills a PostgreSQL database with `count` finished events, in a schema that it makes. */
export async function fillPostgres(url: string, schema: string, count: number): Promise<void> {
  await (await openPostgres({ url, schema, readOnly: false })).close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // The rows come in an order in which every reference is met; checking each would double the time.
  await client.query(
    `set search_path to "${schema}"; set synchronous_commit = off; set session_replication_role = replica`,
  );
  const now = Date.now();
  for (let from = 0; from < count; from += perStatement) {
    const rows = new Map(tables.map((table) => [table, [] as object[]]));
    putFinished(
      count,
      now,
      (table, cells) => rows.get(table)!.push(rowOf(table, cells)),
      from,
      Math.min(count, from + perStatement),
    );
    for (const [table, objects] of rows) {
      const names = columns[table].join(", ");
      await client.query(
        `insert into ${table} (${names}) select ${names} from json_populate_recordset(null::${table}, $1)`,
        [JSON.stringify(objects)],
      );
    }
  }
  await client.query("vacuum analyze");
  await client.end();
}

function rowOf(table: Table, cells: readonly unknown[]): object {
  const texts = cells.map((cell) => (cell instanceof Uint8Array ? `\\x${Buffer.from(cell).toString("hex")}` : cell));
  return Object.fromEntries(columns[table].map((name, index) => [name, texts[index]]));
}
