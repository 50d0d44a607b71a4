import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readSettings } from "../../src/target/settings.ts";
import { createSignal, signal } from "../../src/target/signal.ts";
import { jsonService, later } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import {
  type FakeSignal,
  nobodyGotIt,
  requestId,
  rpcError,
  rpcResult,
  startFakeDaemon,
  startFakeRest,
} from "../fakes/signal.ts";

const person = "+15550111";
// A text can name nobody: who is mentioned stands beside it.
const live: RegExp[] = [];

testTarget("signal by signal-cli's daemon", {
  create: createSignal,
  extra: { chat_id: person },
  start: async () => {
    const fake = await startFakeDaemon();
    return {
      fake,
      settings: { base_url: fake.baseUrl, account: fake.account, api: "daemon" },
      secret: "no secret here",
    };
  },
  expected: jsonService,
  live,
});

testTarget("signal by signal-cli-rest-api", {
  create: createSignal,
  extra: { chat_id: person },
  start: async () => {
    const fake = await startFakeRest();
    return { fake, settings: { base_url: fake.baseUrl, account: fake.account, api: "rest" }, secret: "no secret here" };
  },
  // It names no time.
  expected: { ...jsonService, limited: later },
  live,
});

type Send = (text: string, extra?: object, tools?: object) => Promise<{ readonly reference?: string }>;

async function withSignal(api: "daemon" | "rest", use: (fake: FakeSignal, send: Send) => Promise<void>) {
  const fake = await (api === "daemon" ? startFakeDaemon() : startFakeRest());
  const settings = { base_url: fake.baseUrl, account: fake.account, api };
  const send: Send = async (text, extra = {}, tools = {}) => {
    const part = partOf(signal, { settings }, { chat_id: person, ...extra }, text);
    return signal.send(part, settings, { ...toolsFor({}), ...tools });
  };
  try {
    await use(fake, send);
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

const groupId = Buffer.alloc(32, 7).toString("base64");
const restGroup = `group.${Buffer.from(groupId).toString("base64")}`;
const uuid = "0b5ba4b0-8f4c-4c7b-9d0a-3f1f0c6e1a2b";

/** The answer with an id that is not the request's. */
function foreign(answer: ReturnType<typeof rpcError>, id?: string | null) {
  return { ...answer, body: { ...(answer.body as object), id } };
}

describe("signal by signal-cli's daemon", () => {
  test("takes the account by the name of number", () => {
    const read = readSettings(signal, { http_url: "http://127.0.0.1:8080", number: "+15550100" }, {});
    assert.equal("values" in read && read.values.account, "+15550100");
  });

  test("sends Markdown as styles, counted in UTF-16 units", () =>
    withSignal("daemon", async (fake, send) => {
      await send("👩‍👧 is **bold**, *italic*, ~~gone~~ and `code`\n\n# Head\n\n[a page](https://example.org/)");
      const { body, text } = fake.messages[0]!;
      const shown = (body.textStyle as string[]).map((style) => {
        const [start, length, name] = style.split(":");
        return [text.slice(Number(start), Number(start) + Number(length)), name];
      });
      assert.deepEqual(shown, [
        ["bold", "BOLD"],
        ["italic", "ITALIC"],
        ["gone", "STRIKETHROUGH"],
        ["code", "MONOSPACE"],
        ["Head", "BOLD"],
      ]);
      assert.match(text, /a page \(https:\/\/example\.org\/\)$/);
    }));

  test("sends no styles where there are none, and Markdown as it is when told that it is plain", () =>
    withSignal("daemon", async (fake, send) => {
      await send("one");
      await send("**one**", { format: "plain" });
      assert.deepEqual(
        fake.messages.map(({ text, body }) => [text, body.textStyle]),
        [
          ["one", undefined],
          ["**one**", undefined],
        ],
      );
    }));

  const places: [string, string, string][] = [
    [uuid, "recipient", uuid],
    [uuid.toUpperCase(), "recipient", uuid],
    ["u:ana.01", "username", "ana.01"],
    ["ana.01", "username", "ana.01"],
    [`group:${groupId}`, "groupId", groupId],
    [`group.${groupId}`, "groupId", groupId],
    [restGroup, "groupId", groupId],
  ];
  for (const [chat_id, key, value] of places) {
    test(`names ${chat_id} as ${key}`, () =>
      withSignal("daemon", async (fake, send) => {
        await send("Hello", { chat_id });
        assert.deepEqual([fake.messages[0]?.body[key]].flat(), [value]);
      }));
  }

  for (const chat_id of [
    "15550100",
    "+0123456789",
    "+1 555 0100",
    "--help",
    "group.x",
    "group:a/../../b c",
    "ana",
    "-rf.01",
  ]) {
    test(`refuses ${chat_id} as an address`, () =>
      withSignal("daemon", async (fake, send) => {
        await assert.rejects(send("Hello", { chat_id }), /chat_id/);
        assert.equal(fake.heard.length, 0);
      }));
  }

  test("counts a group's message that some members cannot get as delivered, and warns", () =>
    withSignal("daemon", async (fake, send) => {
      fake.mode = "refused";
      fake.answer = rpcResult([{ type: "SUCCESS" }, { type: "IDENTITY_FAILURE" }, { type: "NETWORK_FAILURE" }]);
      const warnings: object[] = [];
      const log = { ...toolsFor({}).log, warn: (fields: object) => warnings.push(fields) };
      const { reference } = await send("Hello", { chat_id: `group:${groupId}` }, { log });
      assert.equal(reference, "1712345678901 not to 2 of 3 (IDENTITY_FAILURE, NETWORK_FAILURE)");
      assert.deepEqual(warnings, [
        { target: "signal", route: "ci", event: "push", failed: 2, reasons: "IDENTITY_FAILURE, NETWORK_FAILURE" },
      ]);
    }));

  const fates: [string, ReturnType<typeof rpcError>, "no" | "maybe", number | "never" | undefined, RegExp][] = [
    ["an untrusted key", nobodyGotIt(-4, { type: "IDENTITY_FAILURE" }), "no", "never", /trust/],
    ["an untrusted key without results", rpcError(-4, "Untrusted"), "no", "never", /trust/],
    [
      "results that all failed, without an error",
      rpcResult([{ type: "UNREGISTERED_FAILURE" }]),
      "no",
      "never",
      /not on Signal/,
    ],
    ["a mistake", rpcError(-1, "Invalid recipient"), "no", "never", /Invalid recipient/],
    ["a name of Object", nobodyGotIt(-1, { type: "constructor" }), "no", "never", /constructor/],
    ["a network that is down", nobodyGotIt(-1, { type: "NETWORK_FAILURE" }), "maybe", undefined, /NETWORK_FAILURE/],
    ["trouble on the way", rpcError(-3, "java.io.IOException"), "maybe", undefined, /IOException/],
    ["trouble within", rpcError(-32603, "Internal error"), "maybe", undefined, /Internal error/],
    ["a rate limit without results", rpcError(-5, "Rate limited"), "no", undefined, /Rate limited/],
    [
      "a rate limit that a captcha ends",
      nobodyGotIt(
        -5,
        { type: "RATE_LIMIT_FAILURE", token: "t", retryAfterSeconds: 86_400 },
        { type: "RATE_LIMIT_FAILURE", retryAfterSeconds: 60 },
      ),
      "no",
      86_400_000,
      /captcha/,
    ],
    ["an unknown account", rpcError(-32602, "Specified account does not exist"), "no", "never", /"account"/],
    [
      "no timestamp",
      { status: 200, body: { jsonrpc: "2.0", id: requestId, result: {} } },
      "maybe",
      undefined,
      /not one of signal-cli/,
    ],
    [
      "another request's result",
      foreign(rpcResult([{ type: "SUCCESS" }]), "1"),
      "maybe",
      undefined,
      /not one of signal-cli/,
    ],
    [
      "another request's error",
      foreign(rpcError(-1, "Invalid recipient"), "1"),
      "maybe",
      undefined,
      /not one of signal-cli/,
    ],
    ["no id", foreign(rpcResult([{ type: "SUCCESS" }])), "maybe", undefined, /not one of signal-cli/],
    [
      "a result to nothing",
      foreign(rpcResult([{ type: "SUCCESS" }]), null),
      "maybe",
      undefined,
      /not one of signal-cli/,
    ],
    ["a request that could not be read", foreign(rpcError(-32700, "Parse error"), null), "no", "never", /Parse error/],
  ];
  for (const [name, answer, sent, retryAfterMs, words] of fates) {
    test(`decides by the body of an answer with status 200: ${name}`, () =>
      withSignal("daemon", async (fake, send) => {
        fake.mode = "refused";
        fake.answer = answer;
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
        assert.match(failure.message, words);
      }));
  }
});

describe("signal by signal-cli-rest-api", () => {
  test("sends plain text", () =>
    withSignal("rest", async (fake, send) => {
      await send("**one** `two`");
      assert.deepEqual([fake.messages[0]?.text, fake.messages[0]?.body.text_mode], ["one two", "normal"]);
    }));

  for (const chat_id of [`group:${groupId}`, `group.${groupId}`, restGroup]) {
    test(`names a group in the form of that API: ${chat_id}`, () =>
      withSignal("rest", async (fake, send) => {
        await send("Hello", { chat_id });
        assert.equal(fake.messages[0]?.recipient, restGroup);
      }));
  }

  const fates: [number, string, "no" | "maybe", number | "never" | undefined][] = [
    [400, "Unregistered user", "no", "never"],
    [400, "Failed to send: Network is unreachable", "maybe", undefined],
    [400, "Rate limited: [429] please wait", "no", undefined],
    [500, "panic", "maybe", undefined],
  ];
  for (const [status, error, sent, retryAfterMs] of fates) {
    test(`decides by status and words: ${status} ${error}`, () =>
      withSignal("rest", async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status, body: { error } };
        const failure = await failureOf(send("Hello"));
        assert.deepEqual([failure.sent, failure.retryAfterMs], [sent, retryAfterMs], failure.message);
      }));
  }

  test("says before anything is sent that the account is not there", () =>
    withSignal("rest", async (fake) => {
      const settings = { base_url: fake.baseUrl, account: "+15550123", api: "rest" };
      assert.match(
        (await failureOf(signal.check(settings, toolsFor({})))).message,
        /"\+15550123" is none of its accounts/,
      );
    }));
});
