import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readSettings } from "../../src/target/settings.ts";
import type { SettingValues } from "../../src/target/target.ts";
import { createWhatsapp, whatsapp } from "../../src/target/whatsapp.ts";
import { jsonService, later } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import type { FakeService } from "../fakes/service.ts";
import {
  cloudError,
  type FakeCloud,
  startFakeBridge,
  startFakeCloud,
  type WhatsappMessage,
} from "../fakes/whatsapp.ts";

const person = "+15550111";
// A text calls nobody: whoever is mentioned stands beside it.
const live: RegExp[] = [];

function cloudSettings(fake: FakeCloud): SettingValues {
  return { token: fake.token, phone_number_id: fake.phoneNumberId, base_url: fake.baseUrl, api_version: "v23.0" };
}

testTarget("whatsapp by the Cloud API", {
  create: createWhatsapp,
  extra: { chat_id: person },
  start: async () => {
    const fake = await startFakeCloud();
    return { fake, settings: cloudSettings(fake), secret: fake.token };
  },
  // The limit of a pair of numbers, of which the documentation says that it takes 6 seconds.
  expected: { ...jsonService, limited: { copies: 0, sent: "no", retryAfterMs: 6000 } },
  live,
});

testTarget("whatsapp by a bridge", {
  create: createWhatsapp,
  extra: { chat_id: person },
  start: async () => {
    const fake = await startFakeBridge();
    return { fake, settings: { bridge_url: fake.baseUrl }, secret: "no secret here" };
  },
  // It names no time.
  expected: { ...jsonService, limited: later },
  live,
});

type Send = (text: string, extra?: object, settings?: SettingValues) => Promise<unknown>;

async function withFake<Fake extends FakeService<WhatsappMessage>>(
  start: () => Promise<Fake>,
  settingsOf: (fake: Fake) => SettingValues,
  use: (fake: Fake, send: Send) => Promise<void>,
) {
  const fake = await start();
  const send: Send = async (text, extra = {}, more = {}) => {
    const settings = { ...settingsOf(fake), ...more };
    return whatsapp.send(partOf(whatsapp, { settings }, { chat_id: person, ...extra }, text), settings, toolsFor({}));
  };
  try {
    await use(fake, send);
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

const withCloud = (use: (fake: FakeCloud, send: Send) => Promise<void>) => withFake(startFakeCloud, cloudSettings, use);
const withBridge = (use: (fake: FakeService<WhatsappMessage>, send: Send) => Promise<void>) =>
  withFake(startFakeBridge, ({ baseUrl }) => ({ bridge_url: baseUrl }), use);

describe("whatsapp by the Cloud API", () => {
  test("writes Markdown as WhatsApp does, and parts marks that are none", () =>
    withCloud(async (fake, send) => {
      await send("# Head\n\n**bold** *italic* ~~gone~~ `code` [a page](https://example.org/)\n\n```sh\nls *.ts\n```");
      await send("ls *.ts *.js in snake_case_names, 2 * 3 * 4");
      await send("**one** _two_", { format: "plain" });
      assert.deepEqual(
        fake.messages.map(({ raw }) => raw),
        [
          "*Head*\n\n*bold* _italic_ ~gone~ `code` a page (https://example.org/)\n\n```\nls *.ts\n```",
          "ls *.ts *.js in snake_case_names, 2 * 3 * 4",
          "*\u200b*\u200bone** _\u200btwo_",
        ],
      );
    }));

  test("shows no previews unless told to, answers to a message, and gives the key for the webhooks", () =>
    withCloud(async (fake, send) => {
      await send("one", { reply_to: "wamid.abc=" });
      await send("two", {}, { link_previews: true });
      const [first, second] = fake.messages.map(({ body }) => body);
      assert.deepEqual(first?.context, { message_id: "wamid.abc=" });
      assert.deepEqual(
        [first?.text, second?.text],
        [
          { body: "one", preview_url: false },
          { body: "two", preview_url: true },
        ],
      );
      assert.match(String(first?.biz_opaque_callback_data), /^[0-9a-f]{32}$/);
    }));

  test("takes a number in three forms, and a group", () =>
    withCloud(async (fake, send) => {
      for (const chat_id of ["15550111", "+15550111", "15550111@s.whatsapp.net", "group:Y2FwaV9n"]) {
        await send("Hello", { chat_id });
      }
      assert.deepEqual(
        fake.messages.map(({ to, body }) => [to, body.recipient_type]),
        [...Array(3).fill(["15550111", "individual"]), ["Y2FwaV9n", "group"]],
      );
    }));

  for (const chat_id of ["0155501", "ana", "15550111@evil.example", "group:../x", "{number}", "1555 0111"]) {
    test(`refuses ${chat_id} as an address`, () =>
      withCloud(async (fake, send) => {
        await assert.rejects(send("Hello", { chat_id }), /chat_id/);
        assert.equal(fake.heard.length, 0);
      }));
  }

  test("refuses a chat of a bridge", () =>
    withCloud(async (fake, send) => {
      assert.equal((await failureOf(send("Hello", { chat_id: "12345-67890@g.us" }))).retryAfterMs, "never");
      assert.equal(fake.heard.length, 0);
    }));

  const wrong: [key: string, value: string, message: RegExp][] = [
    [
      "phone_number_id",
      "+15550100",
      /^Expected id of the number that sends, digits such as "106.*, found "\+15550100"$/,
    ],
    ["phone_number_id", "1/../../x", /^Expected id/],
    ["phone_number_id", "106540352242922?", /^Expected id/],
    ["api_version", "v23.0/x", /^Expected version of the Graph API, such as "v23\.0", found "v23\.0\/x"$/],
    ["api_version", "23.0", /^Expected version/],
  ];
  for (const [key, value, message] of wrong) {
    test(`refuses the ${key} ${value} when the configuration is read`, () => {
      const section = { token: "EAA", phone_number_id: "106540352242922", [key]: value };
      const read = readSettings(whatsapp, section, {});
      assert.ok("problems" in read);
      assert.deepEqual(
        read.problems.map((problem) => problem.key),
        [key],
      );
      assert.match(read.problems[0]!.message, message);
    });
  }

  test("sends the template when free text is not taken, with the text in its variable", () =>
    withCloud(async (fake, send) => {
      const template = { template: "build_news", template_language: "de" };
      await send("**Build** 7\n\nhas\tpassed", { chat_id: "+15550222" }, template);
      assert.deepEqual(
        fake.messages.map(({ body }) => body.template),
        [
          {
            name: "build_news",
            language: { code: "de" },
            components: [{ type: "body", parameters: [{ type: "text", text: "Build 7 has passed" }] }],
          },
        ],
      );
      assert.equal(fake.tries, 2);
    }));

  test("says that a template is needed when the settings have none", () =>
    withCloud(async (_fake, send) => {
      const failure = await failureOf(send("Hello", { chat_id: "+15550222" }));
      assert.equal(failure.retryAfterMs, "never");
      assert.match(failure.message, /24 hours; set "template"/);
    }));

  const fates: [number, number, object, "no" | "maybe", number | "never" | undefined][] = [
    [400, 4, {}, "no", undefined],
    [400, 80_007, {}, "no", undefined],
    [429, 130_429, {}, "no", undefined],
    [503, 131_016, {}, "no", undefined],
    [500, 131_000, {}, "maybe", undefined],
    [400, 1, {}, "maybe", undefined],
    [500, 2, {}, "maybe", undefined],
    [400, 999_999, { is_transient: true }, "no", undefined],
    [400, 999_999, {}, "no", "never"],
    [500, 999_999, {}, "maybe", undefined],
    [500, 131_026, {}, "no", "never"],
    [401, 190, {}, "no", "never"],
    [400, 368, {}, "no", "never"],
  ];
  for (const [status, code, more, sent, retryAfterMs] of fates) {
    test(`decides by the code: ${code} with status ${status} ${JSON.stringify(more)}`, () =>
      withCloud(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = cloudError(status, code, "It went wrong", { error_data: { details: "The details" }, ...more });
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
        assert.match(failure.message, /It went wrong: The details/);
      }));
  }

  test("says before anything is sent that the token is not good", () =>
    withCloud(async (fake) => {
      const settings = { ...cloudSettings(fake), token: "EAAanotherFakeToken" };
      const failure = await failureOf(whatsapp.check(settings, toolsFor({})));
      assert.match(failure.message, /set a new "token"/);
      assert.ok(!failure.message.includes("EAAanotherFakeToken"));
    }));
});

describe("whatsapp by a bridge", () => {
  test("names chats as WhatsApp does, and answers to a message", () =>
    withBridge(async (fake, send) => {
      await send("one", { chat_id: "+15550111", reply_to: "3EB0ABC" });
      await send("two", { chat_id: "120363041234567890@g.us" });
      assert.deepEqual(
        fake.messages.map(({ to, body }) => [to, body.replyTo]),
        [
          ["15550111@s.whatsapp.net", "3EB0ABC"],
          ["120363041234567890@g.us", undefined],
        ],
      );
    }));

  for (const bridge_url of ["http://bridge.example:3000", "http://127.0.0.1.example:3000", "http://10.0.0.5:3000"]) {
    test(`talks to a bridge on this machine only: ${bridge_url}`, () =>
      withBridge(async (_fake, send) => {
        const failure = await failureOf(send("Hello", {}, { bridge_url }));
        assert.match(failure.message, /must be on this machine/);
        assert.equal(failure.retryAfterMs, "never");
        const read = readSettings(whatsapp, { bridge_url }, {});
        assert.ok("problems" in read);
        assert.match(read.problems[0]!.message, /^Expected address of a WhatsApp bridge on this machine/);
      }));
  }

  for (const bridge_url of ["http://localhost:3000", "http://127.0.0.1:3000/wa", "https://[::1]", "HTTP://LocalHost"]) {
    test(`takes the bridge at ${bridge_url}`, () => {
      assert.ok("values" in readSettings(whatsapp, { bridge_url }, {}));
    });
  }

  for (const body of [{ success: true }, { messageId: "3EB0" }, { success: true, messageId: "3EB0" }]) {
    test(`counts as sent what the bridge answers 200 ${JSON.stringify(body)} to`, () =>
      withBridge(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status: 200, body };
        const receipt = await send("Hello");
        const reference = body.messageId ?? "taken by the bridge, which gave no id";
        assert.deepEqual(receipt, { reference });
      }));
  }

  const fates: [number, object, "no" | "maybe", number | "never" | undefined][] = [
    [500, { error: "Connection Closed" }, "maybe", undefined],
    [503, { error: "Not connected to WhatsApp" }, "no", undefined],
    [200, { success: false, error: "no such chat" }, "no", "never"],
    [200, { success: false, messageId: "3EB0" }, "no", "never"],
    [200, { messageId: "3EB0", error: "no such chat" }, "no", "never"],
    [200, { message: "hello from the proxy" }, "maybe", undefined],
  ];
  for (const [status, body, sent, retryAfterMs] of fates) {
    test(`decides by status and body: ${status} ${JSON.stringify(body)}`, () =>
      withBridge(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status, body };
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }
});
