import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { type Ended, mainPath, postern, startProgram } from "../tools/program.ts";
import { until } from "../tools/wait.ts";
import { configuration, globalSecret, openGateway, useGateway } from "./gateway.ts";

// Commands find the gateway by the configured port.
const gateway = useGateway(async () => ({ routes: { fixed: {} }, extra: { port: await freePort() } }));

async function done(t: TestContext, ...args: string[]): Promise<Ended> {
  const ended = await gateway.command(t, ...args);
  assert.equal(ended.code, 0, ended.err);
  return ended;
}

async function subscribe(t: TestContext, ...args: string[]): Promise<{ url: string; secret: string }> {
  return JSON.parse((await done(t, "webhook", "subscribe", ...args, "--json")).out) as { url: string; secret: string };
}

test('4.3 `webhook subscribe <name>`: "Creates a dynamic subscription. It returns a URL and a generated HMAC secret"', async (t) => {
  const { url, secret } = await subscribe(t, "made");
  assert.equal(url, `${gateway.url}/webhooks/made`);
  assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(await gateway.verdict("made", { secret }), "accepted");
});

test("4.3 `webhook subscribe` `[--events <list>] [--prompt <template>]`", async (t) => {
  const { secret } = await subscribe(t, "flags", "--events", "push, deploy", "--prompt", "Of {x}");
  assert.equal(await gateway.verdict("flags", { secret, event: "ping" }), "ignored");
  assert.equal(await gateway.promptOf("flags", { secret, event: "deploy", body: { x: 1 } }), "Of 1");
});

test("4.3 `webhook subscribe` `[--deliver <target>] [--deliver-chat-id <id>] [--deliver-only]`", async (t) => {
  const flags = ["--prompt", "By flag", "--deliver", "telegram", "--deliver-chat-id", "-100123", "--deliver-only"];
  const { secret } = await subscribe(t, "direct", ...flags);
  assert.equal(await gateway.verdict("direct", { secret }), "delivered");
  const [message] = gateway.telegram.messages;
  assert.deepEqual([message?.text, message?.chatId], ["By flag", "-100123"]);
});

test("4.3 `webhook subscribe` `[--description <text>]`", async (t) => {
  await subscribe(t, "described", "--description", "What it is for");
  assert.match((await done(t, "webhook", "list")).out, /described .*What it is for/);
});

test('4.3 `webhook list`: "Lists subscriptions", without their secrets and without static routes', async (t) => {
  const { secret } = await subscribe(t, "listed", "--events", "push");
  const { out } = await done(t, "webhook", "list");
  assert.match(out, /^NAME +EVENTS +DELIVER +DESCRIPTION\n/);
  assert.match(out, /^listed +push +log/m);
  assert.ok(!out.includes(secret));
  assert.ok(!out.includes("fixed"));
});

test('4.3 `webhook remove <name>`: "Deletes a subscription"', async (t) => {
  const { secret } = await subscribe(t, "removed");
  assert.equal((await gateway.post("removed", { secret })).status, 202);
  await done(t, "webhook", "remove", "removed");
  assert.equal((await gateway.post("removed", { secret })).status, 404);
  const { code, err } = await gateway.command(t, "webhook", "remove", "removed");
  assert.equal(code, 1);
  assert.match(err, /There is no subscription "removed"/);
});

test('4.3 `webhook test <name> [--payload <json>]`: "Sends a test payload to a dynamic subscription"', async (t) => {
  await subscribe(t, "tested", "--events", "deploy", "--prompt", "Tested with {x}");
  const { out } = await done(t, "webhook", "test", "tested", "--payload", '{"x":"a payload"}');
  assert.match(out, /202/);
  await gateway.logged({ text: "Tested with a payload" });
  const other = await subscribe(t, "plainly");
  assert.ok(other.secret);
  assert.match((await done(t, "webhook", "test", "plainly")).out, /202/);
});

test('4.3 `webhook test`: "It works only for subscriptions created with `subscribe` and does not read static routes"', async (t) => {
  const { code, err } = await gateway.command(t, "webhook", "test", "fixed");
  assert.equal(code, 1);
  assert.match(err, /There is no subscription "fixed"/);
});

test("4.3 `webhook test` fails when the gateway refuses the event", async (t) => {
  const { code, out } = await gateway.command(t, "webhook", "test", "plainly", "--payload", "[1]");
  assert.equal(code, 1);
  assert.match(out, /400/);
});

test('4.3 `gateway` / `gateway run`: "Starts the gateway"', async (t) => {
  const home = await makeHome(t, { "config.yaml": configuration({ routes: { one: {}, two: {} } }) });
  const short = startProgram(t, [process.execPath, mainPath, "gateway"], { env: { POSTERN_HOME: home.folder } });
  await short.said(/Postern listens on 127\.0\.0\.1:\d+/);
  short.kill("SIGTERM");
  assert.equal((await short.ended).code, 0);
});

test('4.3 `gateway run`: "On start it logs a line with the listen address, port and route names"', async (t) => {
  const home = await makeHome(t, { "config.yaml": configuration({ routes: { one: {}, two: {} } }) });
  const other = await startGatewayProcess(t, home);
  assert.match(other.err, new RegExp(`Postern listens on 127\\.0\\.0\\.1:${other.port}, routes: one, two`));
  const line = other.log().find(({ msg }) => String(msg).startsWith("Postern listens"));
  assert.deepEqual([line?.host, line?.port, line?.routes], ["127.0.0.1", other.port, ["one", "two"]]);
});

test('4.3 `gateway setup`: "Setup wizard", by flags where nobody is there to be asked', async (t) => {
  const home = await makeHome(t);
  const flags = ["--yes", "--host", "127.0.0.1", "--port", "0", "--agent-backend", "preview"];
  const { code, err } = await postern(t, ["gateway", "setup", ...flags], { env: { POSTERN_HOME: home.folder } });
  assert.equal(code, 0, err);
  const other = await startGatewayProcess(t, home);
  assert.equal((await fetch(`${other.url}/health`)).status, 200);
});

test('4.3 "Subscriptions take effect at once", "so no restart is needed"', async (t) => {
  assert.equal((await gateway.post("at-once")).status, 404);
  const { secret } = await subscribe(t, "at-once", "--prompt", "one");
  assert.equal(await gateway.promptOf("at-once", { secret }), "one");
  await subscribe(t, "at-once", "--prompt", "two");
  assert.equal(await gateway.promptOf("at-once", { secret }), "two");
});

test('4.3 "The adapter reloads the subscription file on each request by checking its modification time"', async (t) => {
  const other = await openGateway(t, () => ({}));
  const text = (prompt: string) => JSON.stringify({ here: { secret: globalSecret, prompt } });
  for (const prompt of ["first", "other", "third"]) {
    await other.home.write("webhook_subscriptions.json", text(prompt));
    assert.equal(await other.promptOf("here"), prompt);
  }
  await other.home.write("webhook_subscriptions.json", "{ damaged");
  assert.equal(await other.promptOf("here"), "third", "the last good ones stay in force");
  await until("the error", () => other.process.log().some(({ level }) => level === "error"));
});
