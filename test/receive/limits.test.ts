import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rejection } from "../../src/core/errors.ts";
import { checkDeclaredSize, checkEncoding } from "../../src/receive/limits.ts";
import { headersOf } from "../core/event.ts";

const sizes: [length: string | string[], code: string | undefined][] = [
  ["0", undefined],
  ["1048576", undefined],
  ["1048577", "payload_too_large"],
  ["9".repeat(400), "payload_too_large"],
  ["abc", "bad_request"],
  ["-1", "bad_request"],
  ["1e3", "bad_request"],
  ["12, 12", "bad_request"],
  [["12", "1048577"], "payload_too_large"],
];

for (const [length, code] of sizes) {
  test(`Content-Length ${JSON.stringify(length).slice(0, 30)} is ${code ?? "accepted"}`, () => {
    const check = () => checkDeclaredSize(headersOf({ "content-length": length }), 1_048_576);
    if (code === undefined) assert.doesNotThrow(check);
    else assert.throws(check, (error: Rejection) => error.code === code && error.message.length < 120);
  });
}

test("a body without a declared length passes, it is counted while it is read", () => {
  assert.doesNotThrow(() => checkDeclaredSize(new Map(), 1));
});

for (const coding of [undefined, "", "identity", "Identity", "identity, identity"]) {
  test(`Content-Encoding ${coding} is accepted`, () => {
    assert.doesNotThrow(() =>
      checkEncoding(coding === undefined ? new Map() : headersOf({ "content-encoding": coding })),
    );
  });
}

for (const coding of ["gzip", "br", "deflate", "identity, gzip", "x"]) {
  test(`Content-Encoding ${coding} is refused`, () => {
    const check = () => checkEncoding(headersOf({ "content-encoding": coding }));
    assert.throws(check, (error: Rejection) => error.code === "unsupported_encoding");
  });
}
