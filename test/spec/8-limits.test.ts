import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { mainPath } from "../tools/program.ts";
import { until } from "../tools/wait.ts";
import { head, openWire } from "../tools/wire.ts";
import { globalSecret, openGateway, type Settings, type SpecGateway, useGateway } from "./gateway.ts";

const later = fileURLToPath(new URL("./later.ts", import.meta.url));
const direct = { deliver: "telegram", deliver_only: true, prompt: "{x}" };

const gateway = useGateway(() => ({
  routes: {
    plain: {},
    nested: { prompt: "{list}|{text}" },
    raw: { prompt: "{__raw__}" },
    direct,
    skilled: { skills: ["b", "a"], prompt: "Go" },
  },
  extra: { max_body_bytes: undefined },
  files: {
    "skills/a/SKILL.md": "---\nname: a\ndescription: d\n---\nSkill a.\n",
    "skills/b/SKILL.md": "---\nname: b\ndescription: d\n---\nSkill b.\n",
  },
}));

/** A gateway for which time goes by when it is told so. */
async function withClock(
  t: TestContext,
  settings: Settings,
): Promise<{ gateway: SpecGateway; pass(minutes: number): Promise<void> }> {
  const program = [process.execPath, "--import", later, mainPath];
  const timed = await openGateway(t, () => ({ ...settings, program }));
  let gone = 0;
  return {
    gateway: timed,
    async pass(minutes) {
      for (let minute = 0; minute < minutes; minute += 1) {
        gone += 1;
        timed.process.kill("SIGUSR2");
        await until(`minute ${gone}`, () => timed.process.err.includes(`minute ${gone} has gone by`));
      }
    },
  };
}

async function statuses(of: SpecGateway, count: number, route = "plain", secret = globalSecret): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => of.post(route, { secret })));
  return answers.map(({ status }) => status).toSorted((a, b) => a - b);
}

test('8 Rate "30 requests per minute per route, fixed window", "Exceeding it gives 429"', async (t) => {
  const timed = await withClock(t, { routes: { plain: {}, other: {} }, extra: { rate_limit: undefined } });
  assert.deepEqual(await statuses(timed.gateway, 32), [...Array(30).fill(202), 429, 429]);
  assert.deepEqual(await statuses(timed.gateway, 1, "other"), [202]);
  await timed.pass(1);
  assert.deepEqual(await statuses(timed.gateway, 31), [...Array(30).fill(202), 429]);
});

test('8 Rate "Configurable with `extra.rate_limit`"', async (t) => {
  const other = await openGateway(t, () => ({ routes: { plain: {} }, extra: { rate_limit: 3 } }));
  assert.deepEqual(await statuses(other, 5), [202, 202, 202, 429, 429]);
});

test("8 Rate: whoever lacks the secret cannot spend the budget, and is answered 429 past a window of his own", async (t) => {
  const other = await openGateway(t, () => ({ routes: { plain: {} }, extra: { rate_limit: 2 } }));
  assert.deepEqual(await statuses(other, 4, "plain", "wrong"), [401, 401, 429, 429]);
  assert.deepEqual(await statuses(other, 2), [202, 202]);
});

test("8 Rate: duplicates give their budget back", async (t) => {
  const other = await openGateway(t, () => ({ routes: { plain: {} }, extra: { rate_limit: 2 } }));
  await other.post("plain", { id: "one" });
  for (let turn = 0; turn < 5; turn += 1) assert.equal(await other.verdict("plain", { id: "one" }), "duplicate");
  assert.equal(await other.verdict("plain", { id: "two" }), "accepted");
});

test('8 Body size "Default 1048576 bytes (1 MB)"', async () => {
  const ofLength = (length: number) => JSON.stringify({ text: "x".repeat(length - 11) });
  assert.equal((await gateway.post("plain", { body: ofLength(1_048_576) })).status, 202);
  assert.equal((await gateway.post("plain", { body: ofLength(1_048_577) })).status, 413);
});

test('8 Body size "Configurable with `extra.max_body_bytes`"', async (t) => {
  const other = await openGateway(t, () => ({ routes: { plain: {} }, extra: { max_body_bytes: 20 } }));
  assert.equal((await other.post("plain", { body: '{"a":"12345678901"} ' })).status, 202);
  assert.equal((await other.post("plain", { body: '{"a":"123456789012"} ' })).status, 413);
});

test('8 Body size "Larger bodies are rejected before reading, with 413"', async (t) => {
  const wire = await openWire(t, gateway.process.port);
  wire.write(head("POST /webhooks/plain", { "content-length": "1048577", expect: "100-continue" }));
  assert.equal((await wire.answer()).status, 413, "not even asked for");
});

test('8 Idempotency window "1 hour"', async (t) => {
  const timed = await withClock(t, { routes: { plain: {} } });
  const again = () => timed.gateway.verdict("plain", { id: "the same" });
  assert.equal(await again(), "accepted");
  assert.equal(await again(), "duplicate");
  await timed.pass(59);
  assert.equal(await again(), "duplicate");
  await timed.pass(2);
  assert.equal(await again(), "accepted");
});

test('8 Idempotency "The delivery ID is, in order: `X-HostA-Delivery`, then `X-Request-ID`"', async () => {
  const headers = { "X-HostA-Delivery": "first", "X-Request-ID": "second" };
  assert.equal((await gateway.post("plain", { id: null, headers })).reply.delivery_id, "first");
  assert.equal((await gateway.post("plain", { id: "second" })).reply.delivery_id, "second");
});

test('8 Idempotency "then a millisecond timestamp"', async () => {
  const before = Date.now();
  const { reply } = await gateway.post("plain", { id: null });
  const time = Number(/^(\d{13})\b/.exec(String(reply.delivery_id))?.[1]);
  assert.ok(time >= before && time <= Date.now());
});

test('8 Idempotency "Without either header, retries are not deduplicated"', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.post("plain", { id: null })));
  assert.ok(answers.every(({ status }) => status === 202));
  assert.equal(new Set(answers.map(({ reply }) => reply.delivery_id)).size, 20);
});

test('8 Idempotency "A repeat within the window returns `status` = `duplicate` and does not run the agent or deliver again"', async () => {
  const parts = { id: "fifty-at-once", body: { x: "only once" } };
  const replies = await Promise.all(Array.from({ length: 50 }, () => gateway.verdict("direct", parts)));
  assert.deepEqual(replies.toSorted(), ["delivered", ...Array(49).fill("duplicate")].toSorted());
  assert.equal(gateway.telegram.messages.filter(({ text }) => text === "only once").length, 1);
  const runs = { id: "fifty-runs" };
  await Promise.all(Array.from({ length: 50 }, () => gateway.post("plain", runs)));
  assert.equal((await gateway.fate("fifty-runs")).jobs[0]?.runs.length, 1);
});

test("8 Idempotency: the same id on another route is another delivery", async () => {
  assert.equal(await gateway.verdict("plain", { id: "shared" }), "accepted");
  assert.equal(await gateway.verdict("raw", { id: "shared" }), "accepted");
});

test('8 "`{__raw__}` and default whole-payload prompt: Truncated to 4000 characters"', async () => {
  const body = { text: "x".repeat(9000) };
  const expected = JSON.stringify(body, null, 2).slice(0, 4000);
  assert.equal(await gateway.promptOf("raw", { body }), expected);
  assert.equal(await gateway.promptOf("plain", { body }), expected);
});

test('8 "Nested value inside a template: Truncated to 2000 characters"', async () => {
  const body = { list: Array(1000).fill("word"), text: "y".repeat(5000) };
  const expected = `${JSON.stringify(body.list).slice(0, 2000)}|${body.text}`;
  assert.equal(await gateway.promptOf("nested", { body }), expected);
});

test('8 "Skills per route: One (the first found)"', async () => {
  assert.equal(await gateway.promptOf("skilled"), "Skill b.\n\nGo");
});

test('8 "Direct-delivery mode: Rate limit, idempotency, body limit and signature checks all apply"', async (t) => {
  const other = await openGateway(t, () => ({ routes: { direct }, extra: { rate_limit: 2, max_body_bytes: 100 } }));
  const parts = { id: "one", body: { x: "hello" } };
  assert.equal((await other.post("direct", { ...parts, secret: "wrong" })).status, 401);
  assert.equal((await other.post("direct", { ...parts, body: { x: "x".repeat(100) } })).status, 413);
  assert.equal(await other.verdict("direct", parts), "delivered");
  assert.equal(await other.verdict("direct", parts), "duplicate");
  assert.equal(await other.verdict("direct", { body: { x: "two" } }), "delivered");
  assert.equal((await other.post("direct", { body: { x: "three" } })).status, 429);
  assert.deepEqual(
    other.telegram.messages.map(({ text }) => text),
    ["hello", "two"],
  );
});

test('8 "Script timeout: The value of the timeout: not shown": 30 s, or what `script_timeout_seconds` says', async (t) => {
  const other = await openGateway(t, () => ({
    routes: { slow: { script: "slow.sh" } },
    extra: { script_timeout_seconds: "200ms" },
    files: { "scripts/slow.sh": "sleep 100\n" },
  }));
  const { reply, id } = await other.post("slow");
  assert.deepEqual(reply, { status: "ignored", reason: "script" });
  assert.match((await other.fate(id)).reason ?? "", /took longer than 200 ms/);
});
