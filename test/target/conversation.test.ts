import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { rawNumber } from "../../src/core/json.ts";
import { HttpFailure, type HttpResponse } from "../../src/lib/http.ts";
import {
  Conversation,
  type ConversationOptions,
  numberOf,
  type Question,
  textOf,
} from "../../src/target/conversation.ts";

const question: Question = { method: "POST", url: "https://service.example/send?key=s3cr%2Ft", json: {}, sends: true };

/** A conversation whose service answers so. */
function talkWith(answer: Partial<HttpResponse> | Error, options: Partial<ConversationOptions> = {}) {
  const asked: { timeoutMs: number; headers: unknown; body: unknown }[] = [];
  const talk = new Conversation({
    ...{ service: "Tube", action: "Cannot send to Tube", secrets: ["s3cr/t-key"], timeoutMs: 30_000 },
    ...{ signal: new AbortController().signal, now: () => 0 },
    exchange: async (_url, { timeoutMs, headers, body }) => {
      asked.push({ timeoutMs, headers, body });
      if (answer instanceof Error) throw answer;
      return { status: 200, headers: new Headers(), text: "", ...answer };
    },
    ...options,
  });
  return { talk, asked };
}

async function fateOf(answer: Partial<HttpResponse> | Error, words?: string, sends = true) {
  const { talk } = talkWith(answer);
  try {
    talk.expectSuccess(await talk.ask({ ...question, sends }), words, { 403: "let it in" });
    return "success";
  } catch (error) {
    assert.ok(error instanceof DeliveryError, String(error));
    return [error.sent, error.retryAfterMs, error.message];
  }
}

describe("a conversation with a service", () => {
  const wait = new Headers({ "retry-after": "7" });
  const after = "so it may have arrived all the same";
  const fates: [what: string, answer: Partial<HttpResponse> | Error, words: string | undefined, fate: unknown][] = [
    ["success", { status: 204 }, undefined, "success"],
    [
      "trouble",
      { status: 503, headers: wait },
      undefined,
      ["maybe", 7000, `Cannot send to Tube: it answered 503, ${after}`],
    ],
    [
      "slowness",
      { status: 408 },
      "slow",
      ["maybe", undefined, `Cannot send to Tube: it answered 408 "slow", ${after}`],
    ],
    [
      "haste",
      { status: 429, headers: wait },
      "slow down",
      ["no", 7000, 'Cannot send to Tube: it answered 429 "slow down"'],
    ],
    [
      "a refusal",
      { status: 403 },
      "not in",
      ["no", "never", 'Cannot send to Tube: it answered 403 "not in"; let it in'],
    ],
    [
      "a refusal by something else",
      { status: 403 },
      undefined,
      [
        "no",
        "never",
        `Cannot send to Tube: the answer 403 is not one of Tube; check "base_url" and the network's proxy`,
      ],
    ],
    [
      "a redirect",
      { status: 302 },
      undefined,
      [
        "no",
        "never",
        'Cannot send to Tube: the answer was 302, a redirect, which is never followed; correct "base_url"',
      ],
    ],
    [
      "no answer",
      new HttpFailure("no answer within 5 ms", "maybe", undefined),
      undefined,
      ["maybe", undefined, "Cannot send to Tube: no answer within 5 ms"],
    ],
  ];
  for (const [what, answer, words, fate] of fates) {
    test(`makes of ${what} what it means for the message`, async () =>
      assert.deepEqual(await fateOf(answer, words), fate));
  }

  test("is sure that nothing was sent by a question that sends nothing", async () => {
    const asked = [{ status: 502 }, new HttpFailure("cut off", "maybe", undefined)];
    for (const answer of asked) {
      const [sent, , message] = await fateOf(answer, undefined, false);
      assert.equal(sent, "no");
      assert.doesNotMatch(String(message), /may have arrived/);
    }
    const { talk } = talkWith({ text: "<html>" });
    const answer = await talk.ask({ ...question, sends: false });
    assert.equal(talk.notAnAnswer(answer).sent, "no");
    assert.equal(talk.notAnAnswer({ ...answer, sends: true }).sent, "maybe");
  });

  test("shows no secret, not even a part of one where words are cut", async () => {
    const { talk } = talkWith({ status: 400 });
    const answer = await talk.ask(question);
    assert.match(talk.refused(answer, "the key s3cr/t-key is bad").message, /the key \[redacted\] is bad/);
    assert.doesNotMatch(talk.refused(answer, `${"x".repeat(194)}s3cr/t-key`).message, /s3/);
  });

  test("keeps one time limit over all its exchanges", async () => {
    const { talk, asked } = talkWith({}, { timeoutMs: 30 });
    await talk.ask(question);
    const begun = performance.now();
    while (performance.now() - begun < 40);
    await assert.rejects(talk.ask(question), { message: "Cannot send to Tube: no answer within 30 ms", sent: "no" });
    assert.equal(asked.length, 1);
    assert.ok(asked[0]!.timeoutMs <= 30);
  });

  test("writes JSON and forms with their types, and nothing where there is nothing", async () => {
    const { talk, asked } = talkWith({});
    await talk.ask({ ...question, json: { a: "ü" } });
    await talk.ask({ method: "POST", url: "x", form: { a: "b c&d" }, headers: { "x-y": "z" }, sends: true });
    await talk.ask({ method: "GET", url: "x", sends: false });
    assert.deepEqual(
      asked.map(({ headers, body }) => [headers, body]),
      [
        [{ "content-type": "application/json; charset=utf-8" }, '{"a":"ü"}'],
        [{ "content-type": "application/x-www-form-urlencoded;charset=UTF-8", "x-y": "z" }, "a=b+c%26d"],
        [{}, undefined],
      ],
    );
  });

  test("reads an object from the body, and nothing else", async () => {
    const read = async (text: string) => {
      const { talk } = talkWith({ text });
      return (await talk.ask(question)).json;
    };
    assert.deepEqual(await read('{"ok":true}'), { ok: true });
    for (const text of ["", "[1]", "null", "<html>", '{"ok":']) assert.equal(await read(text), undefined, text);
  });
});

test("ids are read as text or number, with all their digits", () => {
  assert.deepEqual(
    [textOf("a"), textOf(7), textOf(rawNumber("12345678901234567890"))],
    ["a", "7", "12345678901234567890"],
  );
  assert.deepEqual([textOf(""), textOf(undefined), textOf(null), textOf(true), textOf({})], Array(5).fill(undefined));
  assert.deepEqual([numberOf("7.5"), numberOf(7), numberOf("x"), numberOf(undefined)], [7.5, 7, undefined, undefined]);
});
