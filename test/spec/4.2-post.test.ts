import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { head, openWire } from "../tools/wire.ts";
import { globalSecret, type Post, useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({
  routes: {
    plain: {},
    taken: { prompt: "static" },
    pulls: { events: ["pull_request"], filters: [{ field: "a", equals: 1 }], script: "count.sh", prompt: "{a}" },
    scripted: { script: "silent.sh" },
    direct: { deliver: "telegram", deliver_only: true, prompt: "{x}" },
    off: { enabled: false },
  },
  extra: { max_body_bytes: 10_000 },
  files: {
    "webhook_subscriptions.json": JSON.stringify({
      dynamic: { secret: "of-the-subscription", prompt: "dynamic" },
      taken: { secret: "of-the-subscription", prompt: "dynamic" },
    }),
    "scripts/count.sh": 'echo ran >> "$(dirname "$0")/runs"; cat\n',
    "scripts/silent.sh": "exit 0\n",
  },
}));

test('4.2 Path "`<route-name>` is a route key or a dynamic subscription name"', async () => {
  assert.equal(await gateway.verdict("plain"), "accepted");
  assert.equal(await gateway.promptOf("dynamic", { secret: "of-the-subscription" }), "dynamic");
});

test('4.2 Path "A static route wins over a dynamic subscription of the same name"', async () => {
  assert.equal(await gateway.promptOf("taken"), "static");
  assert.equal((await gateway.post("taken", { secret: "of-the-subscription" })).status, 401);
});

test('4.2 Content type "`application/json` (JSON body)"', async () => {
  assert.equal(await gateway.verdict("plain", { body: '{"a":1}' }), "accepted");
  const headers = { "content-type": "application/json; charset=utf-8" };
  assert.equal(await gateway.verdict("plain", { headers }), "accepted");
});

const events: [header: string, value: string][] = [
  ["X-HostA-Event", "pull_request"],
  ["X-GitHub-Event", "push"],
  ["X-HostB-Event", "Push Hook"],
  ["X-Gitlab-Event", "Merge Request Hook"],
];
for (const [name, value] of events) {
  test(`4.2 Header "\`${name}\`: event type"`, async () => {
    const { reply } = await gateway.post("plain", { headers: { [name]: value } });
    assert.deepEqual([reply.status, reply.event], ["accepted", value]);
  });
}

for (const name of ["X-HostA-Delivery", "X-GitHub-Delivery"]) {
  test(`4.2 Header "\`${name}\`: Delivery identifier (string)"`, async () => {
    const { reply } = await gateway.post("plain", { id: null, headers: { [name]: `an id of ${name}` } });
    assert.equal(reply.delivery_id, `an id of ${name}`);
  });
}

test('4.2 Header "`X-Request-ID`: Alternative delivery identifier"', async () => {
  assert.equal((await gateway.post("plain", { id: "the-request-id" })).reply.delivery_id, "the-request-id");
  const headers = { "X-HostA-Delivery": "the-delivery-id" };
  assert.equal((await gateway.post("plain", { id: "another", headers })).reply.delivery_id, "the-delivery-id");
});

const digest = createHmac("sha256", globalSecret).update('{"a":1}').digest("hex");
const signatures: [name: string, what: string, value: string][] = [
  ["X-Hub-Signature-256", "`sha256=` followed by the hex HMAC-SHA256 of the raw body", `sha256=${digest}`],
  ["X-HostB-Token", "Plain secret string", globalSecret],
  ["X-Gitlab-Token", "Plain secret string", globalSecret],
  ["X-Webhook-Signature", "Raw hex HMAC-SHA256 of the body, with no prefix", digest],
];
for (const [name, what, value] of signatures) {
  test(`4.2 Header "\`${name}\`: ${what}"`, async () => {
    const parts: Post = { body: '{"a":1}', secret: null };
    assert.equal((await gateway.post("plain", { ...parts, headers: { [name]: value } })).status, 202);
    assert.equal((await gateway.post("plain", { ...parts, headers: { [name]: `${value}0` } })).status, 401);
  });
}

test('4.2 Body "JSON object. It is also read for an `event_type` field"', async () => {
  const { reply } = await gateway.post("plain", { body: { event_type: "deploy.done" } });
  assert.equal(reply.event, "deploy.done");
  for (const body of ["[]", '"text"', "1", "null"]) assert.equal((await gateway.post("plain", { body })).status, 400);
});

test('4.2 order 1 "Reject if the body exceeds `max_body_bytes`. This is checked before the body is read"', async (t) => {
  const wire = await openWire(t, gateway.process.port);
  // Nothing of the body follows, and neither a known route nor a signature is needed.
  wire.write(head("POST /webhooks/nope", { "content-length": "10001" }));
  assert.equal((await wire.answer()).status, 413);
});

test('4.2 order 2 "Apply the rate limit per route" is in the contract after the signature: see section 8', async () => {
  assert.equal((await gateway.post("plain", { secret: "wrong" })).status, 401);
});

test('4.2 order 3 "Check the route exists": before the signature and the body', async () => {
  assert.equal((await gateway.post("nope", { body: "{", secret: null })).status, 404);
  assert.equal((await gateway.post("off", { body: "{", secret: null })).status, 403);
});

test('4.2 order 4 "Verify the signature or token": before the body is parsed', async () => {
  assert.equal((await gateway.post("pulls", { body: "{", secret: null })).status, 401);
});

test('4.2 order 5 "Parse the body": before the `events` filter', async () => {
  assert.equal((await gateway.post("pulls", { body: "{", event: "push" })).status, 400);
});

test('4.2 order 6 "Apply the `events` filter": before `filters`', async () => {
  const { reply } = await gateway.post("pulls", { body: { a: 2 }, event: "push" });
  assert.deepEqual(reply, { status: "ignored", event: "push" });
});

test('4.2 order 7 "Evaluate `filters`, then run `script`"', async () => {
  assert.equal(await gateway.verdict("pulls", { body: { a: 2 }, event: "pull_request" }), "ignored");
  await assert.rejects(gateway.home.read("scripts/runs"), { code: "ENOENT" });
  assert.equal(await gateway.verdict("pulls", { body: { a: 1 }, event: "pull_request" }), "accepted");
  assert.equal(await gateway.home.read("scripts/runs"), "ran\n");
});

test('4.2 order 7 "A filter mismatch returns HTTP 200 with `status` = `ignored` and `reason` = `filter`"', async () => {
  const { status, reply } = await gateway.post("pulls", { body: {}, event: "pull_request" });
  assert.deepEqual([status, reply], [200, { status: "ignored", reason: "filter" }]);
});

test('4.2 order 8 "Check idempotency": after filters and script, so that what they decline claims no id', async () => {
  const id = "declined-first";
  const parts = { id, event: "pull_request" };
  assert.equal(await gateway.verdict("pulls", { ...parts, body: { a: 2 } }), "ignored");
  assert.equal(await gateway.verdict("pulls", { ...parts, body: { a: 1 } }), "accepted");
  assert.equal(await gateway.verdict("pulls", { ...parts, body: { a: 1 } }), "duplicate");
});

test('4.2 order 8 "Then run the agent (default mode) or deliver directly"', async () => {
  const { jobs } = await gateway.fate((await gateway.post("plain")).id);
  assert.equal(jobs[0]?.kind, "agent");
  const direct = await gateway.fate((await gateway.post("direct", { body: { x: 1 } })).id);
  assert.equal(direct.jobs[0]?.kind, "direct");
});

test('4.2 Responses "Agent-mode request accepted": 202, `status` = `accepted`, `route`, `event`, `delivery_id` (strings)', async () => {
  const { status, reply } = await gateway.post("plain", { event: "push", id: "an-id" });
  assert.equal(status, 202);
  assert.deepEqual(reply, { status: "accepted", route: "plain", event: "push", delivery_id: "an-id" });
});

test('4.2 Responses "Event not in `events`": 200, `status` = `ignored`, `event`', async () => {
  const { status, reply } = await gateway.post("pulls", { event: "push" });
  assert.deepEqual([status, reply], [200, { status: "ignored", event: "push" }]);
});

test('4.2 Responses "Event not in `events`": "Logged at DEBUG level only"', async () => {
  const { id } = await gateway.post("pulls", { event: "push" });
  await gateway.logged({ delivery: id });
  const levels = gateway.process
    .log()
    .filter(({ delivery }) => delivery === id)
    .map(({ level }) => level);
  assert.deepEqual(levels, ["debug"]);
});

test('4.2 Responses "Filter mismatch": 200', async () => {
  const { status, reply } = await gateway.post("pulls", { event: "pull_request", body: {} });
  assert.deepEqual([status, reply], [200, { status: "ignored", reason: "filter" }]);
});

test('4.2 Responses "Script ignore": 200', async () => {
  const { status, reply } = await gateway.post("scripted");
  assert.deepEqual([status, reply], [200, { status: "ignored", reason: "script" }]);
});

test('4.2 Responses "Direct delivery success": 200, `status` = `delivered`, `route`, `target`, `delivery_id`', async () => {
  const { status, reply } = await gateway.post("direct", { body: { x: 1 }, id: "direct-id" });
  assert.equal(status, 200);
  assert.deepEqual(reply, { status: "delivered", route: "direct", target: "telegram", delivery_id: "direct-id" });
});

test('4.2 Responses "Duplicate delivery ID within one hour": 200, `status` = `duplicate`. "Nothing is delivered again"', async () => {
  const parts = { body: { x: "once" }, id: "sent-twice" };
  assert.equal(await gateway.verdict("direct", parts), "delivered");
  const { status, reply } = await gateway.post("direct", parts);
  assert.deepEqual([status, reply], [200, { status: "duplicate", delivery_id: "sent-twice" }]);
  assert.equal(gateway.telegram.messages.filter(({ text }) => text === "once").length, 1);
});

test('4.2 "For status codes of failures, see section 7"; other methods are refused with 405', async () => {
  for (const method of ["GET", "PUT", "DELETE"]) {
    const response = await fetch(`${gateway.url}/webhooks/plain`, { method });
    assert.deepEqual([response.status, response.headers.get("allow")], [405, "POST"]);
  }
});
