import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson } from "../../src/core/json.ts";
import type { Event, JsonObject } from "../../src/core/types.ts";
import { compileFilters, type Filter, type Mismatch, matches } from "../../src/select/filter.ts";
import { eventOf, headersOf } from "../core/event.ts";
import { fc } from "../tools/property.ts";

const text = `{
  "action": "opened", "number": 7, "float": 7.0, "big": 12345678901234567890, "hundred": 1e2, "draft": false,
  "none": null, "title": "Fix the [bug] number 7 in true", "empty": "", "labels": ["bug", 3, null, true],
  "user": {"login": "octo", "7": "seven"}, "commits": [{"id": "abc"}, {"id": "def"}], "event": "mine",
  "nested": {"deep": [1, {"x": "y"}]}, "zero": 0, "tiny": 0.1, "exp": 1E-7
}`;
const payload = parseJson(text) as JsonObject;
const event = eventOf({
  type: "Merge Request Hook",
  typeNames: ["Merge Request Hook", "merge_request"],
  payload,
  headers: headersOf({
    "x-gitlab-event": "Merge Request Hook",
    "x-gitlab-token": "hunter2-hunter2",
    "user-agent": "Fetch/1",
    "x-many": ["a", "b"],
    "x-empty": "",
    "x-utf8": Buffer.from("naïve").toString("latin1"),
  }),
});

function compiled(raw: unknown): Filter {
  const result = compileFilters(raw, "/home/of/postern");
  assert.ok("filter" in result, JSON.stringify(result));
  return result.filter;
}

function judged(raw: unknown, of: Event = event): Mismatch | undefined {
  const result = matches(compiled(raw), of);
  assert.ok(!(result instanceof Promise), "filters without a file are judged at once");
  return result;
}

function passes(raw: unknown, of: Event = event): boolean {
  return judged(raw, of) === undefined;
}

const leaves: [field: string, operator: string, operand: unknown, passes: boolean][] = [
  ["action", "exists", true, true],
  ["action", "exists", false, false],
  ["absent", "exists", true, false],
  ["absent", "exists", false, true],
  ["none", "exists", true, true],
  ["none", "missing", true, false],
  ["absent", "missing", true, true],
  ["user.login.length", "missing", true, true],
  ["constructor", "exists", true, false],
  ["__proto__", "exists", true, false],
  ["labels.length", "exists", true, false],

  ["action", "equals", "opened", true],
  ["action", "equals", "Opened", false],
  ["number", "equals", 7, true],
  ["number", "equals", 7n, true],
  ["float", "equals", 7, true],
  ["float", "equals", 7n, true],
  ["number", "equals", "7", false],
  ["number", "equals", 7.5, false],
  ["big", "equals", 12345678901234567890n, true],
  ["big", "equals", 12345678901234567891n, false],
  ["big", "equals", 12345678901234567000, false],
  ["hundred", "equals", 100, true],
  ["exp", "equals", 1e-7, true],
  ["tiny", "equals", 0.1, true],
  ["zero", "equals", -0, true],
  ["zero", "equals", false, false],
  ["zero", "equals", "", false],
  ["draft", "equals", false, true],
  ["draft", "equals", "false", false],
  ["none", "equals", null, true],
  ["absent", "equals", null, false],
  ["none", "equals", "", false],
  ["empty", "equals", "", true],
  ["labels", "equals", "bug", false],
  ["user", "equals", "[object Object]", false],
  ["commits.1.id", "equals", "def", true],
  ["commits.2.id", "equals", "def", false],

  ["action", "not_equals", "closed", true],
  ["action", "not_equals", "opened", false],
  ["number", "not_equals", 7, false],
  ["number", "not_equals", "7", true],
  ["absent", "not_equals", "x", true],
  ["absent", "not_equals", null, true],
  ["none", "not_equals", null, false],

  ["title", "contains", "the [bug]", true],
  ["title", "contains", "The", false],
  ["title", "contains", 7, true],
  ["title", "contains", 7n, true],
  ["title", "contains", true, true],
  ["title", "contains", false, false],
  ["title", "contains", "", true],
  ["labels", "contains", "bug", true],
  ["labels", "contains", "bu", false],
  ["labels", "contains", 3, true],
  ["labels", "contains", "3", false],
  ["labels", "contains", null, true],
  ["labels", "contains", true, true],
  ["user", "contains", "login", true],
  ["user", "contains", "octo", false],
  ["user", "contains", "constructor", false],
  ["user", "contains", 7, true],
  ["number", "contains", 7, false],
  ["absent", "contains", "x", false],
  ["none", "contains", "x", false],

  ["action", "in", ["opened", "reopened"], true],
  ["action", "in", ["closed"], false],
  ["action", "in", [], false],
  ["number", "in", ["7"], false],
  ["number", "in", ["7", 7n], true],
  ["big", "in", [12345678901234567890n], true],
  ["none", "in", [null], true],
  ["absent", "in", [null], false],
  ["labels", "in", ["bug"], false],

  ["title", "regex", "bug", true],
  ["title", "regex", "^Fix .* true$", true],
  ["title", "regex", "^the", false],
  ["title", "regex", "(?i)FIX", true],
  ["title", "regex", "true\\Z", true],
  ["title", "regex", "\\u0046ix", true],
  ["title", "regex", "\\\\u0046", false],
  ["number", "regex", "^7$", true],
  ["big", "regex", "^12345678901234567890$", true],
  ["draft", "regex", "^false$", true],
  ["none", "regex", "^null$", true],
  ["labels", "regex", '^\\["bug",3', true],
  ["absent", "regex", ".*", false],

  ["event", "equals", "Merge Request Hook", true],
  ["event", "equals", "merge_request", true],
  ["event_type", "equals", "merge_request", true],
  ["event", "in", ["push", "merge_request"], true],
  ["event", "equals", "mine", false],
  ["event", "not_equals", "merge_request", false],
  ["event", "not_equals", "Merge Request Hook", false],
  ["event", "not_equals", "push", true],
  ["payload.event", "equals", "mine", true],

  ["headers.User-Agent", "equals", "Fetch/1", true],
  ["headers.user-agent", "regex", "^Fetch", true],
  ["headers.X-HostB-Event", "equals", "Merge Request Hook", true],
  ["headers.X-Gitlab-Event", "contains", "Merge", true],
  ["headers.X-Many", "equals", "a, b", true],
  ["headers.X-Empty", "exists", true, true],
  ["headers.X-Absent", "missing", true, true],
  ["headers.constructor", "missing", true, true],
  ["headers.X-Utf8", "equals", "naïve", true],
];
for (const [field, operator, operand, expected] of leaves) {
  const words = JSON.stringify(operand, (_key, value) => (typeof value === "bigint" ? `${value}n` : value));
  test(`${field} ${operator} ${words} ${expected ? "passes" : "does not pass"}`, () => {
    assert.equal(passes([{ field, [operator]: operand }]), expected);
    assert.equal(passes([{ not: { field, [operator]: operand } }]), !expected);
  });
}

const yes = { field: "action", equals: "opened" };
const no = { field: "action", equals: "closed" };
const groups: [filters: unknown, passes: boolean][] = [
  [undefined, true],
  [null, true],
  [[], true],
  [[yes, yes], true],
  [[yes, no], false],
  [[{ any: [no, yes] }], true],
  [[{ any: [no, no] }], false],
  [[{ all: [yes, yes] }], true],
  [[{ all: [yes, no] }], false],
  [[{ not: no }], true],
  [[{ not: [yes, no] }], true],
  [[{ not: [yes, yes] }], false],
  [[{ any: [{ all: [yes, { not: yes }] }, { not: { any: [no, { not: [yes] }] } }] }], true],
];
for (const [filters, expected] of groups) {
  test(`${JSON.stringify(filters)} ${expected ? "passes" : "does not pass"}`, () =>
    assert.equal(passes(filters), expected));
}

test("payload.x reads inside a top-level payload object, else from the root", () => {
  const inner = eventOf({ payload: parseJson('{"payload":{"action":"in"},"action":"out"}') as JsonObject });
  assert.ok(passes([{ field: "payload.action", equals: "in" }], inner));
  assert.ok(passes([{ field: "action", equals: "out" }], inner));
  assert.ok(passes([{ field: "payload", contains: "action" }], inner));
  const flat = eventOf({ payload: parseJson('{"action":"out","payload":["x"]}') as JsonObject });
  assert.ok(passes([{ field: "payload.action", equals: "out" }], flat));
  const lacking = eventOf({ payload: parseJson('{"payload":{},"action":"out"}') as JsonObject });
  assert.ok(passes([{ field: "payload.action", missing: true }], lacking));
});

const mismatches: [filters: unknown, clause: string, value: string][] = [
  [[yes, no], 'filters.1: action equals "closed"', '"opened"'],
  [
    [{ field: "big", in: [1n, 12345678901234567891n] }],
    "filters.0: big in [1,12345678901234567891]",
    "12345678901234567890",
  ],
  [[{ field: "x.y", exists: true }], "filters.0: x.y exists true", "absent"],
  [[{ any: [no] }], 'filters.0.any.0: action equals "closed"', '"opened"'],
  [[{ any: [no, no, no] }], 'filters.0.any.0: action equals "closed" (nor the 2 other of its group)', '"opened"'],
  [[yes, { all: [yes, no] }], 'filters.1.all.1: action equals "closed"', '"opened"'],
  [[{ not: yes }], 'filters.0.not: not action equals "opened"', '"opened"'],
  [[{ not: [yes, yes] }], 'filters.0.not: not (action equals "opened" and action equals "opened")', '"opened"'],
  [[{ field: "event", equals: "push" }], 'filters.0: event equals "push"', '"Merge Request Hook"'],
  [[{ field: "labels", contains: "x" }], 'filters.0: labels contains "x"', '["bug",3,null,true]'],
  [[{ field: "headers.X-Gitlab-Token", equals: "x" }], 'filters.0: headers.X-Gitlab-Token equals "x"', "[hidden]"],
  [[{ field: "headers.Authorization", equals: "x" }], 'filters.0: headers.Authorization equals "x"', "absent"],
];
for (const [filters, clause, value] of mismatches) {
  test(`the mismatch names the clause ${clause}`, () => assert.deepEqual(judged(filters), { clause, value }));
}

test("a mismatch is short, however long the value and the clause are", () => {
  const long = eventOf({ payload: { text: "x".repeat(1_000_000) } });
  const mismatch = judged([{ field: "text", in: Array(1000).fill("y".repeat(100)) }], long)!;
  assert.ok(mismatch.value.length <= 200 && mismatch.clause.length <= 250);
});

const problems: [filters: unknown, path: string, message: RegExp][] = [
  ["action", "filters", /list of filters/],
  [{ field: "a", equals: 1 }, "filters", /list of filters/],
  [["a"], "filters.0", /mapping with "field"/],
  [[null], "filters.0", /mapping/],
  [[[yes]], "filters.0", /mapping/],
  [[{}], "filters.0", /no "field"/],
  [[{ equals: 1 }], "filters.0", /no "field"/],
  [[{ field: "a" }], "filters.0", /Add one operator: exists, missing, equals/],
  [[{ field: "a", equals: 1, in: [1] }], "filters.0", /has "equals" and "in"/],
  [[{ field: "a", equal: 1 }], "filters.0.equal", /no operator "equal"; did you mean "equals"/],
  [[{ field: "a", constructor: 1 }], "filters.0.constructor", /no operator "constructor"/],
  [[{ fild: "a", equals: 1 }], "filters.0.fild", /did you mean "field"/],
  [[{ field: "a", missing: false }], "filters.0.missing", /Only "missing: true"/],
  [[{ field: "a", exists: "yes" }], "filters.0.exists", /"true" or "false"/],
  [[{ field: "a", equals: ["x"] }], "filters.0.equals", /text, a number/],
  [[{ field: "a", equals: Number.NaN }], "filters.0.equals", /text, a number/],
  [[{ field: "a", not_equals: {} }], "filters.0.not_equals", /text, a number/],
  [[{ field: "a", contains: ["x"] }], "filters.0.contains", /text, a number/],
  [[{ field: "a", in: "opened" }], "filters.0.in", /list behind "in"/],
  [[{ field: "a", in: [["x"]] }], "filters.0.in", /each place of the list/],
  [[{ field: "a", in_file: 7 }], "filters.0.in_file", /path of a file/],
  [[{ field: "a", in_file: "../outside" }], "filters.0.in_file", /outside the home/],
  [[{ field: "a", in_file: "/etc/passwd" }], "filters.0.in_file", /outside the home/],
  [[{ field: "a", regex: "(?=x)" }], "filters.0.regex", /\(\?=/],
  [[{ field: "a", regex: "(a)\\1" }], "filters.0.regex", /\\1/],
  [[{ field: "a", regex: "(" }], "filters.0.regex", /missing closing/],
  [[{ field: "a", regex: 7 }], "filters.0.regex", /pattern in quotes/],
  [[{ field: "", equals: 1 }], "filters.0.field", /path of a field/],
  [[{ field: 7, equals: 1 }], "filters.0.field", /path of a field/],
  [[{ field: "a..b", equals: 1 }], "filters.0.field", /empty name/],
  [[{ field: "headers.", equals: 1 }], "filters.0.field", /empty name/],
  [[{ any: [] }], "filters.0.any", /group is empty/],
  [[{ not: [] }], "filters.0.not", /group is empty/],
  [[{ all: null }], "filters.0.all", /group is empty/],
  [[{ any: yes }], "filters.0.any", /list of filters/],
  [[{ all: [yes], field: "a" }], "filters.0.field", /group "all" stands alone/],
  [[{ all: [yes], any: [yes] }], "filters.0.any", /group "all" stands alone/],
  [[{ any: [yes, { all: [{ field: "a", eqals: 1 }] }] }], "filters.0.any.1.all.0.eqals", /did you mean "equals"/],
];
for (const [filters, path, message] of problems) {
  test(`${JSON.stringify(filters)} is a mistake at ${path}`, () => {
    const result = compileFilters(filters, "/home/of/postern");
    assert.ok("problems" in result);
    const found = result.problems.find((problem) => problem.path === path);
    assert.match(found?.message ?? JSON.stringify(result.problems), message);
  });
}

test("all mistakes are told at once", () => {
  const filters = [
    { field: "a", equal: 1 },
    yes,
    { any: [{ field: "b", missing: false }, { equals: 1 }] },
    { not: [] },
  ];
  const result = compileFilters(filters, "/home/of/postern");
  assert.ok("problems" in result);
  assert.deepEqual(
    result.problems.map(({ path }) => path),
    ["filters.0.equal", "filters.2.any.0.missing", "filters.2.any.1", "filters.3.not"],
  );
});

test("groups that hold themselves, or nest without end, are a mistake and no crash", () => {
  const endless: unknown[] = [];
  endless.push({ all: endless });
  assert.ok("problems" in compileFilters(endless, "/home/of/postern"));
});

const anything = fc.letrec((tie) => ({
  scalar: fc.oneof(fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null), fc.bigInt()),
  key: fc.constantFrom(
    "field",
    "all",
    "any",
    "not",
    "equals",
    "in",
    "regex",
    "contains",
    "exists",
    "missing",
    "__proto__",
    "x",
  ),
  map: fc.dictionary(tie("key") as fc.Arbitrary<string>, tie("value"), { maxKeys: 3 }),
  value: fc.oneof({ maxDepth: 5 }, tie("scalar"), fc.array(tie("value"), { maxLength: 3 }), tie("map")),
}));

test("whatever stands in the configuration, compiling it does not throw, and what compiles can be judged", () => {
  fc.assert(
    fc.property(anything.value, fc.jsonValue(), (raw, json) => {
      const result = compileFilters(raw, "/home/of/postern");
      if ("problems" in result)
        return assert.ok(result.problems.every(({ path, message }) => path !== "" && message !== ""));
      const verdict = matches(
        result.filter,
        eventOf({ payload: { value: json as JsonObject, x: json as JsonObject } }),
      );
      assert.ok(verdict === undefined || verdict instanceof Promise || typeof verdict.clause === "string");
    }),
    { numRuns: 2000 },
  );
});

test("any value equals itself, is in a list of itself, and differs from itself never", () => {
  const scalar = fc.oneof(
    fc.string(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
  );
  fc.assert(
    fc.property(scalar, (value) => {
      const of = eventOf({ payload: parseJson(JSON.stringify({ value })) as JsonObject });
      assert.ok(
        passes(
          [
            { field: "value", equals: value },
            { field: "value", in: [value] },
          ],
          of,
        ),
      );
      assert.ok(!passes([{ field: "value", not_equals: value }], of));
    }),
  );
});

test("integers of any length equal themselves and no other", () => {
  fc.assert(
    fc.property(fc.bigInt(), fc.bigInt(), (a, b) => {
      const of = eventOf({ payload: parseJson(`{"value":${a}}`) as JsonObject });
      assert.ok(passes([{ field: "value", equals: a }], of));
      assert.equal(passes([{ field: "value", equals: b }], of), a === b);
      assert.equal(passes([{ field: "value", equals: a + 1n }], of), false);
    }),
  );
});

test("a hostile text cannot make a pattern run for long", () => {
  const of = eventOf({ payload: { text: `${"a".repeat(50_000)}!` } });
  const filter = compiled([{ field: "text", regex: "^(a+)+$" }]);
  const start = performance.now();
  assert.notEqual(matches(filter, of), undefined);
  // A backtracking engine would need longer than the sun will shine.
  assert.ok(performance.now() - start < 5000);
});

test("a hostile number cannot make a comparison run for long", () => {
  const digits = `1${"0".repeat(500_000)}1`;
  const of = eventOf({ payload: parseJson(`{"a":${digits},"b":1e${digits}}`) as JsonObject });
  const start = performance.now();
  assert.ok(
    passes(
      [
        { field: "a", not_equals: 1 },
        { field: "b", not_equals: 1 },
      ],
      of,
    ),
  );
  assert.ok(performance.now() - start < 2000);
});

const inherited = [...Object.getOwnPropertyNames(Object.prototype), ...Object.getOwnPropertyNames(Array.prototype)];
const key = fc.constantFrom("a", "b", "list", "0", "1", "payload", ...inherited);
const path = fc.array(key, { minLength: 1, maxLength: 4 }).map((keys) => keys.join("."));
const anyField = fc.oneof(path, fc.constantFrom("event", "event_type", "headers.X-Any", "headers.constructor"));
const anyScalar = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.bigInt(),
  fc.boolean(),
  fc.constant(null),
);
const operation = fc.oneof(
  fc.record({ exists: fc.boolean() }),
  fc.constant({ missing: true }),
  fc.record({ equals: anyScalar }),
  fc.record({ not_equals: anyScalar }),
  fc.record({ contains: anyScalar }),
  fc.record({ in: fc.array(anyScalar) }),
  fc.record({ regex: fc.constantFrom("^a", "(a|b)*c", "\\d+$", ".", "", "[^x]*x", "(?i)TRUE", "\\u0041") }),
);
const { clause } = fc.letrec<{ clause: object; leaf: object; group: object; some: object[] }>((tie) => ({
  leaf: fc.tuple(anyField, operation).map(([field, rest]) => ({ field, ...rest })),
  some: fc.array(tie("clause"), { minLength: 1, maxLength: 3 }),
  group: fc.oneof(
    tie("some").map((all) => ({ all })),
    tie("some").map((any) => ({ any })),
    tie("clause").map((not) => ({ not })),
  ),
  clause: fc.oneof({ maxDepth: 4, withCrossShrink: true }, tie("leaf"), tie("group")),
}));
const anyPayload = fc
  .dictionary(fc.constantFrom("a", "b", "list", "payload", "__proto__", "constructor"), fc.jsonValue())
  .map((value) => parseJson(JSON.stringify(value)) as JsonObject);

test("the clause that is named stays short however deep its groups are", () => {
  const leaf = { field: "a", equals: "x".repeat(300) };
  const deep = Array.from({ length: 8 }).reduce<object>((inner) => ({ any: [inner, leaf] }), leaf);
  const mismatch = judged([deep], eventOf({ payload: {} }));
  assert.ok(mismatch && mismatch.clause.length <= 250, `${mismatch?.clause.length} characters`);
  assert.match(mismatch.clause, /^filters\.0\.any\.0[\s\S]*\(nor the 1 other of its group\)$/);
});

test("a right filter compiles, judges any payload without a throw, and its negation judges the other way", () => {
  fc.assert(
    fc.property(clause, anyPayload, (filter, value) => {
      const of = eventOf({ payload: value, headers: headersOf({ "x-any": "a" }) });
      const mismatch = judged([filter], of);
      assert.equal(passes([{ not: filter }], of), mismatch !== undefined);
      assert.ok(mismatch === undefined || (mismatch.clause.length <= 250 && mismatch.value.length <= 200));
    }),
    { numRuns: 2000 },
  );
});

test("no path reaches what a payload inherits", () => {
  const word = fc.constantFrom(...inherited);
  const inner = fc.constantFrom("aText", "aList", "aMap", "aNumber", "aNone");
  const below = fc
    .tuple(inner, fc.array(word, { minLength: 1, maxLength: 3 }))
    .map(([first, rest]) => [first, ...rest]);
  const of = eventOf({
    payload: parseJson('{"aText":"x","aList":[],"aMap":{},"aNumber":1.50,"aNone":null}') as JsonObject,
  });
  fc.assert(
    fc.property(fc.oneof(fc.array(word, { minLength: 1, maxLength: 3 }), below), anyScalar, (words, value) => {
      const field = words.join(".");
      assert.ok(passes([{ field, missing: true }], of), field);
      assert.ok(
        !passes(
          [
            {
              any: [
                { field, equals: value },
                { field, contains: value },
                { field, regex: "" },
              ],
            },
          ],
          of,
        ),
      );
    }),
  );
  fc.assert(fc.property(word, (name) => assert.ok(!passes([{ field: "aMap", contains: name }], of))));
});

const patterns = ["^(a+)+$", "(a|aa)+$", "(a*)*b", "^(.*?,){9}x", "(.*)(.*)(.*)z", "([a-z]+)*\\d$", "a{0,50}a{50}b"];
for (const pattern of patterns) {
  test(`the pattern ${pattern} takes time that grows no faster than the text`, () => {
    const filter = compiled([{ field: "text", regex: pattern }]);
    const timed = (length: number) => {
      const of = eventOf({ payload: { text: `${"a".repeat(length)}!` } });
      const start = performance.now();
      matches(filter, of);
      return performance.now() - start;
    };
    timed(1000);
    // Quadratic time would be 64 times as long; the rest is for a busy machine.
    const [short, long] = [timed(10_000), timed(80_000)];
    assert.ok(long < short * 32 + 1000, `${short} ms, then ${long} ms`);
  });
}

const levels = 490;
const hostile: [what: string, json: string][] = [
  ["a long text", JSON.stringify({ x: "a".repeat(1_000_000) })],
  ["a long list", JSON.stringify({ x: Array(100_000).fill("a") })],
  ["very many keys", `{"x":{${Array.from({ length: 100_000 }, (_, index) => `"k${index}":1`).join(",")}}}`],
  ["many levels", `{"x":${"[".repeat(levels)}${"]".repeat(levels)}}`],
];
for (const [what, json] of hostile) {
  test(`a payload with ${what} is judged at once by every operator`, () => {
    const of = eventOf({ payload: parseJson(json) as JsonObject });
    const every = [
      { equals: "b" },
      { contains: "b" },
      { in: ["b"] },
      { regex: "^b" },
      { missing: true },
      { exists: false },
    ];
    const start = performance.now();
    for (const operator of every) assert.ok(!passes([{ any: [{ field: "x", ...operator }] }], of));
    assert.ok(performance.now() - start < 5000, `${performance.now() - start} ms`);
  });
}
