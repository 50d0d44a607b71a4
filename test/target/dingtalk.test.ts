import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import type { LogFields } from "../../src/lib/log.ts";
import { silentLog } from "../../src/lib/log.ts";
import { checkAddress, readAddress } from "../../src/target/address.ts";
import { createDingtalk } from "../../src/target/dingtalk.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { Receipt, Target } from "../../src/target/target.ts";
import { delivered, jsonService, later, type TargetCase } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeDingtalk, startFakeDingtalk } from "../fakes/dingtalk.ts";

const group = "cid6KeBBLoveMJOGXoYKF5x7EeiodoA==";
/** Images, which are loaded; links that lead into the program itself, where they can send messages; tags. */
const live = [/(?<!\\)!(?<!\\)\[[^\]]*\]\(/, /(?<!\\)\]\((?!https?:|mailto:)/, /<\/?[a-z!]/i];

const byApp: TargetCase = {
  create: createDingtalk,
  extra: { chat_id: group },
  start: async () => {
    const fake = await startFakeDingtalk();
    return { fake, settings: settingsOf(fake), secret: fake.app.secret };
  },
  // It names no time.
  expected: { ...jsonService, limited: later },
  live,
};
testTarget("dingtalk as an app", byApp);
testTarget("dingtalk as an app, to people", { ...byApp, extra: { chat_id: "manager1234,0123456" } });

testTarget("dingtalk by a custom robot", {
  create: createDingtalk,
  extra: {},
  start: async () => {
    const fake = await startFakeDingtalk();
    const settings = { webhook_url: fake.webhookUrl, webhook_secret: fake.webhookSecret };
    return { fake, settings, secret: "fakeTokenOfTheCustomRobot" };
  },
  expected: { ...jsonService, ok: delivered, limited: { copies: 0, sent: "no", retryAfterMs: 60_000 } },
  isRecognised: true,
  live,
});

function settingsOf({ app, baseUrl }: FakeDingtalk) {
  return { client_id: app.id, client_secret: app.secret, base_url: baseUrl };
}

interface Scene {
  readonly fake: FakeDingtalk;
  readonly target: Target;
  readonly warnings: LogFields[];
  readonly sendAsApp: (text: string, extra?: Record<string, string>, settings?: object) => Promise<Receipt>;
  readonly sendByRobot: (text: string, settings?: object) => Promise<Receipt>;
}

/** A target and a fake that is gone afterwards. */
async function withDingtalk(use: (scene: Scene) => Promise<void>, now: () => number = Date.now): Promise<void> {
  const fake = await startFakeDingtalk(now);
  const target = createDingtalk({ now });
  const warnings: LogFields[] = [];
  const tools = { ...toolsFor({}), log: { ...silentLog, warn: (fields: LogFields) => warnings.push(fields) } };
  const send = (text: string, extra: Record<string, string>, settings: Record<string, string>) =>
    target.send(partOf(target, { settings }, extra, text), settings, tools);
  const sendAsApp: Scene["sendAsApp"] = (text, extra = {}, settings = {}) =>
    send(text, { chat_id: group, ...extra }, { ...settingsOf(fake), ...settings });
  const sendByRobot: Scene["sendByRobot"] = (text, settings = {}) =>
    send(text, {}, { webhook_url: fake.webhookUrl, webhook_secret: fake.webhookSecret, ...settings });
  try {
    await use({ fake, target, warnings, sendAsApp, sendByRobot });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("dingtalk", () => {
  test("sends to a group, to a person and to several", () =>
    withDingtalk(async ({ fake, sendAsApp }) => {
      assert.deepEqual(await sendAsApp("one"), { reference: "udxt3PGhTcBpJYEU1Qk5" });
      await sendAsApp("two", { chat_id: "manager1234" });
      await sendAsApp("three", { chat_id: "manager1234,0123456" });
      const seen = fake.messages.map(({ group, people }) => group ?? people.join(" "));
      assert.deepEqual(seen, [group, "manager1234", "manager1234 0123456"]);
    }));

  test("refuses addresses that are none", () => {
    const many = Array.from({ length: 21 }, (_, index) => `u${index}`).join(",");
    for (const chat_id of ["a b", "a,,b", ",a", "a/b", "a\n", `${group}=`, `${group},a`, many]) {
      assert.equal(checkAddress(createDingtalk(), { chat_id }, {}).length, 1, chat_id);
    }
    assert.throws(() => readAddress(createDingtalk(), { chat_id: "{user.id}" }, {}), DeliveryError);
  });

  test("sends Markdown where there is some, with a line for lists of chats, and plain text where there is none", () =>
    withDingtalk(async ({ fake, sendAsApp, sendByRobot }) => {
      const text =
        "## Build 7\n**passed**, see [log](https://ci.example/a(b))\nsnake_case * 2 <font color=red>\n\n- [x] done ![a](https://x.example/i.png)";
      await sendAsApp(text);
      await sendByRobot(text);
      const [message, other] = fake.messages;
      assert.deepEqual([message?.kind, message?.title], ["markdown", "Build 7"]);
      assert.equal(
        message?.raw,
        [
          ...["Build 7", "## Build 7  ", "**passed**, see [log](https://ci.example/a%28b%29)  "],
          ...["snake\\_case \\* 2 <\u200bfont color=red>", "", "- ☑ done [a](https://x.example/i.png)"],
        ].join("\n"),
      );
      assert.equal(other?.raw, message?.raw);
      await sendAsApp("snake_case * 2\n- <b>");
      assert.deepEqual([fake.messages[2]?.kind, fake.messages[2]?.text], ["text", "snake_case * 2\n- <b>"]);
    }));

  test("sends what is no Markdown just as it is", () =>
    withDingtalk(async ({ fake, sendAsApp }) => {
      await sendAsApp("**a** <b> [c](https://d.example)", { format: "plain" });
      const [message] = fake.messages;
      assert.deepEqual([message?.kind, message?.text], ["text", "**a** <b> [c](https://d.example)"]);
    }));

  test("writes a table as lines and no headings that nobody wrote", () =>
    withDingtalk(async ({ fake, sendAsApp }) => {
      await sendAsApp("**a**\n\n| x | y |\n|---|---|\n| 1_2 | 2 |\n\n\\# no heading\n\\- no item\n\n---");
      const lines = ["a", "**a**", "", "x | y  ", "1\\_2 | 2", "", "\\# no heading  ", "\\- no item", "", "———"];
      assert.equal(fake.messages[0]?.raw, lines.join("\n"));
    }));

  test("asks for a token once, and again when it has ended", () =>
    withDingtalk(async ({ fake, sendAsApp }) => {
      await sendAsApp("one");
      await sendAsApp("two");
      assert.equal(fake.tokens, 1);
      fake.endToken(400);
      await sendAsApp("three");
      assert.deepEqual([fake.tokens, fake.messages.length], [2, 3]);
      fake.endToken(401);
      await sendAsApp("four");
      assert.deepEqual([fake.tokens, fake.messages.length], [3, 4]);
    }));

  test("says what to do about credentials that are wrong", () =>
    withDingtalk(async ({ sendAsApp }) => {
      const error = await failureOf(sendAsApp("Hello", {}, { client_secret: "wrong-secret" }));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /"invalidClientIdOrSecret .*"; check "client_id" and "client_secret"$/);
      assert.ok(!error.message.includes("wrong-secret"));
    }));

  test("counts as delivered what some people got, and names the others", () =>
    withDingtalk(async ({ fake, sendAsApp, warnings }) => {
      fake.invalid.add("gone");
      fake.slowed.add("busy");
      const { reference } = await sendAsApp("Hello", { chat_id: "gone,manager1234,busy" });
      assert.equal(reference, "udxt3PGhTcBpJYEU1Qk5, not taken for gone, busy");
      assert.deepEqual(warnings.at(-1)?.rejected, ["gone", "busy"]);
    }));

  test("gives up when nobody can be reached, and comes again when somebody may be later", () =>
    withDingtalk(async ({ fake, sendAsApp }) => {
      fake.invalid.add("gone");
      fake.slowed.add("busy");
      const gone = await failureOf(sendAsApp("Hello", { chat_id: "gone" }));
      assert.deepEqual([gone.sent, gone.retryAfterMs], ["no", "never"]);
      const busy = await failureOf(sendAsApp("Hello", { chat_id: "gone,busy" }));
      assert.deepEqual([busy.sent, busy.retryAfterMs], ["no", undefined]);
    }));

  const fates: [code: string, status: number, sent: "no" | "maybe", retryAfterMs: number | "never" | undefined][] = [
    ["invalidParameter.robotCode.notExsit", 400, "no", "never"],
    ["Forbidden.AccessDenied.AccessTokenPermissionDenied", 403, "no", "never"],
    ["constructor", 400, "no", "never"],
    ["Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", 403, "no", 3000],
    ["anything", 429, "no", 3000],
    ["ServiceUnavailable", 400, "maybe", 3000],
    ["ServiceUnavailable", 503, "maybe", 3000],
  ];
  for (const [code, status, sent, retryAfterMs] of fates) {
    test(`decides by the code ${code} with status ${status}`, () =>
      withDingtalk(async ({ fake, sendAsApp }) => {
        fake.mode = "refused";
        fake.answer = { status, headers: { "retry-after": "3" }, body: { code, message: "some words" } };
        const failure = await failureOf(sendAsApp("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }

  const robotFates: [errcode: number, retryAfterMs: number | "never" | undefined, advice: RegExp][] = [
    [310000, "never", /check "webhook_secret", the clock/],
    [300001, "never", /check "webhook_url"$/],
    [123456, "never", /some words"$/],
    [130101, 60_000, /some words"$/],
    [-1, undefined, /some words"$/],
  ];
  for (const [errcode, retryAfterMs, advice] of robotFates) {
    test(`decides by a custom robot's errcode ${errcode} in an answer with status 200`, () =>
      withDingtalk(async ({ fake, sendByRobot }) => {
        fake.mode = "refused";
        fake.answer = { status: 200, body: { errcode, errmsg: "some words" } };
        const failure = await failureOf(sendByRobot("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], ["no", retryAfterMs]);
        assert.match(failure.message, advice);
      }));
  }

  test("signs with the time of its clock, in milliseconds, afresh for each try", () => {
    let now = 1_800_000_000_123;
    return withDingtalk(
      async ({ fake, sendByRobot }) => {
        await sendByRobot("one");
        now += 7_200_000;
        await sendByRobot("two");
        const times = fake.heard.map(({ url }) => url.searchParams.get("timestamp"));
        assert.deepEqual(times, ["1800000000123", "1800007200123"]);
        assert.equal(fake.messages.length, 2);
      },
      () => now,
    );
  });

  test("says what it can tell without sending", () =>
    withDingtalk(async ({ fake, target }) => {
      const check = (more: object) => target.check({ ...settingsOf(fake), ...more }, toolsFor({}));
      assert.deepEqual(await check({ home_channel: group }), [
        `The app "${fake.app.id}" gets a token`,
        `Whether its robot reaches "${group}" cannot be told without sending`,
      ]);
      const error = await failureOf(check({ client_secret: "wrong" }));
      assert.match(error.message, /^Cannot use DingTalk: /);
      assert.equal(error.sent, "no");
      const robot = await target.check({ webhook_url: fake.webhookUrl }, toolsFor({}));
      assert.deepEqual(robot, ["A custom robot cannot be tried without posting"]);
    }));

  test("takes an app before a custom robot, which has what names no chat", () =>
    withDingtalk(async ({ target, fake }) => {
      const settings = { ...settingsOf(fake), webhook_url: fake.webhookUrl, webhook_secret: fake.webhookSecret };
      await target.send(partOf(target, { settings }, { chat_id: group }, "one"), settings, toolsFor({}));
      await target.send(partOf(target, { settings }, {}, "two"), settings, toolsFor({}));
      assert.deepEqual(
        fake.messages.map((message) => message.group),
        [group, undefined],
      );
    }));
});

test("dingtalk takes a webhook's secret by every name that people give it", () => {
  const webhook_url = "https://example.com/hook?access_token=x";
  const read = (more: object, env = {}) => readSettings(createDingtalk(), { webhook_url, ...more }, env);
  const all = [
    ...["webhook_secret", "secret"].map((key) => read({ [key]: "SEC1" })),
    ...["DINGTALK_WEBHOOK_SECRET", "DINGTALK_SECRET"].map((name) => read({}, { [name]: "SEC1" })),
  ];
  for (const one of all) {
    assert.ok("values" in one, JSON.stringify(one));
    assert.equal(one.values.webhook_secret, "SEC1");
  }
});
