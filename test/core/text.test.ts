import assert from "node:assert/strict";
import { test } from "node:test";
import { redact, truncate } from "../../src/core/text.ts";
import { fc } from "../tools/property.ts";

test("a text that fits is not cut", () => {
  assert.equal(truncate("abc", 3), "abc");
  assert.equal(truncate("", 0), "");
});

test("a cut never splits a character", () => {
  assert.equal(truncate("ab😀", 3), "ab");
  assert.equal(truncate("ab😀c", 4), "ab😀");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(20), (text, max) => {
      const cut = truncate(text, max);
      assert.ok(cut.length <= max && text.startsWith(cut) && cut.isWellFormed());
    }),
  );
});

test("secrets are blotted out, also in the form that JSON gives them", () => {
  assert.equal(redact("token hunter2-hunter2!", ["hunter2-hunter2"]), "token [redacted]!");
  assert.equal(redact(JSON.stringify({ key: 'quo"te\\d' }), ['quo"te\\d']), '{"key":"[redacted]"}');
});

test("words shorter than a secret are left alone", () => {
  assert.equal(redact("a short word", ["a", "short"]), "a short word");
});

test("a secret of replacement patterns is blotted out as it is", () => {
  assert.equal(redact("x $&$&$& y", ["$&$&$&"]), "x [redacted] y");
});
