import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { takeLock } from "../../../src/lib/lock.ts";
import { openPostgres } from "../../../src/store/postgres.ts";
import type { EventRecord, Store } from "../../../src/store/store.ts";
import { missing } from "../../needs.ts";
import { startGatewayProcess } from "../../tools/gateway-process.ts";
import { makeHome, previewConfig, type TestHome } from "../../tools/home.ts";
import { sharedPostgres } from "../../tools/postgres.ts";
import { aRecord } from "../../tools/records.ts";
import { aDirectEvent, anAgentEvent, noon } from "../../tools/rows.ts";
import { sendEvent } from "../../tools/send.ts";
import { until } from "../../tools/wait.ts";
import { run, runJson } from "../command.ts";
import { live, makeLedger, makeOldFile, withFile } from "./files.ts";

const skip = missing("postgres");
const postgres = sharedPostgres();

interface Scene {
  readonly home: TestHome;
  readonly url: string;
  readonly env: Record<string, string>;
  /** Opens the database as a gateway does, for as long as `use` takes. */
  within<Result>(use: (store: Store) => Promise<Result>): Promise<Result>;
  run(...args: string[]): ReturnType<typeof run>;
  json<Value>(...args: string[]): Promise<{ readonly code: number; readonly value: Value }>;
}

/** A home whose configuration names a fresh database. */
async function setScene(t: TestContext, home?: TestHome): Promise<Scene> {
  const server = await postgres();
  const url = await server.database(t);
  const own = home ?? (await makeHome(t, { "config.yaml": previewConfig }));
  const env = { POSTERN_HOME: own.folder, POSTERN_STORE_URL: url };
  return {
    ...{ home: own, url, env },
    async within(use) {
      const store = await openPostgres({ url, schema: "postern", readOnly: false });
      try {
        return await use(store);
      } finally {
        await store.close();
      }
    },
    run: (...args) => run(own, args, { env }),
    json: (...args) => runJson(own, args, { env }),
  };
}

async function recordsIn(store: Store): Promise<EventRecord[]> {
  const rows = await store.listEvents({ limit: 100_000 });
  const records = await Promise.all(rows.map(({ id }) => store.readEvent({ id })));
  // The two stores hand bodies out as different kinds of bytes.
  return records
    .filter((record) => record !== undefined)
    .map((record) => ({ ...record, body: Buffer.from(record.body) }));
}

interface Report {
  readonly ok: boolean;
  readonly violations: readonly string[];
}

describe("ledger check", { skip }, () => {
  test("finds a database sound in which everything happens at once, and tells a violation from it", async (t) => {
    const scene = await setScene(t);
    await scene.within(live);
    const { code, out } = await scene.run("ledger", "check");
    assert.deepEqual(
      { code, out },
      { code: 0, out: 'The ledger (schema "postern" in the PostgreSQL database) is sound\n' },
    );
    const ghost =
      "update postern.jobs set owner = 'a ghost' where id = (select id from postern.jobs where state = 'done' limit 1)";
    await (await postgres()).query(ghost, scene.url);
    const { code: failed, value } = await scene.json<Report>("ledger", "check");
    assert.equal(failed, 1);
    assert.equal(value.violations.length, 1);
    assert.match(value.violations[0] ?? "", /^The job \S+ is "done", but "a ghost" has a lease on it$/);
  });

  test("says where there is no ledger, and where the server does not answer", async (t) => {
    const scene = await setScene(t);
    const { code, err } = await scene.run("ledger", "check");
    assert.equal(code, 1);
    assert.match(err, /^postern: There is no ledger in the database "test_\d+"/);
    const env = { ...scene.env, POSTERN_STORE_URL: "postgres://postern:hunter2@127.0.0.1:1/x" };
    const away = await run(scene.home, ["ledger", "check"], { env });
    assert.equal(away.code, 1);
    assert.match(away.err, /^postern: Cannot open the database "x" at "127\.0\.0\.1:1" as "postern": /);
    assert.doesNotMatch(away.err, /hunter2/);
  });
});

test("ledger compact lets PostgreSQL use the space of what was forgotten again", { skip }, async (t) => {
  const scene = await setScene(t);
  await scene.within(async (store) => {
    for (let index = 0; index < 200; index += 1) {
      const record = aRecord({ at: noon - 90 * 86_400_000 + index, body: Buffer.alloc(20_000, index) });
      await store.importEvent({ record, now: noon, claimUntil: null, unfinished: "resume" });
    }
    for (let after: string | undefined = ""; after !== undefined; ) {
      after = (await store.prune({ after, limit: 100, before: { done: noon } })).next;
    }
  });
  const { code, value } = await scene.json<{ before: number; after: number }>("ledger", "compact");
  assert.equal(code, 0);
  assert.ok(value.after < value.before, JSON.stringify(value));
  const [dead] = await (await postgres()).query<{ dead: string }>(
    "select n_dead_tup as dead from pg_stat_user_tables where schemaname = 'postern' and relname = 'events' and vacuum_count = 1",
    scene.url,
  );
  assert.equal(Number(dead?.dead), 0);
});

test("doctor looks into the database", { skip }, async (t) => {
  const scene = await setScene(t);
  await scene.within(async (store) => {
    await store.writeDocument({ name: "subscriptions", seen: 0, text: '{"bad":{"deliver":"nowhere"}}' });
    const record = aRecord({ at: Date.now() - 1_000, state: "dead", reason: "chat not found" });
    await store.importEvent({ record, now: Date.now(), claimUntil: null, unfinished: "resume" });
  });
  const { code, out } = await scene.run("doctor");
  assert.equal(code, 1);
  assert.match(out, /^ok {7}ledger: The schema "postern" in PostgreSQL can be read, and its schema is current$/m);
  assert.match(out, /^PROBLEM {2}subscriptions: The subscription "bad" is skipped: /m);
  assert.match(out, /^warning {2}dead events: 1, the newest first:\n.*reviews: chat not found$/m);
  assert.match(out, /^ok {7}clock: /m);
});

interface Imported {
  readonly imported: number;
  readonly resumed: number;
  readonly skipped: number;
  readonly failed: readonly string[];
  readonly subscriptions: { added: string[]; same: string[]; conflicting: string[] };
}

describe("ledger import", { skip }, () => {
  test("brings every event over as it was, lets go on what was not finished, and may be done again", async (t) => {
    const home = await makeLedger(t, { "config.yaml": previewConfig });
    const scene = await setScene(t, home);
    const old = await withFile(home.ledger, recordsIn);
    const open = old.filter(({ jobs }) =>
      jobs.some(({ state }) => /^(queued|waiting|running|delivering)$/.test(state)),
    );
    const { code, value } = await scene.json<Imported>("ledger", "import");
    assert.equal(code, 0);
    assert.deepEqual(
      { imported: value.imported, resumed: value.resumed, skipped: value.skipped, failed: value.failed },
      { imported: old.length, resumed: open.length, skipped: 0, failed: [] },
    );
    const moved = await scene.within(recordsIn);
    const isOpen = (record: EventRecord) => open.some(({ id }) => id === record.id);
    const finished = (records: EventRecord[]) => records.filter((record) => !isOpen(record));
    assert.deepEqual(finished(moved), finished(old));
    assert.deepEqual(
      moved.filter(isOpen).map(({ id }) => id),
      open.map(({ id }) => id),
    );
    assert.equal((await scene.json<Report>("ledger", "check")).value.ok, true);
    assert.deepEqual(await withFile(home.ledger, recordsIn), old, "the old one stays as it is");
    const again = await scene.json<Imported>("ledger", "import");
    assert.deepEqual(
      { ...again.value, subscriptions: 0, from: 0 },
      {
        ...{ imported: 0, resumed: 0, skipped: old.length, failed: [], subscriptions: 0, from: 0 },
      },
    );
    assert.deepEqual(await scene.within(recordsIn), moved);
  });

  test("tells a person what was done, and to move the old one aside", async (t) => {
    const scene = await setScene(t, await makeLedger(t, { "config.yaml": previewConfig }));
    const { out } = await scene.run("ledger", "import");
    assert.match(
      out,
      /^Imported \d+ events from ".*ledger\.db", \d+ of which are not finished and go on in the database; 0 were/,
    );
    assert.match(out, /\n\nMove ".*ledger\.db" and the files beside it aside now: /);
  });

  test("keeps a fresh delivery id taken, unless its sender was told to send again", async (t) => {
    const home = await makeLedger(t, { "config.yaml": previewConfig });
    const scene = await setScene(t, home);
    const at = Date.now() - 60_000;
    await withFile(home.ledger, async (store) => {
      await store.accept(anAgentEvent({ at, deliveryId: "taken" }));
      await store.accept(anAgentEvent({ at: at - 3_600_000, deliveryId: "long ago" }));
      const record = aRecord({ at, state: "refused", deliveryId: "refused" });
      await store.importEvent({ record, now: at, claimUntil: null, unfinished: "resume" });
    });
    await scene.run("ledger", "import");
    await scene.within(async (store) => {
      const isDuplicate = async (deliveryId: string) =>
        (await store.accept(anAgentEvent({ at: Date.now(), deliveryId }))).duplicate;
      assert.deepEqual(
        [await isDuplicate("taken"), await isDuplicate("long ago"), await isDuplicate("refused")],
        [true, false, false],
      );
    });
  });

  test("does not take a ledger on which a gateway may be running", async (t) => {
    const home = await makeLedger(t, { "config.yaml": previewConfig });
    const scene = await setScene(t, home);
    const lock = takeLock(join(home.data, "gateway.lock"), 0);
    t.after(() => lock?.release());
    const { code, err } = await scene.run("ledger", "import");
    assert.equal(code, 1);
    assert.match(err, /^postern: A gateway is running on ".*"; stop it first/);
  });

  test("merges the subscriptions, and reports those that the database has otherwise", async (t) => {
    const home = await makeHome(t, {
      "config.yaml": previewConfig,
      "webhook_subscriptions.json":
        '{"a":{"secret":"one","n":12345678901234567890},"b":{"secret":"two"},"c":{"secret":"three"}}',
    });
    const scene = await setScene(t, home);
    const before = '{"b":{"secret":"two"},"c":{"secret":"other"},"d":{}}';
    await scene.within((store) => store.writeDocument({ name: "subscriptions", seen: 0, text: before }));
    const { code, value } = await scene.json<Imported>("ledger", "import");
    assert.equal(code, 0);
    assert.deepEqual(value.subscriptions, { added: ["a"], same: ["b"], conflicting: ["c"] });
    const document = await scene.within((store) => store.readDocument({ name: "subscriptions" }));
    assert.equal(
      JSON.stringify(JSON.parse(document?.text.replace("12345678901234567890", '"12345678901234567890"') ?? "")),
      '{"b":{"secret":"two"},"c":{"secret":"other"},"d":{},"a":{"secret":"one","n":"12345678901234567890"}}',
    );
    const { out } = await scene.run("ledger", "import");
    assert.match(out, /Skipped "c": the database has another subscription of this name/);
    assert.match(out, /Subscriptions: 0 added, 2 there already/);
    assert.doesNotMatch(out, /secret|three|other"/);
  });

  test("takes another home, a file that stands alone, or a ledger of an older Postern", async (t) => {
    const other = await makeLedger(t);
    const scene = await setScene(t);
    const { value: first } = await scene.json<Imported>("ledger", "import", "--from", other.folder);
    assert.ok(first.imported > 0);
    assert.equal((await run(other, ["ledger", "backup", `${other.folder}/copy.db`])).code, 0);
    const { value: second } = await scene.json<Imported>("ledger", "import", "--from", `${other.folder}/copy.db`);
    assert.deepEqual([second.imported, second.skipped], [0, first.imported]);
    const old = await makeHome(t);
    makeOldFile(`${old.folder}/old.db`);
    const { value: third } = await scene.json<Imported>("ledger", "import", "--from", `${old.folder}/old.db`);
    assert.equal(third.imported, 1);
  });

  test("without anything to import says so", async (t) => {
    const scene = await setScene(t);
    const empty = await makeHome(t);
    assert.match(
      (await scene.run("ledger", "import")).err,
      /There is no ledger in ".*", and there are no subscriptions/,
    );
    assert.match((await scene.run("ledger", "import", "--from", `${empty.folder}/none`)).err, /There is no ".*none"/);
    const { code, err } = await run(empty, ["ledger", "import"]);
    assert.equal(code, 1);
    assert.match(err, /names no PostgreSQL database to import into; set "store\.url" or POSTERN_STORE_URL first/);
  });

  test("of an event that cannot be read leaves it out, says which, and fails", async (t) => {
    const home = await makeLedger(t, { "config.yaml": previewConfig });
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(home.ledger);
    database.exec(
      "update bodies set body = zeroblob(64) where event_id = (select min(event_id) from bodies where codec = 'zstd')",
    );
    database.close();
    const { code, value } = await (await setScene(t, home)).json<Imported>("ledger", "import");
    assert.equal(code, 1);
    assert.equal(value.failed.length, 1);
    assert.ok(value.imported > 10);
  });

  test("while gateways work on the database, what was not finished is done by them, once", async (t) => {
    const home = await makeHome(t, { "config.yaml": previewConfig });
    const scene = await setScene(t);
    await mkdir(home.data, { mode: 0o700 });
    const ids = await withFile(home.ledger, async (store) => {
      for (let index = 0; index < 20; index += 1) {
        const plan = JSON.stringify({ prompt: "hello", skills: [], tools: [] });
        await store.accept(anAgentEvent({ at: Date.now(), route: "hello", targets: ["log"], plan }));
      }
      await store.accept(aDirectEvent({ at: Date.now() }));
      return (await store.listEvents({ limit: 100 })).map(({ id }) => id);
    });
    await startGatewayProcess(t, scene.home, { env: { POSTERN_STORE_URL: scene.url } });
    const { value } = await scene.json<Imported>("ledger", "import", "--from", home.folder);
    assert.deepEqual([value.imported, value.resumed], [21, 21]);
    await scene.within(async (store) => {
      await until("all to be finished", async () =>
        (await recordsIn(store)).every(({ state }) => state === "done" || state === "refused"),
      );
      const records = await recordsIn(store);
      assert.deepEqual(records.map(({ id }) => id).sort(), ids.sort());
      assert.equal(records.filter(({ state }) => state === "refused").length, 1, "its sender got no answer");
      for (const { jobs } of records) assert.ok((jobs[0]?.runs.length ?? 0) <= 1);
    });
  });
});

describe("subscriptions in the database", { skip }, () => {
  test("are made, listed and removed there, and the file in the home is left alone", async (t) => {
    const home = await makeHome(t, {
      "config.yaml": previewConfig,
      "webhook_subscriptions.json": '{"in-the-file":{}}',
    });
    const scene = await setScene(t, home);
    const made = await scene.json<{ created: boolean; secret: string }>("webhook", "subscribe", "alerts");
    assert.equal(made.value.created, true);
    assert.equal(
      (await scene.json<{ created: boolean }>("webhook", "subscribe", "alerts", "--description", "x")).value.created,
      false,
    );
    const { value } = await scene.json<{ name: string }[]>("webhook", "list");
    assert.deepEqual(
      value.map(({ name }) => name),
      ["alerts"],
    );
    assert.equal((await scene.run("webhook", "remove", "alerts")).code, 0);
    assert.match(
      (await scene.run("webhook", "remove", "alerts")).err,
      /There is no subscription "alerts"; there are none yet/,
    );
    assert.equal(await home.read("webhook_subscriptions.json"), '{"in-the-file":{}}');
  });

  test("lose nothing when ten commands change them at once", async (t) => {
    const scene = await setScene(t);
    const names = Array.from({ length: 10 }, (_, number) => `name-${number}`);
    const ends = await Promise.all(names.map((name) => scene.run("webhook", "subscribe", name)));
    for (const { code, err } of ends) assert.equal(code, 0, err);
    const { value } = await scene.json<{ name: string }[]>("webhook", "list");
    assert.deepEqual(value.map(({ name }) => name).sort(), names.sort());
  });

  test("are there for the next request to any gateway, and gone soon after they were removed", async (t) => {
    const scene = await setScene(t);
    const other = await makeHome(t, { "config.yaml": previewConfig });
    const env = { POSTERN_STORE_URL: scene.url };
    const gateways = [await startGatewayProcess(t, scene.home, { env }), await startGatewayProcess(t, other, { env })];
    const { value } = await scene.json<{ secret: string }>("webhook", "subscribe", "alerts");
    for (const { url } of gateways) {
      assert.equal((await sendEvent(url, "alerts", value.secret, { a: 1 })).status, 202);
      assert.equal((await sendEvent(url, "unknown", value.secret, { a: 1 })).status, 404);
    }
    await scene.run("webhook", "remove", "alerts");
    for (const { url } of gateways) {
      await until(
        "the route to be gone",
        async () => (await sendEvent(url, "alerts", value.secret, {})).status === 404,
      );
    }
  });

  test("are tested through the gateway", async (t) => {
    const scene = await setScene(t);
    const gateway = await startGatewayProcess(t, scene.home, { env: { POSTERN_STORE_URL: scene.url } });
    await scene.run("webhook", "subscribe", "alerts", "--prompt", "Hello {message}");
    const env = { ...scene.env, WEBHOOK_PORT: String(gateway.port) };
    const { code, out } = await run(scene.home, ["webhook", "test", "alerts"], { env });
    assert.equal(code, 0, out);
    assert.match(out, /202/);
    assert.match(out, /sent to log/);
  });
});
