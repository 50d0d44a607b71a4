import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { splitText } from "../../src/core/split.ts";
import { readAddress } from "../../src/target/address.ts";
import { createHomeassistant, homeassistant } from "../../src/target/homeassistant.ts";
import type { Receipt } from "../../src/target/target.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeHomeAssistant, startFakeHomeAssistant } from "../fakes/homeassistant.ts";

const common = {
  create: createHomeassistant,
  start: async () => {
    const fake = await startFakeHomeAssistant();
    return { fake, settings: { token: fake.token, base_url: fake.baseUrl }, secret: fake.token };
  },
  expected: jsonService,
};
/** What the app would carry out. */
const commands = [/^\s*(?:command_\w+|clear_notification|request_location_update|delete_alert)\s*$/];
/** What Home Assistant would render. */
const templates = [/\{[{%#]/];
/** Images, links with a text of their own, HTML. */
const markdown = [/(?<!\\)!\[/, /(?<!\\)\]\(/, /(?<!\\)<[a-z!/]/i];

testTarget("homeassistant to a telephone", {
  ...common,
  extra: { chat_id: "notify.mobile_app_phone" },
  live: [...commands, ...templates],
});
testTarget("homeassistant to an entity", {
  ...common,
  extra: { chat_id: "entity:notify.kitchen" },
  live: [...commands, ...templates],
});
for (const chat_id of ["persistent_notification", "notify.persistent_notification"]) {
  testTarget(`homeassistant in the web interface by ${chat_id}`, {
    ...common,
    extra: { chat_id },
    live: [...markdown, ...templates],
  });
}

const webPlaces = ["persistent_notification", "notify.persistent_notification"];

type Send = (text: string, extra: Readonly<Record<string, string>>) => Promise<Receipt>;

/** Tries with a fake that is gone afterwards. */
async function withHome(use: (fake: FakeHomeAssistant, send: Send) => Promise<void>) {
  const fake = await startFakeHomeAssistant();
  const settings = { token: fake.token, base_url: fake.baseUrl };
  try {
    await use(fake, (text, extra) =>
      homeassistant.send(partOf(homeassistant, { settings }, extra, text), settings, toolsFor({})),
    );
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("homeassistant", () => {
  test("tags what a repeat is to take the place of, where the notifier knows such a thing", () =>
    withHome(async (fake, send) => {
      for (const chat_id of ["notify.mobile_app_phone", "mobile_app_phone", "notify.family", "entity:notify.kitchen"]) {
        await send("x", { chat_id });
      }
      await send("x", { chat_id: "persistent_notification" });
      const { key } = partOf(homeassistant, { settings: {} }, { chat_id: "notify.family" }, "x");
      assert.deepEqual(
        fake.messages.map(({ action, body }) => [action, body.data ?? body.notification_id ?? body.entity_id]),
        [
          ["notify.mobile_app_phone", { tag: key }],
          ["notify.mobile_app_phone", { tag: key }],
          ["notify.family", undefined],
          ["notify.send_message", "notify.kitchen"],
          ["persistent_notification.create", `postern_${key}`],
        ],
      );
    }));

  test("counts text that is no Markdown as long as it is", () => {
    const marks = "**a** ".repeat(900);
    const parts = splitText(marks, homeassistant.limit);
    assert.ok(parts.length > 1 && parts.every((part) => Buffer.byteLength(part) <= 3000));
  });

  test("gives the title in one line, or none", () =>
    withHome(async (fake, send) => {
      await send("x", { chat_id: "notify.family", title: "Build\r\n7 \u202efailed" });
      await send("x", { chat_id: "persistent_notification" });
      assert.deepEqual(
        fake.messages.map(({ body }) => body.title),
        ["Build 7 failed", undefined],
      );
    }));

  for (const chat_id of ["notify.family", "entity:notify.kitchen", ...webPlaces]) {
    test(`has no template of a stranger rendered by ${chat_id}, in neither text nor title`, () =>
      withHome(async (fake, send) => {
        const text = 'x {{ states("person.owner") }} {% if 1 %}y{% endif %} {# z #} {{{ {"a":{"b":1}} {';
        for (const format of ["plain", "markdown"]) await send(text, { chat_id, title: text, format });
        const seen = fake.messages.flatMap((message) => [message.text, message.title]);
        assert.deepEqual(
          seen.map((one) => one?.replaceAll("\u200b", "")),
          Array(4).fill(text),
        );
        for (const { body } of fake.messages) assert.doesNotMatch(`${body.message} ${body.title}`, /\{[{%#]/);
      }));
  }

  test("keeps a part short enough whose braces were parted", () => {
    const [part = ""] = splitText("{".repeat(5000), homeassistant.limit);
    assert.ok(Buffer.byteLength(homeassistant.limit.rendered?.(part) ?? part) <= 3000);
  });

  for (const words of [
    "command_flashlight",
    "request_location_update",
    " clear_notification\n",
    "TTS",
    "delete_alert",
  ]) {
    test(`sends no command to the telephone: ${JSON.stringify(words)}`, () =>
      withHome(async (fake, send) => {
        await send(words, { chat_id: "notify.mobile_app_phone" });
        assert.equal(fake.messages[0]!.raw, `\u200b${words.trim()}`);
      }));
  }

  for (const chat_id of webPlaces) {
    test(`leaves addresses whole in the web interface, and nothing else that could be a mark: ${chat_id}`, () =>
      withHome(async (fake, send) => {
        await send("See https://ci.example/a_b-c?x=1, !\\[x\\](https://evil.example/a.png) <img src=x>", { chat_id });
        const { raw } = fake.messages[0]!;
        assert.match(raw, /See https:\/\/ci\.example\/a_b-c\?x=1/);
        assert.match(raw, /\\!\\\[x\\\]\\\(https:\/\/evil\.example\/a\.png\\\) \\<img src\\=x\\>$/);
      }));
  }

  const fates: [status: number, answer: object, sent: "no" | "maybe", wait: "never" | undefined, words: RegExp][] = [
    [400, { body: { message: "Service not found" } }, "no", "never", /check the name of the notifier$/],
    [401, { text: "401: Unauthorized" }, "no", "never", /"401: Unauthorized"; check the "token"$/],
    [403, { text: "403: Forbidden" }, "no", "never", /banned/],
    [404, { text: "404: Not Found" }, "no", "never", /base_url/],
    [404, { text: "<html>" }, "no", "never", /not one of Home Assistant/],
    [500, { text: "500 Internal Server Error" }, "maybe", undefined, /500/],
    [200, { body: { ok: true } }, "maybe", undefined, /not one of Home Assistant/],
  ];
  for (const [status, answer, sent, wait, words] of fates) {
    test(`is right about when to try again after ${status} ${JSON.stringify(answer)}`, () =>
      withHome(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status, ...answer };
        const error = await failureOf(send("x", { chat_id: "notify.family" }));
        assert.deepEqual([error.sent, error.retryAfterMs], [sent, wait], error.message);
        assert.match(error.message, words);
      }));
  }

  test("finds whether the home channel is there", () =>
    withHome(async (fake) => {
      const check = (home_channel: string) =>
        homeassistant.check({ token: fake.token, base_url: fake.baseUrl, home_channel }, toolsFor({}));
      for (const home of ["notify.family", "mobile_app_phone", "entity:notify.kitchen"]) {
        assert.deepEqual(await check(home), ["The token is good", `The home channel is "${home}"`]);
      }
      await assert.rejects(check("notify.nobody"), /there is no notify\.nobody/);
      await assert.rejects(check("entity:notify.nobody"), /Entity not found/);
      assert.equal(fake.messages.length, 0);
    }));

  const refused = [
    ...[
      "shell_command.x",
      "script.notify",
      "hassio.host_reboot",
      "notify",
      "notify.",
      "notify.send_message",
      "tts.speak",
    ],
    ...[
      "notify.a/../../x",
      "notify.a.b",
      "notify.A",
      "light.turn_on",
      "entity:light.kitchen",
      "persistent_notification.create",
    ],
    ...["homeassistant.restart", "notify.x\n", "notify_x", "mobile_app_", "entity:notify."],
  ];
  for (const chat_id of refused) {
    test(`calls nothing named ${JSON.stringify(chat_id)}`, () => {
      assert.throws(() => readAddress(homeassistant, { chat_id }, {}), { sent: "no", retryAfterMs: "never" });
    });
  }
});
