import assert from "node:assert/strict";
import { open, stat, truncate, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { describe, type TestContext, test } from "node:test";
import { startGatewayProcess } from "../../tools/gateway-process.ts";
import { makeHome, previewConfig, type TestHome } from "../../tools/home.ts";
import { sendEvent } from "../../tools/send.ts";
import { run, runJson } from "../command.ts";
import { makeLedger, makeOldFile, tamper } from "./files.ts";

interface Report {
  readonly ok: boolean;
  readonly damage: readonly string[];
  readonly violations: readonly string[];
  readonly notes: readonly string[];
}

async function check(home: TestHome, ...args: string[]) {
  const { code, value } = await runJson<Report>(home, ["ledger", "check", ...args]);
  return { code, ...value };
}

test("a ledger in which everything happens at once is sound", async (t) => {
  const home = await makeLedger(t);
  const { code, out } = await run(home, ["ledger", "check"]);
  assert.deepEqual({ code, out }, { code: 0, out: `The ledger "${home.ledger}" is sound\n` });
  assert.deepEqual(await check(home), {
    ...{ code: 0, ok: true, ledger: home.ledger, damage: [], violations: [], notes: [] },
  });
});

test("where there is no ledger yet, nothing is wrong", async (t) => {
  const home = await makeHome(t);
  assert.deepEqual(await run(home, ["ledger", "check"]), { code: 0, out: "There is no ledger yet\n", err: "" });
});

const one = (table: string, where: string) => `id = (select id from ${table} where ${where} limit 1)`;

/** What somebody did to the file, and what is said of it. */
const plants: readonly (readonly [what: string, sql: string, violation: RegExp])[] = [
  [
    "a job in a state that nobody knows",
    `update jobs set state = 'asleep' where ${one("jobs", "state = 'done'")}`,
    /^The job \S+ is in a state that nobody knows, "asleep"$/,
  ],
  [
    "a message in a state that nobody knows",
    `update messages set state = 'lost' where ${one("messages", "state = 'sent'")}`,
    /^The message \S+ is in a state that nobody knows, "lost"$/,
  ],
  [
    "an accepted event without a job",
    "insert into events values ('e', 'r', 't', 'd', 1, '{}', null); insert into bodies values ('e', x'', 'none')",
    /^The event e was accepted, but no job follows it$/,
  ],
  [
    "an event without a body",
    "delete from bodies where event_id = (select id from events limit 1)",
    /^The event \S+ has lost its body$/,
  ],
  [
    "a delivering job with nothing to deliver",
    "update messages set state = 'dead' where job_id = (select id from jobs where state = 'delivering' limit 1)",
    /^The job \S+ is "delivering", but none of its messages is left to be sent$/,
  ],
  [
    "a message that outlives its job",
    `update messages set state = 'pending' where ${one("messages", "state = 'sent'")}`,
    /^The job \S+ has ended, but its message \S+ is still "pending"$/,
  ],
  [
    "a message before its answer",
    "update messages set state = 'cancelled' where job_id = (select id from jobs where state = 'queued' limit 1)",
    /^The message \S+ is "cancelled" before its job \S+ has an answer$/,
  ],
  [
    "a message that is held after its answer",
    `update messages set state = 'held' where ${one("messages", "state = 'pending'")}`,
    /^The message \S+ is "held", but its job \S+ has its answer$/,
  ],
  [
    "a message on its way without a text",
    `update messages set text = null where ${one("messages", "state = 'pending'")}`,
    /^The message \S+ is "pending" and has no text$/,
  ],
  [
    "a message that waits for nothing",
    `update messages set lane = 'elsewhere' where ${one("messages", "state = 'waiting'")}`,
    /^The message \S+ waits for an earlier one to the same place, but there is none$/,
  ],
  [
    "two messages to one place at the same time",
    `update messages set state = 'pending' where ${one("messages", "state = 'waiting'")}`,
    /^The messages \S+ and \S+ go to the same place and are both on their way$/,
  ],
  [
    "a message that was given up for another which is not there",
    `update messages set state = 'replaced' where ${one("messages", "state = 'dead'")}`,
    /^The message \S+ was given up for the next of its fallback, but there is none$/,
  ],
  [
    "a message instead of one that was not given up",
    `update messages set replaces = (select id from messages where state = 'sent' limit 1)
     where ${one("messages", "state = 'pending'")}`,
    /^The message \S+ goes instead of \S+, but that one is "sent"$/,
  ],
  [
    "a running job without a lease",
    "update jobs set owner = null, lease_until = null where state = 'running'",
    /^The job \S+ is "running", but nobody has a lease on it$/,
  ],
  [
    "a lease on a job that has ended",
    `update jobs set owner = 'a ghost' where ${one("jobs", "state = 'done'")}`,
    /^The job \S+ is "done", but "a ghost" has a lease on it$/,
  ],
  [
    "a message that is being sent without a lease",
    `update messages set lease_until = null where ${one("messages", "state = 'sending'")}`,
    /^The message \S+ is "sending", but nobody has a lease on it$/,
  ],
  [
    "a running job without a run",
    "delete from runs where job_id = (select id from jobs where state = 'running' limit 1)",
    /^The job \S+ is "running", but no run of it is under way$/,
  ],
  [
    "a run that never ended",
    "insert into runs (job_id, number, started_at) select id, 7, 1 from jobs where state = 'done' limit 1",
    /^The job \S+ is "done", but an old run of it has not ended$/,
  ],
  [
    "a try that never ended",
    "insert into attempts (message_id, number, started_at) select id, 7, 1 from messages where state = 'sent' limit 1",
    /^The message \S+ is "sent", but an old try of it has not ended$/,
  ],
  [
    "a delivery id that stays taken after a refusal",
    "insert into claims select route, delivery_id, id, 9999999999999 from events where id in (select event_id from jobs where state = 'refused')",
    /^The delivery id of the event \S+ is taken, but its sender was told to send again$/,
  ],
];

describe("a violation of the ledger's own rules", () => {
  for (const [what, sql, violation] of plants) {
    test(`is found: ${what}`, async (t) => {
      const home = await makeLedger(t);
      tamper(home.ledger, sql);
      const { code, ok, damage, violations } = await check(home);
      assert.deepEqual({ code, ok, damage }, { code: 1, ok: false, damage: [] });
      // One thing that is wrong makes others wrong.
      assert.ok(
        violations.some((line) => violation.test(line)),
        violations.join("\n"),
      );
    });
  }

  test("is one line, followed by what to do", async (t) => {
    const home = await makeLedger(t);
    tamper(home.ledger, `update jobs set owner = 'a ghost' where ${one("jobs", "state = 'done'")}`);
    const { code, out } = await run(home, ["ledger", "check"]);
    assert.equal(code, 1);
    assert.match(
      out,
      /^The ledger ".*" is not sound:\n {2}The job \S+ is "done", .*\n\nWhat to do: .*postern events cancel ID/s,
    );
  });

  test("that is there many times is told a few times, with the number of the others", async (t) => {
    const home = await makeLedger(t);
    const many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 50)";
    tamper(home.ledger, `${many} insert into events select 'e' || i, 'r', 't', 'd', 1, '{}', null from n`);
    const { violations } = await check(home);
    assert.equal(violations.length, 42);
    assert.equal(violations.filter((line) => line === "… and 30 more like the last one").length, 2);
  });
});

async function overwrite(path: string, at: number, bytes: number): Promise<void> {
  const file = await open(path, "r+");
  await file.write(Buffer.alloc(bytes, 0xa5), 0, bytes, at);
  await file.close();
}

/** A ledger whose file is more than a few pages long. */
async function makeLong(t: TestContext): Promise<TestHome> {
  const home = await makeLedger(t);
  const many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)";
  tamper(
    home.ledger,
    `${many} insert into events select printf('e%04d', i), 'r', 't', 'd', 1, printf('%0200d', i), 'filter' from n;
     insert into bodies select id, x'00', 'none' from events where id like 'e%'`,
  );
  return home;
}

describe("damage", () => {
  test("in the middle of the file is found, and what can be read is checked all the same", async (t) => {
    const home = await makeLong(t);
    tamper(home.ledger, `update jobs set owner = 'a ghost' where ${one("jobs", "state = 'done'")}`);
    const database = new DatabaseSync(home.ledger, { readOnly: true });
    const { page } = database
      .prepare("select max(pageno) as page from dbstat where name = 'events' and pagetype = 'leaf'")
      .get() as {
      page: number;
    };
    database.close();
    await overwrite(home.ledger, (page - 1) * 4096, 4096);
    const { code, damage, violations } = await check(home);
    assert.equal(code, 1);
    assert.ok(damage.length > 0);
    assert.ok(violations.some((line) => /"a ghost" has a lease/.test(line)));
    const { out } = await run(home, ["ledger", "check"]);
    assert.match(out, /What to do:\n {2}1\. Stop the gateway\n.*postern events export > events\.jsonl/);
  });

  test("of a file that was cut off is found", async (t) => {
    const home = await makeLong(t);
    const { size } = await stat(home.ledger);
    await truncate(home.ledger, Math.floor(size / 2 / 4096) * 4096);
    const { code, damage } = await check(home);
    assert.equal(code, 1);
    assert.ok(damage.length > 0);
  });

  test("of the first page is found", async (t) => {
    const home = await makeLong(t);
    await overwrite(home.ledger, 0, 100);
    const { code, damage } = await check(home);
    assert.equal(code, 1);
    assert.deepEqual(damage, ["Its first page is not that of a SQLite database"]);
  });

  test("behind a good header is found", async (t) => {
    const home = await makeLong(t);
    await overwrite(home.ledger, 100, 3996);
    const { code, damage } = await check(home);
    assert.equal(code, 1);
    assert.ok(
      damage.some((line) => /malformed/.test(line)),
      damage.join("\n"),
    );
  });

  test("inside a packed body, which SQLite does not see, is found", async (t) => {
    const home = await makeLedger(t);
    tamper(home.ledger, "update bodies set body = zeroblob(64) where codec = 'zstd'");
    const { code, damage } = await check(home);
    assert.equal(code, 1);
    assert.equal(damage.length, 3);
    assert.match(damage[0] ?? "", /^The body of the event \S+ cannot be unpacked: /);
  });

  test("by rows that belong to nothing is found", async (t) => {
    const home = await makeLedger(t);
    tamper(home.ledger, "delete from jobs where state in ('done', 'dead')");
    const { code, damage } = await check(home);
    assert.equal(code, 1);
    assert.deepEqual(damage, ['A row of "messages" belongs to one of "jobs" that is not there (2 times)']);
  });

  test("is what another program's file is, which is not touched", async (t) => {
    const home = await makeHome(t);
    const path = `${home.folder}/other.db`;
    const database = new DatabaseSync(path);
    database.exec("create table t (a)");
    database.close();
    const { code, damage } = await check(home, path);
    assert.equal(code, 1);
    assert.deepEqual(damage, ["It does not have the mark of a ledger of Postern"]);
    await writeFile(path, "Dear diary");
    assert.deepEqual((await check(home, path)).damage, ["Its first page is not that of a SQLite database"]);
  });
});

test("another file is checked when it is named", async (t) => {
  const good = await makeLedger(t);
  const home = await makeHome(t);
  assert.equal((await check(home, good.ledger)).ok, true);
  const { code, err } = await run(home, ["ledger", "check", `${home.folder}/none.db`]);
  assert.deepEqual({ code, err }, { code: 1, err: `postern: There is no file "${home.folder}/none.db"\n` });
});

test("of a ledger of an older Postern only the file is checked, and that is said", async (t) => {
  const home = await makeHome(t);
  const path = `${home.folder}/old.db`;
  makeOldFile(path);
  const { code, notes } = await check(home, path);
  assert.equal(code, 0);
  assert.match(notes[0] ?? "", /^It has schema 1, and this Postern knows \d+: only the file itself was checked$/);
});

test("a ledger is checked while a gateway works on it", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const gateway = await startGatewayProcess(t, home);
  const sends = Array.from({ length: 100 }, (_, index) =>
    sendEvent(gateway.url, "hello", "the-global-secret", { name: `n${index}` }),
  );
  const checks = [await check(home), await check(home), await check(home)];
  await Promise.all(sends);
  for (const { code, damage, violations } of checks) {
    assert.deepEqual({ code, damage, violations }, { code: 0, damage: [], violations: [] });
  }
  assert.equal((await gateway.stop()).code, 0);
});
