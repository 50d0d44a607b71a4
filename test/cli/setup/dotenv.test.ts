import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { setInDotenv } from "../../../src/cli/setup/dotenv.ts";
import { fc } from "../../tools/property.ts";

const cases: readonly (readonly [what: string, before: string, value: string, after: string])[] = [
  ["an empty file", "", "v", "A=v\n"],
  ["a file without a last line end", "B=1", "v", "B=1\nA=v\n"],
  ["a line with a comment", "# top\nA=old # why\nB=1\n", "v", "# top\nA=v # why\nB=1\n"],
  ["an exported line", "export A='old # x'  # y\n", "new v", "export A='new v'  # y\n"],
  ["an empty line", "A=\nB=1\n", "v", "A=v\nB=1\n"],
  ["the last of two lines", "A=1\nA=2\n", "v", "A=1\nA=v\n"],
  ["a line in comment signs", "#A=old\n", "v", "#A=old\nA=v\n"],
  ["a name that ends alike", "XA=1\n", "v", "XA=1\nA=v\n"],
  ["Windows line ends", "A=1\r\nB=2\r\n", "v", "A=v\r\nB=2\r\n"],
  ["a new line among Windows line ends", "B=2\r\n", "v", "B=2\r\nA=v\r\n"],
  ["a value over several lines", "A='one\ntwo'\nB=1\n", "v", "A=v\nB=1\n"],
  ["a text that holds such a line", "B='\nA=inner\n'\n", "v", "B='\nA=inner\n'\nA=v\n"],
  ["a bare value with a hash in it", "A=ab#cd\n", "v", "A=v\n"],
];

for (const [what, before, value, after] of cases) {
  test(`a variable is set in ${what}`, () => {
    assert.equal(setInDotenv(before, "A", value), after);
    assert.equal(parseEnv(after).A, value);
  });
}

for (const value of [
  "a b",
  "a#b",
  "it's",
  'say "so"',
  "a'b\"c",
  "$HOME",
  "back\\slash\\n",
  "日本",
  " edges ",
  "a\nb",
  "=",
]) {
  test(`the value ${JSON.stringify(value)} is read back as it is`, () => {
    assert.equal(parseEnv(setInDotenv("Z='z'\n", "A", value)).A, value);
  });
}

test("a value that no quotes can hold is refused without being shown", () => {
  assert.throws(
    () => setInDotenv("", "A", "hunter'\"`2"),
    (error: Error) => {
      assert.match(error.message, /^The value for A cannot be written to \.env: it has every kind of quotes/);
      return !error.message.includes("hunter");
    },
  );
});

test("whatever is set is read back or refused, and the others stay", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string(), (value, comment) => {
      const before = `# ${comment.replaceAll(/['"`\r\n]/g, "")}\nB='b # b'\nA=old\nC=c\n`;
      try {
        assert.deepEqual({ ...parseEnv(setInDotenv(before, "A", value)) }, { A: value, B: "b # b", C: "c" });
      } catch (error) {
        assert.match((error as Error).message, /cannot be (written|set)/);
      }
    }),
  );
});
