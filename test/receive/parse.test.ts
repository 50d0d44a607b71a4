import assert from "node:assert/strict";
import { test } from "node:test";
import { Rejection } from "../../src/core/errors.ts";
import { newId } from "../../src/core/id.ts";
import type { Event } from "../../src/core/types.ts";
import { parse } from "../../src/receive/parse.ts";
import { headersOf } from "../core/event.ts";

const nowMs = 1_732_190_000_000;
const form = { "content-type": "application/x-www-form-urlencoded" };

function parsed(body: string | Buffer, headers: Record<string, string | string[]> = {}): Event {
  return parse({ headers: headersOf(headers), body: Buffer.from(body), route: "ci", nowMs, newId });
}

function codeOf(body: string | Buffer, headers: Record<string, string> = {}): string | undefined {
  try {
    parsed(body, headers);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Rejection);
    assert.ok(!error.message.includes("hunter2"), "the reason quotes the payload");
    return error.code;
  }
}

test("an event holds what came in", () => {
  const event = parsed('{"a":1}', { "x-github-event": "push", "x-github-delivery": "d-1" });
  const { id, headers, ...rest } = event;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.deepEqual(rest, {
    route: "ci",
    type: "push",
    typeNames: ["push"],
    deliveryId: "d-1",
    payload: { a: 1 },
    body: Buffer.from('{"a":1}'),
    receivedAt: nowMs,
  });
  assert.equal(headers.get("x-github-event")?.[0], "push");
});

const bodies: [what: string, body: string | Buffer, code: string | undefined][] = [
  ["an empty object", "{}", undefined],
  ["an object after a byte order mark", "\ufeff{}", undefined],
  ["an object among white space", " \r\n{}\t", undefined],
  ["nothing", "", "malformed_json"],
  ["white space", "  ", "malformed_json"],
  ["text", "hunter2 is no JSON", "malformed_json"],
  ["half an object", '{"password":"hunter2"', "malformed_json"],
  ["two objects", "{}{}", "malformed_json"],
  ["a comment", "{/* x */}", "malformed_json"],
  ["NaN", '{"a":NaN}', "malformed_json"],
  ["bytes that are not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), "malformed_json"],
  ["an overlong UTF-8 form", Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]), "malformed_json"],
  ["100 000 levels", "[".repeat(100_000), "malformed_json"],
  ["501 levels of objects", `${'{"a":'.repeat(501)}1${"}".repeat(501)}`, "malformed_json"],
  ["a list", "[1]", "not_an_object"],
  ["a text", '"hunter2"', "not_an_object"],
  ["a number", "12345678901234567890", "not_an_object"],
  ["null", "null", "not_an_object"],
];
for (const [what, body, code] of bodies) {
  test(`a body of ${what} is ${code ?? "accepted"}`, () => assert.equal(codeOf(body), code));
}

test("numbers keep all their digits", () => {
  const text = '{"id":12345678901234567890,"v":1.0}';
  assert.equal(JSON.stringify(parsed(text).payload), text);
});

test("the content type does not matter, except for forms", () => {
  for (const type of ["application/json", "text/plain", "application/vnd.x+json; charset=utf-8", ""]) {
    assert.deepEqual(parsed('{"a":1}', { "content-type": type }).payload, { a: 1 });
  }
});

const forms: [what: string, body: string, payload: unknown][] = [
  ["GitHub's payload field is the payload", `payload=${encodeURIComponent('{"a":{"b":[1]}}')}`, { a: { b: [1] } }],
  ["other fields beside it are left out", `x=1&payload=${encodeURIComponent('{"a":1}')}`, { a: 1 }],
  ["without it the fields are the payload", "From=%2B491&Body=h%C3%A4+%26+ho", { From: "+491", Body: "hä & ho" }],
  ["a repeated field is a list", "a=1&a=2&b=3", { a: ["1", "2"], b: "3" }],
  ["a payload that is no object is a field", "payload=hello&x=1", { payload: "hello", x: "1" }],
  ["a repeated payload is a list", "payload=%7B%7D&payload=%7B%7D", { payload: ["{}", "{}"] }],
  ["an empty form is an empty object", "", {}],
];
for (const [what, body, payload] of forms) {
  for (const type of ["application/x-www-form-urlencoded", "Application/X-WWW-Form-URLencoded ; charset=UTF-8"]) {
    test(`${what} (${type})`, () => {
      assert.equal(JSON.stringify(parsed(body, { "content-type": type }).payload), JSON.stringify(payload));
    });
  }
}

test("a form's payload that is broken JSON is refused", () => {
  assert.equal(codeOf(`payload=${encodeURIComponent('{"hunter2":')}`, form), "malformed_json");
});

test("a form field named __proto__ is a field", () => {
  const { payload } = parsed("__proto__=x&toString=y", form);
  assert.deepEqual(Object.keys(payload), ["__proto__", "toString"]);
  assert.equal(Object.getPrototypeOf(payload), Object.prototype);
});

const types: [what: string, headers: Record<string, string>, body: string, type: string, names: string[]][] = [
  ["GitHub's header", { "x-github-event": "pull_request" }, '{"event_type":"x"}', "pull_request", ["pull_request"]],
  ["its neutral name", { "x-hosta-event": "push" }, "{}", "push", ["push"]],
  [
    "GitLab's header",
    { "x-gitlab-event": "Merge Request Hook" },
    "{}",
    "Merge Request Hook",
    ["Merge Request Hook", "merge_request"],
  ],
  ["its neutral name", { "x-hostb-event": "Push Hook" }, "{}", "Push Hook", ["Push Hook", "push"]],
  [
    "GitLab's header in its short form",
    { "x-gitlab-event": "merge_request" },
    "{}",
    "merge_request",
    ["merge_request"],
  ],
  [
    "GitHub before GitLab",
    { "x-gitlab-event": "Push Hook", "x-github-event": "Push Hook" },
    "{}",
    "Push Hook",
    ["Push Hook"],
  ],
  ["the body's event_type", {}, '{"event_type":"item:updated","type":"x"}', "item:updated", ["item:updated"]],
  ["the body's type", {}, '{"type":"invoice.paid"}', "invoice.paid", ["invoice.paid"]],
  ["an empty header is absent", { "x-github-event": "" }, '{"event_type":"alert"}', "alert", ["alert"]],
  ["an empty event_type is absent", {}, '{"event_type":"","type":"alert"}', "alert", ["alert"]],
  ["an event_type that is no text is absent", {}, '{"event_type":7,"type":["x"]}', "unknown", ["unknown"]],
  ["nothing", {}, "{}", "unknown", ["unknown"]],
  ["a Hook text that is not GitLab's has no short form", {}, '{"type":"Push Hook"}', "Push Hook", ["Push Hook"]],
  ["a long type is cut", {}, `{"type":"${"x".repeat(5000)}"}`, "x".repeat(256), ["x".repeat(256)]],
];
for (const [what, headers, body, type, names] of types) {
  test(`event type: ${what}`, () => {
    const event = parsed(body, headers);
    assert.deepEqual([event.type, event.typeNames], [type, names]);
  });
}

const idNames = ["X-GitHub-Delivery", "X-Request-ID", "webhook-id", "svix-id", "Idempotency-Key"];
for (const [index, name] of idNames.entries()) {
  test(`delivery id: ${name} comes before ${idNames.slice(index + 1).join(", ") || "the time"}`, () => {
    const headers = Object.fromEntries(idNames.slice(index).map((other) => [other, `from ${other}`]));
    assert.equal(parsed("{}", headers).deliveryId, `from ${name}`);
  });
}

test("delivery id: the neutral name counts, and an empty header does not", () => {
  assert.equal(parsed("{}", { "x-hosta-delivery": "d", "x-request-id": "r" }).deliveryId, "d");
  assert.equal(parsed("{}", { "x-github-delivery": "", "x-request-id": "r" }).deliveryId, "r");
});

test("delivery id: without a header two requests of one millisecond differ", () => {
  const ids = new Set(Array.from({ length: 1000 }, () => parsed("{}").deliveryId));
  assert.equal(ids.size, 1000);
  for (const id of ids) assert.match(id, /^1732190000000-[0-9a-f]{12}$/);
});

test("delivery id: one that is too long is kept as a digest that is always the same", () => {
  const id = parsed("{}", { "x-request-id": "x".repeat(257) }).deliveryId;
  assert.match(id, /^sha256:[0-9a-f]{64}$/);
  assert.equal(parsed("{}", { "x-request-id": "x".repeat(257) }).deliveryId, id);
  assert.notEqual(parsed("{}", { "x-request-id": "x".repeat(258) }).deliveryId, id);
  assert.equal(parsed("{}", { "x-request-id": "x".repeat(256) }).deliveryId, "x".repeat(256));
});
