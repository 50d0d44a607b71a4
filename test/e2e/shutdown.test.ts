import assert from "node:assert/strict";
import { test } from "node:test";
import { missing } from "../needs.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { readLedger } from "../tools/ledger.ts";
import { hasEnded } from "../tools/process.ts";
import { until } from "../tools/wait.ts";

const secret = "the-secret-of-the-stopped";

/** An agent that tells that it has begun and ends when a file appears. */
const agent = (home: TestHome) => `#!/bin/sh
echo $$ >> ${home.folder}/begun
while [ ! -e ${home.folder}/go ]; do sleep 0.05; done
cat
`;

async function startWith(t: Parameters<typeof makeHome>[0], timeout: string) {
  const home = await makeHome(t);
  await home.write("agent.sh", agent(home));
  await home.write(
    "config.yaml",
    `platforms: { webhook: { enabled: true, host: 127.0.0.1, port: 0, secret: ${secret}, routes: { r: { prompt: "{n}" } } } }
agent: { backend: command, command: [sh, ${home.folder}/agent.sh] }
shutdown_timeout: ${timeout}
`,
  );
  const gateway = await startGatewayProcess(t, home);
  const begun = async () => ((await home.read("begun").catch(() => "")).match(/\d+/g) ?? []).map(Number);
  return { home, gateway, begun };
}

test("SIGTERM lets a run finish, records its answer and exits 0", async (t) => {
  const { home, gateway, begun } = await startWith(t, "30");
  assert.equal((await postGithubEvent(`${gateway.url}/webhooks/r`, { secret, body: '{"n":1}' })).status, 202);
  await until("the run", async () => (await begun()).length === 1);
  gateway.kill("SIGTERM");
  await gateway.said(/Stopping/);
  await assert.rejects(fetch(`${gateway.url}/health`), "no more requests are taken");
  await home.write("go", "");
  assert.equal((await gateway.ended).code, 0);
  const [event] = await readLedger(home.ledger);
  assert.equal(event?.jobs[0]?.runs[0]?.outcome, "completed");
});

test("a run that outlives the shutdown timeout is ended, given back, and run again by the next gateway", async (t) => {
  const { home, gateway, begun } = await startWith(t, "200ms");
  assert.equal((await postGithubEvent(`${gateway.url}/webhooks/r`, { secret, body: '{"n":1}' })).status, 202);
  const [pid = 0] = await until("the run", async () => ((await begun()).length === 1 ? begun() : undefined));
  assert.equal((await gateway.stop()).code, 0);
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" }, "the program is gone");
  const [event] = await readLedger(home.ledger);
  assert.equal(event?.state, "queued");
  assert.equal(event?.jobs[0]?.runs[0]?.outcome, "released");

  await home.write("go", "");
  const next = await startGatewayProcess(t, home);
  await until("the second run", async () => (await readLedger(home.ledger))[0]?.state === "done");
  assert.equal((await next.stop()).code, 0);
});

test("a run that a SIGKILL cut off ends with the gateway, is run again, and the record says so", {
  skip: missing("setpriv"),
}, async (t) => {
  const { home, gateway, begun } = await startWith(t, "30");
  assert.equal((await postGithubEvent(`${gateway.url}/webhooks/r`, { secret, body: '{"n":1}' })).status, 202);
  const [orphan = 0] = await until("the run", async () => ((await begun()).length === 1 ? begun() : undefined));
  gateway.kill("SIGKILL");
  await gateway.ended;
  await until("the end of what ran", () => hasEnded(orphan));
  await home.write("go", "");
  const next = await startGatewayProcess(t, home);
  const event = await until("the second run", async () =>
    (await readLedger(home.ledger)).find(({ state }) => state === "done"),
  );
  assert.deepEqual(
    event.jobs[0]?.runs.map(({ outcome }) => outcome),
    ["interrupted", "completed"],
  );
  assert.equal((await next.stop()).code, 0);
});
