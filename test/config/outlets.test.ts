import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Outlet } from "../../src/config/outlets.ts";
import { isAllowed, placeFields } from "../../src/config/places.ts";
import { buildSubscriptions } from "../../src/config/subscriptions.ts";
import * as targets from "../../src/target/registry.ts";
import type { Target } from "../../src/target/target.ts";
import { complaints, load, withRoute } from "./loading.ts";

const platforms = `  telegram: { enabled: true, token: "123:abc", home_channel: "-100" }
  email: { enabled: true, smtp_host: localhost, address: bot@example.com, home_channel: ops@example.com }
`;

function wayOf({ target, extra, fallback }: Outlet) {
  return [target.name, extra, ...fallback.map((one) => [one.target.name, one.extra])];
}

async function waysOn(t: TestContext, lines: string) {
  const { routes } = await load(t, withRoute(lines, platforms));
  return routes.get("one")!.outlets.map(wayOf);
}

test("an entry of deliver has a fallback of its own: a name, or a list of names and addresses", async (t) => {
  const lines = `deliver:
  - { to: telegram, chat_id: "-7", fallback: email }
  - to: email
    fallback: [{ to: telegram, chat_id: -9007199254740993 }, log]
  - log`;
  assert.deepEqual(await waysOn(t, lines), [
    ["telegram", { chat_id: "-7" }, ["email", {}]],
    ["email", {}, ["telegram", { chat_id: "-9007199254740993" }], ["log", {}]],
    ["log", {}],
  ]);
});

test("the fallback of the route is for each entry that has none of its own, also by an empty list", async (t) => {
  const lines = `deliver:
  - telegram
  - { to: telegram, chat_id: "-7", fallback: log }
  - { to: telegram, chat_id: "-8", fallback: [] }
fallback: [{ to: email, chat_id: a@example.com }, log]`;
  const common = [
    ["email", { chat_id: "a@example.com" }],
    ["log", {}],
  ];
  assert.deepEqual(await waysOn(t, lines), [
    ["telegram", {}, ...common],
    ["telegram", { chat_id: "-7" }, ["log", {}]],
    ["telegram", { chat_id: "-8" }],
  ]);
});

test("an entry that is itself in the fallback of the route does not go to where it has just failed", async (t) => {
  assert.deepEqual(await waysOn(t, "deliver: [telegram, email]\nfallback: [email, log]"), [
    ["telegram", {}, ["email", {}], ["log", {}]],
    ["email", {}, ["log", {}]],
  ]);
});

test("the address in deliver_extra is that of deliver, and not of the fallback", async (t) => {
  const lines = 'deliver: telegram\ndeliver_extra: { chat_id: "-7" }\nfallback: [email, telegram]';
  assert.deepEqual(await waysOn(t, lines), [["telegram", { chat_id: "-7" }, ["email", {}], ["telegram", {}]]]);
});

const wrong: readonly (readonly [what: string, lines: string, ...said: string[]])[] = [
  [
    "an unknown target",
    "deliver: telegram\nfallback: emal",
    '8:9 fallback: Unknown target "emal"; did you mean "email"',
  ],
  [
    "an unknown target in a list",
    "deliver:\n  - to: telegram\n    fallback: [log, { to: telegrm }]",
    '9:29 deliver.0.fallback.1: Unknown target "telegrm"; did you mean "telegram"',
  ],
  [
    "an address that can never be one",
    "deliver: telegram\nfallback:\n  - log\n  - { to: email, chat_id: nobody }",
    '10:26 fallback.1.chat_id: Expected an e-mail address such as "a@example.com", or several with commas, found "nobody"',
  ],
  [
    "an address that is missing",
    "deliver: telegram\nfallback: { to: github_comment, repo: owner/name }",
    '8:9 fallback.pr_number: Missing; set it in "deliver_extra"',
  ],
  [
    "a fallback inside a fallback",
    "deliver: { to: telegram, fallback: [{ to: email, fallback: log }] }",
    "7:58 deliver.fallback.0.fallback: A fallback has none of its own; write them as one list, each stands in for the one before it",
  ],
  [
    "the log when a sender waits",
    "deliver: telegram\ndeliver_only: true\nfallback: [email, log]",
    '9:27 fallback.1: deliver_only needs a real target in "fallback", not "log"; name one, or remove deliver_only',
  ],
  [
    "deliver_extra inside an entry",
    'deliver: [log, { to: telegram, deliver_extra: { chat_id: "-7", thread_id: 2 } }]',
    '7:40 deliver.1.deliver_extra: The keys of an address stand beside "to"; write { to: telegram, chat_id: …, thread_id: … }',
  ],
  [
    "deliver_extra inside the only entry",
    "deliver: { to: github_comment, deliver_extra: { repo: owner/name, pr_number: 7 } }",
    '7:40 deliver.deliver_extra: The keys of an address stand beside "to"; write { to: github_comment, repo: …, pr_number: … }',
  ],
  [
    "deliver_extra inside a fallback",
    "deliver: telegram\nfallback: { to: email, deliver_extra: x }",
    '8:32 fallback.deliver_extra: The keys of an address stand beside "to"; write { to: email, chat_id: … }',
  ],
  ["something else", "deliver: telegram\nfallback: 5", "8:9 fallback: Expected a target's name, or a list of names"],
  ["a place that is none", "allow_chat_ids: [a, [b]]", "7:29 allow_chat_ids.1: Expected a list of texts or numbers"],
  ["one place without a list", "allow_chat_ids: 5", "7:9 allow_chat_ids: Expected a list of texts or numbers"],
];

for (const [what, lines, ...said] of wrong) {
  test(`${what} in a fallback or a list of places is refused where it stands`, async (t) => {
    const found = await complaints(t, withRoute(lines, platforms));
    const where = "platforms.webhook.routes.one.";
    assert.deepEqual(
      found.map((line, index) => line.replace(where, "").slice(0, said[index]?.length)),
      said,
    );
  });
}

test("a target of a fallback that is not set up is refused as it is in deliver", async (t) => {
  const [said, ...others] = await complaints(t, withRoute("fallback: telegram"));
  assert.match(said ?? "", /^7:9 .*\.fallback: The target "telegram" cannot be used: token: Missing/);
  assert.deepEqual(others, []);
});

test("a subscription may have a fallback and a list of places", async (t) => {
  const { home, routeContext } = await load(t, `platforms:\n${platforms}`);
  const text = `{ "sub": { "secret": "0123456789abcdef", "deliver": { "to": "telegram", "fallback": "email" },
    "fallback": "log", "allow_chat_ids": [-9007199254740993, "a"] } }`;
  const { routes, errors } = buildSubscriptions(text, home, routeContext);
  assert.deepEqual(errors, []);
  const { outlets, allowChatIds } = routes.get("sub")!;
  assert.deepEqual(outlets.map(wayOf), [["telegram", {}, ["email", {}]]]);
  assert.deepEqual(allowChatIds, ["-9007199254740993", "a"]);
  const broken = text.replace('"log"', '{ "to": "log", "fallback": "email" }');
  assert.match(
    buildSubscriptions(broken, home, routeContext).errors[0] ?? "",
    /skipped: fallback\.fallback: A fallback has/,
  );
});

test("places are texts, however they are written", async (t) => {
  const lines = 'allow_chat_ids: [a@example.com, "7", -9007199254740993, 42]';
  const { routes } = await load(t, withRoute(lines));
  assert.deepEqual(routes.get("one")?.allowChatIds, ["a@example.com", "7", "-9007199254740993", "42"]);
  assert.equal((await load(t, withRoute("deliver: log"))).routes.get("one")?.allowChatIds, undefined);
});

/** The log, and targets whose place is in their settings. */
const onePlaceOnly = ["google_chat", "log", "teams"];

test("every target has a place that can be bounded, but for those that write to one place only", () => {
  const without = (Object.values(targets) as Target[]).filter((target) => placeFields(target).length === 0);
  assert.deepEqual(
    without.map(({ name }) => name).filter((name) => !onePlaceOnly.includes(name)),
    [],
  );
  // A reply goes to where the message is that it answers to.
  assert.deepEqual(placeFields(targets.feishu), ["chat_id", "thread_id"]);
});

test("a list of addresses is allowed when each of them is", () => {
  const allowed = ["a@example.com", "b@example.com", "x,y"];
  for (const place of ["a@example.com", "a@example.com, b@example.com", "b@example.com,a@example.com", "x,y"]) {
    assert.equal(isAllowed(place, allowed), true, place);
  }
  for (const place of ["c@example.com", "a@example.com, c@example.com", "A@example.com", "x", "", "a@example.com,"]) {
    assert.equal(isAllowed(place, allowed), false, place);
  }
});

async function warningsOf(t: TestContext, lines: string) {
  const { warnings, home } = await load(t, withRoute(lines, platforms));
  return warnings.map((warning) => warning.replace(home.config, "config.yaml"));
}

const twice = (name: string) =>
  `config.yaml:6: "one" sends to "${name}" twice at the same place; leave one of them out`;
const inVain = (name: string) =>
  `config.yaml:6: A fallback of "${name}" in "one" is a place that has given the message up already; name another`;

const repeated: readonly (readonly [lines: string, ...warnings: string[]])[] = [
  ["deliver: [telegram, email, telegram]", twice("telegram")],
  ['deliver: [telegram, { to: telegram, chat_id: "-100" }]', twice("telegram")],
  [
    'deliver: [{ to: telegram, chat_id: "-7", thread_id: 2 }, { to: telegram, chat_id: -7, message_thread_id: 2 }]',
    twice("telegram"),
  ],
  ["deliver: [telegram, { to: telegram, format: plain }]", twice("telegram")],
  ['deliver: [{ to: telegram, chat_id: "{a}" }, { to: telegram, chat_id: "{a}" }]', twice("telegram")],
  ['deliver: [telegram, { to: telegram, chat_id: "-7" }, { to: telegram, chat_id: "-7", thread_id: 2 }]'],
  ['deliver: [{ to: telegram, chat_id: "{a}" }, { to: telegram, chat_id: "{b}" }]'],
  ["deliver: [telegram, email]\nfallback: [email, log]"],
  ["deliver: telegram\nfallback: [telegram, log]", inVain("telegram")],
  ["deliver: telegram\nfallback: { to: telegram, chat_id: -100 }", inVain("telegram")],
  ["deliver: { to: telegram, fallback: telegram }", inVain("telegram")],
  ["deliver:\n  - email\n  - { to: telegram, fallback: [log, { to: telegram, chat_id: -100 }] }", inVain("telegram")],
  ["deliver: telegram\nfallback: [email, { to: email, chat_id: ops@example.com }]", inVain("telegram")],
  ["deliver: telegram\nfallback: { to: telegram, chat_id: -7 }"],
  ["deliver: { to: telegram, fallback: [] }\nfallback: log"],
];

for (const [lines, ...warnings] of repeated) {
  const what = warnings.length > 0 ? "warns of a place that is named once too often" : "warns of no place";
  test(`${what}: ${lines}`, async (t) => assert.deepEqual(await warningsOf(t, lines), warnings));
}

test("an entry that is itself in the fallback of the route is left out by whichever key it names its place", async (t) => {
  const lines = "deliver: [telegram, email]\nfallback: [{ to: email, chat_id: ops@example.com }, log]";
  assert.deepEqual((await waysOn(t, lines))[1], ["email", {}, ["log", {}]]);
});

test("who lets the payload decide whom e-mails go to is warned, unless the places are listed", async (t) => {
  const warningsOn = (lines: string) => warningsOf(t, lines);
  const warning =
    'config.yaml:6: The payload of "one" decides whom "email" writes to; name the places it may go to in "allow_chat_ids"';
  assert.deepEqual(await warningsOn('deliver: { to: email, chat_id: "{author.email}" }'), [warning]);
  assert.deepEqual(await warningsOn('deliver: email\ndeliver_extra: { to: "{team}@example.com" }'), [warning]);
  assert.deepEqual(await warningsOn('deliver: telegram\nfallback: [log, { to: email, chat_id: "{a}" }]'), [warning]);
  assert.deepEqual(await warningsOn('deliver: { to: email, chat_id: "{a}" }\nallow_chat_ids: [a@example.com]'), []);
  assert.deepEqual(await warningsOn('deliver: { to: email, chat_id: a@example.com, subject: "{title}" }'), []);
  assert.deepEqual(await warningsOn('deliver: { to: telegram, chat_id: "{chat}" }'), []);
});
