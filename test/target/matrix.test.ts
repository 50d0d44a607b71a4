import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { splitText } from "../../src/core/split.ts";
import { createMatrix, matrix } from "../../src/target/matrix.ts";
import type { SettingValues } from "../../src/target/target.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeMatrix, matrixError, startFakeMatrix } from "../fakes/matrix.ts";

const room = "!opaque:fakes.example";
/** Whoever shows HTML acts on tags, on what a link leads to, and on pictures. */
const live = [
  /<(?:img|script|style|iframe|svg|font|span|mx-reply)\b/i,
  /\b(?:href|src)\s*=\s*"(?!https?:|mailto:)/i,
  /<[^>]+\son\w+=/i,
];

testTarget("matrix", {
  create: createMatrix,
  extra: { chat_id: room },
  start: async () => {
    const fake = await startFakeMatrix();
    return { fake, settings: { token: fake.token, base_url: fake.baseUrl, home_channel: room }, secret: fake.token };
  },
  expected: jsonService,
  live,
});

interface Scene {
  readonly fake: FakeMatrix;
  readonly send: (text: string, extra?: object, settings?: SettingValues) => Promise<unknown>;
  readonly check: (settings: SettingValues) => Promise<readonly string[]>;
  /** Milliseconds that pass. */
  readonly pass: (ms: number) => void;
}

async function withMatrix(use: (scene: Scene) => Promise<void>) {
  const fake = await startFakeMatrix();
  let now = 1_700_000_000_000;
  const target = createMatrix({ now: () => now });
  const common = { token: fake.token, base_url: fake.baseUrl };
  const send = (text: string, extra = {}, more: SettingValues = {}) => {
    const settings = { ...common, ...more };
    return target.send(partOf(target, { settings }, { chat_id: room, ...extra }, text), settings, toolsFor({}));
  };
  const check = (more: SettingValues) => target.check({ ...common, ...more }, toolsFor({}));
  const pass = (ms: number) => {
    now += ms;
  };
  try {
    await use({ fake, send, check, pass });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

function questions(fake: FakeMatrix, what: RegExp): number {
  return fake.heard.filter(({ method, url }) => method === "GET" && what.test(url.pathname)).length;
}

describe("matrix", () => {
  test("sends Markdown as HTML beside plain text, and mentions nobody", () =>
    withMatrix(async ({ fake, send }) => {
      await send("Build **7** by @ana:fakes.example and @room <b>failed</b>");
      const { content } = fake.messages[0]!;
      assert.equal(content.body, "Build 7 by @ana:fakes.example and @room <b>failed</b>");
      assert.equal(content.format, "org.matrix.custom.html");
      assert.match(String(content.formatted_body), /<strong>7<\/strong>.*&#60;b&#62;failed/);
      assert.deepEqual(content["m.mentions"], {});
    }));

  test('sends text without markup as text alone, and with "format: plain" every text', () =>
    withMatrix(async ({ fake, send }) => {
      await send("one <two>\n\nthree");
      await send("**one**", { format: "plain" });
      assert.deepEqual(
        fake.messages.map(({ content }) => [content.body, content.format]),
        [
          ["one <two>\n\nthree", undefined],
          ["**one**", undefined],
        ],
      );
    }));

  test("leaves out HTML that would make the event too large, and keeps to its size whatever the text", () =>
    withMatrix(async ({ fake, send }) => {
      await send("**a**\n\n".repeat(3000));
      await send(`**a**\n\n${"b ".repeat(3000)}`);
      for (const text of ['"', "> a\n\n", "|||||||||\n"]) {
        for (const part of splitText(text.repeat(10_000), matrix.limit).slice(0, 2)) await send(part);
      }
      assert.deepEqual(
        fake.messages.slice(0, 2).map(({ content }) => content.format !== undefined),
        [false, true],
      );
    }));

  test("posts text unless the settings say notice", () =>
    withMatrix(async ({ fake, send }) => {
      await send("one");
      await send("two", {}, { msgtype: "notice" });
      assert.deepEqual(
        fake.messages.map(({ content }) => content.msgtype),
        ["m.text", "m.notice"],
      );
    }));

  test("answers in a thread, by either key", () =>
    withMatrix(async ({ fake, send }) => {
      await send("one", { thread_id: "$root" });
      await send("two", { thread_event_id: "$root:fakes.example" });
      assert.deepEqual(fake.messages[0]?.content["m.relates_to"], {
        rel_type: "m.thread",
        event_id: "$root",
        is_falling_back: true,
        "m.in_reply_to": { event_id: "$root" },
      });
      assert.equal(fake.messages.length, 2);
    }));

  test("asks once for the room of an alias, and again after ten minutes", () =>
    withMatrix(async ({ fake, send, pass }) => {
      const chat_id = "#ops:fakes.example";
      await send("one", { chat_id });
      pass(599_000);
      await send("two", { chat_id });
      assert.equal(questions(fake, /directory/), 1);
      pass(1001);
      await send("three", { chat_id });
      assert.equal(questions(fake, /directory/), 2);
      assert.deepEqual(new Set(fake.messages.map((message) => message.room)), new Set([room]));
    }));

  test("asks again after a minute whether a room without encryption still has none", () =>
    withMatrix(async ({ fake, send, pass }) => {
      await send("one");
      fake.encrypted.add(room);
      pass(59_000);
      await send("two");
      assert.equal(questions(fake, /encryption/), 1);
      pass(1001);
      assert.match((await failureOf(send("secret plans"))).message, /encrypted/);
      assert.equal(fake.messages.length, 2);
    }));

  test("remembers for a day that a room is encrypted, because it stays so", () =>
    withMatrix(async ({ fake, send, pass }) => {
      fake.encrypted.add(room);
      await failureOf(send("secret plans"));
      pass(86_399_000);
      await failureOf(send("secret plans"));
      assert.equal(questions(fake, /encryption/), 1);
      pass(1001);
      await failureOf(send("secret plans"));
      assert.equal(questions(fake, /encryption/), 2);
    }));

  test("follows an alias at once when its old room takes no more", () =>
    withMatrix(async ({ fake, send }) => {
      const chat_id = "#ops:fakes.example";
      await send("one", { chat_id });
      fake.joined.clear();
      fake.joined.add("!newer:fakes.example");
      fake.aliases.set(chat_id, "!newer:fakes.example");
      await send("two", { chat_id });
      assert.equal(fake.messages[1]?.room, "!newer:fakes.example");
    }));

  test("sends nothing into a room with encryption unless that is allowed", () =>
    withMatrix(async ({ fake, send }) => {
      fake.encrypted.add(room);
      const failure = await failureOf(send("secret plans"));
      assert.match(failure.message, /encrypted.*"allow_unencrypted"/);
      assert.deepEqual([failure.sent, failure.retryAfterMs, fake.tries], ["no", "never", 0]);
      await send("public plans", {}, { allow_unencrypted: true });
      assert.deepEqual(
        fake.messages.map(({ text }) => text),
        ["public plans"],
      );
    }));

  for (const answer of [
    { status: 404, text: "<h1>Not found</h1>" },
    matrixError(404, "M_UNRECOGNIZED", "Unrecognized request"),
    matrixError(500, "M_UNKNOWN", "Internal server error"),
    { status: 200, text: "<h1>Hello from the proxy</h1>" },
  ]) {
    test(`sends nothing when it cannot tell whether a room is encrypted: ${answer.status} ${JSON.stringify(answer)}`, () =>
      withMatrix(async ({ fake, send }) => {
        fake.encryption = answer;
        assert.equal((await failureOf(send("secret plans"))).sent, "no");
        assert.equal(fake.tries, 0);
        fake.encryption = undefined;
        await send("public plans");
        assert.equal(fake.messages.length, 1);
      }));
  }

  test("reaches a room whatever its id is made of", () =>
    withMatrix(async ({ fake, send }) => {
      const chat_id = "!a/b+c=~d:fakes.example:8448";
      fake.joined.add(chat_id);
      await send("Hello", { chat_id });
      assert.equal(fake.messages[0]?.room, chat_id);
    }));

  test("says before anything is sent that the home room is out of reach, encrypted, or not there", () =>
    withMatrix(async ({ fake, check }) => {
      assert.match((await check({ home_channel: room })).join(), /@postern:fakes\.example.*without encryption/);
      assert.match((await failureOf(check({ home_channel: "!other:x" }))).message, /invite the account/);
      assert.match((await failureOf(check({ home_channel: "#other:x" }))).message, /check the room's alias/);
      fake.encrypted.add("!closed:x");
      fake.joined.add("!closed:x");
      assert.match((await failureOf(check({ home_channel: "!closed:x" }))).message, /encrypted/);
    }));

  const fates: [ReturnType<typeof matrixError>, "no" | "maybe", number | "never" | undefined][] = [
    [matrixError(401, "M_UNKNOWN_TOKEN", "Soft logged out"), "no", "never"],
    [matrixError(413, "M_TOO_LARGE", "event too large"), "no", "never"],
    [matrixError(400, "constructor", "?"), "no", "never"],
    [{ status: 429, body: { errcode: "M_LIMIT_EXCEEDED", error: "Slow down", retry_after_ms: 2500 } }, "no", 2500],
    [{ status: 429, body: { errcode: "M_LIMIT_EXCEEDED", error: "Slow down" } }, "no", undefined],
    [
      {
        status: 429,
        headers: { "retry-after": "4" },
        body: { errcode: "M_LIMIT_EXCEEDED", error: "Slow down", retry_after_ms: 2500 },
      },
      ...(["no", 4000] as const),
    ],
    [matrixError(403, "M_RESOURCE_LIMIT_EXCEEDED", "Too many users"), "no", undefined],
    [matrixError(500, "M_UNKNOWN", "Internal server error"), "maybe", undefined],
    [{ status: 200, body: { event: "none" } }, "maybe", undefined],
  ];
  for (const [answer, sent, retryAfterMs] of fates) {
    test(`decides by status and errcode: ${answer.status} ${JSON.stringify(answer.body)}`, () =>
      withMatrix(async ({ fake, send }) => {
        fake.mode = "refused";
        fake.answer = answer;
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }

  for (const chat_id of ["ops", "!a b:x", "#ops", "@ana:x", "!../../x:y?z", "!{room}:x", "#a:x/../.."]) {
    test(`refuses ${chat_id} as an address`, () =>
      withMatrix(async ({ fake, send }) => {
        await assert.rejects(async () => send("Hello", { chat_id }), /chat_id/);
        assert.equal(fake.heard.length, 0);
      }));
  }
});
