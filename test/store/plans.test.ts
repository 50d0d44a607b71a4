import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { Client } from "pg";
import { bind } from "../../src/store/postgres/bind.ts";
import { createDialect } from "../../src/store/postgres/dialect.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import type { Request, Value, Work } from "../../src/store/sql/statement.ts";
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
function listing({ listEvents }: Statements, args: Partial<ListArgs>): Request {
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
    [{ state: "running" }, /^SCAN jobs USING INDEX jobs_leased$/],
    [
      { state: "dead", since: 1, before: "x" },
      /^SEARCH j USING INDEX jobs_open \(state=\? AND event_id>\? AND event_id<\?\)$/,
    ],
    ...eventStates
      .filter((state) => !["done", "ignored", "queued", "running"].includes(state))
      .map((state) => [{ state }, /^SEARCH j USING INDEX jobs_open \(state=\?\)$/] as const),
  ];
  for (const [args, way] of ways) {
    test(`finds the newest events by an index when asked for ${JSON.stringify(args)}`, async (t) => {
      const plan = (await planner(t))(listing(sql, args).statement.text);
      const step = plan.find((line) => !/^(MATERIALIZE|CO-ROUTINE)/.test(line));
      assert.match(step ?? "", way);
      // What is at work, or will be soon, has indexes in another order.
      assert.equal(plan.includes("USE TEMP B-TREE FOR ORDER BY"), ["queued", "running"].includes(args.state ?? ""));
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
    update jobs set state = 'queued' where id <= 'j00500';
    update jobs set state = 'running', owner = 'o', lease_until = 9 where id > 'j00500' and id <= 'j01000';
    update jobs set state = 'delivering' where id > 'j01000' and id <= 'j01500';
    update jobs set state = 'dead' where id > 'j01500' and id <= 'j02000';
    update messages set state = 'held' where id <= 'm00500';
    update messages set state = 'pending' where id > 'm00500' and id <= 'm01000';
    update messages set state = 'waiting', lane = 'l', ready_at = 0 where id > 'm01000' and id <= 'm01500';
    update messages set state = 'sending', owner = 'o', lease_until = 9 where id > 'm01500' and id <= 'm02000'`;

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
  async function rowsSeen(client: Client, request: Request): Promise<number> {
    const { text, values } = bind(request);
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

  const job = JSON.stringify([{ id: "j00600", fence: 0 }]);
  const message = JSON.stringify([{ id: "m01600", fence: 0 }]);
  /** For statements on jobs and on messages, where they differ. */
  const values: Readonly<Record<string, readonly [Value, Value]>> = {
    ...{ now: [1, 1], route: ["r", "r"], target: ["t", "t"], lane: ["l", "l"], limit: [8, 8], owner: ["p", "p"] },
    ...{ id: ["j00600", "m01600"], ids: [job, message], held: [job, message], jobs: [job, job], fence: [0, 0] },
    ...{
      messages: [message, message],
      jobId: ["j00600", "j00600"],
      messageId: ["m01600", "m01600"],
      active: ["[]", "[]"],
    },
    ...{
      eventId: ["e00600", "e00600"],
      leaseUntil: [2, 2],
      until: [2, 2],
      dueAt: [2, 2],
      runAt: [2, 2],
      number: [0, 0],
    },
    ...{ failed: [0, 0], unknown: [0, 0], leaveLane: [0, 0], partsSent: [0, 0], reason: ["x", "x"], text: ["x", "x"] },
  };
  const isOfMessages = (text: string) => /(from|update) messages/.test(text.replace(/.*materialized/, ""));

  function withValues({ statement }: Request): Request {
    const side = isOfMessages(statement.text) ? 1 : 0;
    const names = [...statement.text.matchAll(/:([A-Za-z]\w*)/g)].map(([, name]) => name!);
    return { statement, values: Object.fromEntries(names.map((name) => [name, values[name]?.[side] ?? null])) };
  }

  /** All that are in a state are what these are about. */
  const aboutAll = ["parkJobs", "unparkJobs", "tallyJobs", "countRunning", "countSending"];
  const tables = /(from|update) (jobs|messages|runs|attempts)\b/;

  test("looks at few rows of a long queue that it has not counted yet", async (t) => {
    const client = await longQueue(t);
    const { listEvents: _, queueUp: __, ...others } = sql;
    const requests = Object.entries(others).flatMap(([name, one]) =>
      Array.isArray(one) ? [] : [{ name, request: requestOf(one({})) }],
    );
    const meant = requests.filter(
      ({ name, request }) =>
        tables.test(request.statement.text) && !aboutAll.includes(name) && !/^(expire|measure)/.test(name),
    );
    assert.ok(meant.length > 50);
    const lists = ["dead", "delivering", "done"].map((state) => {
      return { name: `list of ${state}`, request: listing(sql, { state, limit: 10 }) };
    });
    const slow: string[] = [];
    for (const { name, request } of [...meant.map((one) => ({ ...one, request: withValues(one.request) })), ...lists]) {
      const seen = await rowsSeen(client, request);
      if (seen > 60) slow.push(`${name}: ${seen} rows`);
    }
    assert.deepEqual(slow, []);
  });
});
