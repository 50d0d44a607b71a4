import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson } from "../../src/core/json.ts";
import { absent, valueAt } from "../../src/core/path.ts";
import { fc } from "../tools/property.ts";

const value = parseJson(`{
  "action": "opened", "none": null, "zero": 0, "": "empty", "big": 12345678901234567890,
  "pull_request": {"labels": [{"name": "bug"}, {"name": "urgent"}]},
  "__proto__": {"mine": true}, "list": [[1, 2], "x"]
}`);

const cases: [path: string, expected: unknown][] = [
  ["action", "opened"],
  ["none", null],
  ["zero", 0],
  ["", "empty"],
  ["pull_request.labels.1.name", "urgent"],
  ["list.0.1", 2],
  ["__proto__.mine", true],
  ["missing", absent],
  ["action.length", absent],
  ["action.0", absent],
  ["none.x", absent],
  ["big.rawJSON", absent],
  ["pull_request.labels.length", absent],
  ["pull_request.labels.2", absent],
  ["pull_request.labels.-1", absent],
  ["pull_request.labels.01", absent],
  ["pull_request.labels.1e0", absent],
  ["pull_request.labels. 1", absent],
  ["pull_request.labels.99999999999", absent],
  ["constructor", absent],
  ["toString", absent],
  ["pull_request.hasOwnProperty", absent],
  ["list.constructor", absent],
  ["list.map", absent],
  ["action.", absent],
];

for (const [path, expected] of cases) {
  test(`"${path}" leads to ${expected === absent ? "nothing" : JSON.stringify(expected)}`, () => {
    assert.deepEqual(valueAt(value, path), expected);
  });
}

test("no path leads to anything that the sender did not write", () => {
  const word = fc.constantFrom(
    ...Object.getOwnPropertyNames(Object.prototype),
    ...Object.getOwnPropertyNames(Array.prototype),
  );
  const path = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join("."));
  fc.assert(fc.property(path, (text) => assert.equal(valueAt({ a: {}, b: [] }, text), absent)));
});
