import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { post } from "../../src/cli/target/post.ts";
import { DeliveryError } from "../../src/core/errors.ts";
import { makePrivateFolder } from "../../src/lib/file.ts";
import { silentLog } from "../../src/lib/log.ts";
import type { TargetTrouble } from "../../src/store/store.ts";
import { log as logTarget } from "../../src/target/log.ts";
import type { Target } from "../../src/target/target.ts";
import { makeMemory } from "../conformance/target/memory.ts";
import { type FakeSlack, startFakeSlack } from "../fakes/slack.ts";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { aClaim, anAgentEvent, anEndedRun, anEndedTry } from "../tools/rows.ts";
import { run, runJson } from "./command.ts";
import { withFile } from "./ledger/files.ts";

interface World {
  readonly home: TestHome;
  readonly slack: FakeSlack;
  readonly telegram: FakeTelegram;
}

const routes = {
  alerts: { prompt: "x", deliver: "telegram" },
  builds: { prompt: "x", deliver: [{ to: "log", fallback: "telegram" }] },
};

/** A home with a bot of Telegram that routes use, and a Slack that none does. */
async function setUp(t: TestContext, sections: object = {}): Promise<World> {
  const [slack, telegram] = await Promise.all([startFakeSlack(), startFakeTelegram()]);
  t.after(() => Promise.all([slack.close(), telegram.close()]));
  const platforms = {
    webhook: { enabled: true, host: "127.0.0.1", port: 0, secret: "the-global-secret", routes },
    telegram: { enabled: true, token: telegram.token, base_url: telegram.baseUrl, home_channel: "-100" },
    slack: { enabled: true, webhook_url: slack.webhookUrl, base_url: `${slack.baseUrl}/api` },
    ...sections,
  };
  const config = JSON.stringify({ platforms, agent: { backend: "preview" } });
  return { home: await makeHome(t, { "config.yaml": config }), slack, telegram };
}

interface Row {
  readonly name: string;
  readonly state: string;
  readonly way?: readonly string[];
  readonly home?: string;
  readonly routes: readonly string[];
  readonly reason?: string;
  readonly pausedUntil?: number;
}

async function rowsOf(home: TestHome, env: Record<string, string> = {}) {
  const { code, value } = await runJson<Row[]>(home, ["target", "list"], {
    env: { POSTERN_HOME: home.folder, ...env },
  });
  assert.equal(code, 0);
  return { rows: value, row: (name: string) => value.find((one) => one.name === name)! };
}

/** Leaves word in the ledger that Telegram asked for patience. */
async function pauseTelegram(home: TestHome, until: TargetTrouble["pausedUntil"]): Promise<void> {
  await makePrivateFolder(home.data);
  const now = Date.now();
  await withFile(home.ledger, async (store) => {
    await store.accept(anAgentEvent({ at: now }));
    const [job] = await store.claimJobs(aClaim({ now }));
    await store.finishRun(anEndedRun(job!, { now }));
    const [message] = await store.claimMessages(aClaim({ now }));
    const health = { mark: "busy", until, reason: "Too Many Requests" } as const;
    const retry = { move: "retry", dueAt: until, leaveLane: false } as const;
    await store.finishAttempt(anEndedTry(message!, { now, outcome: "refused", error: "429", next: retry, health }));
  });
}

describe("target list", () => {
  test("says of each target whether it can be used, by which way, where its home is, and which routes use it", async (t) => {
    const { home } = await setUp(t);
    const { row } = await rowsOf(home);
    assert.deepEqual(row("telegram"), { name: "telegram", state: "ready", home: "-100", routes: ["alerts", "builds"] });
    assert.deepEqual(row("slack"), { name: "slack", state: "ready", way: ["webhook_url"], routes: [] });
    assert.deepEqual(row("log"), { name: "log", state: "ready", routes: ["builds"] });
  });

  test("says what is missing of a target that somebody began to set up, apart from those that nobody did", async (t) => {
    const { home } = await setUp(t, { slack: { enabled: true } });
    const { row, rows } = await rowsOf(home, { EMAIL_ADDRESS: "me@example.com" });
    assert.equal(row("slack").state, "unusable");
    assert.match(
      row("slack").reason ?? "",
      /^token: Missing; set "token" \(or SLACK_BOT_TOKEN in the environment\), or /,
    );
    assert.equal(row("email").state, "unusable");
    assert.match(row("email").reason ?? "", /smtp_host: Missing/);
    const order = ["paused", "ready", "unusable", "not set up"].filter((state) =>
      rows.some((one) => one.state === state),
    );
    assert.deepEqual([...new Set(rows.map(({ state }) => state))], order);
  });

  test("counts a section that is switched off as not set up", async (t) => {
    const { home } = await setUp(t, { slack: { enabled: false, token: "xoxb-1" } });
    const { row } = await rowsOf(home, { EMAIL_ADDRESS: " " });
    assert.deepEqual([row("slack").state, row("email").state], ["not set up", "not set up"]);
    assert.match(row("slack").reason ?? "", /not enabled/);
  });

  test("shows a target that is left alone for a while first, until when and why", async (t) => {
    const { home } = await setUp(t);
    const until = Date.now() + 3_600_000;
    await pauseTelegram(home, until);
    const { rows } = await rowsOf(home);
    const { name, state, reason, pausedUntil } = rows[0]!;
    assert.deepEqual(
      { name, state, reason, pausedUntil },
      {
        ...{ name: "telegram", state: "paused", reason: "Too Many Requests", pausedUntil: until },
      },
    );
    const { out } = await run(home, ["target", "list"]);
    assert.match(
      out,
      /^NAME +STATE +WAY +HOME +ROUTES +REASON\ntelegram +paused +-100 +alerts, builds +until \d{4}-.*Z: Too/,
    );
  });

  test("counts a pause that is over as none", async (t) => {
    const { home } = await setUp(t);
    await pauseTelegram(home, Date.now() - 1_000);
    const { state, pausedUntil } = (await rowsOf(home)).row("telegram");
    assert.deepEqual([state, pausedUntil], ["ready", undefined]);
  });

  test("never shows a secret", async (t) => {
    const { home, slack, telegram } = await setUp(t);
    const { out } = await run(home, ["target", "list"]);
    for (const secret of [slack.webhookUrl, telegram.token]) assert.ok(!out.includes(secret));
  });
});

interface Result {
  readonly target: string;
  readonly state: string;
  readonly said: readonly string[];
  readonly reason?: string;
}

async function check(home: TestHome, names: readonly string[] = []) {
  const changes = { code: 0 };
  const setExitCode = (code: number) => {
    changes.code = code;
  };
  const { code, value } = await runJson<Result[]>(home, ["target", "check", ...names], { setExitCode });
  return { code: Math.max(code, changes.code), results: value };
}

describe("target check", () => {
  test("asks what is set up or used, and sends nothing", async (t) => {
    const { home, slack, telegram } = await setUp(t);
    const { code, results } = await check(home);
    assert.equal(code, 0);
    assert.deepEqual(
      results.map(({ target, state }) => [target, state]),
      [
        ["log", "ok"],
        ["slack", "ok"],
        ["telegram", "ok"],
      ],
    );
    assert.deepEqual(results[2]?.said, ['The bot is "@postern_bot"', 'The home channel is "Ops"']);
    assert.deepEqual([slack.messages.length, telegram.messages.length], [0, 0]);
  });

  test("fails when one does not work, with the service's words and without the token, and asks the others all the same", async (t) => {
    const { home, telegram } = await setUp(t, {
      slack: { enabled: true, token: "xoxb-wrong", base_url: `http://127.0.0.1:${await freePort()}` },
    });
    const { code, out } = await run(home, ["target", "check"]);
    assert.equal(code, 1);
    assert.match(out, /^FAILED {2}slack: Cannot use Slack: .*ECONNREFUSED/m);
    assert.match(out, /^ok {6}telegram: The bot is "@postern_bot"\n {10}The home channel is "Ops"$/m);
    assert.ok(!out.includes("xoxb-wrong") && !out.includes(telegram.token));
  });

  test("asks only the named ones, by either name", async (t) => {
    const { home } = await setUp(t);
    const { results } = await check(home, ["chat_target_01", "telegram"]);
    assert.deepEqual(
      results.map(({ target }) => target),
      ["telegram"],
    );
  });

  test("skips what somebody began to set up and no route uses, but not when it is named", async (t) => {
    const { home } = await setUp(t, { slack: { enabled: true } });
    const all = await check(home);
    assert.equal(all.code, 0);
    assert.equal(all.results.find(({ target }) => target === "slack")?.state, "skipped");
    const named = await check(home, ["slack"]);
    assert.equal(named.code, 1);
    assert.match(named.results[0]?.reason ?? "", /^It cannot be used: token: Missing/);
  });

  test("refuses a name that is no target, and says which one is near", async (t) => {
    const { home } = await setUp(t);
    const { code, err } = await run(home, ["target", "check", "telegarm"]);
    assert.deepEqual([code, err], [1, 'postern: There is no target "telegarm"; did you mean "telegram"\n']);
  });

  test("says that there is nothing to ask", async (t) => {
    const { code, out } = await run(await makeHome(t), ["target", "check"]);
    assert.deepEqual([code, out], [0, 'No target is set up; see "postern target list"\n']);
  });
});

interface Report {
  readonly target: string;
  readonly delivered: boolean;
  readonly parts: number;
  readonly references: readonly string[];
  readonly error?: { readonly message: string; readonly sent: string; readonly retryAfterMs?: number | "never" };
}

describe("target send", () => {
  test("really sends to the home channel, and prints what the service calls the message", async (t) => {
    const { home, telegram } = await setUp(t);
    const { code, out } = await run(home, ["target", "send", "telegram"]);
    assert.deepEqual([code, out], [0, "Delivered to telegram\n  1\n"]);
    assert.deepEqual(
      [telegram.messages[0]?.chatId, telegram.messages[0]?.text],
      ["-100", "This is a test message of Postern"],
    );
  });

  test("sends a text of its own to a place of its own, under the name that the target has for it", async (t) => {
    const { home, telegram } = await setUp(t);
    const args = ["target", "send", "chat_target_01", "Hello", "--chat-id", "42", "--extra", "thread_id=7"];
    const { code, value } = await runJson<Report>(home, args);
    assert.equal(code, 0);
    assert.deepEqual(value, { target: "telegram", delivered: true, parts: 1, references: ["1"] });
    const { chatId, threadId, text } = telegram.messages[0]!;
    assert.deepEqual([chatId, threadId, text], ["42", 7, "Hello"]);
  });

  test("reads a long text from standard input, and cuts it as the gateway does", async (t) => {
    const { home, telegram } = await setUp(t);
    const text = "word ".repeat(1_000);
    const { code, out } = await run(home, ["target", "send", "telegram", "-"], { readInput: async () => text });
    assert.deepEqual([code, out], [0, "Delivered to telegram\n  1/2  1\n  2/2  2\n"]);
    assert.equal(
      telegram.messages
        .map((message) => message.text)
        .join(" ")
        .replaceAll(/\s+/g, " ")
        .trim(),
      text.trim(),
    );
  });

  test("fails with the service's own words, on standard error and for machines", async (t) => {
    const { home, telegram } = await setUp(t);
    telegram.mode = "limited";
    const { code, out, err } = await run(home, ["target", "send", "telegram", "x"]);
    assert.deepEqual([code, out], [1, ""]);
    assert.match(
      err,
      /^postern: "telegram" did not take the message: Cannot send to Telegram: it answered 429 "Too Many/,
    );
    const { code: again, value } = await runJson<Report>(home, ["target", "send", "telegram", "x"]);
    assert.deepEqual([again, value.delivered, value.error?.sent, value.error?.retryAfterMs], [1, false, "no", 7000]);
    assert.equal(telegram.messages.length, 0);
  });

  test("says when nobody knows whether it arrived, and which parts did", async (t) => {
    const { home, telegram } = await setUp(t);
    telegram.upcoming.push("ok", "lost");
    const { code, out, err } = await run(home, ["target", "send", "telegram", "word ".repeat(1_000)]);
    assert.deepEqual([code, out], [1, "Only in part delivered to telegram\n  1/2  1\n"]);
    assert.match(err, /^postern: It is not known whether "telegram" took part 2 of 2: /);
    assert.equal(telegram.tries, 2, "nothing is tried again");
  });

  const refused: [what: string, args: readonly string[], err: RegExp][] = [
    ["a target that is not set up", ["email", "x"], /The target "email" cannot be used: .*smtp_host: Missing/],
    ["no target at all", ["pigeon", "x"], /There is no target "pigeon"/],
    ["an address that is none", ["telegram", "x", "--chat-id", "../x"], /"chat_id": Expected a chat's number/],
    [
      "an unknown key",
      ["telegram", "x", "--extra", "chatid=1"],
      /"chatid": Not a key of "telegram"; did you mean "chat_id"/,
    ],
    ["a missing address", ["github_comment", "x"], /"repo": Missing; .*here by --chat-id ID or --extra key=value/],
    ["a token that nothing fills", ["telegram", "x", "--chat-id", "{chat.id}"], /"\{chat\.id\}", which the payload/],
  ];
  for (const [what, args, expected] of refused) {
    test(`refuses ${what} before anything is sent`, async (t) => {
      const { home, telegram } = await setUp(t);
      const { code, out, err } = await run(home, ["target", "send", ...args]);
      assert.deepEqual([code, out], [1, ""]);
      assert.match(err, expected);
      assert.equal(telegram.tries, 0);
    });
  }

  test("never sends a secret that it knows", async (t) => {
    const { home, telegram } = await setUp(t);
    await run(home, ["target", "send", "telegram", "the key is the-global-secret"]);
    assert.equal(telegram.messages[0]?.text, "the key is [redacted]");
  });

  test("to the log writes there, on standard error", async (t) => {
    const { home } = await setUp(t);
    const { code, err } = await run(home, ["target", "send", "log", "Hello there"]);
    assert.equal(code, 0);
    assert.match(err, /info +Delivered to the log .*text=Hello there/);
  });
});

describe("post", () => {
  const refusing: Target = {
    ...logTarget,
    send: async () => {
      throw new DeliveryError("It does not know hunter2", { sent: "maybe", retryAfterMs: 5 });
    },
  };
  const one = { target: refusing, values: {}, extra: {}, text: "Hello", route: "test" };
  const config = { env: {}, secrets: ["hunter2"] };

  test("keeps secrets out of what a service says, and leaves the rest of it as it is", async () => {
    const tools = { config, memory: makeMemory(), log: silentLog, signal: new AbortController().signal };
    const { failure } = await post(one, tools);
    assert.deepEqual(
      [failure?.message, failure?.sent, failure?.retryAfterMs],
      ["It does not know [redacted]", "maybe", 5],
    );
  });

  test("sends nothing any more when it is stopped", async () => {
    const tools = { config, memory: makeMemory(), log: silentLog, signal: AbortSignal.abort() };
    const { failure, references } = await post(one, tools);
    assert.deepEqual([failure?.message, failure?.sent, references], ["Stopped before it was sent", "no", []]);
  });
});
