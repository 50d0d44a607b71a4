import assert from "node:assert/strict";
import { test } from "node:test";
import { configuration, refusal, useGateway } from "./gateway.ts";

interface Case {
  /** The sentence of the specification. */
  readonly sentence: string;
  readonly filters: readonly object[];
  /** Bodies, or bodies with an event type and headers, that pass. */
  readonly pass: readonly unknown[];
  readonly fail: readonly unknown[];
}

/** A body that comes with more than itself. */
interface Sent {
  readonly body: unknown;
  readonly event?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const sent = (body: unknown, event?: string, headers?: Record<string, string>): Sent => ({ body, event, headers });
const pullRequest = {
  action: "opened",
  pull_request: { draft: false, labels: ["bug", 3, null], user: { login: "ada" } },
};

const cases: readonly Case[] = [
  {
    sentence: "Leaf form: `field` plus exactly one operator",
    filters: [{ field: "action", equals: "opened" }],
    pass: [{ action: "opened" }],
    fail: [{ action: "closed" }, {}],
  },
  {
    sentence: "Group form: `all`",
    filters: [
      {
        all: [
          { field: "a", equals: 1 },
          { field: "b", equals: 2 },
        ],
      },
    ],
    pass: [{ a: 1, b: 2 }],
    fail: [{ a: 1 }, { b: 2 }, {}],
  },
  {
    sentence: "Group form: `any`",
    filters: [
      {
        any: [
          { field: "a", equals: 1 },
          { field: "b", equals: 2 },
        ],
      },
    ],
    pass: [{ a: 1 }, { b: 2 }],
    fail: [{ a: 2, b: 1 }, {}],
  },
  {
    sentence: "Group form: `not`",
    filters: [{ not: { field: "a", equals: 1 } }],
    pass: [{ a: 2 }, {}],
    fail: [{ a: 1 }],
  },
  {
    sentence: "holding nested filters",
    filters: [
      {
        any: [{ all: [{ field: "a", exists: true }, { not: { field: "a", in: [1, 2] } }] }, { field: "b", equals: 0 }],
      },
    ],
    pass: [{ a: 3 }, { b: 0, a: 1 }],
    fail: [{ a: 1 }, {}],
  },
  {
    sentence: "a list of filters: all of them hold",
    filters: [
      { field: "a", equals: 1 },
      { field: "b", equals: 2 },
    ],
    pass: [{ a: 1, b: 2 }],
    fail: [{ a: 1, b: 3 }],
  },
  {
    sentence: "`exists`: The field is present (true)",
    filters: [{ field: "pull_request.draft", exists: true }],
    pass: [pullRequest, { pull_request: { draft: null } }],
    fail: [{}, { pull_request: 1 }, { pull_request: { constructor: 1 } }],
  },
  {
    sentence: "`exists`: or absent (false)",
    filters: [{ field: "draft", exists: false }],
    pass: [{}, pullRequest],
    fail: [{ draft: false }, { draft: null }],
  },
  {
    sentence: "`missing`: The field is absent",
    filters: [{ field: "draft", missing: true }],
    pass: [{}],
    fail: [{ draft: "" }],
  },
  {
    sentence: "`equals`: Equality",
    filters: [{ field: "n", equals: 7 }],
    pass: [{ n: 7 }, '{"n":7.0}', '{"n":70e-1}'],
    fail: [{ n: "7" }, { n: 8 }, { n: [7] }, { n: true }, {}],
  },
  {
    sentence: "`not_equals`: inequality",
    filters: [{ field: "n", not_equals: 7 }],
    pass: [{ n: 8 }, { n: "7" }, {}],
    fail: [{ n: 7 }],
  },
  {
    sentence: "`contains`: Works on strings (substring)",
    filters: [{ field: "title", contains: "[bug]" }],
    pass: [{ title: "Fix the [bug]" }],
    fail: [{ title: "Fix the bug" }, { title: 1 }, {}],
  },
  {
    sentence: "`contains`: lists (membership)",
    filters: [{ field: "pull_request.labels", contains: "bug" }],
    pass: [pullRequest],
    fail: [{ pull_request: { labels: ["bugs"] } }, { pull_request: { labels: [] } }],
  },
  {
    sentence: "`contains`: and dict keys",
    filters: [{ field: "pull_request", contains: "draft" }],
    pass: [pullRequest],
    fail: [{ pull_request: { other: "draft" } }, { pull_request: {} }],
  },
  {
    sentence: "`in`: The field value is in the list",
    filters: [{ field: "action", in: ["opened", 7, null] }],
    pass: [{ action: "opened" }, { action: 7 }, { action: null }],
    fail: [{ action: "7" }, { action: ["opened"] }, {}],
  },
  {
    sentence: "`in_file`: The file is a JSON array",
    filters: [{ field: "user", in_file: "lists/array.json" }],
    pass: [{ user: "ada" }, { user: 7 }],
    fail: [{ user: "7" }, { user: "eve" }, {}],
  },
  {
    sentence: "`in_file`: a JSON object (its keys are used)",
    filters: [{ field: "user", in_file: "lists/object.json" }],
    pass: [{ user: "ada" }, { user: "grace" }],
    fail: [{ user: "yes" }, { user: "constructor" }],
  },
  {
    sentence: "`in_file`: or a line-delimited text file",
    filters: [{ field: "user", in_file: "lists/lines.txt" }],
    pass: [{ user: "ada" }, { user: "grace" }],
    fail: [{ user: "" }, { user: "ada\ngrace" }],
  },
  {
    sentence: "`regex`: The field matches the pattern",
    filters: [{ field: "title", regex: "^(fix|feat)(\\(\\w+\\))?: " }],
    pass: [{ title: "fix: a" }, { title: "feat(core): b" }],
    fail: [{ title: "a fix: b" }, { title: null }, {}],
  },
  {
    sentence: "Field paths use dot notation",
    filters: [
      { field: "pull_request.user.login", equals: "ada" },
      { field: "pull_request.labels.0", equals: "bug" },
    ],
    pass: [pullRequest],
    fail: [{ "pull_request.user.login": "ada" }],
  },
  {
    sentence: "If the payload has a top-level `payload` object, `payload.foo` reads inside it",
    filters: [{ field: "payload.foo", equals: 1 }],
    pass: [{ payload: { foo: 1 }, foo: 2 }],
    fail: [
      { payload: { foo: 2 }, foo: 1 },
      { payload: {}, foo: 1 },
    ],
  },
  {
    sentence: "For flat payloads, `payload.foo` reads from the body root",
    filters: [{ field: "payload.foo", equals: 1 }],
    pass: [{ foo: 1 }, { foo: 1, payload: "text" }],
    fail: [{ foo: 2 }],
  },
  {
    sentence: "The path `event` matches the resolved event type",
    filters: [{ field: "event", in: ["push", "issues"] }],
    pass: [sent({}, "push"), { event_type: "issues" }],
    fail: [sent({ event: "push" }, "ping"), { event: "push" }],
  },
  {
    sentence: "(or `event_type`)",
    filters: [{ field: "event_type", equals: "push" }],
    pass: [sent({}, "push"), { event_type: "push" }],
    fail: [sent({ event_type: "push" }, "ping")],
  },
  {
    sentence: "The path `headers.<Name>` reads a request header",
    filters: [{ field: "headers.X-Tenant", equals: "acme" }],
    pass: [sent({}, undefined, { "x-tenant": "acme" }), sent({}, undefined, { "X-TENANT": "acme" })],
    fail: [sent({ headers: { "X-Tenant": "acme" } }), {}],
  },
];

const gateway = useGateway(() => ({
  routes: Object.fromEntries(cases.map(({ filters }, index) => [`case-${index}`, { filters }])),
  files: {
    "lists/array.json": '["ada", 7]',
    "lists/object.json": '{"ada": "yes", "grace": 0}',
    "lists/lines.txt": "ada\r\n\n  grace  \n",
  },
}));

function partsOf(value: unknown): Sent {
  return typeof value === "object" && value !== null && "body" in value ? (value as Sent) : { body: value };
}

for (const [index, { sentence, pass, fail }] of cases.entries()) {
  test(`2.3 Filter "${sentence}"`, async () => {
    for (const [values, verdict] of [
      [pass, "accepted"],
      [fail, "ignored"],
    ] as const) {
      for (const value of values) {
        const parts = partsOf(value);
        assert.equal(await gateway.verdict(`case-${index}`, parts), verdict, JSON.stringify(parts));
      }
    }
  });
}

test("2.3 Filter `in_file`: a list that changes is read again", async () => {
  const index = cases.findIndex(({ sentence }) => sentence.includes("line-delimited"));
  assert.equal(await gateway.verdict(`case-${index}`, { body: { user: "new" } }), "ignored");
  await gateway.home.write("lists/lines.txt", "ada\ngrace\nnew\n");
  assert.equal(await gateway.verdict(`case-${index}`, { body: { user: "new" } }), "accepted");
});

test("2.3 Filter: the record names the clause and the value that failed, the reply does not", async () => {
  const { reply, id } = await gateway.post("case-0", { body: { action: "closed" } });
  assert.deepEqual(reply, { status: "ignored", reason: "filter" });
  assert.equal((await gateway.fate(id)).reason, 'filters.0: action equals "opened", found "closed"');
});

const mistakes: [sentence: string, filter: object, complaint: RegExp][] = [
  [
    "plus exactly one operator",
    { field: "a", equals: 1, in: [1] },
    /filters\.0: A filter has one operator, this one has "equals" and "in"/,
  ],
  ["plus exactly one operator", { field: "a" }, /filters\.0: Add one operator/],
  ["Leaf form: `field`", { equals: 1 }, /filters\.0: There is no "field"/],
  ["`exists`: bool", { field: "a", exists: 1 }, /filters\.0\.exists: Write "true" or "false"/],
  ["`missing`: true", { field: "a", missing: false }, /filters\.0\.missing: Only "missing: true" has a meaning/],
  ["`equals` / `not_equals`: scalar", { field: "a", equals: [1] }, /filters\.0\.equals: Write a text, a number/],
  ["`contains`: scalar", { field: "a", contains: {} }, /filters\.0\.contains: Write a text, a number/],
  ["`in`: inline list", { field: "a", in: "b" }, /filters\.0\.in: Write a list/],
  [
    "`in_file`: file path",
    { field: "a", in_file: "../../etc/passwd" },
    /filters\.0\.in_file: The file .* lies outside the home/,
  ],
  ["`regex`: pattern", { field: "a", regex: "(?<=a)b" }, /filters\.0\.regex: The pattern cannot be used/],
  ["Operator", { field: "a", eqals: 1 }, /filters\.0\.eqals: There is no operator "eqals"; did you mean "equals"/],
  ["Group form", { any: [] }, /filters\.0\.any: The group is empty/],
];

test("2.3 Filter: what the table does not allow refuses to start, all of it at once, naming the clause", async (t) => {
  const routes = Object.fromEntries(mistakes.map(([, filter], index) => [`r${index}`, { filters: [filter] }]));
  const { code, err } = await refusal(t, { config: configuration({ routes }) });
  assert.equal(code, 78);
  for (const [index, [sentence, , complaint]] of mistakes.entries()) {
    await t.test(`2.3 Filter "${sentence}"`, () => {
      const lines = err.split("\n").filter((line) => line.includes(`.r${index}.`));
      assert.match(lines.join("\n"), complaint);
    });
  }
});
