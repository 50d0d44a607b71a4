import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { checkAddress, readAddress } from "../../src/target/address.ts";
import { createFeishu } from "../../src/target/feishu.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { Receipt, Target } from "../../src/target/target.ts";
import { delivered, jsonService, later, type TargetCase } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeFeishu, startFakeFeishu } from "../fakes/feishu.ts";

const chat = "oc_5ad11d72b830411d72b836c20";
/** Mentions, and links of which Feishu would make something within text; nodes that do more than show text. */
const live = [/<\/?at\b/i, /"tag":"(?!text|a|code_block)/, /"href":"(?!https?:|mailto:)/];

const byApp: TargetCase = {
  create: createFeishu,
  extra: { chat_id: chat },
  start: async () => {
    const fake = await startFakeFeishu();
    return { fake, settings: settingsOf(fake), secret: fake.app.secret };
  },
  expected: jsonService,
  isRecognised: true,
  live,
};
testTarget("feishu as an app", byApp);
testTarget("feishu as an app, without Markdown", { ...byApp, extra: { chat_id: chat, format: "plain" } });

testTarget("feishu by a custom bot", {
  create: createFeishu,
  extra: {},
  start: async () => {
    const fake = await startFakeFeishu();
    const settings = { webhook_url: fake.webhookUrl, webhook_secret: fake.webhookSecret };
    return { fake, settings, secret: "fake-token-of-the-bot" };
  },
  // It names no time.
  expected: { ...jsonService, ok: delivered, limited: later },
  isBlind: true,
  live,
});

function settingsOf({ app, baseUrl }: FakeFeishu) {
  return { app_id: app.id, app_secret: app.secret, base_url: baseUrl, domain: "feishu" };
}

interface Scene {
  readonly fake: FakeFeishu;
  readonly target: Target;
  readonly send: (text: string, extra?: Record<string, string>) => Promise<Receipt>;
}

/** A target and a fake that is gone afterwards. */
async function withFeishu(use: (scene: Scene) => Promise<void>, now: () => number = Date.now): Promise<void> {
  const fake = await startFakeFeishu(now);
  const target = createFeishu({ now });
  const settings = settingsOf(fake);
  const send = (text: string, extra = {}) =>
    target.send(partOf(target, { settings }, { chat_id: chat, ...extra }, text), settings, toolsFor({}));
  try {
    await use({ fake, target, send });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("feishu", () => {
  const receivers: [chat: string, kind: string][] = [
    [chat, "chat_id"],
    ["ou_7d8a6e6df7621556ce0d21922b676706", "open_id"],
    ["on_94a1ee5551019f18cd73d9f111898cf2", "union_id"],
    ["someone@example.com", "email"],
  ];
  for (const [chat_id, kind] of receivers) {
    test(`sends to a ${kind}`, () =>
      withFeishu(async ({ fake, send }) => {
        assert.deepEqual(await send("Hello", { chat_id }), { reference: "om_1" });
        const { receiver, receiverKind, uuid } = fake.messages[0]!;
        assert.deepEqual([receiver, receiverKind], [chat_id, kind]);
        assert.match(uuid ?? "", /^[0-9a-f]{32}$/);
      }));
  }

  test("answers to a message in its thread, or into a thread", () =>
    withFeishu(async ({ fake, send }) => {
      await send("Hello", { message_id: "om_dc13264520392913993dd051dba21dcf" });
      await send("Hello again", { thread_id: "omt_1d4d1c7a7c" });
      const [reply, within] = fake.messages;
      assert.equal(reply?.parent, "om_dc13264520392913993dd051dba21dcf");
      assert.equal(fake.heard.find(({ url }) => url.pathname.endsWith("/reply"))?.json?.reply_in_thread, true);
      assert.deepEqual([within?.receiver, within?.receiverKind], ["omt_1d4d1c7a7c", "thread_id"]);
    }));

  test("refuses addresses that are none", () => {
    for (const chat_id of ["oc_", "oc_a/../b", "5ad1", "oc_a b", "a@b c.d", "@example.com", "oc_a\n"]) {
      assert.equal(checkAddress(createFeishu(), { chat_id }, {}).length, 1, chat_id);
    }
    assert.equal(checkAddress(createFeishu(), { chat_id: chat, thread_id: "om_a/../../x" }, {}).length, 1);
    for (const chat_id of ["{chat}@example.com", "oc_{chat}"]) {
      assert.throws(() => readAddress(createFeishu(), { chat_id }, {}), DeliveryError);
    }
  });

  test("writes Markdown as a post: styles, links, blocks of code", () =>
    withFeishu(async ({ fake, send }) => {
      await send(
        "# Build 7\n**passed** ~~late~~, [*log*](https://ci.example/7) <at id=all> <b>\n\n```ts\nlet a: Set<b>;\n<at id=all>\n```\n- end",
      );
      const [first, code, last] = fake.messages[0]!.nodes;
      assert.deepEqual(first, [
        { tag: "text", text: "Build 7", style: ["bold"] },
        { tag: "text", text: "\n" },
        { tag: "text", text: "passed", style: ["bold"] },
        { tag: "text", text: " " },
        { tag: "text", text: "late", style: ["lineThrough"] },
        { tag: "text", text: ", " },
        { tag: "a", href: "https://ci.example/7", text: "log", style: ["italic"] },
        { tag: "text", text: " <\u200bat id=all> <\u200bb>\n" },
      ]);
      assert.deepEqual(code, [{ tag: "code_block", text: "let a: Set<b>;\n<\u200bat id=all>", language: "TS" }]);
      assert.deepEqual(last, [{ tag: "text", text: "- end" }]);
    }));

  test("sends plain text once when its post cannot be read", () =>
    withFeishu(async ({ fake, send }) => {
      fake.isPlain = true;
      await send('**Build** [7](https://ci.example) <at user_id="all"></at>');
      const [message] = fake.messages;
      assert.deepEqual([message?.type, fake.tries], ["text", 2]);
      assert.equal(message?.text, 'Build 7 (https://ci.example) <at user_id="all"></at>');
      assert.doesNotMatch(message?.raw ?? "", /<\/?at/);
    }));

  test("makes a post of many marks soon", () => {
    const target = createFeishu();
    const started = performance.now();
    target.limit.rendered?.("**a** ".repeat(10_000));
    assert.ok(performance.now() - started < 3000);
  });

  test("asks for a token once, and again when it has ended", () =>
    withFeishu(async ({ fake, send }) => {
      await send("one");
      await send("two");
      assert.equal(fake.tokens, 1);
      fake.endToken();
      await send("three");
      assert.deepEqual([fake.tokens, fake.messages.length], [2, 3]);
    }));

  test("says what to do about credentials that are wrong", () =>
    withFeishu(async ({ fake, target }) => {
      const settings = { ...settingsOf(fake), app_secret: "wrong-secret" };
      const part = partOf(target, { settings }, { chat_id: chat }, "Hello");
      const error = await failureOf(target.send(part, settings, toolsFor({})));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /"10014 app secret invalid"; check "app_secret"$/);
      assert.ok(!error.message.includes("wrong-secret"));
    }));

  const fates: [code: number, status: number, sent: "no" | "maybe", retryAfterMs: number | "never" | undefined][] = [
    [230002, 400, "no", "never"],
    [230025, 400, "no", "never"],
    [123456, 200, "no", "never"],
    [99991400, 400, "no", 3000],
    [99991400, 429, "no", 3000],
    [230020, 400, "no", 3000],
    [230049, 400, "maybe", undefined],
    [2200, 200, "maybe", undefined],
    [2200, 500, "maybe", undefined],
  ];
  for (const [code, status, sent, retryAfterMs] of fates) {
    test(`decides by the code ${code} of an answer with status ${status}`, () =>
      withFeishu(async ({ fake, send }) => {
        fake.mode = "refused";
        fake.answer = { status, headers: { "x-ogw-ratelimit-reset": "3" }, body: { code, msg: "some words" } };
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }

  test("has a part sent again for almost an hour, and leaves it to the rule after that", () => {
    let now = 1_800_000_000_000;
    return withFeishu(
      async ({ target, fake }) => {
        const settings = settingsOf(fake);
        const part = { ...partOf(target, { settings }, { chat_id: chat }, "Hello"), firstTriedAt: now };
        now += 3_299_000;
        assert.equal(await target.find?.(part, settings, toolsFor({})), undefined);
        now += 1000;
        const error = await failureOf(target.find!(part, settings, toolsFor({})));
        assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      },
      () => now,
    );
  });

  test("tells who the bot is and what its home channel is, as far as it may", () =>
    withFeishu(async ({ target, fake }) => {
      const check = (more: object) => target.check({ ...settingsOf(fake), ...more }, toolsFor({}));
      const who = 'The bot is "Postern"';
      assert.deepEqual(await check({}), [who]);
      assert.deepEqual(await check({ home_channel: chat }), [who, 'The home channel is "ops"']);
      assert.match((await check({ home_channel: "ou_1" }))[1] ?? "", /cannot be told without sending$/);
      fake.mayRead = false;
      assert.match(
        (await check({ home_channel: chat }))[1] ?? "",
        /^The home channel was not tried: .* im:chat:readonly$/,
      );
      fake.mayRead = true;
      const error = await failureOf(check({ home_channel: "oc_other" }));
      assert.match(error.message, /^Cannot use Feishu: .*; add the bot to the group$/);
      assert.equal(fake.messages.length, 0);
    }));

  test("takes an app before a custom bot, which has what names no chat", () =>
    withFeishu(async ({ target, fake }) => {
      const settings = { ...settingsOf(fake), webhook_url: fake.webhookUrl, webhook_secret: fake.webhookSecret };
      await target.send(partOf(target, { settings }, { chat_id: chat }, "Hello"), settings, toolsFor({}));
      await target.send(partOf(target, { settings }, {}, "Hello"), settings, toolsFor({}));
      assert.deepEqual(
        fake.messages.map(({ receiver }) => receiver),
        [chat, undefined],
      );
    }));

  for (const [domain, server] of [
    ["Lark", "https://open.larksuite.com"],
    ["feishu", "https://open.feishu.cn"],
  ]) {
    test(`asks ${server} where the domain is ${domain}`, async (t) => {
      const asked: string[] = [];
      t.mock.method(globalThis, "fetch", async (url: string) => {
        asked.push(new URL(url).origin);
        return Response.json({ code: 0, tenant_access_token: "t-1", expire: 7200 });
      });
      const read = readSettings(createFeishu(), { app_id: "cli_1", app_secret: "x", domain }, {});
      assert.ok("values" in read);
      const target = createFeishu();
      await target.send(
        partOf(target, { settings: read.values }, { chat_id: chat }, "Hello"),
        read.values,
        toolsFor({}),
      );
      assert.deepEqual(asked, [server, server]);
    });
  }
});

test("feishu takes a webhook's secret by every name that people give it", () => {
  const webhook_url = "https://example.com/hook?access_token=x";
  const read = (more: object, env = {}) => readSettings(createFeishu(), { webhook_url, ...more }, env);
  const all = [
    ...["webhook_secret", "secret"].map((key) => read({ [key]: "SEC1" })),
    ...["FEISHU_WEBHOOK_SECRET"].map((name) => read({}, { [name]: "SEC1" })),
  ];
  for (const one of all) {
    assert.ok("values" in one, JSON.stringify(one));
    assert.equal(one.values.webhook_secret, "SEC1");
  }
});
