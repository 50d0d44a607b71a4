import assert from "node:assert/strict";
import { test } from "node:test";
import { type FakeGithub, startFakeGithub } from "../fakes/github.ts";
import { type FakeSmtp, startFakeSmtp } from "../fakes/smtp.ts";
import { missing } from "../needs.ts";
import { until } from "../tools/wait.ts";
import { configuration, openGateway, refusal, useGateway } from "./gateway.ts";

const skill = (name: string, text: string) => `---\nname: ${name}\ndescription: For tests\n---\n${text}\n`;
const comment = { deliver: "host_a_comment", deliver_extra: { repo: "{repo}", pr_number: "{pr.number}" } };

let github: FakeGithub;
let smtp: FakeSmtp;

const gateway = useGateway(async (_telegram, t) => {
  github = await startFakeGithub();
  smtp = await startFakeSmtp();
  t.after(() => Promise.all([github.close(), smtp.close()]));
  return {
    routes: {
      plain: {},
      "Name.with-all_signs.2": { prompt: "{x}" },
      "no-events": { events: [] },
      listed: { events: ["push", "issues"] },
      own: { secret: "a-secret-of-its-own" },
      open: { secret: "INSECURE_NO_AUTH" },
      templated: { prompt: "Fix {issue.title} of {issue.user.login}" },
      filtered: { filters: [{ field: "action", equals: "opened" }] },
      scripted: { script: "shout.sh", prompt: "{word}" },
      skilled: { skills: ["not-there", "second", "third"], prompt: "Go" },
      unskilled: { skills: ["not-there"], prompt: "Go" },
      logged: { prompt: "To the log: {x}" },
      addressed: { deliver: "telegram", deliver_extra: { chat_id: "-100{chat}" }, prompt: "{x}" },
      direct: { deliver: "telegram", deliver_only: true, prompt: "Straight: {x}" },
      topic: { deliver: "chat_target_01", deliver_extra: { message_thread_id: "{topic}" }, prompt: "{x}" },
      thread: { deliver: "telegram", deliver_extra: { thread_id: 9 }, prompt: "{x}" },
      pulls: { ...comment, prompt: "Reviewed by {who}" },
      mail: { deliver: "email", prompt: "Mail about {x}" },
    },
    platforms: {
      email: {
        ...{ enabled: true, smtp_host: smtp.host, smtp_port: smtp.port, address: "bot@example.com" },
        home_channel: "ops@example.com",
      },
    },
    env: github.env,
    files: {
      "scripts/shout.sh": "tr a-z A-Z | sed 's/WORD/word/'\n",
      "skills/second/SKILL.md": skill("second", "Second skill."),
      "skills/third/SKILL.md": skill("third", "Third skill."),
    },
  };
});

test('2.3 "A route is a named entry under `routes`. The name appears in the URL path"', async () => {
  assert.equal(await gateway.promptOf("Name.with-all_signs.2", { body: { x: "here" } }), "here");
  assert.equal((await gateway.post("name.with-all_signs.2")).status, 404);
});

test('2.3 `events`: "Accepted event types"', async () => {
  assert.equal(await gateway.verdict("listed", { event: "push" }), "accepted");
  assert.equal(await gateway.verdict("listed", { event: "issues" }), "accepted");
  assert.equal(await gateway.verdict("listed", { event: "pus" }), "ignored");
});

test('2.3 `events`: "An empty or missing list accepts every event"', async () => {
  for (const route of ["plain", "no-events"]) {
    for (const event of ["push", "anything at all", undefined]) {
      assert.equal(await gateway.verdict(route, { event }), "accepted");
    }
  }
});

test('2.3 `secret`: "Verification secret. Falls back to the global secret"', async () => {
  assert.equal((await gateway.post("own", { secret: "a-secret-of-its-own" })).status, 202);
  assert.equal((await gateway.post("own")).status, 401);
  assert.equal((await gateway.post("plain")).status, 202);
});

test('2.3 `secret`: "The value `INSECURE_NO_AUTH` skips verification"', async () => {
  assert.equal((await gateway.post("open", { secret: null })).status, 202);
  assert.equal((await gateway.post("open", { secret: "whatever" })).status, 202);
});

test('2.3 `prompt`: "Template using dot-notation field references"', async () => {
  const body = { issue: { title: "the leak", user: { login: "ada" } } };
  assert.equal(await gateway.promptOf("templated", { body }), "Fix the leak of ada");
});

test('2.3 `prompt`: "If omitted, the whole payload is dumped as indented JSON into the prompt"', async () => {
  const body = { a: [1, { b: null }], c: {} };
  assert.equal(await gateway.promptOf("plain", { body }), JSON.stringify(body, null, 2));
});

test('2.3 `filters`: "Declarative payload filters"', async () => {
  assert.equal(await gateway.verdict("filtered", { body: { action: "opened" } }), "accepted");
  assert.equal(await gateway.verdict("filtered", { body: { action: "closed" } }), "ignored");
});

test('2.3 `script`: "Filter/transform script under `<home>/scripts/`"', async () => {
  assert.equal(await gateway.promptOf("scripted", { body: { word: "hello" } }), "HELLO");
});

test('2.3 `skills`: "Only the first skill that is found is loaded. Later entries are ignored"', async () => {
  assert.equal(await gateway.promptOf("skilled"), "Second skill.\n\nGo");
  assert.equal(await gateway.promptOf("unskilled"), "Go");
});

test('2.3 `deliver`: "Delivery target. Default `log`"', async () => {
  const { id } = await gateway.post("plain");
  const { jobs } = await gateway.fate(id);
  assert.deepEqual(
    jobs[0]?.messages.map(({ target, state }) => [target, state]),
    [["log", "sent"]],
  );
});

test('2.3 `deliver_extra`: "Values support the same template syntax as `prompt`"', async () => {
  await gateway.post("addressed", { body: { chat: 77, x: "templated address" } });
  const message = await until("it", () => gateway.telegram.messages.find(({ text }) => text === "templated address"));
  assert.equal(message.chatId, "-10077");
});

test('2.3 `deliver_only`: "If true, the agent is skipped"', async () => {
  const { reply, id } = await gateway.post("direct", { body: { x: 1 } });
  assert.equal(reply.status, "delivered");
  assert.deepEqual((await gateway.fate(id)).jobs[0]?.runs, []);
  assert.equal(gateway.telegram.messages.at(-1)?.text, "Straight: 1");
});

test('2.3 `deliver_only`: "`deliver` must then be a real target, not `log`"', async (t) => {
  const config = configuration({ routes: { a: { deliver_only: true }, b: { deliver_only: true, deliver: "log" } } });
  const { code, err } = await refusal(t, { config });
  assert.equal(code, 78);
  assert.match(err, /routes\.a\.deliver: deliver_only needs a real target/);
  assert.match(err, /routes\.b\.deliver: deliver_only needs a real target/);
});

test('2.3 deliver `log`: "Write the response to the gateway log. This is the default"', async () => {
  await gateway.post("logged", { body: { x: "a line" } });
  const line = await gateway.logged({ text: "To the log: a line" });
  assert.equal(line.route, "logged");
});

test(`2.3 deliver \`host_a_comment\`: "Post the response as a pull-request/issue comment through code host A's CLI"`, {
  skip: missing("gh"),
}, async () => {
  await gateway.post("pulls", { body: { repo: "acme/boat", pr: { number: 3 }, who: "Ada" } });
  const posted = await until("the comment", () => github.messages.find(({ number }) => number === 3));
  assert.equal(posted.repo, "acme/boat");
  assert.match(posted.text, /^Reviewed by Ada/);
});

test('2.3 deliver `host_a_comment`: "Needs `deliver_extra.repo` and `deliver_extra.pr_number`"', async (t) => {
  const config = configuration({
    routes: { a: { deliver: "host_a_comment" }, b: { deliver: "github_comment", deliver_extra: { repo: "a/b" } } },
  });
  const { code, err } = await refusal(t, { config });
  assert.equal(code, 78);
  assert.match(err, /routes\.a\.deliver_extra\.repo: Missing/);
  assert.match(err, /routes\.a\.deliver_extra\.pr_number: Missing/);
  assert.match(err, /routes\.b\.deliver_extra\.pr_number: Missing/);
});

test('2.3 deliver `host_a_comment`: "The CLI must be installed, on PATH": else nothing is sent and the record says why', async (t) => {
  const other = await openGateway(t, () => ({ routes: { pulls: comment }, env: { PATH: "/nonexistent" } }));
  const { id } = await other.post("pulls", { body: { repo: "acme/boat", pr: { number: 4 } } });
  // The program may be installed later, so that it is tried again.
  const line = await other.logged({ msg: "Message not sent", target: "github_comment" });
  assert.match(String(line.error), /the program "gh" is not on PATH; install it/);
  assert.ok(await other.isKnown(id));
});

const refusals = [
  ["and authenticated on the gateway host", 401, "Bad credentials", /401 .*run gh auth login or set GH_TOKEN/],
  ["The authenticated user needs write access", 403, "Must have write access", /403 .*may write to the repository/],
] as const;
for (const [sentence, status, message, why] of refusals) {
  test(`2.3 deliver \`host_a_comment\`: "${sentence}"`, { skip: missing("gh") }, async () => {
    github.answer = { status, body: { message } };
    github.upcoming.push("refused");
    const { id } = await gateway.post("pulls", { body: { repo: "acme/boat", pr: { number: 5 } } });
    const { state, jobs } = await gateway.fate(id);
    assert.equal(state, "dead");
    assert.match(jobs[0]?.messages[0]?.reason ?? "", why);
  });
}

test('2.3 deliver `email`: "E-mail"', async () => {
  await gateway.post("mail", { body: { x: "berth 4" } });
  const mail = await until("the mail", () => smtp.messages.find(({ text }) => text.includes("berth 4")));
  assert.deepEqual([mail.from, mail.to, mail.text], ["bot@example.com", ["ops@example.com"], "Mail about berth 4"]);
});

test('2.3 deliver `chat_target_01`: "a bot-chat platform that supports forum topics", by either of its names', async () => {
  for (const [route, topic] of [
    ["topic", 5],
    ["thread", 9],
  ] as const) {
    await gateway.post(route, { body: { topic: 5, x: `by ${route}` } });
    const message = await until("it", () => gateway.telegram.messages.find(({ text }) => text === `by ${route}`));
    assert.equal(message.threadId, topic, '"`deliver_extra.message_thread_id` (or `thread_id`) selects a forum topic"');
  }
});

test(`2.3 "\`deliver_extra.chat_id\` is optional. If it is omitted, the platform's configured home channel is used"`, async () => {
  await gateway.post("direct", { body: { x: "home" } });
  assert.equal(gateway.telegram.messages.at(-1)?.chatId, "42");
});

test('2.3 "The target platform must be enabled and connected in the gateway"', async (t) => {
  const routes = { a: { deliver: "telegram", deliver_extra: { chat_id: "1" } } };
  const states: [platforms: object, why: RegExp][] = [
    [{}, /The target "telegram" cannot be used: token: Missing/],
    [{ telegram: { token: "1:abc" } }, /it is not enabled; set "platforms\.telegram\.enabled: true"/],
    [{ telegram: { enabled: false, token: "1:abc" } }, /it is not enabled/],
    [{ telegram: { enabled: true } }, /token: Missing/],
  ];
  for (const [platforms, why] of states) {
    const { code, err } = await refusal(t, { config: configuration({ routes, platforms }) });
    assert.equal(code, 78);
    assert.match(err, why);
  }
});

test("2.3 a target that the table does not have refuses to start", async (t) => {
  const { code, err } = await refusal(t, { config: configuration({ routes: { a: { deliver: "telegraf" } } }) });
  assert.equal(code, 78);
  assert.match(err, /routes\.a\.deliver: Unknown target "telegraf"; did you mean "telegram"/);
});
