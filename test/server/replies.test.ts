import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Doorway, openDoorway, webhook } from "../tools/doorway.ts";
import type { RequestParts, SceneOptions } from "../tools/scene.ts";
import { head, type WireAnswer } from "../tools/wire.ts";

const routes = {
  ci: { prompt: "Look at {what}", events: ["push"] },
  picky: { filters: [{ field: "action", equals: "opened" }] },
  shaped: { script: "silent.sh" },
  direct: { prompt: "Hello", deliver: "telegram", deliver_only: true },
  off: { enabled: false },
  "Name.with-all_signs": {},
};
const options: SceneOptions = {
  routes,
  webhook: { max_body_bytes: 10_000, rate_limit: 2 },
  files: { "scripts/silent.sh": "cat > /dev/null\n" },
};

interface Case {
  readonly what: string;
  readonly send: (door: Doorway) => Promise<WireAnswer>;
  readonly status: number;
  readonly body: object;
  readonly headers?: Record<string, string>;
}

const push = { event: "push", id: "42" };

function posted(parts: RequestParts & { readonly path?: string }): Case["send"] {
  return (door) => door.post({ ...push, ...parts });
}

function asked(line: string, headers: Record<string, string> = {}): Case["send"] {
  return (door) => door.exchange(head(line, headers));
}

const cases: Case[] = [
  {
    what: "the health check",
    send: asked("GET /health"),
    status: 200,
    body: { status: "ok", platform: "webhook" },
  },
  {
    what: "the health check with a query",
    send: asked("GET /health?probe=1"),
    status: 200,
    body: { status: "ok", platform: "webhook" },
  },
  {
    what: "an accepted event",
    send: posted({}),
    status: 202,
    body: { status: "accepted", route: "ci", event: "push", delivery_id: "42" },
  },
  {
    what: "an event that is not listed",
    send: posted({ event: "ping" }),
    status: 200,
    body: { status: "ignored", event: "ping" },
  },
  {
    what: "an event that a filter declines",
    send: posted({ route: "picky" }),
    status: 200,
    body: { status: "ignored", reason: "filter" },
  },
  {
    what: "an event that a script declines",
    send: posted({ route: "shaped" }),
    status: 200,
    body: { status: "ignored", reason: "script" },
  },
  {
    what: "a duplicate",
    send: async (door) => {
      await door.post(push);
      return door.post(push);
    },
    status: 200,
    body: { status: "duplicate", delivery_id: "42" },
  },
  {
    what: "a direct delivery",
    send: posted({ route: "direct" }),
    status: 200,
    body: { status: "delivered", route: "direct", target: "telegram", delivery_id: "42" },
  },
  {
    what: "a direct delivery that fails",
    send: (door) => {
      door.telegram.mode = "refused";
      return door.post({ route: "direct", id: "42" });
    },
    status: 502,
    body: { status: "error", error: "Delivery failed", delivery_id: "42" },
  },
  { what: "broken JSON", send: posted({ body: "{" }), status: 400, body: { error: "Malformed JSON body" } },
  { what: "an empty body", send: posted({ body: "" }), status: 400, body: { error: "Malformed JSON body" } },
  { what: "a JSON list", send: posted({ body: "[]" }), status: 400, body: { error: "Body must be a JSON object" } },
  { what: "no signature", send: posted({ secret: null }), status: 401, body: { error: "Invalid signature" } },
  { what: "a bad signature", send: posted({ secret: "x" }), status: 401, body: { error: "Invalid signature" } },
  { what: "a disabled route", send: posted({ route: "off" }), status: 403, body: { error: "Route disabled" } },
  { what: "an unknown route", send: posted({ route: "nope" }), status: 404, body: { error: "Unknown route" } },
  { what: "a name in other letters", send: posted({ route: "CI" }), status: 404, body: { error: "Unknown route" } },
  {
    what: "a slash at the end",
    send: posted({ path: "/webhooks/ci/" }),
    status: 404,
    body: { error: "Unknown route" },
  },
  {
    what: "a path below a route",
    send: posted({ path: "/webhooks/ci/x" }),
    status: 404,
    body: { error: "Unknown route" },
  },
  { what: "no name", send: posted({ path: "/webhooks/" }), status: 404, body: { error: "Unknown route" } },
  { what: "another path", send: posted({ path: "/" }), status: 404, body: { error: "Unknown route" } },
  { what: "the health check with a slash", send: asked("GET /health/"), status: 404, body: { error: "Unknown route" } },
  {
    what: "a name that is no percent-encoding",
    send: posted({ path: "/webhooks/%zz" }),
    status: 404,
    body: { error: "Unknown route" },
  },
  {
    what: "a name that is no UTF-8",
    send: posted({ path: "/webhooks/%ff" }),
    status: 404,
    body: { error: "Unknown route" },
  },
  {
    what: "a name with an encoded slash",
    send: posted({ path: "/webhooks/..%2fci" }),
    status: 404,
    body: { error: "Unknown route" },
  },
  {
    what: "a name like a property",
    send: posted({ route: "__proto__" }),
    status: 404,
    body: { error: "Unknown route" },
  },
  {
    what: "GET on a route",
    send: asked("GET /webhooks/ci"),
    status: 405,
    body: { error: "Method not allowed" },
    headers: { allow: "POST" },
  },
  {
    what: "OPTIONS on a route",
    send: asked("OPTIONS /webhooks/ci"),
    status: 405,
    body: { error: "Method not allowed" },
    headers: { allow: "POST" },
  },
  {
    what: "POST on the health check",
    send: posted({ path: "/health" }),
    status: 405,
    body: { error: "Method not allowed" },
    headers: { allow: "GET, HEAD" },
  },
  {
    what: "a body above the limit",
    send: posted({ body: { text: "x".repeat(10_000) } }),
    status: 413,
    body: { error: "Payload too large" },
    headers: { connection: "close" },
  },
  {
    what: "a compressed body",
    send: posted({ headers: { "content-encoding": "gzip" } }),
    status: 415,
    body: { error: "Unsupported content encoding" },
  },
  {
    what: "a spent budget",
    send: async (door) => {
      await Promise.all([door.post({ event: "push" }), door.post({ event: "push" })]);
      return door.post(push);
    },
    status: 429,
    body: { error: "Rate limit exceeded" },
    headers: { "retry-after": "60" },
  },
  {
    what: "too many bad signatures",
    send: async (door) => {
      for (let turn = 0; turn < 2; turn += 1) await door.post({ secret: "x" });
      return door.post({ secret: "x" });
    },
    status: 429,
    body: { error: "Rate limit exceeded" },
    headers: { "retry-after": "60" },
  },
  {
    what: "a ledger that cannot commit",
    send: (door) => {
      door.outage.failing.add("accept");
      return door.post(push);
    },
    status: 503,
    body: { error: "Temporarily unavailable" },
    headers: { "retry-after": "10" },
  },
  {
    what: "a bug",
    send: (door) => {
      door.outage.hooks.set("accept", () => {
        throw new Error("a bug with the secret of all routes");
      });
      return door.post(push);
    },
    status: 500,
    body: { error: "Internal error" },
  },
  {
    what: "an expectation that nobody knows",
    send: posted({ headers: { expect: "a-miracle" } }),
    status: 417,
    body: { error: "Expectation failed" },
  },
];

describe("the reply to", () => {
  for (const { what, send, status, body, headers = {} } of cases) {
    test(`${what} is ${status}`, async (t) => {
      const answer = await send(await openDoorway(t, options));
      assert.equal(answer.status, status);
      assert.deepEqual(JSON.parse(answer.text), body);
      assert.equal(answer.headers["content-type"], "application/json");
      for (const name of ["allow", "retry-after"]) assert.equal(answer.headers[name], headers[name], name);
      if (headers.connection) assert.equal(answer.headers.connection, headers.connection);
      assert.equal(answer.headers["x-powered-by"] ?? answer.headers.server, undefined);
    });
  }
});

test("HEAD /health has the head of GET and no body", async (t) => {
  const door = await openDoorway(t, options);
  const wire = await door.connect();
  wire.write(head("HEAD /health"), head("GET /nowhere", { connection: "close" }));
  await wire.closed;
  const [first = "", second = ""] = wire.rest().split(/(?=HTTP\/1\.1 404)/);
  assert.match(first, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(first, /content-length: 36\r\n/);
  assert.match(first, /\r\n\r\n$/);
  assert.match(second, /Unknown route/);
});

test("a query is ignored, and names may be percent-encoded", async (t) => {
  const door = await openDoorway(t, options);
  for (const path of ["/webhooks/ci?token=abc&x=/webhooks/nope", "/webhooks/%63i", "/webhooks/ci?"]) {
    const { status, text } = await door.post({ path, event: "ping" });
    assert.deepEqual([status, JSON.parse(text)], [200, { status: "ignored", event: "ping" }], path);
    door.clock.advance(60_000);
  }
  assert.equal((await door.post({ path: "/webhooks/Name%2Ewith%2Dall%5Fsigns" })).status, 202);
});

test("a request with the absolute form of its address is taken like any other", async (t) => {
  const door = await openDoorway(t, options);
  assert.equal((await door.exchange(head("GET http://localhost/health"))).status, 200);
});

test("a request that would rather speak HTTP/2 is answered all the same", async (t) => {
  const door = await openDoorway(t, options);
  const headers = {
    connection: "Upgrade, HTTP2-Settings",
    upgrade: "h2c",
    "http2-settings": "AAMAAABkAAQAoAAAAAIAAAAA",
  };
  assert.equal((await door.post({ ...push, headers })).status, 202);
});

test("several requests on one connection are answered one after the other", async (t) => {
  const door = await openDoorway(t, options);
  const wire = await door.connect();
  wire.write(...webhook({ event: "ping" }), ...webhook({ ...push, body: "{" }), head("GET /health"));
  const statuses = [await wire.answer(), await wire.answer(), await wire.answer()].map(({ status }) => status);
  assert.deepEqual(statuses, [200, 400, 200]);
  assert.equal(wire.isClosed(), false);
});

test("a form is taken on every route", async (t) => {
  const door = await openDoorway(t, options);
  const form = `payload=${encodeURIComponent('{"what":"a form"}')}`;
  const headers = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };
  assert.equal((await door.post({ ...push, body: form, headers })).status, 202);
  assert.match((await door.events())[0]?.jobs[0]?.plan ?? "", /Look at a form/);
});
