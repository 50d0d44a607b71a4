import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, type TestContext } from "node:test";
import { Client } from "pg";
import { keyOf } from "../../src/core/id.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import { type Found, rules } from "../../src/store/rules.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { missing } from "../needs.ts";
import { type PostgresServer, sharedPostgres } from "./postgres.ts";

/** An empty ledger for one test. */
export interface Place {
  /** Open all the time. */
  readonly store: Store;
  /** Opens it once more, as another process would. Closed when the test ends. */
  open(): Promise<Store>;
  /** Rows of one statement, read beside the stores. */
  query(sql: string): Promise<readonly Record<string, unknown>[]>;
}

/** What breaks a rule that no ledger may break, one sentence each. */
export async function violations({ query }: Place): Promise<string[]> {
  // In one go: mostly there is nothing to say.
  if (
    (await query(rules.map(({ sql }) => `select * from (select 1 from (${sql}) as r) as one`).join(" union all ")))
      .length === 0
  )
    return [];
  const found: string[] = [];
  for (const { sql, says } of rules) found.push(...(await query(sql)).map((row) => says(row as unknown as Found)));
  return found;
}

/** What a kind of ledger stands on. */
export interface Ground {
  /** Why it cannot be tried here. */
  readonly skip: string | false;
  clear(t: TestContext): Promise<Place>;
}

export type StoreName = Store["name"];

/** Grounds for the tests of one file; each of them works on one ledger at a time. */
export function makeGrounds(): Record<StoreName, Ground> {
  const server = sharedPostgres();
  return {
    sqlite: { skip: false, clear: shared(makeSqlite) },
    postgres: { skip: missing("postgres"), clear: shared(async () => makePostgres(await server())) },
  };
}

// Children before their parents.
const tables = [
  "attempts",
  "messages",
  "runs",
  "jobs",
  "bodies",
  "events",
  "claims",
  "troubles",
  "budgets",
  "documents",
];
const emptying = tables.map((table) => `delete from ${table}`).join("; ");

/** What is made once for all tests of a file and emptied for each: making it anew takes many times as long. */
interface Ledger {
  readonly store: Store;
  open(): Promise<Store>;
  query(sql: string): Promise<readonly Record<string, unknown>[]>;
  empty(): Promise<unknown>;
  close(): Promise<unknown>;
}

function shared(make: () => Promise<Ledger>): Ground["clear"] {
  let made: Promise<Ledger> | undefined;
  after(async () => {
    // When it could not be made, each test has said so.
    const ledger = await made?.catch(() => undefined);
    await ledger?.store.close();
    await ledger?.close();
  });
  return async (t) => {
    made ??= make();
    const { store, open, query, empty } = await made;
    await empty();
    return {
      store,
      query,
      async open() {
        const another = await open();
        t.after(() => another.close());
        return another;
      },
    };
  };
}

async function makeSqlite(): Promise<Ledger> {
  const folder = await mkdtemp(join(tmpdir(), "postern-test-"));
  const path = join(folder, "ledger.db");
  const open = () => openSqlite({ path, readOnly: false });
  const store = await open();
  const beside = new DatabaseSync(path, { timeout: 5_000 });
  return {
    ...{ store, open },
    query: async (sql) => beside.prepare(sql).all(),
    empty: async () => beside.exec(`begin immediate; ${emptying}; commit`),
    async close() {
      beside.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function makePostgres(server: PostgresServer): Promise<Ledger> {
  const url = await server.createDatabase();
  const open = () => openPostgres({ url, schema: "postern", readOnly: false });
  const store = await open();
  const beside = new Client({ connectionString: url, options: "-c search_path=postern" });
  // The server may be closed first.
  beside.on("error", () => {});
  await beside.connect();
  return {
    ...{ store, open },
    // Under a name, so that the server plans it once.
    query: async (text) => (await beside.query({ name: keyOf(text), text })).rows,
    empty: () => beside.query(emptying),
    close: () => beside.end().catch(() => {}),
  };
}
