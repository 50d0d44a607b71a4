import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { checkSqlite } from "../../src/store/check.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { EventRecord, Store } from "../../src/store/store.ts";
import { missing } from "../needs.ts";
import { makeHome } from "../tools/home.ts";
import { sharedPostgres } from "../tools/postgres.ts";
import { aClaim, aLastTry, anAgentEvent, anEndedRun, anEndedTry, noon } from "../tools/rows.ts";

function schemaOf(name: string): string {
  return readFileSync(new URL(`../../src/store/migrations/${name}`, import.meta.url), "utf8");
}

const firstSchema = schemaOf("sqlite/0001_ledger.sql");
const body = Buffer.from('{"action":"opened"}');
const longBody = Buffer.from("long ".repeat(1000));
const minute = 60_000;

type Row = Readonly<Record<string, string | number | null | Uint8Array>>;

/** A file as the first version wrote it, with rows in every state. */
async function makeFirstLedger(t: TestContext): Promise<string> {
  const path = join((await makeHome(t)).folder, "ledger.db");
  const database = new DatabaseSync(path);
  database.exec(`pragma journal_mode = wal; begin; ${firstSchema}; pragma application_id = ${0x5053544e};
    pragma user_version = 1; commit`);
  const insert = (table: string, row: Row) => {
    const names = Object.keys(row);
    const values = names.map((name) => `:${name}`);
    database.prepare(`insert into ${table} (${names.join(", ")}) values (${values.join(", ")})`).run(row);
  };
  for (const [table, rows] of Object.entries(firstRows())) for (const row of rows) insert(table, row);
  database.close();
  return path;
}

/** Jobs of the first version: their states, and those of their messages. */
const jobs = [
  { id: "queued", kind: "agent", state: "queued", messages: ["held"] },
  { id: "waiting", kind: "agent", state: "waiting", reason: "no model configured", messages: ["held"] },
  { id: "running", kind: "agent", state: "running", fence: 2, messages: ["held", "held"] },
  { id: "delivering", kind: "agent", state: "delivering", fence: 1, messages: ["sent", "pending", "sending", "dead"] },
  { id: "direct", kind: "direct", state: "delivering", messages: ["sent", "sending"] },
  { id: "done", kind: "agent", state: "done", fence: 1, messages: ["sent", "sent"] },
  { id: "silent", kind: "agent", state: "done", fence: 1, messages: ["kept"] },
  { id: "dead", kind: "agent", state: "dead", reason: "Too many steps", fence: 1, messages: ["dead"] },
  { id: "refused", kind: "direct", state: "refused", reason: "No such chat", messages: ["dead"] },
] as const satisfies readonly FirstJob[];

interface FirstJob {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly reason?: string;
  readonly fence?: number;
  readonly messages: readonly string[];
}

function firstRows(): Record<string, Row[]> {
  const event = (id: string, ignored: string | null = null): Row => ({
    ...{
      id,
      route: `route of ${id}`,
      type: "push",
      delivery_id: `delivery of ${id}`,
      received_at: noon,
      headers: '{"a":"b"}',
    },
    ...(id === "done" ? { body: zstdCompressSync(longBody), body_codec: "zstd" } : { body, body_codec: "none" }),
    ignored,
  });
  const accepted: readonly FirstJob[] = jobs;
  const messages = accepted.flatMap((job) => job.messages.map((state, position) => messageRow(job, state, position)));
  return {
    events: [...accepted.map(({ id }) => event(id)), event("ignored", "filters[0]")],
    claims: accepted.flatMap(({ id, state }) =>
      state === "refused"
        ? []
        : [{ route: `route of ${id}`, delivery_id: `delivery of ${id}`, event_id: id, expires_at: noon + 60 * minute }],
    ),
    jobs: accepted.map(jobRow),
    runs: accepted.flatMap(runRows),
    messages,
    attempts: messages.flatMap(attemptRows),
  };
}

function leaseOf(isHeld: boolean): Row {
  return { owner: isHeld ? "gone" : null, lease_until: isHeld ? noon + 30_000 : null };
}

function jobRow({ id, kind, state, reason = undefined, fence = 0 }: FirstJob): Row {
  return {
    ...{
      id: `job ${id}`,
      event_id: id,
      kind,
      state,
      reason: reason ?? null,
      plan: `{"prompt":"${id}"}`,
      run_at: noon,
      fence,
    },
    ...{ failures: fence > 1 ? 1 : 0, interruptions: 0, created_at: noon, updated_at: noon + 1 },
    ...leaseOf(state === "running"),
  };
}

function runRows({ id, state, fence = 0 }: FirstJob): Row[] {
  return Array.from({ length: fence }, (_, index) => {
    const isOpen = state === "running" && index + 1 === fence;
    const outcome = index + 1 < fence || state === "dead" ? "failed" : "completed";
    const answer = outcome === "completed" ? `Answer of ${id}` : null;
    const ended = { ended_at: noon + 1, outcome, answer, transcript: "[1]", input_tokens: 7, output_tokens: 3 };
    return { job_id: `job ${id}`, number: index + 1, started_at: noon, ...(isOpen ? {} : ended) };
  });
}

function messageRow({ id, kind }: FirstJob, state: string, position: number): Row {
  const hasText = state !== "held" && !(id === "dead");
  return {
    ...{
      id: `message ${id} ${position}`,
      job_id: `job ${id}`,
      position,
      target: `target ${position}`,
      extra: '{"c":"d"}',
    },
    ...{ text: hasText ? `Text of ${id}` : null, state, reason: state === "dead" ? "Chat not found" : null },
    ...{ reference: state === "sent" ? "m-1" : null, parts_sent: position, due_at: noon + 2 },
    ...{ fence: ["sent", "sending"].includes(state) || kind === "direct" ? 1 : 0, failures: 0, updated_at: noon + 3 },
    ...leaseOf(state === "sending"),
  };
}

function attemptRows({ id, fence, state }: Row): Row[] {
  if (fence === 0) return [];
  const outcome = state === "sent" ? "sent" : "refused";
  const ended = { ended_at: noon + 3, outcome, error: outcome === "sent" ? null : "Chat not found" };
  const open = { ended_at: null, outcome: null, error: null };
  return [{ message_id: id!, number: 1, started_at: noon + 2, ...(state === "sending" ? open : ended) }];
}

async function open(t: TestContext, path: string): Promise<Store> {
  const store = await openSqlite({ path, readOnly: false });
  t.after(() => store.close());
  return store;
}

test("a ledger of the first version keeps everything when it is opened", async (t) => {
  const path = await makeFirstLedger(t);
  const store = await open(t, path);
  const rows = await store.listEvents({ limit: 100 });
  assert.deepEqual(
    Object.fromEntries(rows.map(({ id, state, reason }) => [id, [state, reason]])),
    Object.fromEntries([
      ...(jobs as readonly FirstJob[]).map(({ id, state, reason }) => [id, [state, reason ?? null]]),
      ["ignored", ["ignored", "filters[0]"]],
    ]),
  );
  for (const job of jobs) {
    const record = (await store.readEvent({ id: job.id }))!;
    assert.equal(record.jobs.length, 1);
    assert.deepEqual(
      record.jobs[0]?.messages.map(({ state }) => state),
      job.messages,
    );
  }
  assert.deepEqual(Buffer.from((await store.readEvent({ id: "done" }))!.body), longBody);
  const { jobs: delivered, ...event } = (await store.readEvent({ id: "delivering" }))!;
  assert.deepEqual({ ...event, body: Buffer.from(event.body) } satisfies Omit<EventRecord, "jobs">, {
    ...{ id: "delivering", route: "route of delivering", type: "push", deliveryId: "delivery of delivering" },
    ...{ receivedAt: noon, headers: '{"a":"b"}', body, state: "delivering", reason: null, ignored: null },
  });
  const [{ messages, ...job }] = delivered as [EventRecord["jobs"][number]];
  assert.deepEqual(job, {
    ...{ id: "job delivering", kind: "agent", route: "route of delivering", origin: null, onCrash: "rerun" },
    ...{
      state: "delivering",
      reason: null,
      plan: '{"prompt":"delivering"}',
      createdAt: noon,
      updatedAt: noon + 1,
      runAt: noon,
    },
    runs: [
      {
        ...{ number: 1, startedAt: noon, endedAt: noon + 1, outcome: "completed", reason: null, transcript: "[1]" },
        ...{ answer: "Answer of delivering", inputTokens: 7, outputTokens: 3 },
      },
    ],
  });
  assert.deepEqual(messages[2], {
    ...{ id: "message delivering 2", target: "target 2", extra: '{"c":"d"}', lane: null, text: "Text of delivering" },
    ...{ refusal: null, fallback: null, replaces: null },
    ...{ state: "sending", reason: null, reference: null, partsSent: 2, readyAt: noon + 2, dueAt: noon + 2 },
    attempts: [{ number: 1, startedAt: noon + 2, endedAt: null, outcome: null, error: null }],
  });
  assert.deepEqual(checkSqlite(path), { damage: [], violations: [], notes: [] });
});

test("a ledger of the first version goes on where it was", async (t) => {
  const path = await makeFirstLedger(t);
  const store = await open(t, path);
  for (const { id, state } of jobs) {
    const parts = { route: `route of ${id}`, deliveryId: `delivery of ${id}`, at: noon + minute };
    const { duplicate } = await store.accept(anAgentEvent(parts));
    assert.equal(duplicate, state !== "refused", id);
  }
  const now = noon + minute;
  const claimed = await store.claimJobs(aClaim({ now }));
  const known = claimed.filter(({ eventId }) => jobs.some(({ id }) => id === eventId));
  assert.deepEqual(
    known.map(({ id, fence, failures, route }) => [id, fence, failures, route]),
    [
      ["job queued", 1, 0, "route of queued"],
      ["job running", 3, 1, "route of running"],
    ],
  );
  const messages = await store.claimMessages(aClaim({ now }));
  assert.deepEqual(
    messages.map(({ id, isUnsure, partsSent, readyAt }) => [id, isUnsure, partsSent, readyAt]),
    [
      ["message delivering 1", false, 1, noon + 2],
      ["message delivering 2", true, 2, noon + 2],
    ],
  );
  const direct = await store.readEvent({ id: "direct" });
  assert.deepEqual(
    [direct?.state, ...direct!.jobs[0]!.messages.map(({ state }) => state)],
    ["refused", "sent", "dead"],
  );
  assert.equal(await store.unpark({ now }), 1);
  for (const message of messages) await store.finishAttempt(anEndedTry(message));
  for (const job of [...claimed, ...(await store.claimJobs(aClaim({ now, active: claimed.map(({ id }) => id) })))]) {
    await store.finishRun(anEndedRun(job));
  }
  for (const message of await store.claimMessages(aClaim({ now, limit: 100 })))
    await store.finishAttempt(anEndedTry(message));
  assert.deepEqual(await store.tallyJobs({}), { dead: 2, refused: 2 });
  assert.deepEqual(checkSqlite(path), { damage: [], violations: [], notes: [] });
});

test("a ledger of the first version is not changed by who only reads", async (t) => {
  const path = await makeFirstLedger(t);
  const before = readFileSync(path);
  await assert.rejects(openSqlite({ path, readOnly: true }), {
    name: "StoreRefused",
    message: `The ledger "${path}" has schema 1, and this Postern needs 3; start the gateway once, which brings it up to date`,
  });
  assert.ok(before.equals(readFileSync(path)));
});

test("a ledger is made, or brought up to date, once by many who open it at once", async (t) => {
  const fresh = join((await makeHome(t)).folder, "ledger.db");
  for (const path of [fresh, await makeFirstLedger(t)]) {
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(t, path)));
    await Promise.all(stores.map((store) => store.accept(anAgentEvent())));
    assert.equal((await stores[0]!.listEvents({ limit: 100, state: "queued", route: "reviews" })).length, 6);
    assert.deepEqual(checkSqlite(path), { damage: [], violations: [], notes: [] });
  }
});

test("a new ledger can give its free space back while it is used, one of the first version only alone", async (t) => {
  const fresh = join((await makeHome(t)).folder, "ledger.db");
  const first = await makeFirstLedger(t);
  for (const [path, mode] of [
    [fresh, 2],
    [first, 0],
  ] as const) {
    await (await open(t, path)).accept(anAgentEvent());
    const database = new DatabaseSync(path, { readOnly: true });
    assert.equal(database.prepare("pragma auto_vacuum").get()?.auto_vacuum, mode);
    database.close();
  }
});

/** What a version wrote that knew no fallbacks: an event with a message that is to be sent, and one that is being sent. */
const secondRows = `
  insert into events (id, route, type, delivery_id, received_at, headers)
    values ('e', 'reviews', 'push', '42', ${noon}, '{}');
  insert into bodies (event_id, body, codec) values ('e', '', 'none');
  insert into jobs (id, event_id, kind, route, on_crash, state, plan, run_at, created_at, updated_at)
    values ('j', 'e', 'agent', 'reviews', 'rerun', 'delivering', '{}', ${noon}, ${noon}, ${noon});
  insert into messages (id, job_id, position, target, extra, lane, text, state, ready_at, due_at, fence, owner, lease_until,
      updated_at)
    values ('m1', 'j', 0, 'a', '{}', 'a 1', 'Hello', 'sending', ${noon}, ${noon}, 1, 'gone', ${noon}, ${noon}),
      ('m2', 'j', 1, 'b', '{}', null, 'Hello', 'pending', ${noon}, ${noon}, 0, null, null, ${noon});
  insert into attempts (message_id, number, started_at) values ('m1', 1, ${noon})`;

async function secondSqlite(t: TestContext): Promise<Store> {
  const path = join((await makeHome(t)).folder, "ledger.db");
  const database = new DatabaseSync(path);
  database.exec(`pragma journal_mode = wal; begin; ${firstSchema}; ${schemaOf("sqlite/0002_places.sql")};
    pragma application_id = ${0x5053544e}; pragma user_version = 2; commit`);
  database.exec(secondRows.replace("'', 'none'", "x'', 'none'"));
  database.close();
  return open(t, path);
}

const postgres = sharedPostgres();

async function firstPostgres(t: TestContext): Promise<Store> {
  const server = await postgres();
  const url = await server.database(t);
  await server.query(
    `create schema postern; set search_path to postern;
     create table migrations (number bigint primary key, done_at timestamptz not null);
     ${schemaOf("postgres/0001_ledger.sql")}; insert into migrations values (1, now()); ${secondRows}`,
    url,
  );
  const store = await openPostgres({ url, schema: "postern", readOnly: false });
  t.after(() => store.close());
  return store;
}

for (const [name, make, skip] of [
  ["SQLite", secondSqlite, false],
  ["PostgreSQL", firstPostgres, missing("postgres")],
] as const) {
  test(`messages from before there were fallbacks have none, and go on as they were, in ${name}`, {
    skip,
  }, async (t) => {
    const store = await make(t);
    const before = (await store.readEvent({ id: "e" }))!.jobs[0]!.messages;
    assert.deepEqual(
      before.map(({ id, state, refusal, fallback, replaces }) => [id, state, refusal, fallback, replaces]),
      [
        ["m1", "sending", null, null, null],
        ["m2", "pending", null, null, null],
      ],
    );
    for (const message of await store.claimMessages(aClaim({ now: noon + minute }))) {
      assert.equal(await store.finishAttempt(aLastTry(message, { now: noon + minute })), true);
    }
    const { state, jobs } = (await store.readEvent({ id: "e" }))!;
    assert.deepEqual([state, ...jobs[0]!.messages.map((one) => one.state)], ["dead", "dead", "dead"]);
  });
}
