import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { until } from "../tools/wait.ts";
import { useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({
  files: { "skills/brief/SKILL.md": "---\nname: brief\ndescription: For tests\n---\nBe brief.\n" },
}));

interface Subscribed {
  readonly name: string;
  readonly url: string;
  readonly secret: string;
}

async function subscribe(t: TestContext, name: string, ...flags: string[]): Promise<Subscribed> {
  const { code, out, err } = await gateway.command(t, "webhook", "subscribe", name, ...flags, "--json");
  assert.equal(code, 0, err);
  return JSON.parse(out) as Subscribed;
}

async function entry(name: string): Promise<Record<string, unknown> | undefined> {
  return JSON.parse(await gateway.home.read("webhook_subscriptions.json"))[name];
}

test('2.4 "A dynamic subscription has the same format and features as a static route: events"', async (t) => {
  const { secret } = await subscribe(t, "events", "--events", "push,issues");
  assert.equal(await gateway.verdict("events", { secret, event: "issues" }), "accepted");
  assert.equal(await gateway.verdict("events", { secret, event: "ping" }), "ignored");
  assert.deepEqual((await entry("events"))?.events, ["push", "issues"]);
});

test('2.4 "the same format and features as a static route: prompt"', async (t) => {
  const { secret } = await subscribe(t, "prompt", "--prompt", "Look at {a.b}");
  assert.equal(await gateway.promptOf("prompt", { secret, body: { a: { b: 1 } } }), "Look at 1");
});

test('2.4 "the same format and features as a static route: skills"', async (t) => {
  const { secret } = await subscribe(t, "skills", "--prompt", "Go", "--skill", "none", "--skill", "brief");
  assert.equal(await gateway.promptOf("skills", { secret }), "Be brief.\n\nGo");
});

test('2.4 "the same format and features as a static route: delivery"', async (t) => {
  const flags = ["--prompt", "To {x}", "--deliver", "telegram", "--deliver-chat-id", "-1007"];
  const { secret } = await subscribe(t, "delivery", ...flags);
  await gateway.post("delivery", { secret, body: { x: "the chat" } });
  const message = await until("it", () => gateway.telegram.messages.find(({ text }) => text === "To the chat"));
  assert.equal(message.chatId, "-1007");
  const direct = await subscribe(t, "straight", ...flags, "--deliver-only");
  assert.equal(await gateway.verdict("straight", { secret: direct.secret, body: { x: 1 } }), "delivered");
});

test('2.4 "the same format and features as a static route": filters and script, from the file', async () => {
  const file = JSON.parse(await gateway.home.read("webhook_subscriptions.json")) as object;
  const secret = "written-by-hand";
  const byHand = { secret, filters: [{ field: "a", equals: 1 }], script: "double.py", prompt: "{a}" };
  await gateway.home.write(
    "scripts/double.py",
    "import json, sys\nprint(json.dumps({'a': json.load(sys.stdin)['a'] * 2}))\n",
  );
  await gateway.home.write("webhook_subscriptions.json", JSON.stringify({ ...file, byHand }));
  assert.equal(await gateway.verdict("byHand", { secret, body: { a: 2 } }), "ignored");
  assert.equal(await gateway.promptOf("byHand", { secret, body: { a: 1 } }), "2");
});

test('2.4 "It also has a name and a description"', async (t) => {
  await subscribe(t, "described", "--description", "Deploys of the harbor");
  const { out } = await gateway.command(t, "webhook", "list", "--json");
  const listed = (JSON.parse(out) as Record<string, unknown>[]).find(({ name }) => name === "described");
  assert.equal(listed?.description, "Deploys of the harbor");
});

test('2.4 "It is stored in `<home>/webhook_subscriptions.json`"', async (t) => {
  await subscribe(t, "stored", "--prompt", "Hi");
  assert.equal((await entry("stored"))?.prompt, "Hi");
  assert.equal((await stat(gateway.home.subscriptions)).mode & 0o777, 0o600);
});

test('2.4 "Creation auto-generates an HMAC secret"', async (t) => {
  const [one, other] = [await subscribe(t, "one"), await subscribe(t, "other")];
  assert.match(one.secret, /^[A-Za-z0-9_-]{43}$/);
  assert.notEqual(one.secret, other.secret);
  assert.equal((await gateway.post("one", { secret: other.secret })).status, 401);
});

test('2.4 "and returns a webhook URL and that secret"', async (t) => {
  const { out } = await gateway.command(t, "webhook", "subscribe", "told", "--prompt", "Hi");
  const secret = /Secret: (\S+)/.exec(out)?.[1];
  assert.equal(secret, (await entry("told"))?.secret);
  assert.match(out, /URL: {4}http:\/\/127\.0\.0\.1:\d+\/webhooks\/told\n/);
  assert.equal(await gateway.verdict("told", { secret }), "accepted");
});
