import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { DeliveryError, StoreUnavailable } from "../../src/core/errors.ts";
import { silentLog } from "../../src/lib/log.ts";
import type { Memory } from "../../src/target/target.ts";
import { createWeixin, weixin } from "../../src/target/weixin.ts";
import { recall, remember } from "../../src/target/weixin-memory.ts";
import { jsonService, later } from "../conformance/target/case.ts";
import { makeMemory } from "../conformance/target/memory.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { expired, type FakeUpdates, type FakeWeixin, startFakeUpdates, startFakeWeixin } from "../fakes/weixin.ts";
import { makeSleeper } from "../tools/sleeper.ts";
import { until } from "../tools/wait.ts";

const user = "o9cq80fake@im.wechat";
const account_id = "fake-im-bot";

testTarget("weixin", {
  create: createWeixin,
  extra: { chat_id: user },
  start: async () => {
    const fake = await startFakeWeixin();
    const settings = { token: fake.token, account_id, base_url: fake.baseUrl, home_channel: user };
    return { fake, settings, secret: fake.token };
  },
  // It names no time.
  expected: { ...jsonService, limited: { ...later, retryAfterMs: 60_000 } },
});

interface Scene {
  readonly fake: FakeWeixin;
  readonly memory: Memory;
  readonly settings: { readonly token: string; readonly account_id: string; readonly base_url: string };
  readonly send: (text?: string, extra?: object) => Promise<unknown>;
}

async function withWeixin(use: (scene: Scene) => Promise<void>): Promise<void> {
  const fake = await startFakeWeixin();
  const settings = { token: fake.token, account_id, base_url: fake.baseUrl };
  const memory = makeMemory();
  const send = (text = "Hello", extra = {}) =>
    weixin.send(partOf(weixin, { settings }, { chat_id: user, ...extra }, text), settings, { ...toolsFor({}), memory });
  try {
    await use({ fake, memory, settings, send });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

const contexts = (token: string) => ({ cursor: "c1", contexts: new Map([[user, token]]) });

describe("weixin", () => {
  test("sends the user's newest context token, and none to whom it has not heard from", () =>
    withWeixin(async ({ fake, memory, settings, send }) => {
      await send("before");
      await remember(memory, settings, contexts("t1"));
      await remember(memory, settings, contexts("t2"));
      await send("after");
      assert.deepEqual(
        fake.messages.map(({ contextToken }) => contextToken),
        [undefined, "t2"],
      );
    }));

  for (const body of [
    { ret: -14, errmsg: "session timeout" },
    { ret: 0, errcode: -14 },
    { ret: -2, errmsg: "unknown error" },
  ]) {
    test(`sends once more without a context token that is stale: ${JSON.stringify(body)}`, () =>
      withWeixin(async ({ fake, memory, settings, send }) => {
        await remember(memory, settings, contexts("old"));
        fake.stale.set("old", { status: 200, body });
        await send();
        assert.deepEqual([fake.tries, fake.messages.length], [2, 1]);
        assert.equal(fake.messages[0]!.contextToken, undefined);
      }));
  }

  test("gives up an expired session after one try without the token, and says how to log in", () =>
    withWeixin(async ({ fake, memory, settings, send }) => {
      await remember(memory, settings, contexts("old"));
      fake.stale.set("old", expired).set("none", expired);
      const failure = await failureOf(send());
      assert.deepEqual([failure.sent, failure.retryAfterMs, fake.tries], ["no", "never", 2]);
      assert.match(failure.message, /log in to Weixin again/);
    }));

  test("does not send again without the token when it is a rate that is the matter", () =>
    withWeixin(async ({ fake, memory, settings, send }) => {
      await remember(memory, settings, contexts("t1"));
      fake.stale.set("t1", { status: 200, body: { ret: -2 } });
      const failure = await failureOf(send());
      assert.deepEqual([failure.sent, failure.retryAfterMs, fake.tries], ["no", 60_000, 1]);
      assert.match(failure.message, /may have to write again/);
    }));

  const fates: [object, "taken" | "no" | "maybe", number | "never" | undefined][] = [
    [{}, "taken", undefined],
    [{ ret: null }, "taken", undefined],
    [{ ret: "" }, "taken", undefined],
    [{ ret: 0, errcode: 0 }, "taken", undefined],
    [{ ret: "0" }, "taken", undefined],
    [{ ret: "-14" }, "no", "never"],
    [{ errcode: -2 }, "no", 60_000],
    [{ ret: -1 }, "maybe", undefined],
    [{ ret: -7, errmsg: "bad parameter" }, "no", "never"],
    [{ ret: [] }, "no", "never"],
  ];
  for (const [body, fate, retryAfterMs] of fates) {
    test(`decides by the body of an answer with status 200: ${JSON.stringify(body)}`, () =>
      withWeixin(async ({ fake, send }) => {
        fake.mode = "refused";
        fake.answer = { status: 200, body };
        if (fate === "taken") return void (await send());
        const failure = await failureOf(send());
        assert.deepEqual([failure.sent, failure.retryAfterMs], [fate, retryAfterMs], failure.message);
      }));
  }

  test("sends each part under an id that stays the same, and a new number of the client with each request", () =>
    withWeixin(async ({ fake, send }) => {
      await send();
      await send();
      assert.equal(fake.messages[0]!.clientId, fake.messages[1]!.clientId);
      const numbers = fake.heard.map(({ headers }) => Buffer.from(headers["x-wechat-uin"] ?? "", "base64").toString());
      for (const number of numbers) assert.match(number, /^\d{1,10}$/);
      assert.notEqual(numbers[0], numbers[1]);
    }));

  test("shows Markdown without its marks, unless the text is none", () =>
    withWeixin(async ({ fake, send }) => {
      await send("**Build 7** has [passed](https://ci.example/7)");
      await send("**Build 7**", { format: "plain" });
      assert.deepEqual(
        fake.messages.map(({ text }) => text),
        ["Build 7 has passed (https://ci.example/7)", "**Build 7**"],
      );
    }));

  test("takes users' ids for addresses and nothing else", () => {
    for (const chat_id of ["a@im.wechat/x", "a@im.bot", "@im.wechat", "a b@im.wechat", "{user}", "a@im.wechat\n"]) {
      assert.throws(() => partOf(weixin, { settings: {} }, { chat_id }, ""), DeliveryError, chat_id);
    }
  });

  test("sends nothing when the ledger cannot tell the context token", () =>
    withWeixin(async ({ fake, settings }) => {
      const away = () => Promise.reject(new StoreUnavailable("The database is away"));
      const part = partOf(weixin, { settings }, { chat_id: user }, "Hello");
      const tools = { ...toolsFor({}), memory: { read: away, write: away } };
      const failure = await failureOf(weixin.send(part, settings, tools));
      assert.deepEqual([failure.sent, failure.retryAfterMs, fake.tries], ["no", undefined, 0]);
    }));

  test("says whether the session is alive and whether the home channel's user was heard from", () =>
    withWeixin(async ({ fake, memory, settings }) => {
      const tools = { ...toolsFor({}), memory };
      const home = { ...settings, home_channel: user };
      assert.match((await weixin.check(settings, tools)).join(), /cannot be told without a home channel/);
      assert.match((await weixin.check(home, tools)).join(), /is alive,.*not been heard from/);
      await remember(memory, settings, contexts("t1"));
      assert.match((await weixin.check(home, tools)).join(), /is alive,.*is known/);
      const failure = await failureOf(weixin.check({ ...home, token: "another-token" }, tools));
      assert.equal(failure.retryAfterMs, "never");
      assert.equal(fake.messages.length, 0);
    }));
});

describe("what is remembered of Weixin's users", () => {
  const values = { account_id, token: "one" };

  test("are the context tokens of the thousand who wrote last", async () => {
    const memory = makeMemory();
    const batch = (from: number) => new Map(Array.from({ length: 600 }, (_, n) => [`u${from + n}@im.wechat`, `t${n}`]));
    await remember(memory, values, { cursor: "1", contexts: batch(0) });
    await remember(memory, values, { cursor: "2", contexts: batch(600) });
    await remember(memory, values, { cursor: "3", contexts: new Map([["u300@im.wechat", "again"]]) });
    await remember(memory, values, { cursor: "4", contexts: new Map([["new@im.wechat", "new"]]) });
    const kept = await recall(memory, values);
    assert.deepEqual([kept.contexts.size, kept.cursor], [1000, "4"]);
    assert.deepEqual(
      ["u199", "u200", "u201", "u300", "new"].map((name) => kept.contexts.get(`${name}@im.wechat`)),
      [undefined, undefined, "t201", "again", "new"],
    );
  });

  test("is nothing under another token or for another account", async () => {
    const memory = makeMemory();
    await remember(memory, values, contexts("t1"));
    for (const other of [
      { ...values, token: "two" },
      { ...values, account_id: "other" },
    ]) {
      assert.deepEqual(await recall(memory, other), { cursor: "", contexts: new Map() });
    }
  });

  test("loses nothing when two gateways write at once", async () => {
    const memory = makeMemory();
    const users = Array.from({ length: 5 }, (_, n) => `u${n}@im.wechat`);
    const writes = users.map((one) => remember(memory, values, { cursor: one, contexts: new Map([[one, "t"]]) }));
    await Promise.all(writes);
    assert.deepEqual([...(await recall(memory, values)).contexts.keys()].sort(), users);
  });

  test("is nothing when what is kept is damaged", async () => {
    for (const text of ["{", "[]", "null", '{"contexts":3}']) {
      const memory = makeMemory();
      await memory.write(`weixin ${account_id}`, text, 0);
      assert.deepEqual(await recall(memory, values), { cursor: "", contexts: new Map() });
    }
  });
});

describe("the poll of Weixin", () => {
  interface Polling {
    readonly fake: FakeUpdates;
    readonly clock: ReturnType<typeof makeSleeper>;
    readonly memory: Memory;
    readonly lines: [string, Record<string, unknown>, string][];
    readonly ended: Promise<void>;
    readonly stop: () => void;
    readonly tokenOf: (one?: string) => Promise<string | undefined>;
  }

  async function setUp(t: TestContext, options: { token?: string; timeoutMs?: number } = {}): Promise<Polling> {
    const fake = await startFakeUpdates("good-token");
    t.after(() => fake.close());
    const clock = makeSleeper();
    const memory = makeMemory();
    const lines: Polling["lines"] = [];
    const note = (level: string) => (fields: object, message: string) =>
      void lines.push([level, { ...fields }, message]);
    const log = { ...silentLog, info: note("info"), warn: note("warn"), error: note("error") };
    const settings = { token: options.token ?? "good-token", account_id, base_url: fake.baseUrl };
    const end = new AbortController();
    const { timeoutMs = 20_000 } = options;
    const target = createWeixin({ timeoutMs, sleep: clock.sleep, random: () => 1 });
    const ended = target.attend!(settings, { env: {}, log, memory, signal: end.signal });
    t.after(async () => {
      end.abort();
      await ended.catch(() => {});
      assert.deepEqual(fake.mismatches, []);
    });
    const tokenOf = async (one = user) => (await recall(memory, settings)).contexts.get(one);
    return { fake, clock, memory, lines, ended, stop: () => end.abort(), tokenOf };
  }

  const written = (token: string, cursor: string, more: object = {}) => {
    const msg = {
      from_user_id: user,
      message_type: 1,
      context_token: token,
      item_list: [{ text_item: { text: "hush" } }],
    };
    return { status: 200, body: { ret: 0, msgs: [{ ...msg, ...more }], get_updates_buf: cursor } };
  };

  test("keeps each user's newest context token and the cursor, and never what they wrote", async (t) => {
    const { fake, memory, tokenOf } = await setUp(t);
    fake.answer(written("t1", "c1"));
    await until("the second poll", () => fake.cursors.length === 2);
    fake.answer(written("t2", "c2"));
    await until("the third poll", () => fake.cursors.length === 3);
    assert.equal(await tokenOf(), "t2");
    assert.deepEqual(fake.cursors, ["", "c1", "c2"]);
    assert.doesNotMatch((await memory.read(`weixin ${account_id}`)).text, /hush/);
  });

  test("keeps nothing of groups, of other bots, and of messages that are none", async (t) => {
    const { fake, memory, tokenOf } = await setUp(t);
    const msgs = [
      { from_user_id: user, context_token: "group", group_id: "g1" },
      { from_user_id: "b0t@im.bot", context_token: "bot" },
      { from_user_id: "__proto__", context_token: "x" },
      ...[null, 7, "text", {}, { from_user_id: user }],
    ];
    fake.answer({ status: 200, body: { msgs, get_updates_buf: "c1" } });
    await until("the second poll", () => fake.cursors.length === 2);
    assert.equal(await tokenOf(), undefined);
    assert.deepEqual((await recall(memory, { account_id, token: "good-token" })).contexts.size, 0);
  });

  test("goes on where it was after connections that were cut, HTML, failures of the service, and garbage", async (t) => {
    const { fake, clock, lines, tokenOf } = await setUp(t);
    fake.answer(written("t1", "c1"));
    await until("the second poll", () => fake.held() === 1);
    const faults = [
      "cut" as const,
      { status: 200, text: "<html><body>Hello from the proxy</body></html>" },
      { status: 502, text: "Bad gateway" },
      { status: 429, body: {} },
      { status: 200, body: { ret: -2, errmsg: "busy" } },
      { status: 200, text: "[]" },
    ];
    for (const [index, fault] of faults.entries()) {
      fake.answer(fault);
      await until("the pause", () => clock.waits().length === 1);
      assert.equal(clock.waits()[0], 1_000 * 2 ** index);
      clock.advance(clock.waits()[0]!);
      await until("the next poll", () => fake.held() === 1);
    }
    fake.answer(written("t2", "c2"));
    await until("the poll after", () => fake.cursors.at(-1) === "c2");
    assert.equal(await tokenOf(), "t2");
    assert.deepEqual(new Set(fake.cursors.slice(1, -1)), new Set(["c1"]));
    assert.equal(lines.at(-1)?.[0], "info");
  });

  test("says once what is wrong, however often it is tried", async (t) => {
    const { fake, clock, lines } = await setUp(t);
    for (let tries = 0; tries < 5; tries += 1) {
      await until("the poll", () => fake.held() === 1);
      fake.answer({ status: 503, text: "" });
      await until("the pause", () => clock.waits().length === 1);
      clock.advance(clock.waits()[0]!);
    }
    assert.deepEqual(
      lines.map(([level, fields]) => [level, fields.target]),
      [["warn", "weixin"]],
    );
  });

  test("ends a poll that nobody answers in the time that the service named, and asks again", async (t) => {
    const { fake, clock } = await setUp(t, { timeoutMs: 300 });
    fake.answer({ status: 200, body: { ret: 0, msgs: [], longpolling_timeout_ms: 1, get_updates_buf: "c1" } });
    await until("the pause after nothing", () => clock.waits().length === 1);
    fake.answer("hang");
    clock.advance(1_000);
    await until("the second poll's end", () => fake.cursors.length === 2 && clock.waits().length === 1);
    clock.advance(1_000);
    await until("the third poll", () => fake.cursors.length === 3);
  });

  test("does not ask all the time where nothing is answered at once", async (t) => {
    const { fake, clock } = await setUp(t);
    fake.answer({ status: 200, body: {} });
    await until("the pause", () => clock.waits().length === 1);
    assert.deepEqual([clock.waits(), fake.cursors.length], [[1_000], 1]);
  });

  test("says how to log in when the session has expired, and leaves the service alone for an hour", async (t) => {
    const { fake, clock, lines } = await setUp(t, { token: "old-token" });
    await until("the pause", () => clock.waits().length === 1);
    assert.deepEqual(clock.waits(), [3_600_000]);
    clock.advance(3_600_000);
    await until("the second pause", () => fake.cursors.length === 2 && clock.waits().length === 1);
    assert.equal(lines.length, 1);
    assert.equal(lines[0]![0], "error");
    assert.match(lines[0]![2], /log in to Weixin again/);
  });

  test("gives up when something else stands at the address", async (t) => {
    const { fake, ended } = await setUp(t);
    await until("the poll", () => fake.held() === 1);
    const failing = failureOf(ended);
    fake.answer({ status: 404, text: "Not found" });
    const failure = await failing;
    assert.equal(failure.retryAfterMs, "never");
    assert.match(failure.message, /404.*"base_url"/);
  });

  test("ends at once when it is told to, in a poll or in a pause", async (t) => {
    const polling = await setUp(t);
    await until("the poll", () => polling.fake.held() === 1);
    polling.stop();
    await polling.ended;
    const pausing = await setUp(t, { token: "old-token" });
    await until("the pause", () => pausing.clock.waits().length === 1);
    pausing.stop();
    await pausing.ended;
  });
});
