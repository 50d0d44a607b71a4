import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readAddress } from "../../src/target/address.ts";
import { createDiscord } from "../../src/target/discord.ts";
import type { Part, SettingValues, Target, TargetTools } from "../../src/target/target.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { discordPlaces, type FakeDiscord, startFakeDiscord } from "../fakes/discord.ts";

const { channel, thread, quiet, forum, person, direct } = discordPlaces;
/** Mentions of all and of one, commands, links under another text, embedded media, code and spoilers of a stranger's. */
const live = [
  /@(?:everyone|here)/i,
  /<[@#][!&]?\d/,
  /(?<!\\)<[/:@#t]/,
  /(?<!\\)\[[^\]]*\]\((?!https?:)/,
  /(?<!\\)\|\|/,
];

testTarget("discord", {
  create: createDiscord,
  extra: { chat_id: channel },
  start: async () => {
    const fake = await startFakeDiscord({ hasForgotten: true });
    return { fake, settings: { token: fake.token, base_url: fake.baseUrl }, secret: fake.token };
  },
  expected: jsonService,
  elsewhere: { chat_id: quiet },
  live,
});

testTarget("discord by a webhook", {
  create: createDiscord,
  extra: {},
  start: async () => {
    const fake = await startFakeDiscord();
    return { fake, settings: { webhook_url: fake.webhookUrl }, secret: "fakeSecretOfTheHook" };
  },
  expected: jsonService,
  isBlind: true,
  live,
});

interface Scene {
  readonly target: Target;
  readonly settings: SettingValues;
  readonly tools: TargetTools;
  readonly part: (text: string, extra?: object, more?: Partial<Part>) => Part;
  readonly send: (text: string, extra?: object, more?: Partial<Part>) => ReturnType<Target["send"]>;
  readonly find: (text: string, extra?: object, more?: Partial<Part>) => Promise<unknown>;
}

/** A bot with a fake that is gone afterwards. */
async function withDiscord(use: (fake: FakeDiscord, scene: Scene) => Promise<void>, more: Partial<SettingValues> = {}) {
  const fake = await startFakeDiscord();
  const settings: SettingValues = { token: fake.token, base_url: fake.baseUrl, ...more };
  const target = createDiscord();
  const tools = toolsFor({});
  const part = (text: string, extra = {}, more = {}) => ({
    ...partOf(target, { settings }, { chat_id: channel, ...extra }, text),
    ...more,
  });
  const send: Scene["send"] = (text, extra, more) => target.send(part(text, extra, more), settings, tools);
  const find: Scene["find"] = async (text, extra, more) => target.find?.(part(text, extra, more), settings, tools);
  try {
    await use(fake, { target, settings, tools, part, send, find });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

async function viaWebhook(use: (fake: FakeDiscord, scene: Scene) => Promise<void>) {
  const url = { webhook_url: "" };
  await withDiscord(async (fake, scene) => {
    Object.assign(scene.settings, { token: undefined, webhook_url: fake.webhookUrl });
    await use(fake, scene);
  }, url);
}

describe("discord", () => {
  test("reaches nobody and shows no previews, unless it is told to", async () => {
    await withDiscord(async (fake, { send }) => {
      await send("<@42> @everyone");
      const { body } = fake.messages[0]!;
      assert.deepEqual([body.allowed_mentions, body.flags], [{ parse: [], replied_user: false }, 4]);
    });
    await withDiscord(
      async (fake, { send }) => {
        await send("<@42> @everyone *hi*");
        const { body, raw } = fake.messages[0]!;
        assert.match(raw, /^<@42> @everyone \*hi\*/);
        assert.deepEqual((body.allowed_mentions as { parse: unknown }).parse, ["users", "roles", "everyone"]);
        assert.equal("flags" in body, false);
      },
      { allow_mentions: true, link_previews: true },
    );
  });

  const written: [markdown: string, sent: string][] = [
    ["</run:1> <t:1> <:a:1>", "\\</run:1> \\<t:1> \\<:a:1>"],
    ["**bold** *italic* ~~gone~~ `a*b`", "**bold** *italic* ~~gone~~ `a*b`"],
    ["# Title\n\n#### Deep\n\n- one\n- [x] two", "# Title\n\n**Deep**\n\n- one\n- ☑ two"],
    ["```ts\nconst a = 1;\n```", "```ts\nconst a = 1;\n```"],
    ["snake_case and 2 * 3 | 4", "snake\\_case and 2 \\* 3 \\| 4"],
    ["see https://example.com/a_b_c?d=*e*", "see https://example.com/a_b_c?d=*e*"],
    ["[text](https://example.com/a_(b))", "[text](https://example.com/a_%28b%29)"],
    ["at https://example.com/@everyone", "at https://example.com/%40everyone"],
    ["[a\\](b)](https://example.com/c)", "[a\\](b)](https://example.com/c)"],
    ["\\# no title", "\\# no title"],
    ["![pixel](https://tracker.example/p.png)", "[pixel](https://tracker.example/p.png)"],
  ];
  for (const [markdown, sent] of written) {
    test(`writes Markdown in Discord's: ${JSON.stringify(markdown)}`, () =>
      withDiscord(async (fake, { send }) => {
        await send(markdown);
        assert.equal(fake.messages[0]!.raw.replace(/ [\u200b-\u200d\u2060]+$/, ""), sent);
      }));
  }

  test("shows text that is no Markdown as it is", () =>
    withDiscord(async (fake, { send }) => {
      await send("# **not bold** _x_ <b>\n- \\o/", { format: "plain" });
      assert.equal(fake.messages[0]!.text, "# **not bold** _x_ <b>\n- \\o/");
    }));

  test("has Discord drop a repeat within minutes, and leaves it at one copy", () =>
    withDiscord(async (fake, { send }) => {
      const first = await send("Hello");
      assert.deepEqual(await send("Hello"), first);
      assert.equal(fake.messages.length, 1);
      assert.match(fake.messages[0]!.nonce ?? "", /^[0-9a-f]{25}$/);
    }));

  test("sends into a thread of the channel, and into none of another", () =>
    withDiscord(async (fake, { send }) => {
      await send("Hello", { thread_id: thread });
      assert.equal(fake.messages[0]!.channel, thread);
      const error = await failureOf(send("Hello", { chat_id: quiet, thread_id: thread }));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /is no thread of the channel/);
      assert.equal(fake.messages.length, 1);
    }));

  test("writes to a person, and looks there", () =>
    withDiscord(async (fake, { send, find }) => {
      const to = { chat_id: `user:${person}` };
      const { reference } = await send("Hello", to);
      assert.equal(fake.messages[0]!.channel, direct);
      assert.deepEqual(await find("Hello", to), { reference });
    }));

  test("begins a post in a forum and puts the other parts into it", () =>
    withDiscord(async (fake, { send, find }) => {
      const to = { chat_id: forum, thread_name: `A title\u202e ${"x".repeat(120)}` };
      const parts = [0, 1, 2].map((index) => ({ index, count: 3, key: `${index}`.repeat(32), firstTriedAt: 5 }));
      for (const part of parts) await send(`Part ${part.index}`, to, part);
      const [first, ...others] = fake.messages;
      assert.equal(first!.title, `A title ${"x".repeat(92)}`);
      for (const other of others) assert.deepEqual([other.channel, other.title], [first!.channel, undefined]);
      assert.deepEqual(await find("Part 1", to, parts[1]), { reference: others[0]!.id });
      assert.equal((await failureOf(find("Part 0", to, parts[0]))).retryAfterMs, "never");
    }));

  test("begins a post through a webhook, in whichever form its address is", () =>
    viaWebhook(async (fake, { send, target, part, settings, tools }) => {
      const to = { chat_id: "", thread_name: "A title" };
      const parts = [0, 1].map((index) => ({ index, count: 2, key: `${index}`.repeat(32), firstTriedAt: 5 }));
      for (const one of parts) await send(`Part ${one.index}`, to, one);
      const [first, second] = fake.messages;
      assert.deepEqual([first!.title, second!.title, second!.channel], ["A title", undefined, first!.channel]);
      const versioned = { ...settings, webhook_url: `${fake.webhookUrl.replace("/api/", "/api/v9/")}/` };
      await target.send(part("Hello"), versioned, tools);
      await send("Hello again", { thread_id: thread });
      assert.equal(fake.messages.at(-1)!.channel, thread);
      for (const webhook_url of ["https://discord.com/channels/1/2", `${fake.webhookUrl}/../../x`]) {
        const error = await failureOf(Promise.resolve().then(() => target.send(part("x"), { webhook_url }, tools)));
        assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"], webhook_url);
      }
    }));

  test("finds what is on another page, and nothing of what was not sent", () =>
    withDiscord(async (_fake, { send, find }) => {
      const { reference } = await send("Hello");
      for (let count = 1; count < 105; count += 1) await send(`Later ${count}`);
      assert.deepEqual(await find("Hello"), { reference });
      assert.equal(await find("Never sent"), undefined);
    }));

  test("cannot tell when it may not read, or when Discord takes markers away", () =>
    withDiscord(async (fake, { send, find }) => {
      await send("Hello");
      for (const flaw of [{ mayRead: false }, { mayRead: true, keepsMarkers: false }]) {
        Object.assign(fake, flaw);
        const error = await failureOf(find("Hello"));
        assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"], error.message);
        assert.match(error.message, /Read Message History/);
      }
    }));

  test("asks nothing more for ten minutes with a token that Discord does not know", () =>
    withDiscord(async (fake, { settings, tools }) => {
      let now = 1_700_000_000_000;
      const target = createDiscord({ now: () => now });
      const part = partOf(target, { settings }, { chat_id: channel }, "Hello");
      const wrong = { ...settings, token: "another.token" };
      for (const waitMs of [0, 0, 599_999]) {
        now += waitMs;
        assert.equal((await failureOf(target.send(part, wrong, tools))).retryAfterMs, "never");
      }
      assert.equal(fake.heard.length, 1);
      await target.send(part, settings, tools);
      now += 2;
      await failureOf(target.send(part, wrong, tools));
      assert.equal(fake.heard.length, 3);
    }));

  const fates: [status: number, body: object, sent: "no" | "maybe", retryAfterMs: number | "never" | undefined][] = [
    [429, { message: "You are being rate limited.", retry_after: 0.25, global: true }, "no", 250],
    [400, { message: "Slowmode", code: 20016, retry_after: 12 }, "no", 12_000],
    [403, { message: "Missing Access", code: 50001 }, "no", "never"],
    [403, { message: "Cannot send messages to this user", code: 50007 }, "no", "never"],
    [400, { message: "Thread is archived", code: 50083 }, "no", "never"],
    [400, { message: "Invalid Form Body", code: 50035, errors: {} }, "no", "never"],
    [418, { message: "What is this", code: 999_999 }, "no", "never"],
    [503, { message: "Service Unavailable", code: 130_000 }, "maybe", undefined],
  ];
  for (const [status, body, sent, retryAfterMs] of fates) {
    test(`is right about when to try again: ${status} ${JSON.stringify(body)}`, () =>
      withDiscord(async (fake, { send }) => {
        fake.mode = "refused";
        fake.answer = { status, body };
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }

  test("says who the bot is, which channel is the home channel, and what a webhook is called", async () => {
    await withDiscord(async (fake, { target, settings, tools }) => {
      const check = (home_channel: string) => target.check({ ...settings, home_channel }, tools);
      assert.deepEqual(await check(channel), ['The bot is "postern"', 'The home channel is "ops"']);
      assert.match((await check(`user:${person}`))[1] ?? "", /cannot be tried/);
      assert.match((await failureOf(check("1999999999999999999"))).message, /Unknown Channel/);
      assert.deepEqual(await target.check({ webhook_url: fake.webhookUrl }, tools), ['The webhook is "Builds"']);
    });
  });

  test("takes ids only as addresses", () => {
    const target = createDiscord();
    for (const chat_id of [
      "1",
      "@everyone",
      "user:",
      `${channel}/x`,
      `user:${channel}?`,
      "１100000000000000001",
      "0".repeat(18),
    ]) {
      assert.throws(() => readAddress(target, { chat_id }, {}), /is not a channel's id/, chat_id);
    }
  });
});
