import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, type TestContext, test } from "node:test";
import { Client } from "pg";
import { missing } from "../needs.ts";
import { sharedPostgres, startPostgres } from "./postgres.ts";
import { hasEnded, isStopped } from "./process.ts";
import { startProgram } from "./program.ts";
import { until } from "./wait.ts";

/** A connection that is ended with the test; what befalls it is asked of its queries. */
async function connectTo(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  t.after(() => client.end());
  await client.connect();
  return client;
}

describe("a PostgreSQL server for tests", { skip: missing("postgres") }, () => {
  const shared = sharedPostgres({ settings: { fsync: "off", synchronous_commit: "off", work_mem: "3MB" } });

  test("takes settings, and syncs whatever they say", async () => {
    const server = await shared();
    const names = ["fsync", "synchronous_commit", "work_mem", "listen_addresses", "server_encoding"];
    const rows = await server.query<{ setting: string }>(
      `select current_setting(name) as setting from unnest(array['${names.join("','")}']) as name`,
    );
    assert.deepEqual(
      rows.map(({ setting }) => setting),
      ["on", "on", "3MB", "127.0.0.1", "UTF8"],
    );
  });

  test("gives each test a database of its own", async (t) => {
    const server = await shared();
    const urls = await Promise.all([server.database(t), server.database(t)]);
    for (const url of urls) await server.query("create table mine (word text)", url);
    assert.notEqual(urls[0], urls[1]);
  });

  test("drops it with its connections when the test ends, even from a server that was stopped or frozen", async (t) => {
    const server = await shared();
    const names = async () => {
      const rows = await server.query<{ datname: string }>("select datname from pg_database order by 1");
      return rows.map(({ datname }) => datname);
    };
    const end: (() => Promise<void>)[] = [];
    const ending = { after: (hook: () => Promise<void>) => void end.push(hook) } as Pick<TestContext, "after">;
    for (const leave of [() => server.stop("fast"), () => server.freeze()]) {
      const before = await names();
      const url = await server.database(ending);
      await connectTo(t, url);
      await leave();
      await end.pop()?.();
      assert.deepEqual(await names(), before, url);
    }
  });

  test("counts the connections to a database", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    assert.equal(await server.connections(url), 0);
    const client = await connectTo(t, url);
    assert.equal(await server.connections(url), 1);
    await client.end();
    await until("the end of the connection", async () => (await server.connections(url)) === 0);
  });

  for (const mode of ["fast", "immediate"] as const) {
    test(`keeps its data over a restart, ${mode}`, async (t) => {
      const server = await shared();
      const url = await server.database(t);
      await server.query("create table kept (word text)", url);
      await server.query("insert into kept values ('Zürich')", url);
      const pid = server.pid();
      await server.restart(mode);
      assert.notEqual(server.pid(), pid);
      assert.deepEqual(await server.query("select word from kept", url), [{ word: "Zürich" }]);
    });
  }

  test("starts again after its postmaster was killed", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    const client = await connectTo(t, url);
    const pid = server.pid();
    process.kill(pid, "SIGKILL");
    await until("the end of the postmaster", () => hasEnded(pid));
    await until("the end of the connection", () =>
      client
        .query("select 1")
        .then(() => false)
        .catch(() => true),
    );
    await assert.rejects(server.query("select 1"));
    await server.start();
    assert.deepEqual(await server.query("select 1 as one", url), [{ one: 1 }]);
  });

  test("refuses connections while it is stopped", async (t) => {
    const server = await shared();
    const url = await server.database(t);
    await server.stop("fast");
    await assert.rejects(server.query("select 1", url), { code: "ECONNREFUSED" });
    assert.throws(() => server.pid(), /does not run/);
    await server.start();
    assert.deepEqual(await server.query("select 1 as one", url), [{ one: 1 }]);
  });

  test("when frozen, answers nothing until it is thawed", async (t) => {
    const server = await shared();
    const client = await connectTo(t, await server.database(t));
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const backend = rows[0]!.pid;
    server.freeze();
    assert.deepEqual([server.pid(), backend].map(isStopped), [true, true]);
    const milliseconds = "select extract(epoch from clock_timestamp())::float8 * 1000 as now";
    const answers = [
      client.query<{ now: number }>(milliseconds).then((answer) => answer.rows),
      server.query(milliseconds),
    ];
    await until("the query to wait in the kernel", () => waitingBytes(server.port) > 0);
    const thawedAt = Date.now();
    server.thaw();
    for (const [row] of await Promise.all(answers)) assert.ok(Number(row?.now) >= thawedAt);
  });

  test("stops while it is frozen", async (t) => {
    const server = await shared();
    await server.database(t);
    server.freeze();
    await server.restart("immediate");
    assert.equal((await server.query("select 1")).length, 1);
  });

  test("leaves nothing behind when it is closed", async () => {
    const server = await startPostgres();
    const [row] = await server.query<{ data_directory: string }>("show data_directory");
    const pid = server.pid();
    await server.close();
    assert.deepEqual([hasEnded(pid), existsSync(row!.data_directory)], [true, false]);
  });

  test("says why it cannot start", async () => {
    await assert.rejects(startPostgres({ settings: { max_connections: "few" } }), /does not start: .*max_connections/s);
  });

  test("ends with the process that started it, even when that is killed and the server is frozen", async (t) => {
    const script = `
      import { startPostgres } from ${JSON.stringify(new URL("postgres.ts", import.meta.url).href)};
      const server = await startPostgres();
      const [{ data_directory }] = await server.query("show data_directory");
      const [{ pid }] = await server.query("select pid from pg_stat_activity where backend_type = 'checkpointer'");
      server.freeze();
      console.error(JSON.stringify({ pids: [server.pid(), pid], folder: data_directory }));
      setInterval(() => {}, 60_000);
    `;
    const program = startProgram(t, [process.execPath, "--input-type=module", "--eval", script]);
    const [line] = await program.said(/^\{.*\}$/m);
    const { pids, folder } = JSON.parse(line) as { pids: number[]; folder: string };
    assert.deepEqual(pids.map(isStopped), [true, true]);
    program.kill("SIGKILL");
    await until("the end of the server", () => pids.every(hasEnded) && !existsSync(folder));
  });
});

/** Bytes that came to the port of 127.0.0.1 and were not read yet (Linux). */
function waitingBytes(port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/net/tcp", "utf8").split("\n");
  const established = lines.map((line) => line.trim().split(/\s+/)).filter((at) => at[1] === local && at[3] === "01");
  return established.reduce((sum, at) => sum + Number.parseInt(at[4]!.split(":")[1]!, 16), 0);
}
