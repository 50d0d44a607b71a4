import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { takeLock } from "../../../src/lib/lock.ts";
import { startGatewayProcess } from "../../tools/gateway-process.ts";
import { makeHome, previewConfig, type TestHome } from "../../tools/home.ts";
import { readLedger } from "../../tools/ledger.ts";
import { aRecord } from "../../tools/records.ts";
import { noon } from "../../tools/rows.ts";
import { sendEvent } from "../../tools/send.ts";
import { run, runJson } from "../command.ts";
import { makeLedger, tamper, withFile } from "./files.ts";

interface Sizes {
  readonly before: number;
  readonly after: number;
  readonly freed: number;
}

const MiB = 1024 * 1024;

/** Adds 4 MiB of events to a home's ledger, and forgets them again. */
async function makeHoles(home: TestHome): Promise<void> {
  await withFile(home.ledger, async (store) => {
    for (let index = 0; index < 400; index += 1) {
      const record = aRecord({ at: noon - 90 * 86_400_000 + index, body: randomBytes(10_240) });
      await store.importEvent({ record, now: noon, claimUntil: null, unfinished: "resume" });
    }
    for (let after: string | undefined = ""; after !== undefined; ) {
      const before = { done: noon - 30 * 86_400_000 };
      after = (await store.prune({ after, limit: 100, before })).next;
    }
  });
}

async function compact(home: TestHome): Promise<Sizes> {
  const { code, value, err } = await runJson<Sizes>(home, ["ledger", "compact"]);
  assert.equal(code, 0, err);
  return value;
}

async function makeWithHoles(t: TestContext, config = ""): Promise<TestHome> {
  const home = await makeLedger(t, { "config.yaml": config });
  await makeHoles(home);
  return home;
}

test("gives the space of what was forgotten back, and loses nothing", async (t) => {
  const home = await makeWithHoles(t);
  const events = await readLedger(home.ledger);
  const { size } = await stat(home.ledger);
  const { before, after, freed } = await compact(home);
  assert.equal(before, size);
  assert.equal(after, (await stat(home.ledger)).size);
  assert.equal(freed, before - after);
  assert.ok(freed > 3 * MiB, `${freed} bytes`);
  assert.deepEqual(await readLedger(home.ledger), events);
  assert.equal((await run(home, ["ledger", "check"])).code, 0);
  assert.ok((await compact(home)).freed < MiB, "and has nothing left to do");
});

test("tells a person how much", async (t) => {
  const home = await makeWithHoles(t);
  const { out } = await run(home, ["ledger", "compact"]);
  assert.match(out, /^The ledger took up \d\.\d MiB and takes up \d+\.\d KiB now: \d\.\d MiB are free again\n$/);
});

test("works while a gateway accepts, which goes on answering", async (t) => {
  const config = previewConfig.replace("port: 0", "port: 0\n    rate_limit: 100000");
  const home = await makeWithHoles(t, config);
  const gateway = await startGatewayProcess(t, home);
  const accepted: string[] = [];
  let isOver = false;
  const sending = (async () => {
    while (!isOver) {
      const { status, deliveryId } = await sendEvent(gateway.url, "hello", "the-global-secret", { name: "x" });
      assert.equal(status, 202);
      accepted.push(deliveryId);
    }
  })();
  const { freed } = await compact(home);
  isOver = true;
  await sending;
  assert.equal((await gateway.stop()).code, 0);
  assert.ok(freed > 3 * MiB, `${freed} bytes`);
  assert.ok(accepted.length > 0);
  const held = new Set((await readLedger(home.ledger)).map(({ deliveryId }) => deliveryId));
  assert.deepEqual(
    accepted.filter((id) => !held.has(id)),
    [],
  );
  assert.equal((await run(home, ["ledger", "check"])).code, 0);
});

function autoVacuum(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return Number(database.prepare("pragma auto_vacuum").get()?.auto_vacuum);
  } finally {
    database.close();
  }
}

test("wants the gateway stopped once for a ledger that an older Postern made", async (t) => {
  const home = await makeWithHoles(t);
  tamper(home.ledger, "pragma auto_vacuum = none; vacuum");
  await makeHoles(home);
  const events = await readLedger(home.ledger);
  assert.equal(autoVacuum(home.ledger), 0);
  const lock = takeLock(join(home.data, "gateway.lock"), 0);
  const { code, err } = await run(home, ["ledger", "compact"]);
  lock?.release();
  assert.equal(code, 1);
  assert.match(
    err,
    /^postern: A gateway is running on ".*"; this ledger was made by an older Postern: stop the gateway/,
  );
  assert.ok((await compact(home)).freed > 3 * MiB);
  assert.equal(autoVacuum(home.ledger), 2, "from now on it goes while a gateway runs");
  assert.deepEqual(await readLedger(home.ledger), events);
});

test("without a ledger there is nothing to compact", async (t) => {
  const { code, err } = await run(await makeHome(t), ["ledger", "compact"]);
  assert.deepEqual(
    { code, err },
    { code: 1, err: "postern: There is no ledger yet, so there is nothing to compact\n" },
  );
});

test("another program's file is refused and left as it is", async (t) => {
  const home = await makeLedger(t);
  tamper(home.ledger, "pragma application_id = 7");
  const { code, err } = await run(home, ["ledger", "compact"]);
  assert.equal(code, 1);
  assert.match(err, /is not a ledger of Postern/);
});
