import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ClientBase } from "pg";
import { StoreRefused } from "../../core/errors.ts";
import { type Place, quoteName } from "./connect.ts";

/**
 * Makes the tables, or brings them up to date; one gateway at a time, the others wait for it and find it done.
 * @throws StoreRefused when the schema holds something else, or was written by a newer Postern.
 */
export async function migrate(client: ClientBase, place: Place): Promise<void> {
  await client.query("begin");
  try {
    await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`postern ${place.schema} migrate`]);
    const reached = await reachedBy(client, place);
    for (const { number, sql } of migrations().filter((migration) => migration.number > reached)) {
      if (number === 1) await makeSchema(client, place);
      await client.query(sql);
      await client.query("insert into migrations (number, done_at) values ($1, now())", [number]);
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
}

/** @throws StoreRefused when the schema is not exactly the one this program works on. */
export async function checkSchema(client: ClientBase, place: Place): Promise<void> {
  const reached = await reachedBy(client, place);
  const newest = migrations().at(-1)?.number ?? 0;
  if (reached === newest) return;
  throw new StoreRefused(
    reached === 0
      ? `There is no ledger in the ${place.words}, schema "${place.schema}"; start the gateway once`
      : `The ledger in the ${place.words} has schema ${reached}, and this Postern needs ${newest}; start the gateway once, which brings it up to date`,
  );
}

async function makeSchema(client: ClientBase, { schema }: Place): Promise<void> {
  // "if not exists" needs the right to create even when it exists.
  const { rowCount } = await client.query("select from pg_namespace where nspname = $1", [schema]);
  if (rowCount === 0) await client.query(`create schema ${quoteName(schema)}`);
  await client.query("create table migrations (number bigint primary key, done_at timestamptz not null)");
}

/** The last migration that was carried out; 0 when there is nothing yet. */
async function reachedBy(client: ClientBase, place: Place): Promise<number> {
  const tables = await client.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = $1 order by tablename",
    [place.schema],
  );
  const names = tables.rows.map(({ name }) => name);
  if (names.length === 0) return 0;
  const others = `The schema "${place.schema}" of the ${place.words}`;
  if (!names.includes("migrations") || !names.includes("events")) {
    throw new StoreRefused(
      `${others} holds other tables (${names.slice(0, 3).join(", ")}); set "store.schema" to a name of its own`,
    );
  }
  const { rows } = await client.query<{ reached: number }>(
    "select coalesce(max(number), 0) as reached from migrations",
  );
  const reached = rows[0]?.reached ?? 0;
  const newest = migrations().at(-1)?.number ?? 0;
  if (reached <= newest) return reached;
  throw new StoreRefused(
    `${others} has version ${reached}, and this Postern knows ${newest}; install the newer Postern that wrote it`,
  );
}

interface Migration {
  readonly number: number;
  readonly sql: string;
}

function migrations(): Migration[] {
  const folder = fileURLToPath(new URL("../migrations/postgres/", import.meta.url));
  return readdirSync(folder)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort()
    .map((name) => ({ number: Number(name.slice(0, 4)), sql: readFileSync(`${folder}${name}`, "utf8") }));
}
