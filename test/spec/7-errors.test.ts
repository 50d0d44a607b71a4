import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { signGithub } from "../../src/receive/verify.ts";
import { startFakeGithub } from "../fakes/github.ts";
import { missing } from "../needs.ts";
import { until } from "../tools/wait.ts";
import { head, openWire, type WireAnswer } from "../tools/wire.ts";
import { type Answer, configuration, globalSecret, openGateway, type Post, refusal, useGateway } from "./gateway.ts";

const direct = { deliver: "telegram", deliver_only: true, prompt: "{x}" };

const gateway = useGateway(() => ({
  routes: {
    plain: {},
    off: { enabled: false },
    direct,
    empty: { prompt: "{x}", deliver: "telegram" },
    kept: { prompt: "{x}", deliver: "telegram" },
  },
  extra: { max_body_bytes: 10_000 },
}));

/** Posts, and makes sure that nothing came of it. */
async function refused(route: string, parts: Post): Promise<Answer> {
  const answer = await gateway.post(route, parts);
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(await gateway.isKnown(answer.id), false, "no event, no claim, no job");
  return answer;
}

async function exchange(t: TestContext, ...pieces: (string | Buffer)[]): Promise<WireAnswer> {
  const wire = await openWire(t, gateway.process.port);
  wire.write(...pieces);
  return wire.answer();
}

const malformed = [
  "",
  "{",
  '{"a":1}x',
  "{'a':1}",
  '{"a":NaN}',
  Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
  "[".repeat(9_000),
];

test('7 400 "Malformed JSON body"', async () => {
  for (const body of malformed) {
    const { status, reply } = await refused("plain", { body });
    assert.deepEqual([status, reply], [400, { error: "Malformed JSON body" }]);
  }
});

test("7 400 for JSON that is not an object", async () => {
  for (const body of ["[1]", "7", '"text"', "null"]) {
    const { status, reply } = await refused("plain", { body });
    assert.deepEqual([status, reply], [400, { error: "Body must be a JSON object" }]);
  }
});

const signature = signGithub(globalSecret, "{}");
const inner = `${head("POST /webhooks/plain", { "content-length": "2", "x-request-id": "smuggled", "x-hub-signature-256": signature })}{}`;
const chunks = { "transfer-encoding": "chunked" };
const framings: [what: string, text: string][] = [
  ["two lengths", `${head("POST /webhooks/plain", { "content-length": ["2", "3"] })}{}`],
  [
    "a length and chunks",
    `${head("POST /webhooks/plain", { "content-length": "4", "transfer-encoding": "chunked" })}0\r\n\r\n`,
  ],
  [
    "another coding before chunks",
    `${head("POST /webhooks/plain", { "transfer-encoding": ["x", "chunked"] })}0\r\n\r\n${inner}`,
  ],
  ["chunks in HTTP/1.0", `${head("POST /webhooks/plain", chunks).replace("1.1", "1.0")}0\r\n\r\n`],
  ["two hosts", `${head("POST /webhooks/plain", { host: ["a", "b"], "content-length": "0" })}${inner}`],
];
for (const [what, text] of framings) {
  test(`7 400 for framing that can be read in two ways (${what}), and what stands behind it is not carried out`, async (t) => {
    const wire = await openWire(t, gateway.process.port);
    wire.write(text);
    const { status, text: reply } = await wire.answer();
    assert.deepEqual([status, reply], [400, '{"error":"Bad request"}']);
    await wire.closed;
    assert.equal(wire.rest(), "", "one answer, not two");
    assert.equal((await fetch(`${gateway.url}/health`)).status, 200);
    assert.equal(await gateway.isKnown("smuggled"), false);
  });
}

test("7 417 for an expectation that nobody can meet: one answer, whatever the sender does then", async (t) => {
  const wire = await openWire(t, gateway.process.port);
  wire.write(head("POST /webhooks/plain", { expect: "a miracle", "content-length": "100" }));
  assert.equal((await wire.answer()).status, 417);
  wire.socket.end();
  await wire.closed;
  assert.equal(wire.rest(), "", "one answer, not two");
});

test('7 401 "Signature or token invalid, or signature header absent": message `Invalid signature`', async () => {
  for (const secret of ["wrong", null]) {
    const { status, reply } = await refused("plain", { secret });
    assert.deepEqual([status, reply], [401, { error: "Invalid signature" }]);
  }
});

test("7 403 for a route that is disabled", async () => {
  const { status, reply } = await refused("off", {});
  assert.deepEqual([status, reply], [403, { error: "Route disabled" }]);
});

test('7 404 "Route name unknown": message `Unknown route`', async () => {
  for (const route of ["nope", "constructor", "__proto__", "plain/", "Plain", "%00", "..%2fplain", ""]) {
    const { status, reply } = await refused(route, {});
    assert.deepEqual([status, reply], [404, { error: "Unknown route" }], route);
  }
});

test("7 405 for other methods", async () => {
  const response = await fetch(`${gateway.url}/webhooks/plain`);
  assert.deepEqual([response.status, await response.json()], [405, { error: "Method not allowed" }]);
});

test('7 413 "Body exceeds `max_body_bytes`"', async (t) => {
  const { status, reply } = await refused("plain", { body: "x".repeat(10_001) });
  assert.deepEqual([status, reply], [413, { error: "Payload too large" }]);
  const chunk = `1000\r\n${"x".repeat(4096)}\r\n`.repeat(3);
  const chunked = head("POST /webhooks/plain", { "transfer-encoding": "chunked" });
  assert.equal((await exchange(t, chunked, chunk)).status, 413);
});

test("7 415 for a compressed body", async () => {
  const { status, reply } = await refused("plain", { headers: { "content-encoding": "gzip" } });
  assert.deepEqual([status, reply], [415, { error: "Unsupported content encoding" }]);
});

test('7 429 "Route rate limit exceeded": message `Rate limit exceeded`', async (t) => {
  const other = await openGateway(t, () => ({ routes: { plain: {} }, extra: { rate_limit: 1 } }));
  await other.post("plain");
  const { status, reply, headers, id } = await other.post("plain");
  assert.deepEqual([status, reply], [429, { error: "Rate limit exceeded" }]);
  assert.ok(Number(headers.get("retry-after")) >= 1);
  assert.equal(await other.isKnown(id), false);
});

test('7 502 "Direct delivery only: the target adapter rejected the message or raised an error": `Delivery failed`', async () => {
  for (const mode of ["refused", "broken", "lost", "garbage"] as const) {
    gateway.telegram.upcoming.push(mode);
    const { status, reply, id } = await gateway.post("direct", { body: { x: mode } });
    assert.deepEqual([status, reply], [502, { status: "error", error: "Delivery failed", delivery_id: id }]);
  }
});

test('7 502 "Details go to the server log only"', async () => {
  gateway.telegram.upcoming.push("refused");
  const { reply } = await gateway.post("direct", { body: { x: 1 } });
  assert.doesNotMatch(JSON.stringify(reply), /telegram|blocked/i);
  const line = await gateway.logged({ msg: "Message not sent" });
  assert.match(String(line.error), /Telegram|bot was blocked/);
});

test("7 502 frees the delivery id: the sender's retry is delivered", async () => {
  gateway.telegram.upcoming.push("refused");
  const parts = { body: { x: "at last" }, id: "tried-again" };
  assert.equal((await gateway.post("direct", parts)).status, 502);
  assert.equal((await gateway.post("direct", parts)).status, 200);
  assert.equal((await gateway.post("direct", parts)).reply.status, "duplicate");
});

test('7.1 "If `deliver_only` is true and `deliver` is `log` or omitted, the adapter refuses to start"', async (t) => {
  const routes = { a: { deliver_only: true, deliver: "log" }, b: { deliver_only: true } };
  const { code, err } = await refusal(t, { config: configuration({ routes }) });
  assert.equal(code, 78);
  for (const name of ["a", "b"])
    assert.match(err, new RegExp(`routes\\.${name}\\.deliver: deliver_only needs a real target`));
});

test('7.2 "In agent mode, empty agent output (or just `SKIP`) still leads to a delivery attempt"', async () => {
  for (const [x, sent] of [
    ["", "(empty answer)"],
    ["SKIP", "SKIP"],
  ] as const) {
    const { id } = await gateway.post("empty", { body: { x } });
    assert.equal((await gateway.fate(id)).state, "done");
    assert.equal(gateway.telegram.messages.at(-1)?.text, sent);
  }
});

test("7.2 only the exact answer `[SILENT]` is kept back, and the record says so", async () => {
  const { id } = await gateway.post("kept", { body: { x: "[SILENT]" } });
  const { state, jobs } = await gateway.fate(id);
  assert.deepEqual([state, jobs[0]?.messages[0]?.state], ["done", "kept"]);
});

test('7.3 "`host_a_comment` delivery to a nonexistent repository fails"', { skip: missing("gh") }, async (t) => {
  const github = await startFakeGithub();
  t.after(() => github.close());
  github.mode = "refused";
  const other = await openGateway(t, () => ({
    routes: { a: { deliver: "host_a_comment", deliver_extra: { repo: "no/such", pr_number: "1" }, prompt: "Hi" } },
    env: github.env,
  }));
  const { id } = await other.post("a");
  const { state, jobs } = await other.fate(id);
  assert.equal(state, "dead");
  assert.match(jobs[0]?.messages[0]?.reason ?? "", /Cannot comment on "no\/such#1": GitHub answered 404/);
});

test('7.4 "Startup failures: no secret on a route; `INSECURE_NO_AUTH` with a non-loopback bind; `deliver_only` with `log`", told at once', async (t) => {
  const routes = { a: {}, b: { secret: "INSECURE_NO_AUTH" }, c: { secret: "a-secret", deliver_only: true } };
  const config = configuration({ routes, extra: { host: "0.0.0.0", secret: undefined } });
  const { code, err, out } = await refusal(t, { config });
  assert.equal(code, 78);
  assert.equal(out, "");
  assert.match(err, /^The configuration has 3 problems:\n/);
  assert.match(err, /routes\.a\.secret: The route has no secret; set /);
  assert.match(err, /routes\.b\.secret: INSECURE_NO_AUTH is only for .*; set a real secret, or bind to 127\.0\.0\.1/);
  assert.match(err, /routes\.c\.deliver: deliver_only needs a real target .*; name one, or remove deliver_only/);
});

test('7.4 "Port in use also prevents listening"', async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const { code, err } = await refusal(t, { config: configuration({ extra: { port } }) });
  assert.equal(code, 1);
  assert.match(
    err,
    new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use; stop the program that has it, or choose another`),
  );
});

test("7 nothing of all this is a server error or ends the gateway", async () => {
  await until("the health check", async () => (await fetch(`${gateway.url}/health`)).status === 200);
  const lines = gateway.process.log();
  assert.deepEqual(
    lines.filter(({ level }) => level === "error"),
    [],
  );
});
