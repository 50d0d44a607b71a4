import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome, previewConfig } from "../tools/home.ts";
import { readLedger } from "../tools/ledger.ts";
import { until } from "../tools/wait.ts";

const secret = "the-global-secret";
const post = (url: string) => postGithubEvent(url, { secret, body: '{"name":"Ada"}' });

test("a route added to config.yaml is served without a restart", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const gateway = await startGatewayProcess(t, home);
  assert.equal((await post(`${gateway.url}/webhooks/later`)).status, 404);
  await home.write("config.yaml", previewConfig.replace("hello:", "later: {}\n      hello:"));
  await gateway.said(/Configuration reloaded/);
  assert.equal((await post(`${gateway.url}/webhooks/later`)).status, 202);
  assert.equal((await post(`${gateway.url}/webhooks/hello`)).status, 202);
});

test("a wrong config.yaml is told in the log with its place, and the old one stays in force", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const gateway = await startGatewayProcess(t, home);
  await home.write("config.yaml", `${previewConfig}agnet: {}\n`);
  await gateway.said(/the old one stays in force/);
  assert.match(gateway.err, /config\.yaml:\d+:1: agnet: [^"]*\\"agnet\\"; did you mean \\"agent\\"/);
  assert.equal((await post(`${gateway.url}/webhooks/hello`)).status, 202);
});

test("SIGHUP reads the configuration again, also what only the environment file changed", async (t) => {
  const home = await makeHome(t, {
    "config.yaml": previewConfig.replace(/ *secret: .*\n/, ""),
    ".env": "WEBHOOK_SECRET=the-old-one\n",
  });
  const gateway = await startGatewayProcess(t, home);
  assert.equal((await post(`${gateway.url}/webhooks/hello`)).status, 401);
  await writeFile(home.dotenv, `WEBHOOK_SECRET=${secret}\n`);
  gateway.kill("SIGHUP");
  await gateway.said(/Configuration reloaded/);
  assert.equal((await post(`${gateway.url}/webhooks/hello`)).status, 202);
});

test("jobs that wait for a model run as soon as the configuration lets them", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig.replace("preview", "builtin") });
  const gateway = await startGatewayProcess(t, home);
  assert.equal((await post(`${gateway.url}/webhooks/hello`)).status, 202);
  const waiting = await until("the wait", async () =>
    (await readLedger(home.ledger)).find(({ state }) => state === "waiting"),
  );
  assert.match(waiting.reason ?? "", /^no model configured/);
  await home.write("config.yaml", previewConfig);
  const done = await until("the run", async () =>
    (await readLedger(home.ledger)).find(({ state }) => state === "done"),
  );
  assert.equal(done.jobs[0]?.runs[0]?.answer, "Say hello to Ada");
});

test("what a running gateway cannot follow is said", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const gateway = await startGatewayProcess(t, home);
  await home.write("config.yaml", previewConfig.replace("port: 0", "port: 1"));
  await gateway.said(/These changes take effect at the next start/);
  assert.deepEqual(gateway.log().find(({ keys }) => keys !== undefined)?.keys, ["port"]);
});
