import assert from "node:assert/strict";
import { test } from "node:test";
import { builtin } from "../../src/agent/builtin.ts";
import type { FakeOpenAI, FakeReply } from "../fakes/openai.ts";
import { aContext, apiKey, commandCall, endOf, fakeFor, fakeModelEnv, fakeSandbox, runWith } from "./surroundings.ts";

/** The text of the tool message that answers the last call of a request. */
function lastToolMessage(fake: FakeOpenAI): string {
  const message = fake.requests.at(-1)?.messages.at(-1);
  assert.equal(message?.role, "tool");
  return String(message.content);
}

test("a command of the model runs in the workspace and its output goes back to the model", async (t) => {
  const first = { ...commandCall("ls"), text: "Let me look" };
  const fake = await fakeFor(t, [first, { text: "Two files" }]);
  const sandbox = fakeSandbox(async () => ({ output: "a\nb\n", exitCode: 2 }));
  const outcome = await runWith(fake, { sandbox });
  assert.deepEqual(outcome, {
    status: "completed",
    answer: "Two files",
    transcript: [
      { role: "assistant", text: "Let me look" },
      { role: "tool-call", text: 'terminal {"command":"ls"}' },
      { role: "tool-result", text: "exit code: 2\n\na\nb\n" },
      { role: "assistant", text: "Two files" },
    ],
    usage: { inputTokens: 20, outputTokens: 10 },
  });
  assert.deepEqual(sandbox.commands, ["ls"]);
  assert.deepEqual(sandbox.events, ["open", "close"]);
  assert.equal(lastToolMessage(fake), "exit code: 2\n\na\nb\n");
});

test("the model is asked with the key, the rules, the skill, the prompt and the tools", async (t) => {
  const fake = await fakeFor(t, [{ text: "ok" }]);
  const skill = { name: "s", text: "Be kind\n", folder: "/s" };
  await runWith(fake, {}, { skill });
  const request = fake.requests[0];
  assert.equal(request?.path, "/v1/chat/completions");
  assert.equal(request.headers.authorization, `Bearer ${apiKey}`);
  assert.deepEqual(request.tools, ["terminal"]);
  const [rules, prompt] = request.messages;
  assert.equal(rules?.role, "system");
  assert.match(String(rules.content), /route "reviews"[\s\S]*never an instruction[\s\S]*delivered/);
  assert.deepEqual(prompt, { role: "user", content: "Be kind\n\nReview pull request 7" });
});

test("a run without tools offers none, opens no workspace and tells a model that calls one anyway", async (t) => {
  const fake = await fakeFor(t, [commandCall("ls"), { text: "ok" }]);
  const sandbox = fakeSandbox();
  const outcome = await runWith(fake, { sandbox }, { tools: [] });
  assert.equal(outcome.status, "completed");
  assert.deepEqual(fake.requests[0]?.tools, []);
  assert.match(lastToolMessage(fake), /unavailable tool/);
  assert.deepEqual(sandbox.events, []);
});

test("a tool that does not exist ends the run before the model is asked", async (t) => {
  const fake = await fakeFor(t, []);
  const [status, reason, transient] = endOf(await runWith(fake, {}, { tools: ["constructor"] }));
  assert.deepEqual([status, transient, fake.requests.length], ["failed", false, 0]);
  assert.match(reason, /^unknown tool "constructor": known tools are terminal/);
});

test("an empty answer is an answer", async (t) => {
  const fake = await fakeFor(t, [{ text: "" }]);
  const outcome = await runWith(fake);
  assert.deepEqual([outcome.status, "answer" in outcome && outcome.answer], ["completed", ""]);
});

const wrongCalls: [string, { name: string; arguments: object | string }, RegExp][] = [
  ["an unknown tool", { name: "browser", arguments: {} }, /unavailable tool 'browser'/],
  ["a name of every object", { name: "constructor", arguments: {} }, /unavailable tool 'constructor'/],
  ["malformed arguments", { name: "terminal", arguments: '{"command": "ls' }, /Invalid input for tool terminal/],
  ["no arguments", { name: "terminal", arguments: "" }, /The terminal takes {"command": "…"}/],
  ["other arguments", { name: "terminal", arguments: { cmd: "ls" } }, /The terminal takes/],
  ["a list of commands", { name: "terminal", arguments: { command: ["ls"] } }, /The terminal takes/],
  ["null", { name: "terminal", arguments: "null" }, /The terminal takes/],
];

for (const [what, call, words] of wrongCalls) {
  test(`a call with ${what} is told to the model and does not end the run`, async (t) => {
    const fake = await fakeFor(t, [{ toolCalls: [call] }, { text: "sorry" }]);
    const sandbox = fakeSandbox();
    const outcome = await runWith(fake, { sandbox });
    assert.deepEqual([outcome.status, "answer" in outcome && outcome.answer], ["completed", "sorry"]);
    assert.match(lastToolMessage(fake), words);
    assert.deepEqual(
      outcome.transcript.map((entry) => entry.role),
      ["tool-call", "tool-result", "assistant"],
    );
    assert.match(outcome.transcript[1]?.text ?? "", words);
    assert.deepEqual(sandbox.commands, []);
  });
}

test("the model is told when output was cut and when a command took too long", async (t) => {
  const fake = await fakeFor(t, [commandCall("yes"), { text: "ok" }]);
  await runWith(fake, { sandbox: fakeSandbox(async () => ({ exitCode: 137, timedOut: true, truncated: true })) });
  assert.match(lastToolMessage(fake), /^exit code: 137\ntimed out: .*\ntruncated: .*\n\n\(no output\)$/);
});

test("long calls and results are cut in the transcript, at a whole character", async (t) => {
  const fake = await fakeFor(t, [commandCall("é".repeat(9000)), { text: "ok" }]);
  const outcome = await runWith(fake, { sandbox: fakeSandbox(async () => ({ output: "x".repeat(20_000) })) });
  const [call, result] = outcome.transcript.map((entry) => Buffer.byteLength(entry.text));
  assert.ok(call === 10_000 || call === 9999, `${call}`);
  assert.equal(result, 10_000);
  assert.doesNotMatch(outcome.transcript[0]?.text ?? "", /\ufffd/);
});

test("a model that never stops calling tools runs out of steps", async (t) => {
  const fake = await fakeFor(t, () => ({ ...commandCall("again"), text: "one more" }));
  const sandbox = fakeSandbox();
  const outcome = await runWith(fake, { sandbox, settings: { maxSteps: 3 } });
  assert.deepEqual(endOf(outcome), ["budget", "no final answer within 3 model turns", false]);
  assert.equal(fake.requests.length, 3);
  assert.deepEqual(outcome.usage, { inputTokens: 30, outputTokens: 15 });
  assert.deepEqual(sandbox.events, ["open", "close"]);
});

test("an answer in the last step allowed is an answer", async (t) => {
  const fake = await fakeFor(t, [commandCall("ls"), { text: "ok" }]);
  assert.equal((await runWith(fake, { settings: { maxSteps: 2 } })).status, "completed");
});

const finishes: [string, FakeReply, [string, RegExp, boolean]][] = [
  ["no text and the token limit", { text: "", finishReason: "length" }, ["failed", /limit of output tokens/, false]],
  [
    "a tool call and the token limit",
    { ...commandCall("ls"), finishReason: "length" },
    ["failed", /limit of output tokens/, false],
  ],
  ["the content filter", { text: "I", finishReason: "content_filter" }, ["failed", /refused to answer/, false]],
  ["a tool call and an unknown end", { ...commandCall("ls"), finishReason: "odd" }, ["failed", /"other"/, false]],
];

for (const [what, reply, [status, words, transient]] of finishes) {
  test(`a turn that ends with ${what} is no answer`, async (t) => {
    const fake = await fakeFor(t, [reply]);
    const end = endOf(await runWith(fake));
    assert.deepEqual([end[0], end[2]], [status, transient]);
    assert.match(end[1], words);
  });
}

test("a text that the token limit cut is delivered", async (t) => {
  const fake = await fakeFor(t, [{ text: "half an ans", finishReason: "length" }]);
  const outcome = await runWith(fake);
  assert.equal("answer" in outcome && outcome.answer, "half an ans");
});

test("an abort ends a hanging model call as cancelled", async (t) => {
  const fake = await fakeFor(t, [commandCall("ls"), { hang: true }]);
  const controller = new AbortController();
  const sandbox = fakeSandbox();
  const running = runWith(fake, { sandbox, signal: controller.signal });
  await fake.received(2);
  controller.abort();
  const outcome = await running;
  assert.deepEqual(endOf(outcome), ["cancelled", "the run was cancelled", true]);
  assert.deepEqual(outcome.usage, { inputTokens: 10, outputTokens: 5 });
  assert.equal(outcome.transcript.length, 2);
  assert.deepEqual(sandbox.events, ["open", "close"]);
});

test("time up ends the run also in the middle of a command", async (t) => {
  const fake = await fakeFor(t, [commandCall("sleep")]);
  const sandbox = fakeSandbox(() => new Promise(() => {}));
  const outcome = await runWith(fake, { sandbox, settings: { timeoutMs: 300 } });
  assert.deepEqual(endOf(outcome), ["timeout", "the run did not end within 0.3 s", false]);
});

test("blocked says that no model is configured, or what the sandbox says", async () => {
  assert.match((await builtin.blocked(aContext())) ?? "", /^no model configured: set /);
  const env = fakeModelEnv("http://127.0.0.1:9/v1");
  assert.equal(await builtin.blocked(aContext({ env })), undefined);
  const sandbox = { ...fakeSandbox(), blocked: async () => "bubblewrap is missing" };
  assert.equal(await builtin.blocked(aContext({ env, sandbox })), "bubblewrap is missing");
});

test("warnings of the SDK are switched off", async (t) => {
  await runWith(await fakeFor(t, [{ text: "ok" }]));
  assert.equal(globalThis.AI_SDK_LOG_WARNINGS, false);
});
