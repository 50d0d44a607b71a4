import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readAddress } from "../../src/target/address.ts";
import { createNtfy, ntfy } from "../../src/target/ntfy.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { Receipt, SettingValues } from "../../src/target/target.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeNtfy, startFakeNtfy } from "../fakes/ntfy.ts";

const way = (settings: (fake: FakeNtfy) => SettingValues) => ({
  create: createNtfy,
  start: async () => {
    const fake = await startFakeNtfy();
    return { fake, settings: { base_url: fake.baseUrl, ...settings(fake) }, secret: fake.token };
  },
  expected: jsonService,
});

testTarget("ntfy with a token", { ...way(({ token }) => ({ token })), extra: { chat_id: "builds" } });
testTarget("ntfy with a password, as Markdown", {
  ...way(({ password }) => ({ username: "ops", password, markdown: true })),
  extra: { topic: "builds" },
  live: [/!\[/],
});
testTarget("ntfy without a login", { ...way(() => ({ home_channel: "open" })), extra: {} });

type Send = (text: string, extra?: Readonly<Record<string, string>>, settings?: SettingValues) => Promise<Receipt>;

/** Tries with a fake that is gone afterwards. */
async function withNtfy(use: (fake: FakeNtfy, send: Send) => Promise<void>) {
  const fake = await startFakeNtfy();
  try {
    await use(fake, (text, extra = {}, settings = {}) => {
      const values = { token: fake.token, base_url: fake.baseUrl, ...settings };
      return ntfy.send(partOf(ntfy, { settings: values }, { chat_id: "builds", ...extra }, text), values, toolsFor({}));
    });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("ntfy", () => {
  test("sends title, priority and tags", () =>
    withNtfy(async (fake, send) => {
      await send("x", { title: "Build\r\n7", priority: "high", tags: "warning,ci" });
      assert.deepEqual(fake.messages[0]!.body, {
        topic: "builds",
        message: "x",
        title: "Build 7",
        priority: 4,
        tags: ["warning", "ci"],
      });
      for (const priority of ["1", "5", "min", "default", "max", "urgent"]) await send("x", { priority });
      const numbers = fake.messages.slice(1).map(({ body }) => body.priority);
      assert.deepEqual(numbers, [1, 5, 1, 3, 5, 5]);
    }));

  test("sends plain text, or Markdown where it is wanted, in which no image is loaded", () =>
    withNtfy(async (fake, send) => {
      const text = "**Build** ![logo](https://ci.example/a.png)";
      await send(text);
      await send(text, {}, { markdown: true });
      await send(text, { format: "plain" }, { markdown: true });
      assert.deepEqual(
        fake.messages.map(({ body }) => [body.message, body.markdown]),
        [
          ["Build logo (https://ci.example/a.png)", undefined],
          ["**Build** !\u200b[logo](https://ci.example/a.png)", true],
          [text, undefined],
        ],
      );
    }));

  const fates: [status: number, code: number, sent: "no" | "maybe", wait: "never" | undefined, words: RegExp][] = [
    [400, 40009, "no", "never", /"Sorry \(40009\)"$/],
    [401, 40101, "no", "never", /check the login$/],
    [403, 40301, "no", "never", /give the login the right/],
    [413, 41301, "no", "never", /longer messages$/],
    [429, 42908, "no", undefined, /42908/],
    [500, 50001, "maybe", undefined, /50001/],
    [507, 50701, "maybe", undefined, /50701/],
  ];
  for (const [status, code, sent, wait, words] of fates) {
    test(`is right about when to try again after ${status}`, () =>
      withNtfy(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status, body: { code, http: status, error: "Sorry" } };
        const error = await failureOf(send("x"));
        assert.deepEqual([error.sent, error.retryAfterMs], [sent, wait], error.message);
        assert.match(error.message, words);
      }));
  }

  test("says who is logged in", () =>
    withNtfy(async (fake) => {
      const check = (settings: SettingValues) => ntfy.check({ base_url: fake.baseUrl, ...settings }, toolsFor({}));
      assert.match((await check({ token: fake.token }))[0]!, /"ops"/);
      assert.match((await check({}))[0]!, /Nobody/);
      await assert.rejects(check({ token: "tk_wrong" }), /40101.*check the login$/);
    }));

  test("is not set up by itself: a topic of a public server must be chosen", () => {
    assert.ok("problems" in readSettings(ntfy, { enabled: true }, {}));
    assert.ok("values" in readSettings(ntfy, { enabled: true, topic: "a-long-name" }, {}));
    assert.ok("values" in readSettings(ntfy, undefined, { NTFY_TOPIC: "a-long-name" }));
  });

  test("finds a server of one's own by either name", () => {
    const base = (section: object, env = {}) => {
      const read = readSettings(ntfy, { topic: "a-long-name", ...section }, env);
      return "values" in read && read.values.base_url;
    };
    assert.equal(base({ url: "https://ntfy.example" }), "https://ntfy.example");
    assert.equal(base({}, { NTFY_URL: "https://ntfy.example/" }), "https://ntfy.example");
    assert.equal(base({}), "https://ntfy.sh");
  });

  const refused: Readonly<Record<string, string>>[] = [
    ...["a/b", "a b", "", "ü", "a".repeat(65), "a?x", "{topic}"].map((chat_id) => ({ chat_id })),
    ...["0", "6", "loud"].map((priority) => ({ chat_id: "a", priority })),
    ...["a,,b", "a\nb", "a b", ","].map((tags) => ({ chat_id: "a", tags })),
  ];
  for (const extra of refused) {
    test(`refuses ${JSON.stringify(extra)}`, () => {
      assert.throws(() => readAddress(ntfy, extra, {}), { sent: "no", retryAfterMs: "never" });
    });
  }
});
