import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LineWriter } from "../../src/lib/lines.ts";

async function scratch(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "postern-lines-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "log");
}

test("lines are written in order, and a flush waits for all of them", async (t) => {
  const path = await scratch(t);
  const descriptor = openSync(path, "w");
  t.after(() => closeSync(descriptor));
  const writer = new LineWriter(descriptor);
  const lines = Array.from({ length: 1000 }, (_, number) => `line ${number} é\n`);
  for (const line of lines) writer.write(line);
  await writer.flush(5_000);
  assert.equal(readFileSync(path, "utf8"), lines.join(""));
  await writer.flush(5_000);
});

test("a descriptor that takes nothing more loses lines but breaks nothing", async () => {
  const descriptor = openSync("/dev/full", "w");
  const writer = new LineWriter(descriptor);
  writer.write("lost\n");
  await writer.flush(5_000);
  writer.write("lost too\n");
  await writer.flush(5_000);
  closeSync(descriptor);
});
