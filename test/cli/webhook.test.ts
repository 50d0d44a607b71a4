import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { signGithub } from "../../src/receive/verify.ts";
import { startFakeTelegram } from "../fakes/telegram.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, previewConfig } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { postern } from "../tools/program.ts";
import { fakeGateway, run, runJson } from "./command.ts";

interface Subscribed {
  readonly name: string;
  readonly url: string;
  readonly secret?: string;
  readonly created: boolean;
  readonly notes: readonly string[];
}

type Entries = Record<string, Record<string, unknown>>;

const file = "webhook_subscriptions.json";

const withTelegram = `platforms:
  webhook: { enabled: true, host: 127.0.0.1, routes: { fixed: { secret: abc-secret } } }
  telegram: { enabled: true, token: "123:abc" }
  email: { enabled: true, smtp_host: localhost, address: a@example.com, home_channel: b@example.com }
`;

async function entriesOf(home: { read(path: string): Promise<string> }): Promise<Entries> {
  return JSON.parse(await home.read(file)) as Entries;
}

test("subscribe prints the URL and a new secret, and writes the subscription with mode 0600", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig.replace("port: 0", "port: 9999") });
  const { code, out, err } = await run(home, ["webhook", "subscribe", "alerts", "--events", "push, issues,"]);
  assert.equal(code, 0);
  assert.equal(err, "");
  const secret = /Secret: (\S+) {2}\(shown this once\)/.exec(out)?.[1] ?? "";
  assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
  assert.match(out, /URL: {4}http:\/\/127\.0\.0\.1:9999\/webhooks\/alerts\n/);
  const { created_at, ...entry } = (await entriesOf(home)).alerts ?? {};
  assert.deepEqual(entry, { secret, events: ["push", "issues"] });
  assert.match(String(created_at), /^\d{4}-\d\d-\d\dT/);
  assert.equal((await stat(home.subscriptions)).mode & 0o777, 0o600);
});

test("every flag of subscribe has its place in the entry", async (t) => {
  const home = await makeHome(t, { "config.yaml": withTelegram });
  const flags = [
    ...["--events", "push", "--prompt", "{a}", "--skill", "one", "--skill", "two", "--deliver", "telegram"],
    ...["--deliver-chat-id", "-100", "--deliver-extra", "thread_id=7", "--deliver-only", "--description", "What for"],
    ...["--secret", "my-own-secret"],
  ];
  const { code, value } = await runJson<Subscribed>(home, ["webhook", "subscribe", "all", ...flags]);
  assert.equal(code, 0);
  assert.equal(value.secret, "my-own-secret");
  const { created_at: _created, ...entry } = (await entriesOf(home)).all ?? {};
  assert.deepEqual(entry, {
    secret: "my-own-secret",
    description: "What for",
    events: ["push"],
    prompt: "{a}",
    skills: ["one", "two"],
    deliver: "telegram",
    deliver_extra: { thread_id: "7", chat_id: "-100" },
    deliver_only: true,
  });
});

test("filters come from JSON, one at a time or as lists, keep their digits and are replaced as a whole", async (t) => {
  const home = await makeHome(t);
  const one = '{"field":"action","in":["opened","reopened"]}';
  const more = '[{"field":"id","equals":12345678901234567890},{"any":[{"field":"a","exists":true}]}]';
  const { code, err } = await run(home, ["webhook", "subscribe", "a", "--filter", one, "--filter", more]);
  assert.equal(code, 0, err);
  const { filters } = (await entriesOf(home)).a ?? {};
  assert.deepEqual((filters as unknown[]).length, 3);
  assert.match(await home.read(file), /"equals": 12345678901234567890\n/);
  await run(home, ["webhook", "subscribe", "a", "--filter", one]);
  assert.deepEqual((await entriesOf(home)).a?.filters, [JSON.parse(one)]);
  await run(home, ["webhook", "subscribe", "a", "--prompt", "x"]);
  assert.deepEqual((await entriesOf(home)).a?.filters, [JSON.parse(one)]);
  await run(home, ["webhook", "subscribe", "a", "--filter", "[]"]);
  assert.deepEqual((await entriesOf(home)).a?.filters, []);
});

test("a filter that is no JSON object or list is wrong usage", async (t) => {
  const home = await makeHome(t);
  for (const filter of ["{nope", '"text"', "5", "null", ""]) {
    const { code, err } = await run(home, ["webhook", "subscribe", "x", "--filter", filter]);
    assert.equal(code, 2);
    assert.match(err, /Expected a JSON object or a list of them/);
  }
  await assert.rejects(stat(home.subscriptions), { code: "ENOENT" });
});

test("a script is written as it is named, and one that is not there yet is pointed out", async (t) => {
  const home = await makeHome(t, { "scripts/there.py": "" });
  const subscribed = (script: string) =>
    runJson<Subscribed>(home, ["webhook", "subscribe", "a", "--script", script, "--prompt", "x"]);
  assert.doesNotMatch((await subscribed("there.py")).value.notes.join(), /script/);
  assert.equal((await entriesOf(home)).a?.script, "there.py");
  assert.match(
    (await subscribed("absent.py")).value.notes.join(),
    /The script "absent\.py" is missing in "scripts", or cannot be read; until that is mended every event is ignored/,
  );
});

test("--secret - reads the secret from standard input, without its line end", async (t) => {
  const home = await makeHome(t);
  const args = ["webhook", "subscribe", "a", "--secret", "-"];
  assert.equal((await run(home, args, { readInput: async () => " own secret \r\n" })).code, 0);
  assert.equal((await entriesOf(home)).a?.secret, " own secret ");
  const { code, err } = await run(home, args, { readInput: async () => "\n" });
  assert.equal(code, 1);
  assert.match(err, /^postern: There is no secret on standard input/);
  const ended = await postern(t, args, { env: { POSTERN_HOME: home.folder }, stdin: "through-the-process\n" });
  assert.equal(ended.code, 0, ended.err);
  assert.equal((await entriesOf(home)).a?.secret, "through-the-process");
});

test("--no-deliver-only puts the agent back to work", async (t) => {
  const home = await makeHome(t, { "config.yaml": withTelegram });
  const args = ["webhook", "subscribe", "a", "--deliver", "email"];
  await run(home, [...args, "--deliver-only"]);
  await run(home, ["webhook", "subscribe", "a", "--prompt", "x"]);
  assert.equal((await entriesOf(home)).a?.deliver_only, true);
  assert.equal((await run(home, ["webhook", "subscribe", "a", "--no-deliver-only"])).code, 0);
  assert.equal((await entriesOf(home)).a?.deliver_only, false);
});

test("run again it changes what its flags name, keeps the secret and prints none", async (t) => {
  const home = await makeHome(t);
  const first = await runJson<Subscribed>(home, ["webhook", "subscribe", "a", "--prompt", "one", "--events", "push"]);
  const secret = first.value.secret ?? "";
  assert.equal(first.value.created, true);
  const { code, out } = await run(home, ["webhook", "subscribe", "a", "--prompt", "two"]);
  assert.equal(code, 0);
  assert.match(out, /^Updated "a"\n/);
  assert.match(out, /Secret: unchanged/);
  assert.ok(!out.includes(secret));
  const { created_at, updated_at, ...entry } = (await entriesOf(home)).a ?? {};
  assert.deepEqual(entry, { secret, prompt: "two", events: ["push"] });
  assert.ok(created_at && updated_at);
  const again = await runJson<Subscribed>(home, ["webhook", "subscribe", "a"]);
  assert.deepEqual([again.value.created, again.value.secret], [false, undefined]);
});

test("a secret that is given on an update replaces the old one and is not printed", async (t) => {
  const home = await makeHome(t);
  await run(home, ["webhook", "subscribe", "a"]);
  const { out } = await run(home, ["webhook", "subscribe", "a", "--secret", "another-secret"]);
  assert.match(out, /Secret: replaced by the given one/);
  assert.ok(!out.includes("another-secret"));
  assert.equal((await entriesOf(home)).a?.secret, "another-secret");
});

test("another target leaves behind the settings that it does not know", async (t) => {
  const home = await makeHome(t, { "config.yaml": withTelegram });
  const extra = ["--deliver-chat-id", "-100", "--deliver-extra", "message_thread_id=7"];
  await run(home, ["webhook", "subscribe", "a", "--deliver", "telegram", ...extra]);
  const args = ["webhook", "subscribe", "a", "--deliver", "email", "--deliver-chat-id", "c@example.com"];
  assert.equal((await run(home, args)).code, 0);
  assert.deepEqual((await entriesOf(home)).a?.deliver_extra, { chat_id: "c@example.com" });
});

test("the URL is the public one where there is one", async (t) => {
  const home = await makeHome(t, {
    "config.yaml": "platforms: { webhook: { public_url: https://h.example.com/in/ } }",
  });
  const { value } = await runJson<Subscribed>(home, ["webhook", "subscribe", "a"]);
  assert.equal(value.url, "https://h.example.com/in/webhooks/a");
});

test("subscribe says when a static route hides it, and when the gateway is not enabled", async (t) => {
  const home = await makeHome(t, { "config.yaml": withTelegram.replace("enabled: true, host", "host") });
  const { out } = await run(home, ["webhook", "subscribe", "fixed"]);
  assert.match(out, /Note: config\.yaml has a route "fixed" too, and that one wins/);
  assert.match(out, /Note: The gateway is not enabled yet/);
});

/** What cannot be used, and the sentence that refuses it. */
const unusable: readonly (readonly [what: string, args: readonly string[], why: RegExp])[] = [
  ["a bad name", ["../x"], /^postern: "\.\.\/x" cannot be the name: A route name begins with a letter or digit/],
  ["a long name", ["x".repeat(129)], /128 at most/],
  [
    "an unknown target",
    ["x", "--deliver", "telegrm"],
    /"x" was not saved: deliver: Unknown target "telegrm"; did you mean/,
  ],
  ["a target that is not set up", ["x", "--deliver", "github_comment"], /deliver_extra\.repo: Missing/],
  ["a target without a chat", ["x", "--deliver", "telegram"], /deliver_extra\.chat_id: Missing/],
  ["deliver_only to the log", ["x", "--deliver-only"], /deliver: deliver_only needs a real target/],
  [
    "a filter with two operators",
    ["x", "--filter", '{"field":"a","equals":1,"in":[1]}'],
    /"x" was not saved: filters\.0: A filter has one operator/,
  ],
  ["an empty secret", ["x", "--secret", ""], /secret: A secret is empty/],
  [
    "an address that is none",
    ["x", "--deliver", "email", "--deliver-chat-id", "nobody"],
    /chat_id: Expected an e-mail address/,
  ],
];

for (const [what, args, why] of unusable) {
  test(`subscribe refuses ${what} and writes nothing`, async (t) => {
    const home = await makeHome(t, { "config.yaml": withTelegram });
    const { code, out, err } = await run(home, ["webhook", "subscribe", ...args]);
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.match(err, why);
    await assert.rejects(stat(home.subscriptions), { code: "ENOENT" });
  });
}

test("INSECURE_NO_AUTH is refused on every address and taken on loopback", async (t) => {
  const args = ["webhook", "subscribe", "x", "--secret", "INSECURE_NO_AUTH"];
  assert.match((await run(await makeHome(t), args)).err, /INSECURE_NO_AUTH is only for a gateway on 127\.0\.0\.1/);
  assert.equal((await run(await makeHome(t, { "config.yaml": previewConfig }), args)).code, 0);
});

test("an update that would make a subscription unusable leaves it as it was", async (t) => {
  const home = await makeHome(t, { [file]: '{"a":{"secret":"abc-secret"}}' });
  assert.equal((await run(home, ["webhook", "subscribe", "a", "--deliver", "nowhere"])).code, 1);
  assert.equal(await home.read(file), '{"a":{"secret":"abc-secret"}}');
});

test("a damaged entry is replaced by a whole one", async (t) => {
  const home = await makeHome(t, { [file]: '{"a":5,"b":{"secret":"abc-secret"}}' });
  const { value } = await runJson<Subscribed>(home, ["webhook", "subscribe", "a"]);
  assert.equal(value.created, true);
  assert.deepEqual(Object.keys(await entriesOf(home)), ["a", "b"]);
});

for (const args of [["subscribe", "x"], ["list"], ["remove", "x"], ["test", "x"]]) {
  test(`webhook ${args[0]} leaves a damaged file alone and shows nothing of it`, async (t) => {
    const text = '{"a":{"secret":hunter2-8675309}}';
    const home = await makeHome(t, { [file]: text });
    const { code, out, err } = await run(home, ["webhook", ...args]);
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.match(err, /is damaged \(it is not JSON.*\); mend it or restore a copy\n$/);
    assert.doesNotMatch(err, /hunter2/);
    assert.equal(await home.read(file), text);
  });
}

test("list shows names, events, targets and descriptions, and never a secret", async (t) => {
  const home = await makeHome(t, {
    [file]: JSON.stringify({
      reviews: { secret: "hunter2-one", events: ["push", "issues"], description: "Reviews" },
      rotated: { secret: ["hunter2-two", "hunter2-three"], deliver: ["log", { to: "telegram", chat_id: 5 }] },
      off: { secret: "hunter2-four", enabled: false, deliver_only: true, deliver: "email", events: "push" },
      strange: 5,
    }),
  });
  const { code, out } = await run(home, ["webhook", "list"]);
  assert.equal(code, 0);
  assert.doesNotMatch(out, /hunter2/);
  assert.equal(
    out,
    `NAME     EVENTS       DELIVER                                DESCRIPTION
reviews  push,issues  log                                    Reviews
rotated  all          ["log",{"to":"telegram","chat_id":5}]
off      push         email
strange  all          log
`,
  );
  const { value } = await runJson<Entries[string][]>(home, ["webhook", "list"]);
  assert.doesNotMatch(JSON.stringify(value), /hunter2/);
  assert.deepEqual(value[2], {
    name: "off",
    events: ["push"],
    deliver: "email",
    deliver_only: true,
    enabled: false,
    description: "",
  });
});

test("list on an empty home says how to make the first one; --json is an empty list", async (t) => {
  const home = await makeHome(t);
  assert.match(
    (await run(home, ["webhook", "list"])).out,
    /No subscriptions; make one with "postern webhook subscribe/,
  );
  assert.deepEqual((await runJson(home, ["webhook", "list"])).value, []);
});

test("what a description holds cannot steer the terminal", async (t) => {
  const home = await makeHome(t, { [file]: JSON.stringify({ a: { description: "\u001b[2Jwiped\u202e" } }) });
  const { out } = await run(home, ["webhook", "list"]);
  assert.match(out, /\[2Jwiped\n/);
  assert.ok(!out.includes("\u001b") && !out.includes("\u202e"));
});

test("remove deletes one subscription and says so", async (t) => {
  const home = await makeHome(t, { [file]: '{"a":{},"b":{}}' });
  assert.deepEqual(await run(home, ["webhook", "remove", "a"]), { code: 0, out: 'Removed "a"\n', err: "" });
  assert.deepEqual(Object.keys(await entriesOf(home)), ["b"]);
  assert.deepEqual((await runJson(home, ["webhook", "remove", "b"])).value, { removed: "b" });
});

for (const command of ["remove", "test"]) {
  test(`${command} of an unknown name fails with the names that there are`, async (t) => {
    const home = await makeHome(t, { [file]: '{"a":{},"b":{}}' });
    for (const name of ["c", "constructor", "__proto__"]) {
      const { code, out, err } = await run(home, ["webhook", command, name]);
      assert.equal(code, 1);
      assert.equal(out, "");
      assert.equal(err, `postern: There is no subscription "${name}"; there are: a, b\n`);
    }
    const { err } = await run(await makeHome(t), ["webhook", command, "a"]);
    assert.match(err, /there are none yet/);
  });
}

/** A home whose gateway is a fake that answers as told, with one subscription. */
async function homeWithFake(t: TestContext, entry: object, status?: number, reply?: unknown) {
  const gateway = await fakeGateway(t, status, reply);
  const yaml = `platforms: { webhook: { enabled: true, host: 0.0.0.0, port: ${gateway.port}, secret: the-global-secret } }`;
  const home = await makeHome(t, { "config.yaml": yaml, [file]: JSON.stringify({ alerts: entry }) });
  return { home, gateway };
}

test("test sends a signed event of the subscription's first type, with a fresh delivery id each time", async (t) => {
  const { home, gateway } = await homeWithFake(t, { secret: "own-secret", events: ["push", "issues"] });
  const { code, out } = await run(home, ["webhook", "test", "alerts"]);
  assert.equal(code, 0);
  assert.match(out, /event "push"\n {2}202 \{"status":"accepted"\}\n/);
  await run(home, ["webhook", "test", "alerts"]);
  const [first, second] = gateway.received;
  assert.equal(first?.path, "/webhooks/alerts");
  assert.equal(first?.headers["x-github-event"], "push");
  assert.equal(first?.headers["content-type"], "application/json");
  assert.equal(first?.headers["x-hub-signature-256"], signGithub("own-secret", first?.body.toString() ?? ""));
  assert.equal(JSON.parse(first?.body.toString() ?? "").test, true);
  assert.match(String(first?.headers["x-github-delivery"]), /^[0-9a-f-]{36}$/);
  assert.notEqual(first?.headers["x-github-delivery"], second?.headers["x-github-delivery"]);
});

test("test sends the given payload byte for byte, with the global secret where there is no other", async (t) => {
  const { home, gateway } = await homeWithFake(t, {});
  const payload = '{ "name":"Zoë",  "big": 12345678901234567890 }';
  const { value } = await runJson<object>(home, ["webhook", "test", "alerts", "--payload", payload]);
  const [request] = gateway.received;
  assert.equal(request?.body.toString(), payload);
  assert.equal(request?.headers["x-hub-signature-256"], signGithub("the-global-secret", payload));
  assert.deepEqual(value, {
    url: `http://127.0.0.1:${gateway.port}/webhooks/alerts`,
    event: "test",
    status: 202,
    reply: { status: "accepted" },
  });
});

test("test of a GitLab subscription sends GitLab's headers, in bytes that a header can carry", async (t) => {
  const { home, gateway } = await homeWithFake(t, { secret: ["schlüssel-一", "old"], events: "Merge Request Hook" });
  assert.equal((await run(home, ["webhook", "test", "alerts"])).code, 0);
  const { headers } = gateway.received[0] ?? {};
  assert.equal(headers?.["x-gitlab-event"], "Merge Request Hook");
  assert.equal(Buffer.from(String(headers?.["x-gitlab-token"]), "latin1").toString(), "schlüssel-一");
  assert.match(String(headers?.["x-request-id"]), /^[0-9a-f-]{36}$/);
});

for (const [status, expected] of [
  [200, 0],
  [202, 0],
  [401, 1],
  [403, 1],
  [404, 1],
  [429, 1],
  [502, 1],
] as const) {
  test(`test exits ${expected} when the gateway answers ${status}`, async (t) => {
    const { home } = await homeWithFake(t, { secret: "s" }, status, { any: "answer" });
    const { code, out } = await run(home, ["webhook", "test", "alerts"]);
    assert.equal(code, expected);
    assert.equal(/The gateway refused it; its log says why/.test(out), expected === 1);
    assert.equal((await runJson(home, ["webhook", "test", "alerts"])).code, expected);
  });
}

test("test says that nobody listens, and how to start the gateway", async (t) => {
  const port = await freePort();
  const home = await makeHome(t, {
    "config.yaml": `platforms: { webhook: { host: 127.0.0.1, port: ${port} } }`,
    [file]: '{"alerts":{"secret":"s"}}',
  });
  const { code, out, err } = await run(home, ["webhook", "test", "alerts"]);
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(
    err,
    /^postern: No gateway answers at http:\/\/127\.0\.0\.1:\d+\/.*; start it with "postern gateway run"\n$/,
  );
});

test("test cannot know the port when the configuration leaves it open", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig, [file]: '{"alerts":{"secret":"s"}}' });
  const { code, err } = await run(home, ["webhook", "test", "alerts"]);
  assert.equal(code, 1);
  assert.match(err, /The gateway's port is 0, any free one; set a fixed "platforms\.webhook\.port"/);
});

test("a payload that is not JSON is refused before anything is sent", async (t) => {
  const { home, gateway } = await homeWithFake(t, { secret: "s" });
  const { code, err } = await run(home, ["webhook", "test", "alerts", "--payload", "{nope"]);
  assert.equal(code, 1);
  assert.match(err, /^postern: --payload is not JSON/);
  assert.deepEqual(gateway.received, []);
});

test("commands at once in processes of their own lose no subscription", async (t) => {
  const home = await makeHome(t);
  const names = Array.from({ length: 8 }, (_, number) => `name-${number}`);
  const ends = await Promise.all(
    names.map((name) => postern(t, ["webhook", "subscribe", name, "--json"], { env: { POSTERN_HOME: home.folder } })),
  );
  for (const { code, err } of ends) assert.equal(code, 0, err);
  const entries = await entriesOf(home);
  for (const { out } of ends) {
    const { name, secret } = JSON.parse(out) as Subscribed;
    assert.equal(entries[name]?.secret, secret);
  }
  assert.deepEqual(Object.keys(entries).sort(), names);
});

interface Tested {
  readonly status: number;
  readonly fate?: {
    readonly id: string;
    readonly state: string;
    readonly reason: string | null;
    readonly rests: boolean;
  };
}

/** A gateway in a process of its own with one subscription, and what `webhook test` says about an event for it. */
async function tested(t: TestContext, entry: object, args: readonly string[] = [], agent = "preview") {
  const port = await freePort();
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  telegram.mode = "refused";
  const platforms = {
    webhook: { enabled: true, host: "127.0.0.1", port },
    telegram: { enabled: true, token: telegram.token, home_channel: "42", base_url: telegram.baseUrl },
  };
  const home = await makeHome(t, {
    "config.yaml": JSON.stringify({ platforms, agent: { backend: agent } }),
    [file]: JSON.stringify({ alerts: { secret: "abc-secret", ...entry } }),
  });
  const gateway = await startGatewayProcess(t, home);
  const words = await run(home, ["webhook", "test", "alerts", ...args]);
  const { code, value } = await runJson<Tested>(home, ["webhook", "test", "alerts", ...args]);
  assert.equal(code, words.code);
  return { home, gateway, code, out: words.out, err: words.err, value };
}

test("test shows the way of an event until it rests", async (t) => {
  const { home, code, out, value } = await tested(t, { prompt: `Say {message} ${"x".repeat(1000)}` });
  assert.equal(code, 0);
  assert.match(
    out,
    /^POST .*\n {2}202 .*\n\nEvent \S+\n[\s\S]*state done\n[\s\S]*run 1 completed\n[\s\S]*sent to log\n/,
  );
  assert.match(out, /xxx… \(\d+ characters\)\n/);
  const [, id = ""] = /See all of it: postern events show (\S+)\n$/.exec(out) ?? [];
  assert.equal((await run(home, ["events", "show", id])).code, 0);
  assert.deepEqual([value.status, value.fate?.state, value.fate?.rests], [202, "done", true]);
});

test("test of an event that is ignored prints the clause and the value, and succeeds", async (t) => {
  const filters = [{ field: "message", equals: "other" }];
  const { code, out, value } = await tested(t, { filters }, ["--payload", '{"message":"this"}']);
  assert.equal(code, 0);
  assert.match(
    out,
    /200 \{"status":"ignored","reason":"filter"\}\n {2}Ignored: filters\.0: message equals "other", found "this"\n$/,
  );
  assert.deepEqual(
    [value.fate?.state, value.fate?.reason],
    ["ignored", 'filters.0: message equals "other", found "this"'],
  );
});

test("test fails when the job is given up, and shows the target's words", async (t) => {
  const { code, out, value } = await tested(t, { deliver: "telegram" });
  assert.equal(code, 1);
  assert.match(out, /state dead[\s\S]*try 1 to telegram refused: .*blocked by the user.*given up/);
  assert.equal(value.fate?.state, "dead");
});

test("test fails when a direct delivery is refused, and shows why though the sender is not told", async (t) => {
  const { code, out } = await tested(t, { deliver: "telegram", deliver_only: true });
  assert.equal(code, 1);
  assert.match(out, /502 \{"status":"error","error":"Delivery failed"[\s\S]*state refused[\s\S]*blocked by the user/);
});

test("test of a job that cannot run says what it waits for", async (t) => {
  const { code, out } = await tested(t, {}, [], "builtin");
  assert.equal(code, 0);
  assert.match(out, /state waiting[\s\S]*waiting: no model configured/);
});

test("test does not wait longer than it is told", async (t) => {
  const { code, out } = await tested(t, { script: "slow.sh" }, ["--wait", "0"]);
  assert.equal(code, 0);
  assert.match(out, /ignored/);
  const slow = { backend: "command", command: ["sleep", "5"] };
  const port = await freePort();
  const home = await makeHome(t, {
    "config.yaml": JSON.stringify({ platforms: { webhook: { enabled: true, host: "127.0.0.1", port } }, agent: slow }),
    [file]: '{"alerts":{"secret":"abc-secret"}}',
  });
  await startGatewayProcess(t, home);
  const ended = await run(home, ["webhook", "test", "alerts", "--wait", "0.3"]);
  assert.equal(ended.code, 0);
  assert.match(ended.out, /Still (queued|running) after 0\.3 s\. See all of it: postern events show/);
});

test("test says only what was answered when the ledger is elsewhere", async (t) => {
  const { home } = await homeWithFake(t, { secret: "s" });
  const { code, out } = await run(home, ["webhook", "test", "alerts"]);
  assert.equal(code, 0);
  assert.match(out, /What became of it is not in a ledger on this machine; look where the gateway runs\n$/);
});
