import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { setInYaml, type YamlValue } from "../../../src/cli/setup/yaml.ts";
import { fc } from "../../tools/property.ts";

type Case = readonly [what: string, before: string, path: string, value: YamlValue, after: string];

const cases: readonly Case[] = [
  ["an empty file", "", "a.b.c", 1, "a:\n  b:\n    c: 1\n"],
  ["a file of comments only", "# mine\n", "a.b", true, "# mine\na:\n  b: true\n"],
  ["a file without a last line end", "a: 1", "b", 2, "a: 1\nb: 2\n"],
  ["a value with a comment and odd blanks", "a:   1    # why\nb: 2\n", "a", 5, "a:   5    # why\nb: 2\n"],
  ["a quoted value", "a: '1' # x\n", "a", "0.0.0.0", "a: 0.0.0.0 # x\n"],
  ["a key without a value", "a:\nb: 1\n", "a", 5, "a: 5\nb: 1\n"],
  ["a key whose value is a comment", "a: # why\nb: 1\n", "a.c", 5, "a: # why\n  c: 5\nb: 1\n"],
  ["a new key after the last", "a:\n  b: 1 # x\n\n# end\nc: 2\n", "a.d", 5, "a:\n  b: 1 # x\n  d: 5\n\n# end\nc: 2\n"],
  ["four blanks a level", "a:\n    b:\n        c: 1\n", "a.d.e", 5, "a:\n    b:\n        c: 1\n    d:\n        e: 5\n"],
  [
    "a new key after a block of text",
    "a:\n  p: |\n    one\n    two\n\nb: 1\n",
    "a.c",
    5,
    "a:\n  p: |\n    one\n    two\n  c: 5\n\nb: 1\n",
  ],
  [
    "a new key after a list",
    "a:\n  l:\n    - x\n    - y\nb: 1\n",
    "a.c",
    5,
    "a:\n  l:\n    - x\n    - y\n  c: 5\nb: 1\n",
  ],
  ["Windows line ends", "a:\r\n  b: 1\r\nc: 2\r\n", "a.d", 5, "a:\r\n  b: 1\r\n  d: 5\r\nc: 2\r\n"],
  ["a mapping in braces", "a: { b: 1 } # x\n", "a.c", "x, y", 'a: { b: 1, c: "x, y" } # x\n'],
  ["a value in braces", "a: {b: 1,c: 2}\n", "a.b", 5, "a: {b: 5,c: 2}\n"],
  ["a new section in braces", "a: { b: 1 }\n", "a.c.d", 5, "a: { b: 1, c: { d: 5 } }\n"],
  ["braces over several lines", "a: {\n  b: 1, # x\n}\n", "a.c", 5, "a: {\n  b: 1, c: 5, # x\n}\n"],
  ["empty braces", "a: {}\nb: 1 # x\n", "a.c", 5, "a: { c: 5 }\nb: 1 # x\n"],
  ["a null section", "a: ~\nb: 1\n", "a.c", 5, "b: 1\na:\n  c: 5\n"],
  ["a list in brackets", "a: [x, y] # x\n", "a", ["p", "q r"], 'a: ["p", "q r"] # x\n'],
  ["a list in lines", "a:\n  - x\nb: 1 # x\n", "a", ["p"], "a:\n  - p\nb: 1 # x\n"],
  ["a key in quotes", '"a": 1\n', "a", 5, '"a": 5\n'],
  ["an anchored value", "a: &x 1\nb: *x\n", "c", 5, "a: &x 1\nb: *x\nc: 5\n"],
  ["a text that looks like a number", "a: 1\n", "a", "-100123", 'a: "-100123"\n'],
  ["a text that looks like a flag", "a: 1\n", "a", "yes", 'a: "yes"\n'],
];

for (const [what, before, path, value, after] of cases) {
  test(`a value is set in ${what}`, () => {
    const result = setInYaml(before, path.split("."), value);
    // `yes` is text in YAML 1.2 and may stand bare; both ways mean the same.
    assert.deepEqual(parse(result), parse(after));
    if (value !== "yes") assert.equal(result, after);
  });
}

test("a section that stands for several is not changed behind anybody's back", () => {
  for (const before of ["a: &x { b: 1 }\nc: *x\n", "a: &x\n  b: 1\nc: *x\n"]) {
    assert.throws(
      () => setInYaml(before, ["c", "b"], 5),
      /"c\.b" cannot be set in config\.yaml .* write it there yourself: 5$/,
    );
    assert.throws(() => setInYaml(before, ["a", "b"], 5), /cannot be set/);
  }
});

test("a text where a section should be is left to its owner", () => {
  assert.throws(() => setInYaml("a: text\n", ["a", "b"], 5), /"a\.b" cannot be set/);
});

test("digits of a large number elsewhere stay", () => {
  const before = "chat: -12345678901234567890\na: 1\n";
  assert.equal(setInYaml(before, ["a"], 5), "chat: -12345678901234567890\na: 5\n");
});

test("whatever text is set is what is read, and nothing else changes", () => {
  const before = "# top\na:\n  b: 1 # b\n  flow: { x: 1 }\n";
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }),
      fc.constantFrom("a.b", "a.c", "a.flow.x", "a.flow.y", "z.z"),
      (text, path) => {
        const value = text.toWellFormed();
        const result = setInYaml(before, path.split("."), value);
        assert.equal(
          path.split(".").reduce<unknown>((here, key) => (here as Record<string, unknown>)[key], parse(result)),
          value,
        );
        assert.match(result, /^# top\n/);
      },
    ),
  );
});
