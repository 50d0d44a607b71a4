import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { Client } from "pg";
import { StoreRefused, StoreUnavailable } from "../../src/core/errors.ts";
import { placeOf, prepareSession } from "../../src/store/postgres/connect.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import type { News, Store } from "../../src/store/store.ts";
import { missing } from "../needs.ts";
import { startNetwork } from "../tools/network.ts";
import { freePort } from "../tools/port.ts";
import { sharedPostgres } from "../tools/postgres.ts";
import { startProgram } from "../tools/program.ts";
import { aClaim, aDirectEvent, anAgentEvent, anEndedRun, noon } from "../tools/rows.ts";
import { until } from "../tools/wait.ts";

const skip = missing("postgres");
const shared = sharedPostgres();

interface Opening {
  readonly schema?: string;
  readonly readOnly?: boolean;
  readonly answerTimeoutMs?: number;
}

/** A store that is closed when the test ends. */
async function openStore(t: TestContext, url: string, opening: Opening = {}): Promise<Store> {
  const store = await openPostgres({ url, schema: "postern", readOnly: false, ...opening });
  t.after(() => store.close());
  return store;
}

/** The same address with a password, which nobody asks for. */
function withPassword(url: string): string {
  return url.replace("postern@", "postern:s3cr%2Ft@");
}

async function rejection(attempt: Promise<unknown>): Promise<Error> {
  const error = await attempt.then(
    () => assert.fail("It did not fail"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error);
  for (const secret of ["s3cr", "%2Ft"]) {
    for (let one: unknown = error; one instanceof Error; one = one.cause) {
      assert.ok(!`${one.stack} ${JSON.stringify(one)}`.includes(secret), `It gives the password away: ${one.stack}`);
    }
  }
  return error;
}

async function refused(url: string, opening: Opening = {}): Promise<string> {
  const error = await rejection(openPostgres({ url, schema: "postern", readOnly: false, ...opening }));
  assert.ok(error instanceof StoreRefused, `${error}`);
  return error.message;
}

async function unavailable(attempt: Promise<unknown>): Promise<string> {
  const error = await rejection(attempt);
  assert.ok(error instanceof StoreUnavailable && !(error instanceof StoreRefused), `${error.stack}`);
  return error.message;
}

describe("an address that leads nowhere", { skip }, () => {
  test("of a database that is not there is refused: what was tried, and the server's words", async () => {
    const { url, port } = await shared();
    const message = await refused(withPassword(url).replace(/postgres$/, "nowhere"));
    assert.equal(
      message,
      `Cannot open the database "nowhere" at "127.0.0.1:${port}" as "postern": database "nowhere" does not exist; ` +
        'check "store.url", or POSTERN_STORE_URL',
    );
  });

  test("of a user that is not there is refused in the server's words", async () => {
    const { url } = await shared();
    assert.match(
      await refused(url.replace("postern@", "nobody:s3cr%2Ft@")),
      /^Cannot open the database "postgres" at ".*" as "nobody": role "nobody" does not exist; check "store\.url"/,
    );
  });

  test("of a port that nobody listens on is said, and may be right later", async () => {
    const url = `postgres://postern:s3cr%2Ft@127.0.0.1:${await freePort()}/hooks`;
    const message = await unavailable(openPostgres({ url, schema: "postern", readOnly: false }));
    assert.match(
      message,
      /^Cannot open the database "hooks" at "127\.0\.0\.1:\d+" as "postern": .*ECONNREFUSED.*; check/,
    );
  });

  test("that is no address is refused", async () => {
    const garbage = [
      "",
      "s3cr",
      "postgres//postern:s3cr%2Ft@127.0.0.1/hooks",
      "mysql://postern:s3cr%2Ft@127.0.0.1/hooks",
      "postgres://postern:s3cr/t@127.0.0.1/hooks",
      "postgres://postern:1/s3cr@127.0.0.1/hooks",
      "postgres://postern:s3cr#t@127.0.0.1/hooks",
      "postgres://postern:s3cr%zz@127.0.0.1/hooks",
      "postgres://127.0.0.1:port/hooks?password=s3cr",
      "postgres://127.0.0.1/%zz?password=s3cr",
    ];
    for (const url of garbage) assert.match(await refused(url), /^Cannot use "store\.url"/, url);
  });
});

describe("a schema", { skip }, () => {
  test("with other tables is refused and left as it is", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    await server.query("create schema postern; create table postern.notes (text text)", url);
    for (const readOnly of [false, true]) {
      assert.match(
        await refused(withPassword(url), { readOnly }),
        /^The schema "postern" of the database "test_\d+" at .* holds other tables \(notes\); set "store\.schema" to a name of its own$/,
      );
    }
    const tables = await server.query("select tablename from pg_tables where schemaname = 'postern'", url);
    assert.deepEqual(tables, [{ tablename: "notes" }]);
  });

  test("of a newer Postern is refused and left as it is", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const store = await openStore(t, url);
    const args = anAgentEvent();
    await store.accept(args);
    await server.query("insert into postern.migrations values (9999, now())", url);
    for (const readOnly of [false, true]) {
      assert.match(
        await refused(url, { readOnly }),
        /has version 9999, and this Postern knows \d+; install the newer Postern that wrote it$/,
      );
    }
    assert.equal((await store.readEvent({ id: args.event.id }))?.id, args.event.id);
  });

  test("is made once by many who open it at once", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const stores = await Promise.all(Array.from({ length: 8 }, () => openStore(t, url)));
    await Promise.all(stores.map((store) => store.accept(anAgentEvent())));
    assert.equal((await stores[0]!.listEvents({ limit: 100 })).length, 8);
    const [row] = await server.query<{ count: number }>("select count(*)::int from postern.migrations", url);
    assert.ok(row!.count > 0);
    const [newest] = await server.query("select max(number)::int as count from postern.migrations", url);
    assert.deepEqual(newest, row, "each migration once");
  });

  test("of any name is apart from the others of its database", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const schemas = ["postern", "Postern", 'a "quoted" one', "public"];
    const stores = await Promise.all(schemas.map((schema) => openStore(t, url, { schema })));
    for (const store of stores) {
      assert.equal((await store.accept(anAgentEvent({ deliveryId: "42" }))).duplicate, false);
      assert.equal((await store.listEvents({ limit: 10 })).length, 1);
    }
  });

  test("that is not there is refused to who only reads, and not made", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    assert.match(
      await refused(url, { readOnly: true }),
      /^There is no ledger in the database "test_\d+" at .*, schema "postern"; start the gateway once$/,
    );
    assert.deepEqual(await server.query("select 1 from pg_namespace where nspname = 'postern'", url), []);
  });

  test("can be read beside a gateway, and is not changed by who only reads", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const store = await openStore(t, url);
    await store.accept(anAgentEvent());
    const reader = await openStore(t, url, { readOnly: true });
    assert.equal((await reader.listEvents({ limit: 10 })).length, 1);
    await assert.rejects(reader.accept(anAgentEvent()), /read-only transaction/);
    await assert.rejects(reader.claimJobs(aClaim()), /read-only transaction/);
    await store.accept(anAgentEvent());
    assert.equal((await reader.listEvents({ limit: 10 })).length, 2);
  });

  test("is used by a role that owns it and may make no other", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const role = new URL(url).pathname.slice(1).replace("test", "role");
    await server.query(`create role ${role} login; create schema postern authorization ${role}`, url);
    const mine = url.replace("postern@", `${role}@`);
    const store = await openStore(t, mine);
    assert.equal((await store.accept(anAgentEvent())).duplicate, false);
    assert.match(await refused(mine, { schema: "other" }), /permission denied for database/);
  });
});

describe("a commit", { skip }, () => {
  test("is synced to disk whatever the database's default is, and waits longer where that is wanted", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const name = new URL(url).pathname.slice(1);
    const place = placeOf({ url, schema: "postern" });
    for (const [given, wanted] of [
      ["off", "on"],
      ["local", "on"],
      ["on", "on"],
      ["remote_write", "remote_write"],
      ["remote_apply", "remote_apply"],
    ]) {
      await server.query(`alter database ${name} set synchronous_commit = '${given}'`);
      const client = new Client({ connectionString: url });
      await client.connect();
      assert.deepEqual((await client.query("show synchronous_commit")).rows, [{ synchronous_commit: given }]);
      await prepareSession(client, place, false);
      assert.deepEqual((await client.query("show synchronous_commit")).rows, [{ synchronous_commit: wanted }]);
      await client.end();
    }
  });

  test("that was answered is there after a crash of the server", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    await server.query(`alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = 'off'`);
    const store = await openStore(t, url);
    const events = Array.from({ length: 30 }, () => anAgentEvent());
    await Promise.all(events.map((event) => store.accept(event)));
    await server.restart("immediate");
    const rows = await until("an answer", () => store.listEvents({ limit: 100 }).catch(() => undefined));
    assert.equal(rows.length, events.length);
  });
});

test("a call that breaks a rule of ours is a bug, not an outage, and undoes itself alone", { skip }, async (t) => {
  const store = await openStore(t, await (await shared()).database(t));
  const first = anAgentEvent();
  await store.accept(first);
  const calls = [
    anAgentEvent(),
    { ...anAgentEvent(), job: first.job },
    anAgentEvent({ id: first.event.id, deliveryId: "other" }),
    anAgentEvent(),
  ];
  const ends = await Promise.allSettled(calls.map((args) => store.accept(args)));
  assert.deepEqual(
    ends.map(({ status }) => status),
    ["fulfilled", "rejected", "rejected", "fulfilled"],
  );
  for (const end of ends) {
    if (end.status === "rejected") assert.ok(!(end.reason instanceof StoreUnavailable), `${end.reason}`);
  }
  assert.equal((await store.listEvents({ limit: 10 })).length, 3);
});

test("a call that is ended because it and another wait for each other is made again", { skip }, async (t) => {
  const server = await shared();
  const url = await server.database(t);
  await server.query(`alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '2s'`);
  const store = await openStore(t, url);
  const events = [aDirectEvent({ at: noon }), aDirectEvent({ at: noon + 1 })];
  for (const event of events) await store.accept(event);
  const other = new Client({ connectionString: url });
  // When the test fails, its database is dropped first.
  other.on("error", () => {});
  t.after(() => other.end());
  await other.connect();
  const hold = (index: number) =>
    other.query("select id from postern.jobs where id = $1 for update", [events[index]!.job.id]);
  // The server looks once, after this time, and ends who looks: the store.
  await other.query("set deadlock_timeout = '1min'");
  await other.query("begin");
  await hold(1);
  // Holds the first job and waits for the second one.
  const claiming = store.claimMessages(aClaim({ owner: "two", now: noon + 60_000 }));
  const isWaiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'postern'";
  await until("the call to wait", async () => (await server.query(isWaiting)).length > 0);
  await hold(0);
  await other.query("commit");
  assert.deepEqual(await claiming, []);
  for (const { event } of events) assert.equal((await store.readEvent({ id: event.id }))?.state, "refused");
});

test("many calls at once share a few connections", { skip }, async (t) => {
  const server = await shared();
  const url = await server.database(t);
  const store = await openStore(t, url);
  const answers = await Promise.all(Array.from({ length: 500 }, () => store.accept(anAgentEvent())));
  assert.equal(answers.length, 500);
  assert.ok((await server.connections(url)) <= 16);
});

describe("a server that goes away", { skip }, () => {
  for (const mode of ["fast", "immediate"] as const) {
    test(`by a stop (${mode}) is said with each call, and used again by the same store when it is back`, async (t) => {
      const server = await shared();
      const url = await server.database(t);
      const store = await openStore(t, withPassword(url));
      const kept = anAgentEvent();
      await store.accept(kept);
      const [job] = await store.claimJobs(aClaim());
      const underWay = Array.from({ length: 20 }, () => store.accept(anAgentEvent()).catch((error: unknown) => error));
      await server.stop(mode);
      for (const end of await Promise.all(underWay)) {
        assert.ok(!(end instanceof Error) || end instanceof StoreUnavailable, `${end}`);
      }
      for (let count = 0; count < 3; count += 1) {
        assert.match(
          await unavailable(store.accept(anAgentEvent())),
          /^Cannot use the database "test_\d+" at "127\.0\.0\.1:/,
        );
      }
      await unavailable(store.finishRun(anEndedRun(job!)));
      await unavailable(openPostgres({ url: withPassword(url), schema: "postern", readOnly: false }));
      await server.start();
      assert.equal((await store.accept(anAgentEvent())).duplicate, false);
      assert.equal(await store.finishRun(anEndedRun(job!)), true);
      assert.equal((await store.readEvent({ id: kept.event.id }))?.state, "delivering");
    });
  }

  test("by freezing is said after the time an answer may take, and used again when it goes on", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const store = await openStore(t, withPassword(url), { answerTimeoutMs: 700 });
    await store.accept(anAgentEvent());
    server.freeze();
    const startedAt = performance.now();
    const calls = [store.accept(anAgentEvent()), store.claimJobs(aClaim()), store.listEvents({ limit: 1 })];
    for (const message of await Promise.all(calls.map(unavailable))) assert.match(message, /^Cannot use the database/);
    const opening = openPostgres({ url: withPassword(url), schema: "postern", readOnly: false, answerTimeoutMs: 700 });
    assert.match(await unavailable(opening), /^Cannot open the database "test_\d+" at .*: /);
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs >= 700 && tookMs < 5_000, `${tookMs} ms`);
    server.thaw();
    assert.equal((await store.accept(anAgentEvent({ deliveryId: "after" }))).duplicate, false);
    assert.equal((await store.accept(anAgentEvent({ deliveryId: "after" }))).duplicate, true);
  });

  test("by freezing keeps nobody from closing", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const store = await openPostgres({ url, schema: "postern", readOnly: false, answerTimeoutMs: 700 });
    store.watch(() => {});
    await store.accept(anAgentEvent());
    server.freeze();
    const underWay = unavailable(store.accept(anAgentEvent()));
    const startedAt = performance.now();
    await store.close();
    await underWay;
    assert.ok(performance.now() - startedAt < 5_000);
    server.thaw();
  });

  test("because the network is cut is said, and used again when it is mended", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const network = await startNetwork(server.port);
    t.after(() => network.close());
    const store = await openStore(t, url.replace(`:${server.port}`, `:${network.port}`), { answerTimeoutMs: 500 });
    await store.accept(anAgentEvent());
    network.cut();
    await unavailable(store.accept(anAgentEvent()));
    await unavailable(store.claimJobs(aClaim()));
    await network.mend();
    assert.equal((await store.accept(anAgentEvent())).duplicate, false);
    network.sever();
    await unavailable(store.accept(anAgentEvent()));
    await network.mend();
    assert.equal((await store.accept(anAgentEvent())).duplicate, false);
  });

  test("for connections that nobody uses is not noticed", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const store = await openStore(t, url);
    await Promise.all(Array.from({ length: 30 }, () => store.accept(anAgentEvent())));
    await server.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${new URL(url).pathname.slice(1)}'`,
    );
    await until("the connections to end", async () => (await server.connections(url)) === 0);
    // One of them may still look sound.
    await until("an answer", () => store.accept(anAgentEvent()).catch(() => undefined));
    assert.equal((await store.accept(anAgentEvent())).duplicate, false);
  });

  test("lets the process end that has not closed its store", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const script = `
      import { openPostgres } from ${JSON.stringify(new URL("../../src/store/postgres.ts", import.meta.url).href)};
      const store = await openPostgres({ url: ${JSON.stringify(url)}, schema: "postern", readOnly: false });
      console.log((await store.listEvents({ limit: 1 })).length);`;
    const { code, out, err } = await startProgram(t, [process.execPath, "--input-type=module", "--eval", script]).ended;
    assert.deepEqual([code, out.trim(), err], [0, "0", ""]);
  });
});

describe("news", { skip }, () => {
  /** What a store hears, each thing once. */
  function hear(store: Store): Set<News> {
    const heard = new Set<News>();
    store.watch((news) => heard.add(news));
    return heard;
  }

  async function hearAll(heard: Set<News>): Promise<void> {
    await until("the first look", () => heard.size === 4);
    heard.clear();
  }

  test("arrive at the other stores of the same schema, and at no others", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const [one, two, other] = await Promise.all([
      openStore(t, url),
      openStore(t, url),
      openStore(t, url, { schema: "other" }),
    ]);
    const heard = hear(two);
    const elsewhere = hear(other);
    await Promise.all([hearAll(heard), hearAll(elsewhere)]);
    for (let count = 0; count < 20; count += 1) one.announce("messages");
    one.announce("subscriptions");
    await until("the news", () => heard.size === 2);
    assert.deepEqual([...heard].sort(), ["messages", "subscriptions"]);
    other.announce("jobs");
    await until("its own news", () => elsewhere.size === 1);
    assert.deepEqual([[...heard].sort(), [...elsewhere]], [["messages", "subscriptions"], ["jobs"]]);
  });

  test("are told before a store is closed", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const [one, two] = await Promise.all([
      openPostgres({ url, schema: "postern", readOnly: false }),
      openStore(t, url),
    ]);
    const heard = hear(two);
    await hearAll(heard);
    one.announce("cancelled");
    await one.close();
    await until("the news", () => heard.has("cancelled"));
  });

  test("arrive again after a restart of the server, and everybody looks once, since news may have been missed", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const [one, two] = await Promise.all([openStore(t, url), openStore(t, url)]);
    const heard = hear(two);
    await hearAll(heard);
    await server.restart("fast");
    await hearAll(heard);
    one.announce("jobs");
    await until("the news", () => heard.has("jobs"));
  });

  test("that cannot be told are no error of anybody's", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const store = await openStore(t, url);
    await server.stop("fast");
    store.announce("jobs");
    await unavailable(store.accept(anAgentEvent()));
    await server.start();
    assert.equal((await store.accept(anAgentEvent())).duplicate, false);
  });
});

test("the time is the database's, whatever this machine's clock says", { skip }, async (t) => {
  const server = await shared();
  const url = await server.database(t);
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const store = await openStore(t, url);
  const [row] = await server.query<{ ms: string }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms",
  );
  assert.equal(Date.now(), 0);
  assert.ok(Math.abs(store.now() - Number(row?.ms)) < 2_000);
});
