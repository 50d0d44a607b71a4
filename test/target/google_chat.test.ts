import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readAddress } from "../../src/target/address.ts";
import { createGoogleChat, google_chat } from "../../src/target/google_chat.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeGoogleChat, startFakeGoogleChat } from "../fakes/google-chat.ts";

testTarget("google_chat", {
  create: createGoogleChat,
  extra: {},
  start: async () => {
    const fake = await startFakeGoogleChat();
    return { fake, settings: { webhook_url: fake.webhookUrl }, secret: "fakeToken-of_theWebhook" };
  },
  expected: jsonService,
  // Mentions, and links that go elsewhere than to the web or by mail.
  live: [/<users\//i, /<(?!\u200b|https?:|mailto:)[^\s<>|]*\|/i],
});

async function withChat(
  use: (fake: FakeGoogleChat, send: (text: string, extra?: object) => Promise<unknown>) => unknown,
) {
  const fake = await startFakeGoogleChat();
  const settings = { webhook_url: fake.webhookUrl };
  try {
    await use(fake, (text, extra = {}) =>
      google_chat.send(partOf(google_chat, { settings }, { ...extra }, text), settings, toolsFor({})),
    );
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("google_chat", () => {
  const written: [markdown: string, sent: string][] = [
    ["**bold** *italic* ~~gone~~ `a*b`", "*bold* _italic_ ~gone~ `a*b`"],
    ["# Title\n\n- one\n- [x] two", "*Title*\n\n• one\n• ☑ two"],
    ["[the build](https://ci.example/7)", "<https://ci.example/7|the build>"],
    ["[a|b>c](https://ci.example/7)", "<https://ci.example/7|a¦b›c>"],
    ["<users/all> `<users/all>` <b> a<b", "<\u200busers/all> `<\u200busers/all>` <b> a<b"],
    ["a <https://evil.example|bank", "a <\u200bhttps://evil.example|bank"],
  ];
  for (const [markdown, sent] of written) {
    test(`writes Markdown in Google Chat's: ${JSON.stringify(markdown)}`, () =>
      withChat(async (fake, send) => {
        await send(markdown);
        assert.equal(fake.messages[0]!.raw, sent);
      }));
  }

  test("shows text that is no Markdown as it is", () =>
    withChat(async (fake, send) => {
      await send("# [a](https://b.example) **c**", { format: "plain" });
      assert.equal(fake.messages[0]!.text, "# [a](https://b.example) **c**");
    }));

  test("answers in a thread that a key names, by either name of it", () =>
    withChat(async (fake, send) => {
      await send("Hello", { thread_id: "owner/name#7" });
      await send("New");
      const [first, second] = fake.messages;
      assert.deepEqual(
        [first!.threadKey, first!.replyOption],
        ["owner/name#7", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD"],
      );
      assert.deepEqual([second!.threadKey, second!.replyOption], [undefined, null]);
    }));

  test("says with each try the same id in the form of a UUID, and takes an answer that it is there for a success", () =>
    withChat(async (fake, send) => {
      await send("Hello");
      await send("Hello");
      assert.equal(fake.messages.length, 1);
      assert.match(fake.messages[0]!.requestId ?? "", /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      fake.mode = "refused";
      fake.answer = { status: 409, body: { error: { code: 409, status: "ALREADY_EXISTS", message: "It is there." } } };
      assert.deepEqual(await send("Hello"), { reference: "taken by an earlier try" });
      fake.answer = { status: 409, body: { error: { code: 409, status: "ABORTED", message: "Conflict." } } };
      await failureOf(send("Hello"));
    }));

  test("shows neither key nor token when the service repeats them", () =>
    withChat(async (fake, send) => {
      fake.mode = "refused";
      for (const said of ["fakeToken-of_theWebhook=", "fakeToken-of_theWebhook%3D"]) {
        fake.answer = { status: 403, body: { error: { code: 403, status: "X", message: `Bad ${said}, fakeKey` } } };
        assert.match((await failureOf(send("Hello"))).message, /"Bad \[redacted\], \[redacted\]"/);
      }
    }));

  test("refuses an address that is no webhook's before anything is sent", async () => {
    for (const webhook_url of [
      "https://chat.google.com/room/x",
      "https://chat.googleapis.com/v1/spaces/x/members?key=a",
    ]) {
      const settings = { webhook_url };
      const part = partOf(google_chat, { settings }, {}, "Hello");
      const error = await failureOf(google_chat.send(part, settings, toolsFor({})));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      await failureOf(google_chat.check(settings, toolsFor({})));
    }
  });

  test("takes no thread's key with blanks or braces", () => {
    for (const thread_key of ["a b", "{number}{x}", "x".repeat(301), "a\nb"])
      assert.throws(() => readAddress(google_chat, { thread_key }, {}), /thread_key/, thread_key);
  });
});
