import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { splitText } from "../../src/core/text.ts";
import { silentLog } from "../../src/lib/log.ts";
import { readAddress, readSettings } from "../../src/target/settings.ts";
import { telegram } from "../../src/target/telegram.ts";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";

const key = "0123456789abcdef0123456789abcdef";
const tools = { env: {}, log: silentLog, signal: new AbortController().signal };

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

  async function failure(sending: Promise<unknown>): Promise<DeliveryError> {
    const error = await sending.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof DeliveryError, String(error));
    return error;
  }

  test("sends plain text, without link preview and without parse mode", async () => {
    const receipt = await send("<b>*bold*</b> https://example.com", { chat_id: "@channel" });
    const last = fake.messages.at(-1)!;
    assert.deepEqual(last.body, {
      chat_id: "@channel",
      text: "<b>*bold*</b> https://example.com",
      link_preview_options: { is_disabled: true },
    });
    assert.deepEqual(receipt, { reference: String(last.id) });
  });

  test("keeps all digits of a chat's number", async () => {
    await send("x", { chat_id: "-9007199254740993" });
    assert.equal(fake.messages.at(-1)!.chatId, "-9007199254740993");
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

  test("names the new chat when a group became a supergroup", async () => {
    fake.parameters = { migrate_to_chat_id: -1001234567890 };
    fake.upcoming.push("refused");
    const error = await failure(send("x"));
    fake.parameters = undefined;
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
    assert.match(taken.at(-1)!.text, /\[cut: the answer was longer\]$/);
  });

  test("sends no part that is blank, which the service would refuse", async () => {
    for (const text of [`a${" ".repeat(10_000)}b`, `${"a".repeat(4096)}\n\n`, `${" ".repeat(100_000)}x`]) {
      for (const part of splitText(text, telegram.limit)) await send(part);
    }
  });

  test("reads its settings from the environment its users know", () => {
    const env = {
      TELEGRAM_BOT_TOKEN: "1:a",
      TELEGRAM_HOME_CHANNEL: "-100",
      TELEGRAM_BASE_URL: "http://127.0.0.1:8081/",
    };
    assert.deepEqual(readSettings(telegram, undefined, env), {
      values: { token: "1:a", home_channel: "-100", base_url: "http://127.0.0.1:8081" },
    });
  });
});

function failed(error_code: number, description: string) {
  return { ok: false, error_code, description };
}

function limited(retry_after: number) {
  return { ...failed(429, "Too Many Requests"), parameters: { retry_after } };
}
