import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createSlack, slack } from "../../src/target/slack.ts";
import type { Receipt, SettingValues } from "../../src/target/target.ts";
import { delivered, inSevenSeconds, jsonService, never, unknownTaken } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeSlack, startFakeSlack } from "../fakes/slack.ts";

const channel = "C0123456789";
/** Slack's own markup: mentions, and links that go elsewhere than to the web or by mail. */
const live = [/<[!@#]/, /<(?!https?:|mailto:)/];

testTarget("slack", {
  create: createSlack,
  extra: { chat_id: channel },
  start: async () => {
    const fake = await startFakeSlack();
    return { fake, settings: { token: fake.token, base_url: `${fake.baseUrl}/api` }, secret: fake.token };
  },
  expected: jsonService,
  elsewhere: { chat_id: "C0000000002" },
  live,
});

testTarget("slack by an incoming webhook", {
  create: createSlack,
  extra: {},
  start: async () => {
    const fake = await startFakeSlack();
    return { fake, settings: { webhook_url: fake.webhookUrl }, secret: "fakeSecretOfTheHook" };
  },
  // The status comes before what was cut off or is too long, but "ok" is what counts.
  expected: { ...jsonService, ok: delivered, refused: never, limited: inSevenSeconds, reset: unknownTaken },
  isBlind: true,
  live,
});

/** One try with a fake that is gone afterwards. */
async function withSlack(use: (fake: FakeSlack, tools: Tools) => Promise<void>) {
  const fake = await startFakeSlack();
  const settings = { token: fake.token, base_url: `${fake.baseUrl}/api` };
  const part = (text: string, extra = {}) => partOf(slack, { settings }, { chat_id: channel, ...extra }, text);
  const send = (text: string, extra = {}) => slack.send(part(text, extra), settings, toolsFor({}));
  const find = async (text: string, extra = {}) => createSlack().find?.(part(text, extra), settings, toolsFor({}));
  try {
    await use(fake, { settings, send, find });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

interface Tools {
  readonly settings: SettingValues;
  readonly send: (text: string, extra?: object) => Promise<Receipt>;
  readonly find: (text: string, extra?: object) => Promise<Receipt | undefined>;
}

describe("slack", () => {
  test("answers in a thread, by either key, and shows no previews", () =>
    withSlack(async (fake, { send }) => {
      await send("Hello", { thread_id: "1712345678.000100" });
      const { threadTs, body } = fake.messages[0]!;
      assert.equal(threadTs, "1712345678.000100");
      assert.deepEqual(
        [body.unfurl_links, body.unfurl_media, body.link_names, body.parse],
        [false, false, false, "none"],
      );
    }));

  const written: [markdown: string, mrkdwn: string][] = [
    ["**bold** *italic* ~~gone~~ `a < b`", "*bold* _italic_ ~gone~ `a &lt; b`"],
    ["# Title\n\n- one\n- [x] two", "*Title*\n\n• one\n• ☑ two"],
    ["[the build](https://ci.example/7?a=1&b=2)", "<https://ci.example/7?a=1&amp;b=2|the build>"],
    ["```ts\nif (a && b) {}\n```", "```\nif (a &amp;&amp; b) {}\n```"],
    ["<!channel> <@U123> a | b", "&lt;!channel&gt; &lt;@U123&gt; a | b"],
    ["[a|b>c](https://x.example/|y>z)", "<https://x.example/%7Cy%3Ez|a¦b&gt;c>"],
  ];
  for (const [markdown, mrkdwn] of written) {
    test(`writes Markdown as mrkdwn: ${JSON.stringify(markdown)}`, () =>
      withSlack(async (fake, { send }) => {
        await send(markdown);
        assert.equal(fake.messages[0]!.raw, mrkdwn);
      }));
  }

  test("shows text that is no Markdown as it is", () =>
    withSlack(async (fake, { send }) => {
      await send("**not bold** <b>", { format: "plain" });
      const { body, text } = fake.messages[0]!;
      assert.deepEqual([body.mrkdwn, text], [false, "**not bold** <b>"]);
    }));

  test("looks in the thread for what it sent there, and in the conversation with a person", () =>
    withSlack(async (_fake, { send, find }) => {
      for (const extra of [{ thread_ts: "1712345678.000100" }, { chat_id: "U0000000001" }]) {
        const { reference } = await send("Hello", extra);
        assert.deepEqual(await find("Hello", extra), { reference });
        assert.equal(await find("Other", extra), undefined);
      }
      assert.equal(await find("Hello"), undefined);
    }));

  test("looks through all pages, and gives up when there are too many", () =>
    withSlack(async (fake, { send, find }) => {
      const { reference } = await send("Hello");
      for (let count = 1; count < 6; count += 1) await send(`Later ${count}`);
      fake.pageSize = 1;
      assert.deepEqual(await find("Hello"), { reference });
      for (let count = 6; count < 12; count += 1) await send(`Later ${count}`);
      assert.equal((await failureOf(find("Hello"))).retryAfterMs, "never");
    }));

  test("cannot tell without the scope to read, and says which one is missing", () =>
    withSlack(async (fake, { send, find }) => {
      await send("Hello");
      fake.mayRead = false;
      const error = await failureOf(find("Hello"));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /give the app the scope "channels:history"/);
    }));

  test("says which channel is the home channel", () =>
    withSlack(async (_fake, { settings }) => {
      const said = await slack.check({ ...settings, home_channel: channel }, toolsFor({}));
      assert.deepEqual(said, ['The bot is "postern" in "Fakes"', 'The home channel is "ops"']);
      const wrong = await failureOf(slack.check({ ...settings, home_channel: "C9" }, toolsFor({})));
      assert.match(wrong.message, /channel_not_found/);
    }));

  const fates: [string, "no" | "maybe", number | "never" | undefined][] = [
    ["not_in_channel", "no", "never"],
    ["constructor", "no", "never"],
    ["ratelimited", "no", undefined],
    ["service_unavailable", "no", undefined],
    ["internal_error", "maybe", undefined],
  ];
  for (const [error, sent, retryAfterMs] of fates) {
    test(`decides by the body of an answer with status 200: ${error}`, () =>
      withSlack(async (fake, { send }) => {
        fake.mode = "refused";
        fake.answer = { status: 200, body: { ok: false, error } };
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }
});
