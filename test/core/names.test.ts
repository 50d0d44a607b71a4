import assert from "node:assert/strict";
import { test } from "node:test";
import { header, headerNames, shortEventName, wireText } from "../../src/core/names.ts";
import { headersOf } from "./event.ts";

const pairs = [
  ["X-GitHub-Event", "x-hosta-event"],
  ["X-GitHub-Delivery", "x-hosta-delivery"],
  ["X-Gitlab-Event", "x-hostb-event"],
  ["X-Gitlab-Token", "x-hostb-token"],
] as const;

for (const [real, neutral] of pairs) {
  test(`${real} and ${neutral} are read under either name`, () => {
    assert.equal(header(headersOf({ [neutral]: "value" }), real), "value");
    assert.equal(header(headersOf({ [real]: "value" }), neutral.toUpperCase()), "value");
  });
}

test("a header without another dialect has one name", () => {
  assert.deepEqual(headerNames("X-Request-ID"), ["x-request-id"]);
});

test("blank values count as absent, and the next one is taken", () => {
  assert.equal(header(headersOf({ "x-request-id": ["", " ", "one", "two"] }), "x-request-id"), "one");
  assert.equal(header(headersOf({ "x-github-event": "", "x-hosta-event": "push" }), "x-github-event"), "push");
  assert.equal(header(headersOf({ "x-request-id": "" }), "x-request-id"), undefined);
});

test("a header value in UTF-8 is read as text, and one that is not stays as it is", () => {
  const wire = (text: string) => Buffer.from(text).toString("latin1");
  assert.equal(wireText(wire("naïve 😀")), "naïve 😀");
  assert.equal(wireText("caf\xe9"), "café");
  assert.equal(wireText("plain"), "plain");
  assert.equal(wireText("日本"), "日本");
});

for (const [long, short] of [
  ["Merge Request Hook", "merge_request"],
  ["Push Hook", "push"],
  ["Tag Push Hook", "tag_push"],
  ["Confidential Issue Hook", "confidential_issue"],
  ["merge_request", undefined],
  ["Hook", undefined],
] as const) {
  test(`the short form of "${long}" is ${short}`, () => assert.equal(shortEventName(long), short));
}
