import assert from "node:assert/strict";
import { test } from "node:test";
import { compileTemplate, render, renderMap, type Scope } from "../../src/compose/template.ts";
import { parseJson } from "../../src/core/json.ts";
import type { JsonObject } from "../../src/core/types.ts";
import { fc } from "../tools/property.ts";

const scopeOf = (json: string, type = "push"): Scope => ({ payload: parseJson(json) as JsonObject, type });

const scope = scopeOf(`{
  "a": {"b": {"c": "deep"}}, "text": "$& $1 $$ {a.b.c} {__raw__}", "n": 7, "big": 12345678901234567890, "float": 1.0,
  "yes": true, "none": null, "empty": "", "list": [{"x": "first"}, [2, 3]], "map": {"k": [1, 1.50]},
  "user-id": "u", "@type": "t", "$ref": "r", "ns:key": "k", "größe": "XL", "名": "name", "payload": {"in": "side"},
  "a b": "space", "": "nothing"
}`);

const cases: [template: string, rendered: string][] = [
  ["", ""],
  ["no tokens", "no tokens"],
  ["{a.b.c}", "deep"],
  ["<{a.b.c}{n}>", "<deep7>"],
  ["{n} {big} {float} {yes} {none}", "7 12345678901234567890 1.0 true null"],
  ["[{empty}]", "[]"],
  ["{list.0.x} {list.1.1} {list.1}", "first 3 [2,3]"],
  ["{map}", '{"k":[1,1.50]}'],
  ["{a}", '{"b":{"c":"deep"}}'],
  ["{user-id} {@type} {$ref} {ns:key} {größe} {名}", "u t r k XL name"],
  ["{payload.in}", "side"],
  ["{text}", "$& $1 $$ {a.b.c} {__raw__}"],
  ["{missing} {a.missing} {list.9} {none.x}", "{missing} {a.missing} {list.9} {none.x}"],
  ["{payload.n}", "{payload.n}"],
  ["{{n}}", "{7}"],
  ["{{{n}}}", "{{7}}"],
  ["{n", "{n"],
  ["n}", "n}"],
  ["{{n}", "{7"],
  ["{}", "{}"],
  ["{ n }", "{ n }"],
  ["{a b}", "{a b}"],
  ["{n|upper} {n!r} {n:>5} {n[0]} {a/b} #{n}", "{n|upper} {n!r} {n:>5} {n[0]} {a/b} #7"],
  ["{% if n %}{n}{% endif %} {{#each list}}", "{% if n %}7{% endif %} {{#each list}}"],
  ['{"json": {n}}', '{"json": 7}'],
  ["{\nn\n}", "{\nn\n}"],
  ["{.} {..} {a.} {.a} {-}", "{.} {..} {a.} {.a} {-}"],
  [
    "{constructor} {__proto__} {a.constructor} {toString} {list.length} {list.map} {text.length}",
    "{constructor} {__proto__} {a.constructor} {toString} {list.length} {list.map} {text.length}",
  ],
  ["{big.rawJSON}", "{big.rawJSON}"],
  ["{event_type} {event}", "push {event}"],
  ["{__raw__.a} {__RAW__}", "{__raw__.a} {__RAW__}"],
];
for (const [template, rendered] of cases) {
  test(`${JSON.stringify(template)} is rendered as ${JSON.stringify(rendered)}`, () => {
    assert.equal(render(template, scope), rendered);
  });
}

test("the payload's own event_type comes before the resolved type", () => {
  assert.equal(render("{event_type}", scopeOf('{"event_type":"own"}')), "own");
  assert.equal(render("{event_type}", scopeOf('{"event_type":null}')), "null");
});

test("{__raw__} is the whole payload as JSON with two spaces, and can stand among other tokens", () => {
  const small = scopeOf('{"a":[1,{"b":12345678901234567890}],"c":{},"d":[]}');
  const raw = '{\n  "a": [\n    1,\n    {\n      "b": 12345678901234567890\n    }\n  ],\n  "c": {},\n  "d": []\n}';
  assert.equal(render("<{__raw__}> {a.0} {__raw__}", small), `<${raw}> 1 ${raw}`);
  assert.equal(render("{__raw__}", scopeOf('{"__raw__":"own"}')), '{\n  "__raw__": "own"\n}');
});

test("{__raw__} is truncated to 4000 characters and a nested value to 2000", () => {
  const large = scopeOf(JSON.stringify({ list: Array(5000).fill("word"), text: "x".repeat(10_000) }));
  const whole = JSON.stringify(large.payload, null, 2);
  assert.equal(render("{__raw__}", large), whole.slice(0, 4000));
  assert.equal(render("{list}", large), JSON.stringify(large.payload.list).slice(0, 2000));
  assert.equal(render("{text}", large).length, 10_000);
});

test("truncation never splits a character", () => {
  const smileys = scopeOf(JSON.stringify({ list: [`x${"😀".repeat(3000)}`], a: "b" }));
  for (const token of ["{list}", "{__raw__}"]) assert.ok(render(token, smileys).isWellFormed());
});

test("an own property that a stranger named __proto__ is read as what it is", () => {
  assert.equal(render("{__proto__.x} {constructor}", scopeOf('{"__proto__":{"x":1},"constructor":"mine"}')), "1 mine");
});

test("a compiled template renders each event on its own", () => {
  const template = compileTemplate("{n}!");
  assert.deepEqual(
    [template(scopeOf('{"n":1}')), template(scopeOf('{"n":2}')), template(scopeOf("{}"))],
    ["1!", "2!", "{n}!"],
  );
});

test("the values of a deliver_extra are rendered, also in maps inside it", () => {
  const map = {
    repo: "{a.b.c}/x",
    chat_id: -100123n,
    thread_id: 7,
    flag: true,
    nothing: null,
    nested: { title: "{n}", deeper: { x: "{missing}" } },
    list: ["{n}", 2],
  };
  assert.deepEqual(renderMap(map, scope), {
    repo: "deep/x",
    chat_id: "-100123",
    thread_id: "7",
    flag: "true",
    nested: { title: "7", deeper: { x: "{missing}" } },
    list: '["7","2"]',
  });
});

test("a key named __proto__ in a deliver_extra is a key", () => {
  const rendered = renderMap(JSON.parse('{"__proto__":"{n}"}'), scope);
  assert.deepEqual(Object.entries(rendered), [["__proto__", "7"]]);
});

const token = fc.constantFrom(
  "{a}",
  "{a.b}",
  "{__raw__}",
  "{list.0}",
  "{event_type}",
  "{",
  "}",
  "{{",
  "$&",
  "{constructor}",
);
const template = fc.array(fc.oneof(token, fc.string({ unit: "binary" }))).map((parts) => parts.join(""));
const payload = fc.dictionary(fc.constantFrom("a", "b", "list", "event_type", "constructor"), fc.jsonValue());

test("whatever the template and the payload are, rendering does not throw", () => {
  fc.assert(
    fc.property(template, payload, (text, value) => {
      const of = scopeOf(JSON.stringify(value));
      assert.equal(typeof render(text, of), "string");
    }),
    { numRuns: 2000 },
  );
});

test("what is put in is never looked at again", () => {
  fc.assert(
    fc.property(template, (text) => {
      // Each `{a}` stands for the template itself: were it expanded again, more than its own length would come out.
      const of = scopeOf(JSON.stringify({ a: text }));
      assert.equal(render("<{a}|{a}>", of), `<${text}|${text}>`);
    }),
  );
});

test("without a payload everything but {__raw__} and {event_type} stays as it is", () => {
  fc.assert(
    fc.property(template, (text) => {
      const plain = text.replaceAll("{__raw__}", "").replaceAll("{event_type}", "");
      fc.pre(!plain.includes("{__raw__}") && !plain.includes("{event_type}"));
      assert.equal(render(plain, scopeOf("{}")), plain);
    }),
  );
});

test("no template reaches a prototype", () => {
  const word = fc.constantFrom(
    ...Object.getOwnPropertyNames(Object.prototype),
    ...Object.getOwnPropertyNames(Array.prototype),
  );
  const path = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => `{${words.join(".")}}`);
  fc.assert(fc.property(path, (text) => assert.equal(render(text, scopeOf('{"x":[]}')), text)));
});

test("each path is looked up once for each time it stands in the template", () => {
  let reads = 0;
  const value = new Proxy({ a: "{a}{a}{a}" } as JsonObject, {
    getOwnPropertyDescriptor(target, key) {
      reads += 1;
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
  });
  render("{a}".repeat(1000), { payload: value, type: "push" });
  assert.ok(reads <= 2000, `${reads} reads`);
});

for (const hostile of [
  "{".repeat(200_000),
  "{a".repeat(100_000),
  "{a.".repeat(70_000),
  `{${"a".repeat(200_000)}`,
  "{}".repeat(100_000),
]) {
  test(`the template ${hostile.slice(0, 8)}… of ${hostile.length} characters is read in linear time`, () => {
    const start = performance.now();
    assert.equal(render(hostile, scope), hostile);
    // Quadratic time would take minutes.
    assert.ok(performance.now() - start < 2000);
  });
}

const names = ["a", "b", "list", "map", "text", "number", "none", "missing"] as const;
const steps = fc.array(fc.constantFrom(...names, "0", "1", "length", "constructor", "__proto__", "toString"), {
  minLength: 1,
  maxLength: 4,
});
const anyToken = fc.oneof(
  steps.map((path) => `{${path.join(".")}}`),
  fc.constantFrom("{__raw__}", "{event_type}"),
);
/** Text without braces, so that no token comes to be where two parts meet. */
const plainText = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll(/[{}]/g, ""));
const bracedValue = fc.oneof(anyToken, fc.string(), fc.jsonValue({ maxDepth: 3 }));
const bracedPayload = fc.dictionary(fc.constantFrom(...names, "__proto__", "constructor"), bracedValue);

test("a template renders as its parts do one by one, whatever tokens the payload brings", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(anyToken, plainText)), bracedPayload, (parts, value) => {
      const of = scopeOf(JSON.stringify(value));
      assert.equal(render(parts.join(""), of), parts.map((part) => render(part, of)).join(""));
    }),
    { numRuns: 1000 },
  );
});

test("a token stands for what the sender wrote at its path, and for nothing that is inherited", () => {
  fc.assert(
    fc.property(steps, bracedPayload, (path, value) => {
      const json = JSON.stringify(value);
      const rendered = render(`{${path.join(".")}}`, scopeOf(json));
      const found = ownValue(JSON.parse(json), path);
      if (found === undefined) assert.equal(rendered, `{${path.join(".")}}`);
      else if (typeof found === "string") assert.equal(rendered, found);
      else assert.equal(rendered, JSON.stringify(parseJson(JSON.stringify(found))).slice(0, 2000));
    }),
    { numRuns: 2000 },
  );
});

/** The value at a path of own properties, written down once more and as plainly as can be. */
function ownValue(value: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined) return value;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  if (Array.isArray(value) && !/^\d+$/.test(key)) return undefined;
  return ownValue((value as Record<string, unknown>)[key], rest);
}

test("whatever stands in a deliver_extra, rendering it does not throw, and leaves only texts and maps", () => {
  const onlyTexts = (value: unknown): boolean =>
    typeof value === "string" ||
    (typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(onlyTexts));
  fc.assert(
    fc.property(fc.dictionary(fc.string(), bracedValue), bracedPayload, (map, value) => {
      const rendered = renderMap(map, scopeOf(JSON.stringify(value)));
      assert.ok(Object.values(rendered).every(onlyTexts));
      assert.equal(Object.getPrototypeOf(rendered), Object.prototype);
    }),
  );
});

const levels = 490;
const hostilePayloads: [what: string, json: string][] = [
  ["a million keys' worth of text", JSON.stringify({ a: "{a}".repeat(1_000_000) })],
  ["very many keys", `{${Array.from({ length: 200_000 }, (_, index) => `"k${index}":1`).join(",")},"a":1}`],
  ["a long list", JSON.stringify({ a: Array(300_000).fill("{a}") })],
  ["many levels", `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`],
  ["a long number", `{"a":1${"0".repeat(1_000_000)}}`],
];
for (const [what, json] of hostilePayloads) {
  test(`a payload with ${what} is rendered at once`, () => {
    const of = scopeOf(json);
    const text = "{__raw__}{b}{a.0}{a.0.0.0.0}".repeat(10);
    const start = performance.now();
    render(text, of);
    render("{a}", of);
    assert.ok(performance.now() - start < 5000, `${performance.now() - start} ms`);
  });
}
