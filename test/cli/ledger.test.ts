import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type StoreMode, withStore, withStoreAt } from "../../src/cli/ledger.ts";
import { makePrivateFolder } from "../../src/lib/file.ts";
import { takeLock } from "../../src/lib/lock.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { anAgentEvent } from "../tools/rows.ts";
import { makeOldFile, schemaOf, withFile } from "./ledger/files.ts";

async function makeEmpty(t: TestContext): Promise<TestHome> {
  const home = await makeHome(t);
  await makePrivateFolder(home.data);
  return home;
}

function count(home: TestHome, mode: StoreMode): Promise<number | undefined> {
  const settings = { kind: "sqlite", path: home.ledger } as const;
  return withStoreAt(home, settings, mode, async (store) => (await store.listEvents({ limit: 10 })).length);
}

test("without a ledger there is nothing to read, and nothing is made, unless that is asked for", async (t) => {
  const home = await makeEmpty(t);
  assert.equal(await count(home, "read"), undefined);
  assert.equal(await count(home, "write"), undefined);
  assert.equal(existsSync(home.ledger), false);
  assert.equal(await count(home, "create"), 0);
  assert.equal(existsSync(home.ledger), true);
});

test("the store is the one that the configuration names", async (t) => {
  const home = await makeEmpty(t);
  const context = { env: { POSTERN_HOME: home.folder, POSTERN_STORE_URL: "mysql://db/x" } } as never;
  const failing = withStore(context, {}, "read", async () => 1);
  await assert.rejects(failing, {
    name: "ConfigError",
    message: /POSTERN_STORE_URL: Expected the address of a PostgreSQL/,
  });
});

test("one process reads and another writes while a third has the ledger open", async (t) => {
  const home = await makeEmpty(t);
  await withFile(home.ledger, async (gateway) => {
    await gateway.accept(anAgentEvent());
    const settings = { kind: "sqlite", path: home.ledger } as const;
    await withStoreAt(home, settings, "write", (store) => store.accept(anAgentEvent()));
    await gateway.accept(anAgentEvent());
    assert.equal(await count(home, "read"), 3);
  });
});

test("what is only read is not written to", async (t) => {
  const home = await makeEmpty(t);
  await count(home, "create");
  const settings = { kind: "sqlite", path: home.ledger } as const;
  await assert.rejects(
    withStoreAt(home, settings, "read", (store) => store.accept(anAgentEvent())),
    /readonly|read-only/,
  );
});

test("the store is closed when its use fails", async (t) => {
  const home = await makeEmpty(t);
  await count(home, "create");
  const settings = { kind: "sqlite", path: home.ledger } as const;
  const failing = withStoreAt(home, settings, "write", async () => {
    throw new Error("No");
  });
  await assert.rejects(failing, { message: "No" });
  assert.equal(existsSync(`${home.ledger}-wal`), false, "SQLite takes its log away with the last connection");
});

test("an older schema is not brought up to date only to read, but to write", async (t) => {
  const home = await makeEmpty(t);
  makeOldFile(home.ledger);
  await assert.rejects(count(home, "read"), { name: "StoreRefused", message: /start the gateway once/ });
  assert.equal(schemaOf(home.ledger), 1);
  assert.equal(await count(home, "write"), 1);
  assert.ok(schemaOf(home.ledger) > 1);
  assert.equal(await count(home, "read"), 1);
});

test("an older schema is left as it is while a gateway runs on it", async (t) => {
  const home = await makeEmpty(t);
  makeOldFile(home.ledger);
  const lock = takeLock(join(home.data, "gateway.lock"), 0);
  t.after(() => lock?.release());
  await assert.rejects(count(home, "write"), { name: "UserError", message: /^A gateway is running on .* stop it/ });
  assert.equal(schemaOf(home.ledger), 1);
});
