import assert from "node:assert/strict";
import { test } from "node:test";
import { redact, splitText, truncate } from "../../src/core/text.ts";
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

test("a long text is cut after a paragraph, else a line, else a word", () => {
  const limit = { unit: "utf16", max: 12, parts: 9 } as const;
  assert.deepEqual(splitText("first one\n\nsecond", limit), ["first one", "second"]);
  assert.deepEqual(splitText("first one\nsecond", limit), ["first one", "second"]);
  assert.deepEqual(splitText("first one second", limit), ["first one", "second"]);
  assert.deepEqual(splitText("a".repeat(30), limit), ["a".repeat(12), "a".repeat(12), "a".repeat(6)]);
});

test("the last part ends in a notice when more was left", () => {
  const parts = splitText("word ".repeat(100), { unit: "utf16", max: 60, parts: 2 });
  assert.equal(parts.length, 2);
  assert.match(parts[1] ?? "", /\[cut: the answer was longer\]$/);
});

test("every part fits its limit and holds whole characters, in every unit", () => {
  const units = fc.constantFrom("utf16" as const, "codepoints" as const, "bytes" as const);
  const size = { utf16: (t: string) => t.length, codepoints: (t: string) => [...t].length, bytes: Buffer.byteLength };
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 400 }), units, (text, unit) => {
      for (const part of splitText(text, { unit, max: 80, parts: 3 })) {
        assert.ok(size[unit](part) <= 80, `${size[unit](part)} ${unit}`);
        assert.ok(part.isWellFormed());
      }
    }),
  );
});

test("a letter with more accents than a part can hold is cut between them", () => {
  const letter = `e${"\u0301".repeat(300)}`;
  const parts = splitText(letter, { unit: "bytes", max: 80, parts: 20 });
  assert.ok(parts.every((part) => Buffer.byteLength(part) <= 80));
  assert.equal(parts.join(""), letter);
});
