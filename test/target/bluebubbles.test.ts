import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bluebubbles, createBluebubbles } from "../../src/target/bluebubbles.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { SettingValues } from "../../src/target/target.ts";
import { jsonService, unknownNotTaken } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { bubblesError, type FakeBlueBubbles, startFakeBlueBubbles } from "../fakes/bluebubbles.ts";

const chat = "iMessage;-;+15550111";

testTarget("bluebubbles", {
  create: createBluebubbles,
  extra: { chat_id: chat },
  start: async () => {
    const fake = await startFakeBlueBubbles();
    return { fake, settings: { password: fake.password, base_url: fake.baseUrl }, secret: fake.password };
  },
  // All that it says of "later" is that the message waits already: an earlier try may yet be sent.
  expected: { ...jsonService, limited: unknownNotTaken },
  // A text is nothing but text to it.
  live: [],
});

type Send = (text: string, extra?: object, settings?: SettingValues) => Promise<unknown>;

async function withServer(use: (fake: FakeBlueBubbles, send: Send, settings: SettingValues) => Promise<void>) {
  const fake = await startFakeBlueBubbles();
  const common = { password: fake.password, base_url: fake.baseUrl };
  const send: Send = async (text, extra = {}, more = {}) => {
    const settings = { ...common, ...more };
    const part = partOf(bluebubbles, { settings }, { chat_id: chat, ...extra }, text);
    return bluebubbles.send(part, settings, toolsFor({}));
  };
  try {
    await use(fake, send, common);
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("bluebubbles", () => {
  test("sends plain text by AppleScript, under a key of its own", () =>
    withServer(async (fake, send) => {
      await send("**one** `two` [a page](https://example.org/)");
      await send("**one**", { format: "plain" });
      const [first, second] = fake.messages;
      assert.deepEqual([first?.text, second?.text], ["one two a page (https://example.org/)", "**one**"]);
      assert.equal(first?.body.method, "apple-script");
      assert.match(String(first?.body.tempGuid), /^[0-9a-f]{32}$/);
      assert.notEqual(first?.body.tempGuid, second?.body.tempGuid);
    }));

  test("writes to a new address, and answers to a message, with the Private API", () =>
    withServer(async (fake, send) => {
      const settings = { private_api: true };
      await send("one", { chat_id: "+15550122" }, settings);
      await send("two", { chat_id: "ana@example.org" }, settings);
      await send("three", { thread_id: "0A1B2C3D-4E5F" }, settings);
      assert.deepEqual(
        fake.messages.map(({ path, body }) => [path, body.addresses, body.selectedMessageGuid]),
        [
          ["/chat/new", ["+15550122"], undefined],
          ["/chat/new", ["ana@example.org"], undefined],
          ["/message/text", undefined, "0A1B2C3D-4E5F"],
        ],
      );
      assert.deepEqual(new Set(fake.messages.map(({ body }) => body.method)), new Set(["private-api"]));
    }));

  for (const extra of [{ chat_id: "+15550122" }, { message_guid: "0A1B2C3D-4E5F" }]) {
    test(`says that ${Object.keys(extra)} needs the Private API`, () =>
      withServer(async (fake, send) => {
        const failure = await failureOf(send("Hello", extra));
        assert.match(failure.message, /"private_api"/);
        assert.deepEqual([failure.sent, failure.retryAfterMs, fake.heard.length], ["no", "never", 0]);
      }));
  }

  for (const chat_id of ["ana", "iMessage;?;x", "iMessage;-;a b", "iMessage;-;a/../b", "{sender}", "15550111", "a@b"]) {
    test(`refuses ${chat_id} as an address`, () =>
      withServer(async (fake, send) => {
        await assert.rejects(send("Hello", { chat_id }, { private_api: true }), /chat_id/);
        assert.equal(fake.heard.length, 0);
      }));
  }

  const fates: [ReturnType<typeof bubblesError>, "no" | "maybe", number | "never" | undefined][] = [
    [bubblesError(401, "Authentication Error", "Unauthorized"), "no", "never"],
    [bubblesError(400, "Validation Error", "The chatGuid field is required"), "no", "never"],
    [bubblesError(500, "Server Error", "AppleScript timed out"), "maybe", undefined],
    [bubblesError(504, "Gateway Timeout", "Transaction timeout"), "maybe", undefined],
    [{ status: 200, body: { status: 500, message: "It failed" } }, "maybe", undefined],
    [{ status: 200, body: { status: 400, message: "It failed" } }, "no", "never"],
    [{ ...bubblesError(500, "iMessage Error", "Message failed to send!"), status: 200 }, "no", "never"],
    [
      { ...bubblesError(400, "Validation Error", "Message is already queued to be sent!"), status: 200 },
      "maybe",
      undefined,
    ],
    [{ ...bubblesError(401, "Authentication Error", "Unauthorized"), status: 200 }, "no", "never"],
    [{ status: 200, body: { status: 200, message: "Message sent!", data: { guid: "x", error: 22 } } }, "no", "never"],
    [{ status: 200, body: { ok: true } }, "maybe", undefined],
  ];
  for (const [answer, sent, retryAfterMs] of fates) {
    test(`decides by status and body: ${answer.status} ${JSON.stringify(answer.body)}`, () =>
      withServer(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = answer;
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }

  test("says before anything is sent that the home channel is not there, or the password wrong", () =>
    withServer(async (_fake, _send, settings) => {
      const check = (more: SettingValues) => bluebubbles.check({ ...settings, ...more }, toolsFor({}));
      assert.deepEqual(await check({ home_channel: chat }), [
        "The server takes the password",
        "The home channel is there",
      ]);
      assert.match((await failureOf(check({ home_channel: "iMessage;+;chat9" }))).message, /no chat with the guid/);
      const failure = await failureOf(check({ password: "wrong pass&word" }));
      assert.match(failure.message, /check the "password"/);
      assert.doesNotMatch(failure.message, /wrong.pass/);
    }));

  test("takes the password by the name of token", () => {
    const read = readSettings(bluebubbles, { server_url: "https://mac.example", token: "secret" }, {});
    assert.equal("values" in read && read.values.password, "secret");
  });

  test("shows the password in no form when the server repeats the address", () =>
    withServer(async (fake, send) => {
      fake.mode = "refused";
      const { search } = new URL(`http://x/?${new URLSearchParams({ password: fake.password })}`);
      const said = `No such page: ${search} ${encodeURIComponent(fake.password)} ${fake.password}`;
      fake.answer = bubblesError(404, "Not Found", said);
      const { message } = await failureOf(send("Hello"));
      assert.match(message, /No such page: \?password=\[redacted\] \[redacted\] \[redacted\]/);
    }));
});
