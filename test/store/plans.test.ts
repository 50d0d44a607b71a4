import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { Client } from "pg";
import { bind } from "../../src/store/postgres/bind.ts";
import { createDialect } from "../../src/store/postgres/dialect.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import type { Request, Work } from "../../src/store/sql/statement.ts";
import { prepareStatements, type Statements } from "../../src/store/sql/statements.ts";
import { dialect as sqliteDialect } from "../../src/store/sqlite/dialect.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { eventStates } from "../../src/store/states.ts";
import type { ListArgs } from "../../src/store/store.ts";
import { missing } from "../needs.ts";
import { makeHome } from "../tools/home.ts";
import { sharedPostgres } from "../tools/postgres.ts";

// A ledger keeps a million finished events, and a queue may be long: whatever goes through one of them from end to end is slow
// one day. Databases say beforehand how they would find the rows (EXPLAIN).

/** The statement that a question to the list becomes. */
function listing({ listEvents }: Statements, args: Omit<ListArgs, "limit">): Request {
  return requestOf(listEvents({ limit: 50, ...args }));
}

function requestOf(work: Work<unknown>): Request {
  const step = work.next();
  assert.ok(!step.done);
  return step.value;
}

suite("SQLite", () => {
  /** Lines of a plan; values are not needed for one. */
  async function planner(t: TestContext): Promise<(statement: string) => string[]> {
    const path = join((await makeHome(t)).folder, "ledger.db");
    await (await openSqlite({ path, readOnly: false })).close();
    const database = new DatabaseSync(path);
    t.after(() => database.close());
    return (statement) => {
      const rows = database.prepare(`explain query plan ${statement}`).all() as { detail: string }[];
      return rows.map(({ detail }) => detail);
    };
  }

  const sql = prepareStatements(sqliteDialect);
  const wholeTables = ["events", "bodies", "jobs", "runs", "messages", "attempts"];
  /** Each of them holds the rows of a few states only. */
  const shortIndexes = ["jobs_due", "jobs_leased", "jobs_open", "messages_due", "messages_leased", "messages_in_lane"];

  function walks(line: string): boolean {
    const [, table, index] = /^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?/.exec(line) ?? [];
    return table !== undefined && wholeTables.includes(table) && !shortIndexes.includes(index ?? "");
  }

  test("goes through no table from end to end", async (t) => {
    const planOf = await planner(t);
    const { listEvents: _, queueUp: __, ...others } = sql;
    const statements = Object.entries(others).flatMap(([name, one]) =>
      [one].flat().map((statement) => ({ name, text: requestOf(statement({})).statement.text })),
    );
    assert.ok(statements.length > 80);
    const found = statements.flatMap(({ name, text }) => {
      return planOf(text)
        .filter(walks)
        .map((line) => `${name}: ${line}`);
    });
    assert.deepEqual(found, []);
  });

  /** What the first step of each goes along, newest first, until there are enough. */
  const ways: readonly (readonly [Omit<ListArgs, "limit">, RegExp])[] = [
    [{}, /^SCAN e USING INDEX sqlite_autoindex_events_1$/],
    [{ since: 1 }, /^SEARCH e USING INDEX sqlite_autoindex_events_1 \(id>\?\)$/],
    [{ until: 1 }, /^SEARCH e USING INDEX sqlite_autoindex_events_1 \(id<\?\)$/],
    [{ before: "x" }, /^SEARCH e USING INDEX sqlite_autoindex_events_1 \(id<\?\)$/],
    [{ route: "x" }, /^SEARCH e USING INDEX events_by_route \(route=\?\)$/],
    [{ route: "x", since: 1 }, /^SEARCH e USING INDEX events_by_route \(route=\? AND id>\?\)$/],
    [{ state: "done" }, /^SCAN e USING INDEX sqlite_autoindex_events_1$/],
    [{ state: "ignored" }, /^SCAN e USING INDEX events_ignored$/],
    [{ state: "queued" }, /^SCAN jobs USING INDEX jobs_due$/],
    [{ state: "queued", route: "x", since: 1 }, /^SCAN jobs USING INDEX jobs_due$/],
    [
      { state: "dead", since: 1, before: "x" },
      /^SEARCH j USING INDEX jobs_open \(state=\? AND event_id>\? AND event_id<\?\)$/,
    ],
    ...eventStates
      .filter((state) => !["done", "ignored", "queued"].includes(state))
      .map((state) => [{ state }, /^SEARCH j USING INDEX jobs_open \(state=\?\)$/] as const),
  ];
  for (const [args, way] of ways) {
    test(`finds the newest events by an index when asked for ${JSON.stringify(args)}`, async (t) => {
      const plan = (await planner(t))(listing(sql, args).statement.text);
      const step = plan.find((line) => !/^(MATERIALIZE|CO-ROUTINE)/.test(line));
      assert.match(step ?? "", way);
      // Only what is queued is sorted, since its index is in the order in which it is taken.
      assert.equal(plan.includes("USE TEMP B-TREE FOR ORDER BY"), args.state === "queued");
    });
  }
});

suite("PostgreSQL", { skip: missing("postgres") }, () => {
  const server = sharedPostgres();
  const sql = prepareStatements(createDialect("postern"));

  // The server counts from time to time, and mostly when there is no queue. That a queue is long then is news to it.
  const finished = `
    insert into events (id, route, type, delivery_id, received_at, headers)
      select 'e' || to_char(n, 'FM00000'), 'r', 't', n, 0, '{}' from generate_series(1, 5000) n;
    insert into jobs (id, event_id, kind, route, on_crash, state, plan, run_at, created_at, updated_at)
      select replace(id, 'e', 'j'), id, 'agent', 'r', 'rerun', 'done', repeat('x', 200), 0, 0, 0 from events;
    insert into messages (id, job_id, position, target, extra, text, state, due_at, updated_at)
      select replace(id, 'j', 'm'), id, 0, 't', '{}', repeat('x', 200), 'sent', 0, 0 from jobs`;
  const queue = `
    update jobs set state = 'queued' where id <= 'j02000';
    update messages set state = 'pending' where id <= 'm01000';
    update messages set state = 'waiting', lane = 'l', ready_at = 0 where id > 'm01000' and id <= 'm02000'`;

  async function longQueue(t: TestContext): Promise<Client> {
    const url = await (await server()).database(t);
    await (await openPostgres({ url, schema: "postern", readOnly: false })).close();
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    await client.connect();
    t.after(() => client.end());
    await client.query("set search_path to postern");
    for (const table of ["events", "jobs", "messages"]) {
      await client.query(`alter table ${table} set (autovacuum_enabled = false)`);
    }
    await client.query(`${finished}; analyze; ${queue}`);
    return client;
  }

  interface Plan {
    readonly "Node Type": string;
    readonly "Relation Name"?: string;
    /** Rows that were looked at in vain. */
    readonly "Rows Removed by Filter"?: number;
    readonly "Actual Rows": number;
    readonly Plans?: readonly Plan[];
  }

  /** How many rows of the tables a statement looked at, each time it went to one. */
  async function rowsSeen(client: Client, work: Work<unknown>): Promise<number> {
    const { text, values } = bind(requestOf(work));
    await client.query("begin");
    const explain = `explain (analyze, format json) ${text}`;
    const { rows } = await client.query<{ "QUERY PLAN": readonly { Plan: Plan }[] }>(explain, values);
    await client.query("rollback");
    const seen = (plan: Plan): number => {
      const own = plan["Relation Name"] ? plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0) : 0;
      return own + (plan.Plans ?? []).reduce((sum, one) => sum + seen(one), 0);
    };
    return seen(rows[0]!["QUERY PLAN"][0]!.Plan);
  }

  const now = 1;
  const oneJob = JSON.stringify([{ id: "j00001" }]);
  const oneMessage = JSON.stringify([{ id: "m00001" }]);
  const lease = { owner: "o", now, leaseUntil: 2 };
  const works: Readonly<Record<string, () => Work<unknown>>> = {
    "which routes have work": () => sql.dueRoutes({}),
    "the next jobs of a route": () => sql.findDueJobs({ route: "r", now, limit: 4 }),
    "jobs whose gateway died": () => sql.findLostJobs({ ...lease, active: "[]" }),
    "how many run": () => sql.countRunning({}),
    "taking a job": () => sql.claimJobs({ ...lease, ids: oneJob }),
    "the run of a job": () => sql.openRuns({ now, ids: oneJob }),
    "what was taken": () => sql.readClaimedJobs({ ids: oneJob }),
    "jobs to be taken back": () => sql.unparkJobs({ now }),
    "which targets have work": () => sql.dueTargets({}),
    "the next messages of a target": () => sql.findDueMessages({ target: "t", now, limit: 8 }),
    "messages whose gateway died": () => sql.findLostMessages({ ...lease, active: "[]" }),
    "taking a message": () => sql.claimMessages({ ...lease, ids: oneMessage }),
    "the try of a message": () => sql.openAttempts({ now, ids: oneMessage }),
    "what is to be sent": () => sql.readClaimedMessages({ ids: oneMessage }),
    "whether a place has messages": () => sql.isLaneTaken({ lane: "l" }),
    "the first message of a place": () => sql.firstInLane({ lane: "l" }),
    "the newest dead": () => sql.listEvents({ limit: 50, state: "dead" }),
    "the newest done": () => sql.listEvents({ limit: 10, state: "done" }),
  };

  test("looks at few rows of a long queue that it has not counted yet", async (t) => {
    const client = await longQueue(t);
    for (const [name, work] of Object.entries(works)) {
      const seen = await rowsSeen(client, work());
      assert.ok(seen <= 60, `${name}: ${seen} rows`);
    }
  });
});
