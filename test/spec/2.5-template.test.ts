import assert from "node:assert/strict";
import { test } from "node:test";
import { useGateway } from "./gateway.ts";

const long = { text: "x".repeat(9000), list: Array(2000).fill("word") };
const event = {
  a: { b: { c: "deep" }, list: [{ x: 1 }, "two"] },
  text: "{a.b.c} {__raw__} $&",
  map: { k: [1, true, null] },
  empty: "",
  none: null,
  yes: true,
};
const raw = JSON.stringify(event, null, 2);

const cases: [sentence: string, template: string, rendered: string, body?: unknown][] = [
  ["`{a.b.c}`: The payload value at that nested path", "<{a.b.c}|{a.list.0.x}|{a.list.1}>", "<deep|1|two>"],
  ["`{a.b.c}`: The payload value: numbers, booleans and null in JSON form", "{none} {yes} [{empty}]", "null true []"],
  [
    "`{a.b.c}`: The payload value with all its digits",
    "{n} {m}",
    "12345678901234567890 1.0",
    '{"n":12345678901234567890,"m":1.0}',
  ],
  ["`{__raw__}`: The whole payload as indented JSON", "{__raw__}", raw],
  ["`{__raw__}`: truncated to 4000 characters", "{__raw__}", JSON.stringify(long, null, 2).slice(0, 4000), long],
  ["It can be mixed with other tokens", "{a.b.c}: {__raw__} ({yes})", `deep: ${raw} (true)`],
  [
    "Missing key: Left as the literal `{key}` text, with no error",
    "{nope} {a.nope} {constructor}",
    "{nope} {a.nope} {constructor}",
  ],
  ["Nested dict/list value: JSON-serialized", "{map} {a.list}", '{"k":[1,true,null]} [{"x":1},"two"]'],
  ["and truncated to 2000 characters", "{list}", JSON.stringify(long.list).slice(0, 2000), long],
  ["No conditional or loop syntax exists", "{% if yes %}{{#each list}}{/if}", "{% if yes %}{{#each list}}{/if}"],
  ["Only `{field}` and `{nested.field}` substitutions are supported", "{yes}{a.b.c}", "truedeep"],
  [
    "and anything else is passed through verbatim",
    "{ yes } {yes|upper} {a[0]} {} {{yes}} %{yes}",
    "{ yes } {yes|upper} {a[0]} {} {true} %true",
  ],
  ["substituted text is never expanded again", "{text}!", "{a.b.c} {__raw__} $&!"],
];

const gateway = useGateway(() => ({
  routes: {
    ...Object.fromEntries(cases.map(([, prompt], index) => [`case-${index}`, { prompt }])),
    bare: {},
    addressed: { prompt: "x", deliver: "telegram", deliver_only: true, deliver_extra: { chat_id: "{chat.id}" } },
  },
}));

for (const [index, [sentence, , rendered, body = event]] of cases.entries()) {
  test(`2.5 "${sentence}"`, async () => assert.equal(await gateway.promptOf(`case-${index}`, { body }), rendered));
}

test('2.5 "Without a route `prompt`, the whole payload is dumped as indented JSON, truncated to 4000 characters"', async () => {
  assert.equal(await gateway.promptOf("bare", { body: event }), raw);
  assert.equal(await gateway.promptOf("bare", { body: long }), JSON.stringify(long, null, 2).slice(0, 4000));
});

test("2.5 a missing key in an address is an error of the delivery, never sent literally", async () => {
  const { status, id } = await gateway.post("addressed", { body: { chat: {} } });
  assert.equal(status, 502);
  assert.equal((await gateway.fate(id)).state, "refused");
  assert.equal(gateway.telegram.tries, 0);
  assert.equal((await gateway.post("addressed", { body: { chat: { id: 5 } } })).status, 200);
  assert.equal(gateway.telegram.messages[0]?.chatId, "5");
});
