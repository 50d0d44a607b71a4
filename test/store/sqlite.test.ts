import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, type TestContext, test } from "node:test";
import { StoreRefused, StoreUnavailable } from "../../src/core/errors.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { makeHome } from "../tools/home.ts";
import { aClaim, anAgentEvent, anEndedRun, newEvent } from "../tools/rows.ts";

async function makeFolder(t: TestContext): Promise<string> {
  return (await makeHome(t)).folder;
}

/** A store that is closed when the test ends. */
async function openStore(t: TestContext, path: string, readOnly = false): Promise<Store> {
  const store = await openSqlite({ path, readOnly });
  t.after(() => store.close());
  return store;
}

/** A ledger with some events, closed. */
async function makeLedger(path: string, events = 20): Promise<void> {
  const store = await openSqlite({ path, readOnly: false });
  for (let count = 0; count < events; count += 1) await store.accept(anAgentEvent({ body: randomBytes(2000) }));
  await store.close();
}

test("what was accepted is there after the store was closed and opened again", async (t) => {
  const path = join(await makeFolder(t), "ledger.db");
  const args = anAgentEvent({ deliveryId: "42", body: Buffer.from("b".repeat(5000)) });
  const first = await openSqlite({ path, readOnly: false });
  await first.accept(args);
  const [job] = await first.claimJobs(aClaim());
  await first.close();
  const second = await openStore(t, path);
  assert.equal((await second.accept(anAgentEvent({ deliveryId: "42" }))).duplicate, true);
  const event = await second.readEvent({ id: args.event.id });
  assert.equal(Buffer.from(event?.body ?? "").toString(), "b".repeat(5000));
  assert.equal(event?.state, "running");
  assert.equal(await second.finishRun(anEndedRun(job!)), true);
});

test("every commit is synced: WAL with synchronous=FULL, and constraints are enforced", async (t) => {
  const path = join(await makeFolder(t), "ledger.db");
  const database = openDatabase(path, { readOnly: false });
  t.after(() => database.close());
  const pragma = (name: string) => Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
  assert.equal(pragma("journal_mode"), "wal");
  assert.equal(pragma("synchronous"), 2);
  assert.equal(pragma("fullfsync"), 1);
  assert.equal(pragma("foreign_keys"), 1);
  assert.ok(Number(pragma("wal_autocheckpoint")) > 0);
  assert.equal(pragma("application_id"), 0x5053544e);
});

test("the file can be read by another program while the store is open", async (t) => {
  const path = join(await makeFolder(t), "ledger.db");
  const store = await openStore(t, path);
  await store.accept(anAgentEvent());
  const reader = await openStore(t, path, true);
  assert.equal((await reader.listEvents({ limit: 10 })).length, 1);
  await store.accept(anAgentEvent());
  assert.equal((await reader.listEvents({ limit: 10 })).length, 2);
});

test("a reader cannot write", async (t) => {
  const path = join(await makeFolder(t), "ledger.db");
  await makeLedger(path, 1);
  const reader = await openStore(t, path, true);
  await assert.rejects(reader.accept(anAgentEvent()));
  assert.equal((await reader.listEvents({ limit: 10 })).length, 1);
});

test("a reader of a ledger that is not there is refused, and makes none", async (t) => {
  const folder = await makeFolder(t);
  const path = join(folder, "ledger.db");
  await assert.rejects(openSqlite({ path, readOnly: true }), (error) => {
    assert.ok(error instanceof StoreUnavailable || error instanceof StoreRefused, `${error}`);
    return true;
  });
  assert.deepEqual(await readdir(folder), []);
});

test("a bug in one call of a group undoes that call alone", async (t) => {
  const store = await openStore(t, join(await makeFolder(t), "ledger.db"));
  const first = anAgentEvent();
  await store.accept(first);
  const good = Array.from({ length: 5 }, () => anAgentEvent());
  const bad = anAgentEvent({ id: first.event.id, deliveryId: "bad" });
  const badJob = anAgentEvent();
  const badPart = { ...badJob, job: { ...badJob.job, id: first.job.id } };
  const group = [good[0]!, bad, good[1]!, badPart, good[2]!, good[3]!, good[4]!];
  // Asked for in one turn: one transaction.
  const ends = await Promise.allSettled(group.map((args) => store.accept(args)));
  assert.deepEqual(
    ends.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled", "fulfilled", "fulfilled"],
  );
  for (const end of ends) {
    if (end.status !== "rejected") continue;
    assert.ok(!(end.reason instanceof StoreUnavailable), "a bug is not an outage");
    assert.match(String(end.reason), /UNIQUE constraint failed/);
  }
  const ids = (await store.listEvents({ limit: 100 })).map(({ id }) => id).sort();
  assert.deepEqual(ids, [first, ...good].map(({ event }) => event.id).sort());
  assert.equal(await store.readEvent({ id: badPart.event.id }), undefined, "no part of the bad call is left");
  assert.equal((await store.accept(anAgentEvent({ deliveryId: "bad" }))).duplicate, false);
});

test("many calls at once are carried out in their order", async (t) => {
  const store = await openStore(t, join(await makeFolder(t), "ledger.db"));
  const ends: number[] = [];
  const calls = Array.from({ length: 500 }, async (_, index) => {
    await store.ignore({ ...newEvent({ body: Buffer.alloc(100) }), reason: `${index}` });
    ends.push(index);
  });
  await Promise.all(calls);
  assert.deepEqual(ends, [...ends.keys()]);
  assert.equal((await store.listEvents({ limit: 1000 })).length, 500);
});

test("a first start that was interrupted before the schema was made is no obstacle", async (t) => {
  const path = join(await makeFolder(t), "ledger.db");
  await writeFile(path, "");
  assert.equal((await (await openStore(t, path)).accept(anAgentEvent())).duplicate, false);
  const half = join(await makeFolder(t), "ledger.db");
  const database = new DatabaseSync(half);
  database.exec("pragma journal_mode = wal");
  database.close();
  assert.equal((await (await openStore(t, half)).accept(anAgentEvent())).duplicate, false);
});

describe("a file that is not a ledger of ours", () => {
  async function refusesUntouched(path: string, sentence: RegExp): Promise<void> {
    const before = await readFile(path);
    for (const readOnly of [false, true]) {
      await assert.rejects(openSqlite({ path, readOnly }), (error) => {
        assert.ok(error instanceof StoreRefused, `${error}`);
        assert.match(error.message, sentence);
        assert.ok(error.message.includes(path), "it names the file");
        return true;
      });
      // Whoever reads a database in WAL mode must make these files; a reader cannot remove them again.
      const left = ["-wal", "-journal"].filter((suffix) => existsSync(`${path}${suffix}`));
      if (!readOnly) assert.deepEqual(left, []);
    }
    assert.ok(before.equals(await readFile(path)), "the file was changed");
  }

  for (const mode of ["delete", "wal"] as const) {
    test(`but another program's database (journal mode ${mode}) is refused and not touched`, async (t) => {
      const path = join(await makeFolder(t), "ledger.db");
      const database = new DatabaseSync(path);
      database.exec(`pragma journal_mode = ${mode}; create table notes (text); insert into notes values ('mine')`);
      database.close();
      await refusesUntouched(path, /is not a ledger of Postern \("postern ledger check" tells more\); move it aside/);
    });
  }

  test("but another program's database that is at work is refused and not touched", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    const database = new DatabaseSync(path);
    t.after(() => database.close());
    database.exec("pragma journal_mode = wal; create table notes (text); insert into notes values ('mine')");
    assert.ok(existsSync(`${path}-wal`));
    for (const readOnly of [false, true]) {
      await assert.rejects(openSqlite({ path, readOnly }), {
        name: "StoreRefused",
        message: /is not a ledger of Postern/,
      });
    }
    const tables = database.prepare("select name from sqlite_schema").all();
    assert.deepEqual(
      tables.map(({ name }) => name),
      ["notes"],
    );
    assert.equal(database.prepare("pragma application_id").get()?.application_id, 0);
  });

  test("but another program's database with its own mark and no table is refused and not touched", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    const database = new DatabaseSync(path);
    database.exec("pragma application_id = 12345");
    database.close();
    await refusesUntouched(path, /is not a ledger of Postern/);
  });

  test("but garbage is refused and not touched", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    await writeFile(path, randomBytes(10_000));
    await refusesUntouched(
      path,
      /is damaged or is not a SQLite database; look with "postern ledger check", then move it aside/,
    );
  });

  test("is named, and how it can be looked at", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    await writeFile(path, "not a database, but long enough to have been one".repeat(10));
    await assert.rejects(openSqlite({ path, readOnly: false }), ({ message }: Error) => {
      return message.includes(`"${path}"`) && message.includes('"postern ledger check"');
    });
  });

  test("but text is refused and not touched", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    await writeFile(path, "platforms:\n  webhook:\n    enabled: true\n");
    await refusesUntouched(path, /is damaged or is not a SQLite database/);
  });

  test("any more, because its end is missing, is refused and not touched", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    await makeLedger(path);
    const { size } = await stat(path);
    await truncate(path, Math.floor(size / 2 / 4096) * 4096);
    await refusesUntouched(path, /is damaged or is not a SQLite database/);
  });

  test("any more, because its first page is garbage, is refused and not touched", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    await makeLedger(path);
    const file = await open(path, "r+");
    await file.write(randomBytes(3000), 0, 3000, 100);
    await file.close();
    await refusesUntouched(path, /is damaged or is not a SQLite database/);
  });

  test("that we know, but of a newer Postern, is refused and not touched", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    await makeLedger(path);
    const database = new DatabaseSync(path);
    database.exec("pragma user_version = 9999");
    database.close();
    const before = await readFile(path);
    for (const readOnly of [false, true]) {
      await assert.rejects(openSqlite({ path, readOnly }), {
        name: "StoreRefused",
        message: /has schema 9999, and this Postern knows \d+; install the newer Postern/,
      });
    }
    assert.ok(before.equals(await readFile(path)), "the file was changed");
  });

  test("but a folder is not made into one", async (t) => {
    const path = join(await makeFolder(t), "ledger.db");
    await mkdir(path);
    await assert.rejects(openSqlite({ path, readOnly: false }));
    assert.deepEqual(await readdir(path), []);
  });
});

/** A file system of a few megabytes, or why there cannot be one. */
function needsMount(): string | false {
  const isRoot = process.getuid?.() === 0;
  const tried = isRoot && spawnSync("mount", ["--version"]).status === 0;
  if (tried) return false;
  const reason = "needs root and mount for a file system that can be full";
  if (process.env.CI === "true") throw new Error(reason);
  return reason;
}

async function mountSmall(t: TestContext): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "postern-small-"));
  t.after(async () => {
    spawnSync("umount", ["-l", folder]);
    await rm(folder, { recursive: true });
  });
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], { encoding: "utf8" });
  if (mounted.status === 0) return folder;
  if (process.env.CI === "true") throw new Error(`mount failed: ${mounted.stderr}`);
  t.diagnostic(`not tested: a file system cannot be mounted here: ${mounted.stderr.trim()}`);
  return undefined;
}

/** Takes all the space that is left. */
async function fill(path: string): Promise<void> {
  const file = await open(path, "w");
  try {
    for (let size = 65_536; size >= 1; size = Math.floor(size / 2)) {
      try {
        for (;;) await file.write(Buffer.alloc(size));
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
      }
    }
  } finally {
    await file.close();
  }
}

describe("a disk that is full", { skip: needsMount() }, () => {
  test("is said with each call, what was kept before stays, and it ends by itself when there is space", async (t) => {
    const folder = await mountSmall(t);
    if (folder === undefined) return;
    const store = await openStore(t, join(folder, "ledger.db"));
    const kept: string[] = [];
    const accept = async () => {
      const args = anAgentEvent({ body: randomBytes(3000) });
      await store.accept(args);
      kept.push(args.event.id);
    };
    for (let count = 0; count < 5; count += 1) await accept();
    await fill(join(folder, "filler"));
    let refused: unknown;
    for (let count = 0; count < 500 && refused === undefined; count += 1) {
      await accept().catch((error: unknown) => {
        refused = error;
      });
    }
    assert.ok(refused instanceof StoreUnavailable, `${refused}`);
    for (let count = 0; count < 3; count += 1) await assert.rejects(accept(), StoreUnavailable);
    await rm(join(folder, "filler"));
    await accept();
    const ids = (await store.listEvents({ limit: 1000 })).map(({ id }) => id).sort();
    assert.deepEqual(ids, kept.sort());
    await store.close();
    const again = await openStore(t, join(folder, "ledger.db"));
    assert.equal((await again.listEvents({ limit: 1000 })).length, kept.length);
    await again.close();
  });

  test("at the first start is said, leaves nothing half made, and a later start succeeds", async (t) => {
    const folder = await mountSmall(t);
    if (folder === undefined) return;
    const path = join(folder, "ledger.db");
    await fill(join(folder, "filler"));
    await assert.rejects(openSqlite({ path, readOnly: false }), StoreUnavailable);
    await rm(join(folder, "filler"));
    const store = await openStore(t, path);
    assert.equal((await store.accept(anAgentEvent())).duplicate, false);
    await store.close();
  });
});

test("a folder that is not there is said, and the ledger can be opened when it is", async (t) => {
  const path = join(await makeFolder(t), "data", "ledger.db");
  await assert.rejects(openSqlite({ path, readOnly: false }), StoreUnavailable);
  await mkdir(join(path, ".."));
  const store = await openStore(t, path);
  assert.equal((await store.accept(anAgentEvent())).duplicate, false);
});
