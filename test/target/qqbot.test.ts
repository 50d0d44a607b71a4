import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createQqbot } from "../../src/target/qqbot.ts";
import type { Part, SettingValues } from "../../src/target/target.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeQq, qqError, startFakeQq } from "../fakes/qqbot.ts";

const chat = "group:0A1B2C3D4E5F";
/** What QQ reads as mentions, channels, stickers and commands, and a picture that tells who looked. */
const live = [/<[@#]/, /<\/?(?:qqbot|emoji|faceType)\b/i, /[@＠](?:everyone|all|全体成员)/i, /!\[[^\]\n]*\]\(http/];

for (const markdown of [false, true]) {
  testTarget(`qqbot ${markdown ? "with" : "without"} Markdown`, {
    create: createQqbot,
    extra: { chat_id: chat },
    start: async () => {
      const fake = await startFakeQq();
      return { fake, settings: { ...settingsOf(fake), markdown }, secret: fake.secret };
    },
    expected: jsonService,
    live,
  });
}

function settingsOf(fake: FakeQq): SettingValues {
  return { app_id: fake.appId, client_secret: fake.secret, base_url: fake.baseUrl, token_url: fake.baseUrl };
}

interface Scene {
  readonly fake: FakeQq;
  readonly part: (text: string, extra?: object) => Part;
  readonly send: (part: Part | string, settings?: SettingValues) => Promise<{ readonly reference?: string }>;
  readonly check: (settings: SettingValues) => Promise<readonly string[]>;
  /** Milliseconds that pass. */
  readonly pass: (ms: number) => void;
}

async function withQq(use: (scene: Scene) => Promise<void>) {
  const fake = await startFakeQq();
  let now = 1_700_000_000_000;
  const target = createQqbot({ now: () => now });
  const common = settingsOf(fake);
  const part = (text: string, extra = {}) => partOf(target, { settings: common }, { chat_id: chat, ...extra }, text);
  const pass = (ms: number) => {
    now += ms;
  };
  try {
    await use({
      ...{ fake, part, pass },
      send: (one, more = {}) =>
        target.send(typeof one === "string" ? part(one) : one, { ...common, ...more }, toolsFor({})),
      check: (more) => target.check({ ...common, ...more }, toolsFor({})),
    });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("qqbot", () => {
  test("has a path for each kind of place, and the kind of message only where QQ has one", () =>
    withQq(async ({ fake, part, send }) => {
      for (const chat_id of ["user:A1", "group:B2", "channel:33", "dm:44"]) await send(part("Hello", { chat_id }));
      assert.deepEqual(
        fake.messages.map(({ path, body }) => [path, body.msg_type]),
        [
          ["/v2/users/A1/messages", 0],
          ["/v2/groups/B2/messages", 0],
          ["/channels/33/messages", undefined],
          ["/dms/44/messages", undefined],
        ],
      );
    }));

  for (const chat_id of ["A1", "users:A1", "group:", "group:../x", "group:a/b", "group:{openid}", "constructor:a"]) {
    test(`refuses ${chat_id} as an address`, () =>
      withQq(async ({ fake, part, send }) => {
        await assert.rejects(async () => send(part("Hello", { chat_id })), /chat_id/);
        assert.equal(fake.heard.length, 0);
      }));
  }

  test("asks once for a token that lasts two hours, and again a minute before its end", () =>
    withQq(async ({ fake, send, pass }) => {
      await send("one");
      pass(7_139_000);
      await send("two");
      assert.equal(fake.tokens.length, 1);
      pass(1001);
      await send("three");
      assert.equal(fake.tokens.length, 2);
    }));

  test("asks once more for a token when QQ ended it early, and only once", () =>
    withQq(async ({ fake, send }) => {
      await send("one");
      fake.endToken();
      await send("two");
      assert.deepEqual([fake.messages.length, fake.tokens.length], [2, 2]);
      fake.mode = "refused";
      fake.answer = qqError(401, 11_244, "token not exist or expire: fakeAccessToken2 fakeAccessToken3");
      const failure = await failureOf(send("three"));
      assert.deepEqual([failure.retryAfterMs, fake.tokens.length], ["never", 3]);
      assert.doesNotMatch(failure.message, /fakeAccessToken/);
    }));

  test("is sure that nothing was sent when it gets no token", () =>
    withQq(async ({ fake, send, check }) => {
      const failure = await failureOf(send("Hello", { client_secret: "anotherFakeSecret" }));
      assert.deepEqual([failure.sent, failure.retryAfterMs, fake.tries], ["no", "never", 0]);
      assert.match(failure.message, /invalid appid or secret.*check "app_id" and "client_secret"/);
      assert.match((await failureOf(check({ app_id: "1" }))).message, /appid invalid/);
    }));

  test("answers to a message with a number that is the same for each try and another for each part", () =>
    withQq(async ({ fake, part, send }) => {
      fake.answerable.add("ROBOT1.0_abc!");
      const first = part("one", { reply_to: "ROBOT1.0_abc!" });
      fake.upcoming.push("lost");
      await failureOf(send(first));
      assert.equal((await send(first)).reference, "sent by an earlier try");
      await send(part("two", { msg_id: "ROBOT1.0_abc!" }));
      const numbers = fake.messages.map(({ body }) => Number(body.msg_seq));
      assert.equal(new Set(numbers).size, 2);
      for (const number of numbers) assert.ok(Number.isInteger(number) && number >= 1 && number <= 65_535);
    }));

  test("sends unasked what is too late for an answer, and says so when it may not", () =>
    withQq(async ({ fake, part, send }) => {
      const late = part("Hello", { reply_to: "old" });
      await send(late);
      assert.deepEqual(
        fake.messages.map(({ body }) => body.msg_id),
        [undefined],
      );
      fake.isPassiveOnly = true;
      const failure = await failureOf(send(late));
      assert.equal(failure.retryAfterMs, "never");
      assert.match(failure.message, /QQ lets most bots only answer: set "msg_id"/);
    }));

  test("sends plain text, or Markdown where the settings say so", () =>
    withQq(async ({ fake, part, send }) => {
      await send("# Head\n\n**bold** [a page](https://example.org/)");
      await send("# Head\n\n**bold** `a*b` [a page](https://example.org/)", { markdown: true });
      await send(part("**bold**", { format: "plain" }), { markdown: true });
      const [plain, markdown, asIs] = fake.messages.map(({ body }) => body);
      assert.deepEqual(plain, { msg_type: 0, content: "Head\n\nbold a page (https://example.org/)" });
      const content = "# Head\n\n**bold** `a*b` [a page](https://example.org/)";
      assert.deepEqual(markdown, { msg_type: 2, markdown: { content } });
      assert.deepEqual(asIs, { msg_type: 0, content: "**bold**" });
    }));

  test("sends plain text once when QQ refuses Markdown, also when the answer comes too late", () =>
    withQq(async ({ fake, part, send }) => {
      fake.isPlainOnly = true;
      await send(part("**one**", { reply_to: "old" }), { markdown: true });
      assert.deepEqual(
        fake.messages.map(({ body }) => body),
        [{ msg_type: 0, content: "one" }],
      );
      assert.equal(fake.tries, 3);
    }));

  const fates: [ReturnType<typeof qqError>, "no" | "maybe", number | "never" | undefined, RegExp][] = [
    [qqError(202, 304_023, "push message is waiting for audit now"), "maybe", "never", /reviews it first/],
    [qqError(202, 304_024, "reply message is waiting for audit now"), "maybe", "never", /reviews it first/],
    [qqError(201, 40_054_002, "muted"), "no", "never", /muted/],
    [qqError(200, 40_034_100, "rate"), "no", 60_000, /rate/],
    [qqError(400, 22_009, "msg limit exceed"), "no", 60_000, /limit/],
    [qqError(500, 11_281, "system error"), "no", undefined, /system error/],
    [qqError(400, 40_034_105, "off"), "no", "never", /switched messages of the bot off/],
    [qqError(400, 40_054_010, "url"), "no", "never", /register the addresses/],
    [qqError(400, 40_099_999, "new"), "no", "never", /new/],
    [qqError(500, 50_099_999, "new"), "maybe", undefined, /new/],
    [{ status: 201, body: { id: "1" } }, "maybe", undefined, /not one of QQ/],
    [{ status: 202, body: {} }, "maybe", undefined, /not one of QQ/],
    [{ status: 200, body: { timestamp: "1" } }, "maybe", undefined, /not one of QQ/],
  ];
  for (const [answer, sent, retryAfterMs, words] of fates) {
    test(`decides by the body: ${answer.status} ${JSON.stringify(answer.body)}`, () =>
      withQq(async ({ fake, send }) => {
        fake.mode = "refused";
        fake.answer = answer;
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
        assert.match(failure.message, words);
      }));
  }
});
