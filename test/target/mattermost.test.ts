import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readAddress } from "../../src/target/address.ts";
import { createMattermost } from "../../src/target/mattermost.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { SettingValues, Target, TargetTools } from "../../src/target/target.ts";
import { delivered, inSevenSeconds, jsonService, never, unknownTaken } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeMattermost, mattermostPlaces, startFakeMattermost } from "../fakes/mattermost.ts";

const { channel, quiet, person, direct } = mattermostPlaces;
/** Mentions of all and, where no code can be, of one, and images that are loaded. */
const live = [/@(?:all|channel|here|everyone)\b/i, /(?<![A-Za-z0-9])@[a-z](?![\s\S]*`)/i, /(?<!\\)!\[[^\]]*\]\(/];
/** Slack's markup, where it is no code. */
const slackMarkup = [/<[!@](?!\u200b)\w/];

testTarget("mattermost", {
  create: createMattermost,
  extra: { chat_id: channel },
  start: async () => {
    const fake = await startFakeMattermost({ hasForgotten: true });
    return { fake, settings: { token: fake.token, base_url: fake.baseUrl }, secret: fake.token };
  },
  expected: jsonService,
  elsewhere: { chat_id: quiet },
  live,
});

testTarget("mattermost by an incoming webhook", {
  create: createMattermost,
  extra: {},
  start: async () => {
    const fake = await startFakeMattermost();
    return { fake, settings: { webhook_url: fake.webhookUrl }, secret: "fakesecretofthehook" };
  },
  // "ok" is what counts, and the rest of the answer must be there.
  expected: { ...jsonService, ok: delivered, refused: never, limited: inSevenSeconds, reset: unknownTaken },
  isBlind: true,
  live: [...live, ...slackMarkup],
});

interface Scene {
  readonly target: Target;
  readonly settings: SettingValues;
  readonly tools: TargetTools;
  readonly send: (text: string, extra?: object) => ReturnType<Target["send"]>;
  readonly find: (text: string, extra?: object) => Promise<unknown>;
}

/** A bot, or what `more` says, with a fake that is gone afterwards. */
async function withMattermost(
  use: (fake: FakeMattermost, scene: Scene) => Promise<void>,
  more: (fake: FakeMattermost) => SettingValues = () => ({}),
) {
  const fake = await startFakeMattermost();
  const settings: SettingValues = { token: fake.token, base_url: fake.baseUrl, ...more(fake) };
  const target = createMattermost();
  const tools = toolsFor({});
  const part = (text: string, extra = {}) => partOf(target, { settings }, { chat_id: channel, ...extra }, text);
  const send = (text: string, extra = {}) => target.send(part(text, extra), settings, tools);
  const find = async (text: string, extra = {}) => target.find?.(part(text, extra), settings, tools);
  try {
    await use(fake, { target, settings, tools, send, find });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

const byWebhook = ({ webhookUrl }: FakeMattermost) => ({ token: undefined, webhook_url: webhookUrl });

describe("mattermost", () => {
  const written: [markdown: string, sent: string][] = [
    ["**bold** _italic_ ~~gone~~ `a_b`", "**bold** *italic* ~~gone~~ `a_b`"],
    ["# Title\n\n1. one\n2. two\n   - [x] done", "# Title\n\n1. one\n2. two\n   - [x] done"],
    ["| a | b |\n|---|---|\n| 1 | x\\|y |", "| a | b |\n| --- | --- |\n| 1 | x\\|y |"],
    ["```sh\necho @all\n```", "```sh\necho @\u200ball\n```"],
    ["hi @all and @jane, mail a@b.example", "hi @\u200ball and @\u200bjane, mail a@b.example"],
    ["&#64;all &amp; R&D", "&amp;#64;all &amp;amp; R&D"],
    ["\\![pixel](https://tracker.example/p.png)", "\\![pixel](https://tracker.example/p.png)"],
    ["[a\\](/b)](https://example.com/c)", "[a\\](/b)](https://example.com/c)"],
    ["![pixel](https://tracker.example/p.png)", "[pixel](https://tracker.example/p.png)"],
    ["see https://example.com/a_b/@here", "see https://example.com/a_b/%40here"],
  ];
  for (const [markdown, sent] of written) {
    test(`writes Markdown in Mattermost's: ${JSON.stringify(markdown)}`, () =>
      withMattermost(async (fake, { send }) => {
        await send(markdown);
        assert.equal(fake.messages[0]!.raw, sent);
      }));
  }

  test("takes the power out of Slack's markup, which a webhook's text has too", () =>
    withMattermost(async (fake, { send }) => {
      await send("<!channel> <@jane> <https://evil.example|bank> `<!here>`");
      const { raw } = fake.messages[0]!;
      assert.equal(
        raw,
        "&lt;!channel> &lt;@\u200bjane> https://evil.example\\|bank (https://evil.example%7Cbank) `<\u200b!here>`",
      );
    }, byWebhook));

  test("lets mentions through when it is told to, and previews", () =>
    withMattermost(
      async (fake, { send }) => {
        await send("hi @all");
        const { raw, body } = fake.messages[0]!;
        assert.equal(raw, "hi @all");
        assert.equal("remove_link_preview" in (body.props as object), false);
      },
      () => ({ allow_mentions: true, link_previews: true }),
    ));

  test("shows text that is no Markdown as it is", () =>
    withMattermost(async (fake, { send }) => {
      const text = "# **not bold** _x_ <b>\n1. one\n- two\n===\n&lt; \\o/";
      await send(text, { format: "plain" });
      assert.equal(fake.messages[0]!.text, text);
    }));

  test("answers to a post by either key, without previews, and has a repeat of these seconds dropped", () =>
    withMattermost(async (fake, { send }) => {
      const root = "root1root1root1root1root1r";
      const first = await send("Hello", { thread_id: root });
      assert.deepEqual(await send("Hello", { root_id: root }), first);
      assert.equal(fake.messages.length, 1);
      const { rootId, body } = fake.messages[0]!;
      assert.deepEqual([rootId, (body.props as Record<string, string>).remove_link_preview], [root, "true"]);
    }));

  test("cannot answer to a post through a webhook, and says so", () =>
    withMattermost(async (fake, { send }) => {
      const error = await failureOf(
        send("Hello", { root_id: channel }).catch((reason: unknown) => Promise.reject(reason)),
      );
      assert.deepEqual([error.sent, error.retryAfterMs, fake.tries], ["no", "never", 0]);
      assert.match(error.message, /leave "root_id" out/);
    }, byWebhook));

  test("writes to a person, and looks there", () =>
    withMattermost(async (fake, { send, find }) => {
      const to = { chat_id: `user:${person}` };
      const { reference } = await send("Hello", to);
      assert.equal(fake.messages[0]!.channel, direct);
      assert.deepEqual(await find("Hello", to), { reference });
    }));

  test("cannot tell when the server does not show all that is new", () =>
    withMattermost(async (fake, { send, find }) => {
      const { reference } = await send("Hello");
      fake.foreignPosts = 999;
      assert.deepEqual(await find("Hello"), { reference });
      fake.foreignPosts = 1000;
      assert.equal((await failureOf(find("Hello"))).retryAfterMs, "never");
    }));

  const fates: [status: number, id: string, sent: "no" | "maybe", retryAfterMs: number | "never" | undefined][] = [
    [400, "model.post.is_valid.message_length.app_error", "no", "never"],
    [401, "api.context.session_expired.app_error", "no", "never"],
    [404, "app.channel.get.existing.app_error", "no", "never"],
    [500, "api.post.deduplicate_create_post.pending", "maybe", undefined],
    [501, "api.not_implemented", "maybe", undefined],
  ];
  for (const [status, id, sent, retryAfterMs] of fates) {
    test(`is right about when to try again: ${status} ${id}`, () =>
      withMattermost(async (fake, { send }) => {
        fake.mode = "refused";
        fake.answer = { status, body: { id, message: "What it says", request_id: "r", status_code: status } };
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }

  for (const id of ["ok", "Post1".repeat(6), "x".repeat(27), 7]) {
    test(`is not certain of a post of which the id is ${id}`, () =>
      withMattermost(async (fake, { send }) => {
        fake.mode = "refused";
        fake.answer = { status: 201, body: { id, message: "Hello" } };
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], ["maybe", undefined], failure.message);
      }));
  }

  test("says who the bot is and which channel is the home channel", () =>
    withMattermost(async (_fake, { target, settings, tools }) => {
      const check = (home_channel: string) => target.check({ ...settings, home_channel }, tools);
      assert.deepEqual(await check(channel), ['The bot is "postern"', 'The home channel is "Ops"']);
      assert.match((await check(`user:${person}`))[1] ?? "", /cannot be tried/);
      assert.match((await failureOf(check("x".repeat(26)))).message, /Unable to find the channel/);
    }));

  test("needs the server's address with a token, by any of its names", () => {
    const target = createMattermost();
    assert.deepEqual("problems" in readSettings(target, { token: "x".repeat(26) }, {}), true);
    for (const section of [{ extra: { url: "https://chat.example/" } }, { base_url: "https://chat.example" }]) {
      const read = readSettings(target, { token: "x".repeat(26), ...section }, {});
      assert.equal("values" in read && read.values.base_url, "https://chat.example");
    }
    const read = readSettings(target, undefined, { MATTERMOST_TOKEN: "x", MATTERMOST_URL: "https://chat.example" });
    assert.ok("values" in read);
  });

  test("takes ids only as addresses", () => {
    const target = createMattermost();
    for (const chat_id of ["town-square", "@jane", `${channel}/posts`, `user:${channel}1`, channel.toUpperCase()]) {
      assert.throws(() => readAddress(target, { chat_id }, {}), /is not a channel's id/, chat_id);
    }
  });
});
