import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DeliveryError, StoreUnavailable } from "../../src/core/errors.ts";
import { splitText } from "../../src/core/split.ts";
import { type LogFields, silentLog } from "../../src/lib/log.ts";
import { readAddress } from "../../src/target/address.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { Memory } from "../../src/target/target.ts";
import { createTelegram, telegram } from "../../src/target/telegram.ts";
import { currentChat, rememberMove } from "../../src/target/telegram-chats.ts";
import { jsonService } from "../conformance/target/case.ts";
import { makeMemory } from "../conformance/target/memory.ts";
import { failureOf as failure, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { officialSchema } from "../fakes/schema.ts";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";

const key = "0123456789abcdef0123456789abcdef";
const tools = toolsFor({});
const names = { route: "ci", eventType: "push" };
const schemas = officialSchema("telegram");

testTarget("telegram", {
  create: createTelegram,
  extra: { chat_id: "-1001234567890", thread_id: "77" },
  start: async () => {
    const fake = await startFakeTelegram(undefined, schemas);
    const settings = { token: fake.token, base_url: fake.baseUrl, home_channel: "-1001234567890" };
    return { fake, settings, secret: fake.token };
  },
  expected: jsonService,
  // Entities are what is live there, not marks in the text: links that lead elsewhere than to the web or to mail. And what
  // Telegram finds by itself.
  live: [/^a link leads to (?!https?:|mailto:)/m, /^a mention reaches/m],
});

describe("telegram", () => {
  let fake: FakeTelegram;
  before(async () => {
    fake = await startFakeTelegram();
  });
  after(() => fake.close());

  function send(text: string, extra: Record<string, string> = { chat_id: "42" }, settings = {}) {
    const address = readAddress(telegram, extra, {});
    const part = { text, address, index: 0, count: 1, key, firstTriedAt: 0, route: "ci", eventType: "push" };
    return telegram.send(part, { token: fake.token, base_url: fake.baseUrl, ...settings }, tools);
  }

  test("sends text without link preview and without parse mode", async () => {
    const receipt = await send("<b>snake_case</b> \\*x\\* https://example.com", { chat_id: "@channel" });
    const last = fake.messages.at(-1)!;
    assert.deepEqual(last.body, {
      chat_id: "@channel",
      text: "<b>snake_case</b> *x* https://example.com",
      link_preview_options: { is_disabled: true },
    });
    assert.deepEqual(receipt, { reference: String(last.id) });
  });

  test("sends Markdown as entities", async () => {
    await send("# 😀 A\n**b `c`** *d* ~~e~~ [f](https://g.h)\n```ts\ni\n```\n> j\n> > k");
    const { text, body } = fake.messages.at(-1)!;
    const entities = body.entities as { type: string; offset: number; length: number }[];
    assert.equal(text, "😀 A\nb c d e f\ni\nj\nk");
    assert.deepEqual(
      entities.map(({ offset, length, ...what }) => [text.slice(offset, offset + length), what]),
      [
        ["😀 A", { type: "bold" }],
        ["b c", { type: "bold" }],
        ["c", { type: "code" }],
        ["d", { type: "italic" }],
        ["e", { type: "strikethrough" }],
        ["f", { type: "text_link", url: "https://g.h" }],
        ["i", { type: "pre", language: "ts" }],
        // Telegram has no quotation within a quotation.
        ["j\nk", { type: "blockquote" }],
      ],
    );
  });

  test("sends no more entities than Telegram shows", async () => {
    await send("**a** b ".repeat(150));
    assert.equal((fake.messages.at(-1)!.body.entities as unknown[]).length, 100);
  });

  test("sends the text as it is where its format is plain", async () => {
    await send("**a** _b_", { chat_id: "42", format: "plain" });
    const { body } = fake.messages.at(-1)!;
    assert.deepEqual([body.text, body.entities], ["**a** _b_", undefined]);
  });

  test("sends the same text once more without entities when they are refused", async () => {
    const [tries, count] = [fake.tries, fake.messages.length];
    fake.answer = { status: 400, headers: {}, body: failed(400, "Bad Request: can't parse entities: wrong offset") };
    fake.upcoming.push("refused");
    await send("**a** b");
    assert.deepEqual([fake.tries, fake.messages.length], [tries + 2, count + 1]);
    const { body } = fake.messages.at(-1)!;
    assert.deepEqual([body.text, body.entities], ["a b", undefined]);

    fake.upcoming.push("refused", "refused");
    assert.match((await failure(send("**a** b"))).message, /can't parse entities/);
    assert.equal(fake.tries, tries + 4);
    fake.upcoming.push("refused");
    assert.match((await failure(send("no markup"))).message, /can't parse entities/);
    assert.equal(fake.tries, tries + 5);
    fake.answer = { status: 400, headers: {}, body: failed(400, "Bad Request: chat not found") };
    fake.upcoming.push("refused");
    assert.match((await failure(send("**a** b"))).message, /chat not found/);
    assert.equal(fake.tries, tries + 6);
    fake.answer = undefined;
  });

  test("keeps all digits of a chat's number", async () => {
    await send("x", { chat_id: "-9007199254740993" });
    assert.equal(fake.messages.at(-1)!.chatId, "-9007199254740993");
  });

  test("parts the @names that Telegram would link, outside of code and of e-mail addresses", async () => {
    const text = "@ann **@bo** (@cy_d) `@Inject` a@b.example [@eve](https://g.h)\n```\n@Test\n```\n@*fay*";
    await send(text);
    const { text: sent, raw, body } = fake.messages.at(-1)!;
    assert.equal(sent.replaceAll("\u200b", "∅"), "@∅ann @∅bo (@∅cy_d) @Inject a@b.example @∅eve\n@Test\n@∅fay");
    assert.doesNotMatch(raw, /^a mention/m);
    const entities = body.entities as { type: string; offset: number; length: number }[];
    assert.deepEqual(
      entities.map(({ type, offset, length }) => [type, sent.slice(offset, offset + length).replace("\u200b", "∅")]),
      [
        ["bold", "@∅bo"],
        ["code", "@Inject"],
        ["text_link", "@∅eve"],
        ["pre", "@Test"],
        ["italic", "fay"],
      ],
    );
    await send(text, undefined, { allow_mentions: true });
    assert.deepEqual(fake.messages.at(-1)!.raw.match(/(?<=^a mention reaches ).*/gm), ["@ann", "@bo", "@cy_d", "@fay"]);
  });

  test("parts the @names in code where it goes without entities", async () => {
    const before = fake.messages.length;
    await send("`@Inject`", { chat_id: "42", format: "plain" });
    await send(`${"**a** b ".repeat(100)} \`@Inject\``);
    fake.answer = { status: 400, headers: {}, body: failed(400, "Bad Request: can't parse entities: wrong offset") };
    fake.upcoming.push("refused");
    await send("`@Inject`");
    fake.answer = undefined;
    const taken = fake.messages.slice(before);
    assert.equal(taken.length, 3);
    for (const { raw } of taken) assert.doesNotMatch(raw, /^a mention/m);
  });

  test("has room for what parts the @names", async () => {
    for (const part of splitText("@ab ".repeat(2000), telegram.limit)) await send(part);
  });

  test("refuses a message whose topic is gone, or sends it into the chat where that is chosen", async () => {
    fake.goneTopics.add(9);
    const extra = { chat_id: "42", thread_id: "9" };
    const error = await failure(send("x", extra));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
    assert.match(error.message, /name another topic, or set "missing_thread" to "general"$/);
    const [tries, count] = [fake.tries, fake.messages.length];
    await send("**x**", extra, { missing_thread: "general" });
    assert.deepEqual([fake.tries, fake.messages.length], [tries + 2, count + 1]);
    const { threadId, body } = fake.messages.at(-1)!;
    assert.deepEqual([threadId, (body.entities as unknown[]).length], [undefined, 1]);
    await send("x", { chat_id: "42", thread_id: "8" }, { missing_thread: "general" });
    assert.equal(fake.messages.at(-1)!.threadId, 8);
  });

  describe("with a group that became a supergroup", () => {
    const target = createTelegram();
    const move = (from: string, to: number) => fake.moved.set(from, to);
    function sendTo(chat_id: string, memory: Memory, log = silentLog) {
      const part = { text: "x", address: { chat_id }, index: 0, count: 1, key, firstTriedAt: 0, ...names };
      return target.send(part, { token: fake.token, base_url: fake.baseUrl }, { ...tools, memory, log });
    }
    const triesFor = async (sending: () => Promise<unknown>) => {
      const before = fake.tries;
      await sending();
      return [fake.tries - before, fake.messages.at(-1)!.chatId];
    };

    test("sends to its new number at once, says so, and goes there straight away from then on", async () => {
      const memory = makeMemory();
      const warnings: LogFields[] = [];
      const log = { ...silentLog, warn: (fields: LogFields) => void warnings.push(fields) };
      move("-41", -1_000_000_000_041);
      assert.deepEqual(await triesFor(() => sendTo("-41", memory, log)), [2, "-1000000000041"]);
      assert.deepEqual(await triesFor(() => sendTo("-41", memory, log)), [1, "-1000000000041"]);
      assert.deepEqual(await triesFor(() => sendTo("-40", memory, log)), [1, "-40"]);
      assert.deepEqual(warnings, [
        { target: "telegram", route: "ci", event: "push", chat: "-41", new_chat: "-1000000000041" },
      ]);
      assert.equal((await memory.read("telegram chats")).text, '[["-41","-1000000000041"]]');
    });

    test("follows it to a third number", async () => {
      const memory = makeMemory();
      move("-42", -1_000_000_000_042);
      await sendTo("-42", memory);
      move("-1000000000042", -1_000_000_000_043);
      assert.deepEqual(await triesFor(() => sendTo("-42", memory)), [2, "-1000000000043"]);
      assert.deepEqual(await triesFor(() => sendTo("-42", memory)), [1, "-1000000000043"]);
    });

    test("keeps what another gateway remembered at the same time", async () => {
      const memory = makeMemory();
      let isFirst = true;
      const busy: Memory = {
        ...memory,
        write: async (name, text, seen) => {
          if (isFirst) await memory.write(name, '[["-7","-1007"]]', seen);
          isFirst = false;
          return memory.write(name, text, seen);
        },
      };
      move("-44", -1_000_000_000_044);
      await sendTo("-44", busy);
      assert.equal((await memory.read("telegram chats")).text, '[["-7","-1007"],["-44","-1000000000044"]]');
    });

    test("remembers the newest thousand, and takes what it cannot read for nothing", async () => {
      const memory = makeMemory();
      const many = Array.from({ length: 1000 }, (_, nth) => [`-${nth + 1}`, `-100${nth + 1}`]);
      await memory.write("telegram chats", JSON.stringify(many), 0);
      await rememberMove(memory, "-2000", "-1002000");
      assert.equal(await currentChat(memory, "-1"), "-1");
      assert.equal(await currentChat(memory, "-2"), "-1002");
      assert.equal(await currentChat(memory, "-2000"), "-1002000");
      for (const text of ["{", "7", '{"-2":"-3"}', '[["-2"],["-2","x/../y"],7,null,["-2",-3]]']) {
        const { version } = await memory.read("telegram chats");
        await memory.write("telegram chats", text, version);
        assert.equal(await currentChat(memory, "-2"), "-2", text);
      }
    });

    test("delivers all the same when the ledger cannot be asked or written", async () => {
      const unavailable = () => Promise.reject(new StoreUnavailable("away"));
      move("-45", -1_000_000_000_045);
      const memory = { read: unavailable, write: unavailable };
      assert.deepEqual(await triesFor(() => sendTo("-45", memory)), [2, "-1000000000045"]);
    });

    test("is not sure of a message whose second try had no answer", async () => {
      move("-46", -1_000_000_000_046);
      fake.upcoming.push("lost");
      const error = await failure(sendTo("-46", makeMemory()));
      assert.equal(error.sent, "maybe");
    });
  });

  test("names a forum topic by either key, and leaves the General topic out", async () => {
    await send("x", { chat_id: "42", message_thread_id: "7" });
    assert.equal(fake.messages.at(-1)!.threadId, 7);
    await send("x", { chat_id: "42", thread_id: "8" });
    assert.equal(fake.messages.at(-1)!.threadId, 8);
    await send("x", { chat_id: "42", message_thread_id: "1" });
    assert.equal("message_thread_id" in fake.messages.at(-1)!.body, false);
  });

  test("refuses an address that is none before anything is sent", async () => {
    const tries = fake.tries;
    for (const chat_id of ["42;43", "../getMe", "@", "4 2", "-", "12345678901234567", "@a b", "42\n", "0x2a", "１２"]) {
      assert.throws(() => readAddress(telegram, { chat_id }, {}), DeliveryError, chat_id);
    }
    for (const thread_id of ["0", "-1", "1.5", "7\n8", "a"]) {
      assert.throws(() => readAddress(telegram, { chat_id: "42", thread_id }, {}), DeliveryError, thread_id);
    }
    assert.equal(fake.tries, tries);
  });

  test("passes on the service's own words and says what to do", async () => {
    assert.match((await failure(send(" "))).message, /400 "Bad Request: message text is empty"$/);
    const unknownToken = await failure(send("x", undefined, { token: "999999:other_token" }));
    assert.match(unknownToken.message, /401 "Unauthorized"; check the "token"$/);
    assert.equal(unknownToken.retryAfterMs, "never");
  });

  test("names the new chat when a group became a supergroup and that one is not there either", async () => {
    const parameters = { migrate_to_chat_id: -1001234567890 };
    fake.answer = { status: 400, headers: {}, body: { ...failed(400, "Bad Request"), parameters } };
    fake.upcoming.push("refused", "refused");
    const error = await failure(send("x"));
    fake.answer = undefined;
    assert.equal(error.retryAfterMs, "never");
    assert.match(error.message, /set "chat_id" to "-1001234567890"$/);
  });

  test("waits as long as the service asks for", async () => {
    for (const [seconds, waitMs] of [
      [0, 0],
      [1.2, 1200],
      [86_400, 86_400_000],
    ] as const) {
      fake.parameters = { retry_after: seconds };
      fake.upcoming.push("limited");
      assert.equal((await failure(send("x"))).retryAfterMs, waitMs);
    }
    fake.parameters = {};
    fake.upcoming.push("limited");
    const unnamed = await failure(send("x"));
    fake.parameters = undefined;
    assert.deepEqual([unnamed.sent, unnamed.retryAfterMs], ["no", undefined]);
  });

  const answers: [
    what: string,
    status: number,
    headers: Record<string, string>,
    body: unknown,
    sent: DeliveryError["sent"],
    wait: DeliveryError["retryAfterMs"],
  ][] = [
    ["the Bot API's own 500", 500, {}, failed(500, "Internal Server Error"), "maybe", undefined],
    ["the Bot API's own 502", 502, {}, failed(502, "Bad Gateway"), "maybe", undefined],
    ["503 with a time", 503, { "retry-after": "9" }, "<html>", "maybe", 9000],
    ["504 of a gateway", 504, {}, "<html>", "maybe", undefined],
    ["a success that is not the Bot API's", 200, {}, { result: {} }, "maybe", undefined],
    ["a failure with the status of a success", 200, {}, failed(400, "Bad Request: chat not found"), "no", "never"],
    ["429 with a time in its body", 429, { "retry-after": "9" }, limited(3), "no", 3000],
    ["429 with a time in its header", 429, { "retry-after": "9" }, failed(429, "Too Many Requests"), "no", 9000],
    ["429 without a time", 429, {}, failed(429, "Too Many Requests"), "no", undefined],
    ["429 of a gateway", 429, { "retry-after": "9" }, "<html>", "no", 9000],
    ["a request that never came through", 408, {}, "<html>", "no", undefined],
    ["400", 400, {}, failed(400, "Bad Request: chat not found"), "no", "never"],
    ["401", 401, {}, failed(401, "Unauthorized"), "no", "never"],
    ["403", 403, {}, failed(403, "Forbidden: bot was kicked from the group chat"), "no", "never"],
    ["404", 404, {}, failed(404, "Not Found"), "no", "never"],
    ["a proxy that forbids it", 403, {}, "<html>", "no", "never"],
    ["a redirect", 302, { location: "https://example.com" }, "<html>", "no", "never"],
  ];
  for (const [what, status, headers, body, sent, wait] of answers) {
    test(`is right about when to try again: ${what}`, async () => {
      fake.answer = { status, headers, body };
      fake.upcoming.push("refused");
      const error = await failure(send("x"));
      fake.answer = undefined;
      assert.deepEqual([error.sent, error.retryAfterMs], [sent, wait], error.message);
    });
  }

  test("never shows the token, whatever is wrong with the settings", async () => {
    for (const base_url of ["nonsense", "http://127.0.0.1:1", "ftp://127.0.0.1", "http://", `${fake.baseUrl}/other`]) {
      const error = await failure(send("x", undefined, { base_url }));
      const seen = `${error.message}${error.stack}${(error.cause as Error | undefined)?.stack}`;
      assert.ok(!seen.includes(fake.token), base_url);
    }
    for (const token of ["1:a/../../x", "1:a?x", "1:a#x", "1:a\n", "", "1:%2e%2e"]) {
      const error = await failure(send("x", undefined, { token }));
      assert.equal(error.retryAfterMs, "never");
      assert.ok(token === "" || !error.message.includes(token));
    }
  });

  test("sends long text in parts that the service takes, and says when there was more", async () => {
    const before = fake.messages.length;
    const parts = splitText("🙂 word ".repeat(20_000), telegram.limit);
    for (const part of parts) await send(part);
    const taken = fake.messages.slice(before);
    assert.equal(taken.length, 10);
    assert.match(taken.at(-1)!.text, /\[cut: the answer was longer\]\n\n\(10\/10\)$/);
  });

  test("sends no part that is blank, which the service would refuse", async () => {
    for (const text of [`a${" ".repeat(10_000)}b`, `${"a".repeat(4096)}\n\n`, `${" ".repeat(100_000)}x`]) {
      for (const part of splitText(text, telegram.limit)) await send(part);
    }
  });

  test("finds out who the bot is and whether it knows the home channel, and says what to do when not", async () => {
    const check = (settings = {}) => telegram.check({ token: fake.token, base_url: fake.baseUrl, ...settings }, tools);
    assert.deepEqual(await check(), ['The bot is "@postern_bot"']);
    const home = 'The home channel is "Ops"';
    assert.deepEqual(await check({ home_channel: "-100" }), ['The bot is "@postern_bot"', home]);
    assert.match(
      (await failure(check({ home_channel: "@nowhere" }))).message,
      /^Cannot use Telegram: it answered 400 "Bad Request: chat not found"; check the "home_channel"/,
    );
    const wrongToken = await failure(check({ token: "999999:other_token" }));
    assert.match(wrongToken.message, /401 "Unauthorized"; check the "token"$/);
    assert.doesNotMatch(wrongToken.message, /other_token/);
    assert.match((await failure(check({ token: "1:a/../x" }))).message, /^Cannot use Telegram: the token is not one/);
  });

  test("reads its settings from the environment its users know", () => {
    const env = {
      TELEGRAM_BOT_TOKEN: "1:a",
      TELEGRAM_HOME_CHANNEL: "-100",
      TELEGRAM_BASE_URL: "http://127.0.0.1:8081/",
    };
    assert.deepEqual(readSettings(telegram, undefined, env), {
      values: {
        ...{ token: "1:a", home_channel: "-100", base_url: "http://127.0.0.1:8081" },
        ...{ missing_thread: "refuse", allow_mentions: false },
      },
    });
  });
});

function failed(error_code: number, description: string) {
  return { ok: false, error_code, description };
}

function limited(retry_after: number) {
  return { ...failed(429, "Too Many Requests"), parameters: { retry_after } };
}
