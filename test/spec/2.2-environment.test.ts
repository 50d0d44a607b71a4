import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { postern } from "../tools/program.ts";
import { post, refusal } from "./gateway.ts";

const routes = "routes: { plain: {}, own: { secret: a-secret-of-its-own } }";
const config = (extra = "") =>
  `platforms: { webhook: { extra: { host: 127.0.0.1, port: 0, ${extra} ${routes} } } }\nagent: { backend: preview }\n`;

async function started(t: TestContext, dotenv: string, env?: Record<string, string>, text = config()) {
  const home = await makeHome(t, { "config.yaml": text, ".env": dotenv });
  return startGatewayProcess(t, home, { env });
}

test('2.2 "Environment variables (file `<home>/.env`)": all three set up a gateway', async (t) => {
  const port = await freePort();
  const dotenv = `WEBHOOK_ENABLED=true\nWEBHOOK_PORT=${port}\n# a comment\nWEBHOOK_SECRET="from the file"\n`;
  const gateway = await started(t, dotenv);
  assert.equal(gateway.port, port);
  const { status } = await post(`${gateway.url}/webhooks/plain`, { secret: "from the file" });
  assert.equal(status, 202);
});

test('2.2 `WEBHOOK_ENABLED`: "Enables the adapter", default false', async (t) => {
  const { code, err } = await refusal(t, { config: config(), files: { ".env": "WEBHOOK_SECRET=a-secret\n" } });
  assert.equal(code, 1);
  assert.match(err, /is not enabled/);
  for (const word of ["1", "yes"]) {
    const gateway = await started(t, `WEBHOOK_ENABLED=${word}\nWEBHOOK_SECRET=a-secret\n`);
    assert.equal((await gateway.stop()).code, 0);
  }
});

test("2.2 `WEBHOOK_ENABLED`: false switches off what the file switches on", async (t) => {
  const text = config("secret: abc-secret,").replace("webhook: {", "webhook: { enabled: true,");
  const { code } = await refusal(t, { config: text, files: { ".env": "WEBHOOK_ENABLED=false\n" } });
  assert.equal(code, 1);
});

test('2.2 `WEBHOOK_PORT`: "Listen port" goes before config.yaml, and the process environment before `.env`', async (t) => {
  const [inFile, inProcess] = [await freePort(), await freePort()];
  const dotenv = `WEBHOOK_ENABLED=true\nWEBHOOK_SECRET=a-secret\nWEBHOOK_PORT=${inFile}\n`;
  const gateway = await started(t, dotenv, { WEBHOOK_PORT: String(inProcess) });
  assert.equal(gateway.port, inProcess);
});

test('2.2 `WEBHOOK_SECRET`: "Global HMAC secret. It is the fallback for routes without their own secret"', async (t) => {
  const text = config("secret: from-config-yaml,");
  const gateway = await started(t, "WEBHOOK_ENABLED=true\nWEBHOOK_SECRET=from-env\n", undefined, text);
  const statusWith = async (route: string, secret: string) =>
    (await post(`${gateway.url}/webhooks/${route}`, { secret })).status;
  assert.equal(await statusWith("plain", "from-env"), 202);
  assert.equal(await statusWith("plain", "from-config-yaml"), 401);
  assert.equal(await statusWith("own", "from-env"), 401);
  assert.equal(await statusWith("own", "a-secret-of-its-own"), 202);
});

test("2.2 `WEBHOOK_SECRET`: none by default, so that a route without its own refuses to start", async (t) => {
  const { code, err } = await refusal(t, { config: config(), files: { ".env": "WEBHOOK_ENABLED=true\n" } });
  assert.equal(code, 78);
  assert.match(err, /plain\.secret: The route has no secret; .*WEBHOOK_SECRET/);
});

test('2.2 "A setup wizard (`<app> gateway setup`) also enables the adapter and sets the port and global secret"', async (t) => {
  const home = await makeHome(t);
  const port = await freePort();
  const flags = ["--yes", "--host", "127.0.0.1", "--port", String(port), "--secret", "set-by-the-wizard"];
  const env = { POSTERN_HOME: home.folder };
  const { code, err } = await postern(t, ["gateway", "setup", ...flags, "--agent-backend", "preview"], { env });
  assert.equal(code, 0, err);
  assert.match(await home.read(".env"), /WEBHOOK_SECRET=.*set-by-the-wizard/);
  const file = { plain: { prompt: "Hi" } };
  await home.write("webhook_subscriptions.json", JSON.stringify(file));
  const gateway = await startGatewayProcess(t, home);
  assert.equal(gateway.port, port);
  assert.equal((await post(`${gateway.url}/webhooks/plain`, { secret: "set-by-the-wizard" })).status, 202);
});

const wrong: [variable: string, complaint: RegExp][] = [
  ["WEBHOOK_ENABLED=maybe", /WEBHOOK_ENABLED: Expected true or false, found "maybe"/],
  ["WEBHOOK_PORT=80a", /WEBHOOK_PORT: Expected a whole number from 0 to 65535, found "80a"/],
];
for (const [variable, complaint] of wrong) {
  test(`2.2 \`${variable}\` refuses to start`, async (t) => {
    const { code, err } = await refusal(t, {
      config: config("secret: abc-secret,"),
      env: Object.fromEntries([variable.split("=")]),
    });
    assert.equal(code, 78);
    assert.match(err, complaint);
  });
}
