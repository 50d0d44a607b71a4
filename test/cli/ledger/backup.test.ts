import assert from "node:assert/strict";
import { link, mkdir, open, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { startGatewayProcess } from "../../tools/gateway-process.ts";
import { makeHome, previewConfig } from "../../tools/home.ts";
import { readLedger } from "../../tools/ledger.ts";
import { sendEvent } from "../../tools/send.ts";
import { run, runJson } from "../command.ts";
import { makeLedger, tamper } from "./files.ts";

test("the copy is one file for its owner only, with everything that the ledger holds", async (t) => {
  const home = await makeLedger(t);
  const copy = `${home.folder}/copy.db`;
  const before = (await readdir(home.folder)).sort();
  const { code, out } = await run(home, ["ledger", "backup", copy]);
  assert.equal(code, 0);
  assert.match(out, /^Copied the ledger to ".*copy\.db" \(\d+\.\d KiB\), and the copy is sound\n.* are not in it\n$/);
  assert.deepEqual((await readdir(home.folder)).sort(), [...before, "copy.db"].sort());
  assert.equal((await stat(copy)).mode & 0o777, 0o600);
  assert.deepEqual(await readLedger(copy), await readLedger(home.ledger));
  const check = await runJson<{ ok: boolean }>(home, ["ledger", "check", copy]);
  assert.equal(check.value.ok, true);
});

test("machines are told where it is and how large", async (t) => {
  const home = await makeLedger(t);
  const copy = `${home.folder}/copy.db`;
  const { value } = await runJson(home, ["ledger", "backup", copy]);
  assert.deepEqual(value, { ledger: home.ledger, copy, bytes: (await stat(copy)).size });
});

test("a file that is there is replaced only by --force, and then as a whole", async (t) => {
  const home = await makeLedger(t);
  const copy = `${home.folder}/copy.db`;
  await writeFile(copy, "what was there", { mode: 0o644 });
  const { code, err } = await run(home, ["ledger", "backup", copy]);
  assert.equal(code, 1);
  assert.match(err, /^postern: ".*copy\.db" is there already; name another file, or replace it with --force\n$/);
  assert.equal(await readFile(copy, "utf8"), "what was there");
  assert.equal((await run(home, ["ledger", "backup", copy, "--force"])).code, 0);
  assert.equal((await readLedger(copy)).length, (await readLedger(home.ledger)).length);
  assert.equal((await stat(copy)).mode & 0o777, 0o600);
});

describe("a place where no copy can be", () => {
  test("is the ledger itself, by whatever name, even with --force", async (t) => {
    const home = await makeLedger(t);
    const before = await readFile(home.ledger);
    await symlink(home.data, `${home.folder}/other-way`);
    for (const file of [home.ledger, `${home.ledger}-wal`, `${home.folder}/other-way/ledger.db`]) {
      const { code, err } = await run(home, ["ledger", "backup", file, "--force"]);
      assert.equal(code, 1, file);
      assert.match(err, /belongs to the ledger itself; name another file/);
    }
    assert.deepEqual(await readFile(home.ledger), before);
  });

  test("is a folder, or a folder that is not there", async (t) => {
    const home = await makeLedger(t);
    await mkdir(`${home.folder}/backups`);
    assert.match(
      (await run(home, ["ledger", "backup", `${home.folder}/backups`, "--force"])).err,
      /is a folder; name a file/,
    );
    assert.match(
      (await run(home, ["ledger", "backup", `${home.folder}/none/x.db`])).err,
      /There is no folder ".*none"/,
    );
  });
});

test("without a ledger there is nothing to back up", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await run(home, ["ledger", "backup", `${home.folder}/copy.db`]);
  assert.deepEqual(
    { code, err },
    { code: 1, err: "postern: There is no ledger yet, so there is nothing to back up\n" },
  );
});

test("a damaged ledger gives no copy, and what was there before stays", async (t) => {
  const home = await makeLedger(t);
  const many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)";
  tamper(
    home.ledger,
    `${many} insert into events select 'e' || i, 'r', 't', 'd', 1, printf('%0200d', i), 'filter' from n`,
  );
  const file = await open(home.ledger, "r+");
  const { size } = await file.stat();
  await file.write(Buffer.alloc(8192, 0xa5), 0, 8192, Math.floor(size / 2 / 4096) * 4096);
  await file.close();
  const copy = `${home.folder}/copy.db`;
  await writeFile(copy, "the last good one");
  await link(copy, `${home.folder}/same`);
  const { code, err } = await run(home, ["ledger", "backup", copy, "--force"]);
  assert.equal(code, 1);
  assert.match(err, /damaged; see "postern ledger check"|cannot be copied: database disk image is malformed/);
  assert.equal(await readFile(copy, "utf8"), "the last good one");
  assert.deepEqual((await readdir(home.folder)).sort(), ["copy.db", "data", "same"]);
});

test("of a ledger in PostgreSQL it tells how its own tool does it, without the password", async (t) => {
  const home = await makeHome(t);
  const url = "postgres://postern:hunter2@db.example:5433/hooks?sslpassword=hunter3";
  const env = { POSTERN_HOME: home.folder, POSTERN_STORE_URL: url };
  const { code, err } = await run(home, ["ledger", "backup", `${home.folder}/copy.dump`], { env });
  assert.equal(code, 1);
  assert.match(
    err,
    /pg_dump --schema=postern --format=custom --file=.*copy\.dump "postgres:\/\/postern:\*\*\*@db\.example:5433\/hooks/,
  );
  assert.match(err, /postern events export > events\.jsonl/);
  assert.doesNotMatch(err, /hunter/);
});

test("copies that are made while a gateway accepts are sound, and hold all that was accepted before", async (t) => {
  const home = await makeHome(t, {
    "config.yaml": previewConfig.replace("port: 0", "port: 0\n    rate_limit: 100000"),
  });
  const gateway = await startGatewayProcess(t, home);
  const accepted: string[] = [];
  let isOver = false;
  const sending = (async () => {
    while (!isOver) {
      const sends = Array.from({ length: 8 }, () =>
        sendEvent(gateway.url, "hello", "the-global-secret", { name: "x" }),
      );
      for (const { status, deliveryId } of await Promise.all(sends)) {
        assert.equal(status, 202);
        accepted.push(deliveryId);
      }
    }
  })();
  const copies: { readonly copy: string; readonly atLeast: readonly string[] }[] = [];
  for (let number = 1; number <= 5; number += 1) {
    const copy = `${home.folder}/copy-${number}.db`;
    const atLeast = [...accepted];
    const { code, err } = await run(home, ["ledger", "backup", copy]);
    assert.equal(code, 0, err);
    copies.push({ copy, atLeast });
  }
  isOver = true;
  await sending;
  assert.equal((await gateway.stop()).code, 0);
  assert.ok((copies.at(-1)?.atLeast.length ?? 0) > 0);
  for (const { copy, atLeast } of copies) {
    assert.equal((await runJson<{ ok: boolean }>(home, ["ledger", "check", copy])).value.ok, true);
    const held = new Set((await readLedger(copy)).map(({ deliveryId }) => deliveryId));
    assert.deepEqual(
      atLeast.filter((id) => !held.has(id)),
      [],
    );
  }
});
