import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { splitText } from "../../src/core/split.ts";
import { silentLog } from "../../src/lib/log.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { SettingValues } from "../../src/target/target.ts";
import { createWecom, wecom } from "../../src/target/wecom.ts";
import { delivered, jsonService, later, never } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeWecom, startFakeWecom } from "../fakes/wecom.ts";

/** Mentions, and tags that are more than text. */
const live = [/<\s*@/, /<\s*\/?\s*(?:a|font)\b/i];
// It names no time, but counts by the minute.
const limited = { ...later, retryAfterMs: 60_000 };
const expected = { ...jsonService, ok: delivered, refused: never, limited };

testTarget("wecom by a group robot", {
  create: createWecom,
  extra: {},
  start: async () => {
    const fake = await startFakeWecom();
    return { fake, settings: { webhook_url: fake.webhookUrl }, secret: fake.robotKey };
  },
  expected,
  live,
});

testTarget("wecom as an app", {
  create: createWecom,
  extra: { chat_id: "ana|bo" },
  start: async () => {
    const fake = await startFakeWecom();
    return { fake, settings: { ...fake.app, base_url: fake.baseUrl }, secret: fake.app.secret };
  },
  expected,
  live,
});

interface Scene {
  readonly fake: FakeWecom;
  readonly warnings: object[];
  readonly app: SettingValues;
  readonly send: (extra: Record<string, string>, text?: string, settings?: SettingValues) => Promise<unknown>;
}

/** With one target for all of a test, which keeps its tokens. */
async function withWecom(use: (scene: Scene) => Promise<void>): Promise<void> {
  const fake = await startFakeWecom();
  const target = createWecom();
  const warnings: object[] = [];
  const app = { ...fake.app, base_url: fake.baseUrl };
  const tools = { ...toolsFor({}), log: { ...silentLog, warn: (fields: object) => void warnings.push(fields) } };
  const send = (extra: Record<string, string>, text = "Hello", settings: SettingValues = app) =>
    target.send(partOf(target, { settings }, extra, text), settings, tools);
  try {
    await use({ fake, warnings, app, send });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("wecom", () => {
  test("takes the names that others give the app's secret and number", () => {
    const read = readSettings(wecom, { corp_id: "ww0", corp_secret: "hidden", corp_agent_id: 7 }, {});
    assert.ok("values" in read, JSON.stringify(read));
    const { corp_id, secret, agent_id } = read.values;
    assert.deepEqual({ corp_id, secret, agent_id }, { corp_id: "ww0", secret: "hidden", agent_id: 7 });
  });

  test("goes by the robot without a chat, by the app with one", () =>
    withWecom(async ({ fake, app, send }) => {
      const both = { ...app, webhook_url: fake.webhookUrl };
      await send({}, "by the robot", both);
      await send({ chat_id: "ana" }, "by the app", both);
      await send({}, "home", { ...app, home_channel: "bo" });
      await send({ chat_id: "ana" }, "the robot's only chat", { webhook_url: fake.webhookUrl });
      assert.deepEqual(
        fake.messages.map(({ to }) => to),
        [undefined, { touser: "ana" }, { touser: "bo" }, undefined],
      );
    }));

  const addresses: [chatId: string, to: object][] = [
    ["ana|bo", { touser: "ana|bo" }],
    ["user:ana", { touser: "ana" }],
    ["party:1|2", { toparty: "1|2" }],
    ["tag:3", { totag: "3" }],
    ["chat:fakechat", { chatid: "fakechat" }],
  ];
  for (const [chatId, to] of addresses) {
    test(`writes to ${chatId}`, () =>
      withWecom(async ({ fake, send }) => {
        await send({ chat_id: chatId });
        assert.deepEqual(fake.messages[0]!.to, to);
      }));
  }

  test("refuses what is no address, and everybody", () => {
    for (const chat_id of ["@all", "ana|@all", "ana||bo", "group:x", "ana bo", "{user}", "ana/..", "ana&x=1"]) {
      assert.throws(() => partOf(wecom, { settings: {} }, { chat_id }, ""), DeliveryError, chat_id);
    }
  });

  test("refuses several chats, and departments and tags that are no numbers, before anything is sent", () =>
    withWecom(async ({ fake, send }) => {
      for (const chat_id of ["chat:a|b", "party:sales", "tag:1|x"]) {
        const failure = await failureOf(send({ chat_id }));
        assert.deepEqual([failure.sent, failure.retryAfterMs], ["no", "never"], chat_id);
      }
      assert.equal(fake.heard.length, 0);
    }));

  test("asks for one token for many messages, and once more when it is not good any more", () =>
    withWecom(async ({ fake, send }) => {
      await Promise.all([send({ chat_id: "ana" }), send({ chat_id: "bo" }), send({ chat_id: "ana" })]);
      assert.equal(fake.tokens(), 1);
      fake.endTokens();
      await send({ chat_id: "ana" });
      assert.deepEqual([fake.tokens(), fake.messages.length], [2, 4]);
    }));

  test("refuses for good what a token cannot be had with, and says what to check", () =>
    withWecom(async ({ app, send }) => {
      for (const [wrong, advice] of [
        [{ secret: "another secret & more" }, /check the "secret"/],
        [{ corp_id: "ww0other" }, /check "corp_id"/],
        [{ agent_id: 7 }, /check the "agent_id"/],
      ] as const) {
        const failure = await failureOf(send({ chat_id: "ana" }, "Hello", { ...app, ...wrong }));
        assert.deepEqual([failure.sent, failure.retryAfterMs], ["no", "never"]);
        assert.match(failure.message, advice);
        assert.doesNotMatch(failure.message, /another/);
      }
    }));

  const codes: [code: number, retryAfterMs: number | "never" | undefined][] = [
    [-1, undefined],
    [45009, 60_000],
    [45033, 60_000],
    [40058, "never"],
    [60020, "never"],
    [81013, "never"],
    [93000, "never"],
    [123456, "never"],
  ];
  for (const [errcode, retryAfterMs] of codes) {
    test(`decides by the body of an answer with status 200: ${errcode}`, () =>
      withWecom(async ({ fake, send }) => {
        fake.mode = "refused";
        fake.answer = { status: 200, body: { errcode, errmsg: "said" } };
        for (const settings of [undefined, { webhook_url: fake.webhookUrl }]) {
          const failure = await failureOf(send({ chat_id: "ana" }, "Hello", settings));
          assert.deepEqual([failure.sent, failure.retryAfterMs], ["no", retryAfterMs], failure.message);
        }
      }));
  }

  test("takes an answer without a code for one of something else", () =>
    withWecom(async ({ fake, send }) => {
      fake.mode = "refused";
      fake.answer = { status: 200, body: { ok: true } };
      const failure = await failureOf(send({ chat_id: "ana" }));
      assert.deepEqual([failure.sent, failure.retryAfterMs], ["maybe", undefined]);
    }));

  test("refuses a message that was taken for nobody, although the service calls it a success", () =>
    withWecom(async ({ fake, send }) => {
      for (const [chat_id, beside] of [
        ["Ana|bo", { invaliduser: "bo|ana" }],
        ["ana|bo", { invaliduser: "ana", unlicenseduser: "bo" }],
        ["party:1", { invalidparty: "1" }],
        ["tag:1|2", { invalidtag: "2|1" }],
      ] as const) {
        for (const key of Object.keys(fake.beside)) delete fake.beside[key];
        Object.assign(fake.beside, beside);
        const failure = await failureOf(send({ chat_id }));
        assert.deepEqual([failure.sent, failure.retryAfterMs], ["no", "never"], chat_id);
      }
    }));

  test("counts as delivered what some did not get, with a warning that names them", () =>
    withWecom(async ({ fake, warnings, send }) => {
      Object.assign(fake.beside, { invaliduser: "bo", unlicenseduser: "cy" });
      assert.deepEqual(await send({ chat_id: "ana|bo|cy" }), { reference: "m-1, not taken for bo, cy" });
      assert.deepEqual(warnings, [{ target: "wecom", route: "ci", event: "push", rejected: ["bo", "cy"] }]);
    }));

  test("sends text where there is no markup, and Markdown that WeCom knows where there is", () =>
    withWecom(async ({ fake, send }) => {
      const to = { chat_id: "ana" };
      await send(to, "snake_case and 2 * 3 * 4");
      await send(to, "# Build 7\n\n**passed** *at last*, see [the log](https://ci.example/7)\n\n```sh\n# ls\n```");
      await send({ ...to, format: "plain" }, "**as it is**");
      assert.deepEqual(
        fake.messages.map(({ msgtype, text }) => [msgtype, text]),
        [
          ["text", "snake_case and 2 * 3 * 4"],
          ["markdown", "# Build 7\n\n**passed** at last, see [the log](https://ci.example/7)\n\n# ls"],
          ["text", "**as it is**"],
        ],
      );
      assert.doesNotMatch(fake.messages[1]!.raw, /^# ls/m);
    }));

  test("lets no text make links, mentions and tags of its own", () =>
    withWecom(async ({ fake, send }) => {
      const hostile =
        "<@ana> < @ana> <a href='https://evil.example'>ci</a> <font color=red>x \\[ci\\](https://evil.example)";
      await send({ chat_id: "ana" }, hostile);
      await send({ chat_id: "ana" }, `**x** ${hostile} \`<@ana>\``);
      await send({ chat_id: "ana", format: "plain" }, hostile);
      for (const { raw, msgtype } of fake.messages) {
        for (const pattern of live) assert.doesNotMatch(raw, pattern);
        if (msgtype === "markdown") assert.doesNotMatch(raw, /\]\(/);
      }
      assert.equal(fake.messages[1]!.msgtype, "markdown");
    }));

  test("cuts text by what it becomes, so that no part is longer than WeCom takes", () =>
    withWecom(async ({ fake, send }) => {
      for (const text of [
        `**東京** ${"[x](".repeat(1000)}`,
        "**a** <@b> ".repeat(500),
        "https://x.example/(a) ".repeat(300),
      ]) {
        const parts = splitText(text, wecom.limit);
        assert.ok(parts.length > 1);
        for (const part of parts) await send({ chat_id: "ana" }, part);
        for (const part of parts) await send({ chat_id: "ana", format: "plain" }, part);
      }
      for (const { raw } of fake.messages) assert.ok(Buffer.byteLength(raw) <= 2048);
    }));

  test("says who the app is, and of what it cannot tell that it cannot", () =>
    withWecom(async ({ fake, app }) => {
      const all = { ...app, webhook_url: fake.webhookUrl, home_channel: "ana" };
      const said = (await wecom.check(all, toolsFor({}))).join("\n");
      assert.match(said, /The app is "Fake app"/);
      assert.match(said, /robot cannot be tried/);
      assert.match(said, /home channel .*cannot be told/);
      const failure = await failureOf(wecom.check({ ...app, secret: "another-secret" }, toolsFor({})));
      assert.equal(failure.retryAfterMs, "never");
    }));

  test("keeps nothing open for a robot or an app", async () => {
    const end = new AbortController();
    const attending = wecom.attend!({ webhook_url: "https://x.example" }, toolsFor({}, end.signal));
    end.abort();
    await attending;
  });
});
