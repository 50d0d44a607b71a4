import assert from "node:assert/strict";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { makeHome } from "../tools/home.ts";
import { mainPath, type Program, startProgram } from "../tools/program.ts";
import { until } from "../tools/wait.ts";

/** Starts the demo with a folder of its own for what is temporary. */
async function startDemo(t: TestContext, args: readonly string[] = []) {
  const home = await makeHome(t);
  const temporary = join(home.folder, "tmp");
  await mkdir(temporary);
  const env = { HOME: home.folder, TMPDIR: temporary, OPENAI_API_KEY: "sk-hunter2-8675309" };
  const demo = startProgram(t, [process.execPath, mainPath, "demo", ...args], { env });
  return { demo, home, leftovers: () => readdir(temporary) };
}

function addressIn(demo: Program): string | undefined {
  return /A gateway listens on (http:\/\/127\.0\.0\.1:\d+)/.exec(demo.out)?.[1];
}

test("the demo shows its four events, exits 0 and leaves nothing behind", async (t) => {
  const { demo, home, leftovers } = await startDemo(t);
  const { code, out, err } = await demo.ended;
  assert.equal(code, 0, err);
  assert.equal(err, "");
  const steps = out.split(/^(?=\([a-d]\) )/m).slice(1);
  assert.equal(steps.length, 4);
  const [agent, direct, duplicate, forged] = steps;
  assert.match(agent ?? "", /-> 202 \{"status":"accepted","route":"reviews"[\s\S]*run 1 completed[\s\S]*sent to log/);
  assert.match(direct ?? "", /-> 200 \{"status":"delivered","route":"alerts","target":"email"/);
  assert.match(direct ?? "", /> Subject: Alert: checkout[\s\S]*> \[critical\] checkout: Error rate at 12 %/);
  assert.match(duplicate ?? "", /-> 200 \{"status":"duplicate"/);
  assert.match(forged ?? "", /-> 401 \{"error":"Invalid signature"\}/);
  assert.doesNotMatch(out, /hunter2/);
  assert.deepEqual(await leftovers(), []);
  assert.deepEqual(await readdir(home.folder), ["tmp"]);
  await assert.rejects(fetch(`${addressIn(demo)}/health`));
});

test("the demo tells machines the replies in one document", async (t) => {
  const { demo } = await startDemo(t, ["--json"]);
  const { code, out } = await demo.ended;
  assert.equal(code, 0);
  const { ok, replies } = JSON.parse(out) as { ok: boolean; replies: { step: string; status: number }[] };
  assert.equal(ok, true);
  assert.deepEqual(
    replies.map(({ step, status }) => [step, status]),
    [
      ["agent", 202],
      ["direct", 200],
      ["duplicate", 200],
      ["forged", 401],
    ],
  );
});

test("a demo that is interrupted leaves nothing behind either", async (t) => {
  const { demo, leftovers } = await startDemo(t);
  const url = await until("the demo's gateway", () => addressIn(demo));
  demo.kill("SIGTERM");
  const { code, err } = await demo.ended;
  assert.equal(code, 1);
  assert.equal(err, "postern: The demo was interrupted\n");
  assert.deepEqual(await leftovers(), []);
  await assert.rejects(fetch(`${url}/health`));
});

test("a demo that is killed takes its gateway with it", async (t) => {
  const { demo } = await startDemo(t);
  const url = await until("the demo's gateway", () => addressIn(demo));
  demo.kill("SIGKILL");
  await demo.ended;
  await until("the gateway to be gone", () =>
    fetch(`${url}/health`).then(
      () => false,
      () => true,
    ),
  );
});
