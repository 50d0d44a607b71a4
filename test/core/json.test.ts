import assert from "node:assert/strict";
import { test } from "node:test";
import { isList, isObject, isRawNumber, jsonHead, parseJson, rawNumber } from "../../src/core/json.ts";
import type { Json } from "../../src/core/types.ts";
import { fc } from "../tools/property.ts";

const numbers = [
  "0",
  "-0",
  "1.0",
  "-1.50",
  "0.1",
  "1e5",
  "1E+5",
  "-0.0",
  "0.0000001",
  "0.000001",
  "123456789012345",
  "1234567890123456",
  "12345678901234567890",
  "-12345678901234567890.125",
  "1e400",
  "100.10",
  "9007199254740993",
];

for (const number of numbers) {
  test(`the number ${number} is printed as it was written, wherever it stands`, () => {
    for (const text of [`{"a":${number}}`, `[${number}]`, `[1,${number},"x"]`, `{"a":{"b":[${number}]}}`]) {
      assert.equal(JSON.stringify(parseJson(text)), text);
    }
    assert.equal(JSON.stringify(parseJson(`{ "a" :  ${number} }`)), `{"a":${number}}`);
  });
}

test("a number written in any way is printed with the same characters", () => {
  const digits = (length: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${length}}$`));
  const number = fc
    .record({
      minus: fc.boolean(),
      whole: fc.oneof(fc.constant("0"), fc.stringMatching(/^[1-9][0-9]{0,20}$/)),
      fraction: fc.option(digits(20)),
      exponent: fc.option(fc.stringMatching(/^[eE][+-]?[0-9]{1,3}$/)),
    })
    .map((n) => `${n.minus ? "-" : ""}${n.whole}${n.fraction === null ? "" : `.${n.fraction}`}${n.exponent ?? ""}`);
  fc.assert(fc.property(number, (text) => assert.equal(JSON.stringify(parseJson(`[${text}]`)), `[${text}]`)));
});

test("JSON that any program wrote comes back as it was", () => {
  fc.assert(
    fc.property(fc.json(), (text) => assert.deepEqual(JSON.parse(JSON.stringify(parseJson(text))), JSON.parse(text))),
  );
});

test("JSON of 500 levels is read, and deeper JSON is refused", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  assert.doesNotThrow(() => parseJson(nested(500)));
  assert.throws(() => parseJson(nested(501)), /nested deeper than 500 levels/);
  assert.throws(() => parseJson(`{"a":`.repeat(600)), SyntaxError);
});

test("brackets inside strings do not count as levels", () => {
  const text = JSON.stringify({ a: '["{'.repeat(2000), b: "\\".repeat(999) });
  assert.deepEqual(parseJson(text), JSON.parse(text));
});

test("an own property named __proto__ stays a property and changes no prototype", () => {
  for (const text of ['{"__proto__":{"x":1}}', '{"__proto__":{"x":1.0}}']) {
    const value = parseJson(text);
    assert.ok(isObject(value) && Object.hasOwn(value, "__proto__"));
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
  }
});

test("a raw number is neither an object nor a list", () => {
  const number = rawNumber("12345678901234567890");
  assert.deepEqual([isRawNumber(number), isObject(number), isList(number)], [true, false, false]);
});

test("the head of any JSON text is the head of what JSON.stringify prints", () => {
  const layouts = fc.record({ indent: fc.constantFrom(0, 1, 2, 4), max: fc.integer({ min: 1, max: 300 }) });
  fc.assert(
    fc.property(fc.jsonValue(), layouts, (value, { indent, max }) => {
      const whole = JSON.stringify(value, null, indent);
      const head = jsonHead(value as Json, { indent, max });
      assert.ok(whole.startsWith(head), `${head} is not the head of ${whole}`);
      assert.ok(head.length === Math.min(max, whole.length) || head.length === max - 1);
    }),
    { numRuns: 1000 },
  );
});

test("the head of a large text is cut between two characters", () => {
  const value = "a".repeat(97) + "😀".repeat(1000);
  const head = jsonHead(value, { max: 99 });
  assert.equal(head, `"${"a".repeat(97)}`);
});

test("only the head of a large payload is looked at", () => {
  let reads = 0;
  const list = new Proxy(new Array(100_000).fill("word") as string[], {
    get(target, key, receiver) {
      reads += 1;
      return Reflect.get(target, key, receiver);
    },
  });
  jsonHead(list, { max: 100 });
  assert.ok(reads < 200, `${reads} reads`);
});
