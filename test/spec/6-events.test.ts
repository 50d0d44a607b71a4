import assert from "node:assert/strict";
import { test } from "node:test";
import { type Post, useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({
  routes: {
    all: {},
    pulls: { events: ["pull_request"], filters: [{ field: "action", in: ["opened", "synchronize"] }] },
    hostA: { events: ["pull_request", "push", "issues"] },
    pinged: { events: ["ping", "push"] },
    hooks: { events: ["Merge Request Hook", "Push Hook", "Pipeline Hook"] },
    short: { events: ["merge_request", "push"] },
    free: { events: ["item:updated", "alert"] },
  },
}));

const typeOf = async (parts: Post) => (await gateway.post("all", parts)).reply.event;
const hostA = (type: string, body: object = {}): Post => ({ body, headers: { "X-HostA-Event": type } });
const hostB = (type: string, body: object = {}): Post => ({ body, headers: { "X-HostB-Event": type } });

test('6.1 "The event type is read from `X-HostA-Event`"', async () => {
  assert.equal(await typeOf(hostA("push", { event_type: "other" })), "push");
});

test('6.1 "from `X-HostB-Event`"', async () => {
  assert.equal(await typeOf(hostB("Push Hook", { event_type: "other" })), "Push Hook");
  const both = { headers: { "X-HostA-Event": "push", "X-HostB-Event": "Push Hook" } };
  assert.equal(await typeOf(both), "push");
});

test('6.1 "or from the payload field `event_type`"', async () => {
  assert.equal(await typeOf({ body: { event_type: "item:updated" } }), "item:updated");
  assert.equal(await typeOf({ body: { event_type: 7 } }), "unknown");
  assert.equal(await typeOf({ body: {} }), "unknown");
});

test('6.2 "Code host A values: for example `pull_request`, `push`, `issues`, `ping`"', async () => {
  for (const type of ["pull_request", "push", "issues"]) {
    assert.equal(await gateway.verdict("hostA", hostA(type)), "accepted");
  }
});

test('6.2 "the payload field `action` carries the sub-action", "Sub-actions are selected with `filters`"', async () => {
  for (const action of ["opened", "synchronize"]) {
    assert.equal(await gateway.verdict("pulls", hostA("pull_request", { action })), "accepted");
  }
  for (const action of ["reopened", "closed", "labeled"]) {
    assert.equal(await gateway.verdict("pulls", hostA("pull_request", { action })), "ignored");
  }
});

test('6.2 "The `events` list matches the header value only"', async () => {
  for (const type of ["pull_request.opened", "opened", "Pull_Request", "pull"]) {
    const { reply } = await gateway.post("pulls", hostA(type, { action: "opened" }));
    assert.deepEqual(reply, { status: "ignored", event: type });
  }
});

test('6.3 "the exact header text such as `Merge Request Hook`, `Push Hook`, `Pipeline Hook`"', async () => {
  for (const type of ["Merge Request Hook", "Push Hook", "Pipeline Hook"]) {
    assert.equal(await gateway.verdict("hooks", hostB(type)), "accepted");
  }
  assert.equal(await gateway.verdict("hooks", hostB("Tag Push Hook")), "ignored");
});

test('6.3 "Elsewhere the values `merge_request` and `push` are used for B"', async () => {
  assert.equal(await gateway.verdict("short", hostB("Merge Request Hook")), "accepted");
  assert.equal(await gateway.verdict("short", hostB("Push Hook")), "accepted");
  assert.equal(await gateway.verdict("short", hostB("Pipeline Hook")), "ignored");
  assert.equal(await gateway.verdict("hooks", hostB("merge_request")), "accepted");
});

test('6.4 "A `ping` event sent on webhook registration is ignored when `ping` is not in `events`"', async () => {
  const { status, reply } = await gateway.post("hostA", hostA("ping", { zen: "Keep it simple" }));
  assert.deepEqual([status, reply], [200, { status: "ignored", event: "ping" }]);
  assert.equal(await gateway.verdict("pinged", hostA("ping")), "accepted");
});

test('6.5 "Event names for other senders are free-form (e.g. `item:updated`, `alert`)"', async () => {
  for (const type of ["item:updated", "alert"]) {
    assert.equal(await gateway.verdict("free", { body: { event_type: type } }), "accepted");
  }
  assert.equal(await gateway.verdict("free", { body: { event_type: "item" } }), "ignored");
});
