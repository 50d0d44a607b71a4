import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { silentLog } from "../../src/lib/log.ts";
import type { SettingValues, Target } from "../../src/target/target.ts";
import { createWecom } from "../../src/target/wecom.ts";
import { jsonService, later, unknownNotTaken, unknownTaken } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeBotService, startFakeBotService } from "../fakes/wecom-bot.ts";
import { makeSleeper, type Sleeper } from "../tools/sleeper.ts";
import { until } from "../tools/wait.ts";

testTarget("wecom as an AI bot", {
  create: createWecom,
  extra: { chat_id: "fakechat" },
  start: async () => {
    const fake = await startFakeBotService();
    return { fake, settings: { ...fake.bot, websocket_url: fake.url }, secret: fake.bot.bot_secret };
  },
  // It has frames in place of statuses: what fails on its side says so, and names no time, but counts by the minute.
  expected: {
    ...jsonService,
    ...{ limited: { ...later, retryAfterMs: 60_000 }, broken: later, redirect: later },
    ...{ lost: unknownTaken, reset: unknownTaken, huge: unknownTaken, garbage: unknownNotTaken },
  },
  live: [/<\s*@/, /<\s*\/?\s*(?:a|font)\b/i],
});

const pingEveryMs = 30_000;
const ackMs = 5_000;

interface Scene {
  readonly fake: FakeBotService;
  readonly clock: Sleeper;
  readonly target: Target;
  readonly settings: SettingValues;
  readonly lines: [level: string, fields: Record<string, unknown>, message: string][];
  readonly send: (text?: string, more?: object) => Promise<unknown>;
  /** Attends from now on. */
  readonly attend: () => { readonly ended: Promise<void>; readonly stop: () => void };
}

async function setUp(t: TestContext): Promise<Scene> {
  const fake = await startFakeBotService();
  const clock = makeSleeper();
  const lines: Scene["lines"] = [];
  const note = (level: string) => (fields: object, message: string) => void lines.push([level, { ...fields }, message]);
  const log = { ...silentLog, info: note("info"), warn: note("warn"), error: note("error") };
  const settings = { ...fake.bot, websocket_url: fake.url };
  const target = createWecom({ sleep: clock.sleep, random: () => 1 });
  const ends: AbortController[] = [];
  t.after(async () => {
    for (const end of ends) end.abort();
    await fake.close();
    assert.deepEqual(fake.mismatches, []);
  });
  const attend = () => {
    const end = new AbortController();
    ends.push(end);
    const ended = target.attend!(settings, { env: {}, log, memory: toolsFor({}).memory, signal: end.signal });
    ended.catch(() => {});
    return { ended, stop: () => end.abort() };
  };
  const send = (text = "Hello", more: object = {}) => {
    const part = partOf(target, { settings }, { chat_id: "fakechat", ...more }, text);
    return target.send({ ...part, ...more }, settings, { ...toolsFor({}), log });
  };
  return { fake, clock, target, settings, lines, send, attend };
}

/** The connection is kept and pings. */
async function untilKept({ fake, clock }: Scene, subscribed = 1): Promise<void> {
  await until("the connection", () => fake.subscribed() === subscribed && clock.waits().includes(pingEveryMs));
}

describe("an AI bot of WeCom that is attended", () => {
  test("sends many messages over the one connection that is kept open", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    await Promise.all([scene.send("one"), scene.send("two")]);
    await scene.send("three");
    assert.deepEqual([scene.fake.messages.length, scene.fake.sockets.opened, scene.fake.subscribed()], [3, 1, 1]);
    assert.equal(scene.fake.sockets.peers.length, 1);
  });

  test("pings every thirty seconds, and goes on as long as it is answered", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    for (let count = 1; count <= 5; count += 1) {
      scene.clock.advance(pingEveryMs);
      await until("the next wait", () => scene.fake.pings() === count && scene.clock.waits().includes(pingEveryMs));
    }
    assert.equal(scene.fake.sockets.opened, 1);
    assert.deepEqual(scene.lines, []);
  });

  test("opens it again when pings are not answered, twice", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    scene.fake.silent.add("ping");
    scene.clock.advance(pingEveryMs);
    await until("the first ping", () => scene.fake.pings() === 1 && scene.clock.waits().includes(ackMs));
    scene.clock.advance(ackMs);
    await until("the second ping", () => scene.fake.pings() === 2 && scene.clock.waits().includes(ackMs));
    assert.equal(scene.fake.subscribed(), 1);
    scene.fake.silent.clear();
    scene.clock.advance(ackMs);
    await until("the pause", () => scene.clock.waits().includes(1_000));
    scene.clock.advance(1_000);
    await untilKept(scene, 2);
    assert.match(String(scene.lines[0]?.[1].reason), /pings were not answered/);
  });

  test("goes on through cuts and doors that stay shut, later each time, and says so once", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    const pause = async (ms: number) => {
      await until(`the pause of ${ms} ms`, () => scene.clock.waits().includes(ms));
      scene.clock.advance(ms);
    };
    for (const [index, ms] of [1_000, 2_000, 4_000].entries()) {
      scene.fake.sockets.peers[0]!.cut();
      await pause(ms);
      await untilKept(scene, index + 2);
    }
    scene.fake.sockets.door = "refuse";
    scene.fake.sockets.peers[0]!.cut();
    await pause(8_000);
    await pause(16_000);
    await until("the last pause", () => scene.clock.waits().includes(32_000));
    scene.fake.sockets.door = "open";
    await pause(32_000);
    await untilKept(scene, 5);
    assert.deepEqual(new Set(scene.lines.map(([level]) => level)), new Set(["warn"]));
    assert.equal(scene.lines.length, 2, "the cut and the shut door");
    scene.clock.advance(pingEveryMs);
    await until("the good news", () => scene.lines.at(-1)?.[0] === "info");
    await scene.send("after all");
    assert.equal(scene.fake.messages.length, 1);
  });

  test("gives up a door that says nothing after ten seconds", async (t) => {
    const scene = await setUp(t);
    scene.fake.sockets.door = "hang";
    scene.attend();
    await until("the wait", () => scene.clock.waits().includes(10_000));
    scene.clock.advance(10_000);
    await until("the pause", () => scene.clock.waits().includes(1_000));
    scene.fake.sockets.door = "open";
    scene.clock.advance(1_000);
    await untilKept(scene);
  });

  test("stays away when another connection has taken its place, until a message needs it, and says so once", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    for (let round = 1; round <= 3; round += 1) {
      scene.fake.kick();
      await until("the end", () => scene.fake.sockets.peers.length === 0);
      scene.clock.advance(600_000);
      assert.equal(scene.fake.subscribed(), round);
      await scene.send(`message ${round}`);
      await untilKept(scene, round + 1);
      assert.equal(scene.fake.sockets.peers.length, 1, "it is kept again");
    }
    assert.deepEqual(
      scene.lines.map(([level, , message]) => [level, /taken its place/.test(message)]),
      [["warn", true]],
    );
  });

  test("lets two that share a bot both deliver, one after the other", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    const other = createWecom({ sleep: scene.clock.sleep, random: () => 1 });
    const part = partOf(other, { settings: scene.settings }, { chat_id: "fakechat" }, "from the other");
    await other.send(part, scene.settings, toolsFor({}));
    await until("the end of both", () => scene.fake.sockets.peers.length === 0);
    await scene.send("from the one that attends");
    assert.equal(scene.fake.messages.length, 2);
  });

  test("opens it anew and sends again when the service has forgotten the subscription", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    scene.fake.codes.push(846609);
    await scene.send();
    assert.deepEqual([scene.fake.messages.length, scene.fake.subscribed()], [1, 2]);
    await untilKept(scene, 2);
  });

  test("tries that once, and later again when it helps nothing", async (t) => {
    const scene = await setUp(t);
    scene.fake.codes.push(846609, 846609);
    const failure = await failureOf(scene.send());
    assert.deepEqual([failure.sent, failure.retryAfterMs, scene.fake.tries], ["no", undefined, 2]);
  });

  test("gives up for good what the service refuses for good", async (t) => {
    const scene = await setUp(t);
    const settings = { ...scene.settings, bot_secret: "another-secret" };
    const failure = await failureOf(scene.target.attend!(settings, toolsFor({})));
    assert.equal(failure.retryAfterMs, "never");
    assert.match(failure.message, /40013.*check .*"bot_secret"/);
    await until("its end", () => scene.fake.sockets.peers.length === 0);
  });

  test("ends at once when it is told to, and its connection with it", async (t) => {
    const scene = await setUp(t);
    const { ended, stop } = scene.attend();
    await untilKept(scene);
    stop();
    await ended;
    await until("its end", () => scene.fake.sockets.peers.length === 0);
    assert.deepEqual(scene.clock.waits(), []);
  });

  test("keeps nothing of what users write, and is not disturbed by it", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    scene.fake.push({ cmd: "aibot_msg_callback", headers: { req_id: "x" }, body: { text: { content: "hush" } } });
    for (const frame of [{}, { headers: null }, { headers: { req_id: 7 }, errcode: "x" }, { body: [], cmd: 3 }]) {
      scene.fake.push(frame);
    }
    await scene.send();
    assert.deepEqual([scene.fake.messages.length, scene.fake.sockets.opened], [1, 1]);
  });
});

describe("an AI bot of WeCom", () => {
  test("opens a connection for a message where nobody keeps one, and ends it afterwards", async (t) => {
    const scene = await setUp(t);
    await scene.send("one");
    await until("the end", () => scene.fake.sockets.peers.length === 0);
    assert.deepEqual(scene.clock.waits(), []);
    await scene.send("two");
    assert.deepEqual([scene.fake.messages.length, scene.fake.sockets.opened], [2, 2]);
  });

  test("keeps it for all parts of a message, or for five seconds when the next one does not come", async (t) => {
    const scene = await setUp(t);
    for (const index of [0, 1, 2]) await scene.send("part", { index, count: 3 });
    assert.equal(scene.fake.sockets.opened, 1);
    await until("the end", () => scene.fake.sockets.peers.length === 0);
    await scene.send("part", { index: 0, count: 3 });
    assert.equal(scene.fake.sockets.peers.length, 1);
    scene.clock.advance(5_000);
    await until("the end after the wait", () => scene.fake.sockets.peers.length === 0);
  });

  test("does not know what became of a message that is not answered within five seconds", async (t) => {
    const scene = await setUp(t);
    scene.fake.silent.add("aibot_send_msg");
    const failing = failureOf(scene.send());
    await until("the wait", () => scene.fake.messages.length === 1 && scene.clock.waits().includes(ackMs));
    scene.clock.advance(ackMs);
    const failure = await failing;
    assert.deepEqual([failure.sent, failure.retryAfterMs], ["maybe", undefined]);
  });

  test("knows at once that a message gets no answer when the connection is cut", async (t) => {
    const scene = await setUp(t);
    scene.fake.upcoming.push("lost");
    assert.equal((await failureOf(scene.send())).sent, "maybe");
    assert.equal(scene.fake.messages.length, 1);
  });

  test("looks whether the connection still holds when a message was not answered, and opens another if not", async (t) => {
    const scene = await setUp(t);
    scene.attend();
    await untilKept(scene);
    scene.fake.silent.add("aibot_send_msg").add("ping");
    const failing = failureOf(scene.send());
    await until("the wait", () => scene.clock.waits().includes(ackMs));
    scene.clock.advance(ackMs);
    assert.equal((await failing).sent, "maybe");
    for (const count of [1, 2]) {
      await until("the ping", () => scene.fake.pings() === count && scene.clock.waits().includes(ackMs));
      scene.clock.advance(ackMs);
    }
    await until("the end", () => scene.fake.sockets.peers.length === 0);
    scene.fake.silent.clear();
    await scene.send("again");
    assert.equal(scene.fake.messages.length, 2);
  });

  test("is sure that nothing was sent when the subscription is not answered", async (t) => {
    const scene = await setUp(t);
    scene.fake.silent.add("aibot_subscribe");
    const failing = failureOf(scene.send());
    await until("the wait", () => scene.fake.subscribed() === 1 && scene.clock.waits().includes(ackMs));
    scene.clock.advance(ackMs);
    const failure = await failing;
    assert.deepEqual([failure.sent, failure.retryAfterMs, scene.fake.tries], ["no", undefined, 0], failure.message);
  });

  const codes: [code: number, retryAfterMs: number | "never" | undefined][] = [
    [-1, undefined],
    [45009, 60_000],
    [93006, "never"],
    [846605, "never"],
  ];
  for (const [code, retryAfterMs] of codes) {
    test(`decides by the code of the answer: ${code}`, async (t) => {
      const scene = await setUp(t);
      scene.fake.codes.push(code);
      const failure = await failureOf(scene.send());
      assert.deepEqual([failure.sent, failure.retryAfterMs], ["no", retryAfterMs], failure.message);
    });
  }

  test("does not take an answer without a code for a success", async (t) => {
    const scene = await setUp(t);
    scene.fake.bareAcks = true;
    const failure = await failureOf(scene.send());
    assert.deepEqual([failure.sent, failure.retryAfterMs], ["maybe", undefined]);
  });

  test("says what kind of chat it is where the address does", async (t) => {
    const scene = await setUp(t);
    for (const chat_id of ["fakechat", "chat:fakechat", "user:ana"]) await scene.send("Hello", { chat_id });
    assert.deepEqual(
      scene.fake.messages.map(({ chatid, chatType }) => [chatid, chatType]),
      [
        ["fakechat", undefined],
        ["fakechat", 2],
        ["ana", 1],
      ],
    );
    for (const chat_id of ["ana|bo", "party:1", "tag:2"]) {
      assert.equal((await failureOf(scene.send("Hello", { chat_id }))).retryAfterMs, "never", chat_id);
    }
  });

  test("shows blocks of code, and no marks of text that is no Markdown", async (t) => {
    const scene = await setUp(t);
    await scene.send("**Log**\n\n```\n# ls\n```");
    await scene.send("# [ci](https://ci.example)", { format: "plain" });
    const [marked, plain] = scene.fake.messages;
    assert.equal(marked?.text, "**Log**\n\n```\n# ls\n```");
    assert.equal(plain?.text, "# [ci](https://ci.example)");
    assert.doesNotMatch(plain?.raw ?? "", /^# |\]\(/);
  });

  test("gives its secret to no address without TLS but this machine's", async (t) => {
    const scene = await setUp(t);
    for (const websocket_url of [
      ...["ws://openws.example", "http://127.0.0.1:1", "wss://me:secret@openws.example", "nowhere"],
      "ws://127.0.0.1.evil.example",
    ]) {
      const settings = { ...scene.settings, websocket_url };
      const part = partOf(scene.target, { settings }, { chat_id: "fakechat" }, "Hello");
      const failure = await failureOf(scene.target.send(part, settings, toolsFor({})));
      assert.deepEqual([failure.sent, failure.retryAfterMs], ["no", "never"], websocket_url);
      assert.match(failure.message, /"websocket_url"/);
    }
  });

  test("is not tried by a check, which would end the connection of whoever has one", async (t) => {
    const scene = await setUp(t);
    assert.match((await scene.target.check(scene.settings, toolsFor({}))).join(), /cannot be tried/);
    assert.equal(scene.fake.sockets.opened, 0);
    scene.attend();
    await untilKept(scene);
    assert.match((await scene.target.check(scene.settings, toolsFor({}))).join(), /is connected/);
  });
});
