import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { missing } from "../needs.ts";
import { makeHome } from "../tools/home.ts";
import { type Ended, startProgram } from "../tools/program.ts";

const harness = fileURLToPath(new URL("../../chaos/run.ts", import.meta.url));
const linux = process.platform === "linux" ? false : "processes and memory are read from /proc";

/** A short run of what `npm run chaos` does at length. */
async function chaos(t: TestContext, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const argv = [process.execPath, harness, "--seed", "20260115", "--no-comments", ...args];
  const ended = await startProgram(t, argv, { env }).ended;
  t.diagnostic(ended.out + ended.err);
  return ended;
}

function assertClean({ code, out, err }: Ended, rounds: number): void {
  assert.equal(code, 0, out + err);
  assert.equal(out.match(/^round .* ok$/gm)?.length, rounds, out);
  assert.match(out, /^lost +0$/m);
  assert.match(out, /^violations +0$/m);
  assert.ok(Number(/^promised.*?(\d+)$/m.exec(out)?.[1]) > rounds * 20, "events were taken");
}

test("a gateway that is killed, stopped, and has its disk filled loses nothing and sends nothing twice but in flight", {
  skip: linux,
}, async (t) => {
  const short = ["--rounds", "3", "--events", "60", "--seconds", "2"];
  assertClean(await chaos(t, ["--store", "sqlite", "--faults", "kill,stop,disk", ...short]), 3);
});

test("neither do three gateways on a database that crashes and is cut off", {
  skip: linux || missing("postgres"),
}, async (t) => {
  const short = ["--rounds", "3", "--events", "90", "--seconds", "2", "--lease", "3"];
  assertClean(await chaos(t, ["--store", "postgres", "--faults", "kill,db-crash,cut", ...short]), 3);
});

for (const [sabotage, kind] of [
  ["forget", "LOST"],
  ["repeat", "TWICE"],
] as const) {
  test(`the harness finds it when a target ${sabotage}s a message`, { skip: linux }, async (t) => {
    const short = ["--rounds", "1", "--events", "20", "--seconds", "1", "--faults", "stop"];
    // What it keeps to look into goes with the test.
    const { folder } = await makeHome(t);
    const args = ["--store", "sqlite", "--sabotage", sabotage, ...short];
    const { code, out } = await chaos(t, args, { TMPDIR: folder });
    assert.equal(code, 1);
    assert.match(out, new RegExp(`^  ${kind} event \\d+: `, "m"));
    assert.match(out, /kept in \//);
  });
}
