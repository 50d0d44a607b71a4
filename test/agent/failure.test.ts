import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText } from "ai";
import { builtin } from "../../src/agent/builtin.ts";
import { endingOf } from "../../src/agent/failure.ts";
import { loadModel } from "../../src/agent/model.ts";
import { type FakeReply, startFakeOpenAI } from "../fakes/openai.ts";
import { aContext, apiKey, aRequest, commandCall, endOf, fakeFor, fakeSandbox, runWith } from "./surroundings.ts";

/** Status of the model server, how often it is asked, and whether the run may succeed later. */
const statuses: [status: number, asked: number, transient: boolean][] = [
  [400, 1, false],
  [401, 1, false],
  [403, 1, false],
  [404, 1, false],
  [422, 1, false],
  [408, 3, true],
  [409, 3, true],
  [429, 3, true],
  [500, 3, true],
  [503, 3, true],
  [529, 3, true],
];

for (const [status, asked, transient] of statuses) {
  test(`a model that answers ${status} is asked ${asked} times; transient: ${transient}`, async (t) => {
    const headers = { "retry-after-ms": "0" };
    const fake = await fakeFor(t, () => ({ status, message: `Not\n now ${apiKey} ${"x".repeat(900)}`, headers }));
    const outcome = await runWith(fake);
    const [ended, reason, later] = endOf(outcome);
    assert.deepEqual([ended, later, fake.requests.length], ["failed", transient, asked]);
    assert.ok(reason.startsWith(`the model answered ${status}: Not now [redacted] xxx`), reason);
    assert.ok(reason.length <= 330, `${reason.length}`);
    assert.doesNotMatch(JSON.stringify(outcome), new RegExp(apiKey));
  });
}

test("a model that comes back between the tries is not a failure", async (t) => {
  const busy = { status: 429, message: "slow down", headers: { "retry-after-ms": "0" } };
  const fake = await fakeFor(t, [busy, busy, { text: "ok" }]);
  assert.equal((await runWith(fake)).status, "completed");
});

const bodies: [string, FakeReply, [RegExp, boolean]][] = [
  ["garbage", { raw: "<html>" }, [/^the model's answer \(200\) cannot be read: /, false]],
  ["another kind of JSON", { raw: '{"ok":true}' }, [/^the model's answer \(200\) cannot be read: /, false]],
  ["no choices", { raw: '{"choices":[]}' }, [/./, false]],
  ["an error of another shape", { raw: '{"detail":"no such\\tmodel"}', status: 404 }, [/404: .*no such/, false]],
  ["an error without words", { raw: "", status: 403 }, [/^the model answered 403: Forbidden$/, false]],
  [
    "a redirect",
    { status: 307, message: "elsewhere", headers: { location: "/v1/elsewhere" } },
    [/^the model answered 307: elsewhere$/, false],
  ],
];

for (const [what, reply, [words, transient]] of bodies) {
  test(`${what} from the model is a failure with its words`, async (t) => {
    const fake = await fakeFor(t, [reply]);
    const [status, reason, later] = endOf(await runWith(fake));
    assert.deepEqual([status, later, fake.requests.length], ["failed", transient, 1]);
    assert.match(reason, words);
  });
}

/** Tried once only: between the tries of a broken connection the SDK waits for seconds. */
async function endOfOneCall(baseUrl: string): Promise<ReturnType<typeof endingOf>> {
  const model = await loadModel({ provider: "openai-compatible", name: "m", baseUrl, apiKey: undefined });
  const error = await generateText({ model, prompt: "hi", maxRetries: 0 }).catch((thrown: unknown) => thrown);
  return endingOf(error, []);
}

test("a connection that is refused or dropped is transient", async (t) => {
  const dropping = await fakeFor(t, [{ drop: true }]);
  const gone = await startFakeOpenAI([]);
  await gone.close();
  for (const { baseUrl } of [dropping, gone]) {
    const ending = await endOfOneCall(baseUrl);
    assert.deepEqual([ending.status, ending.transient], ["failed", true]);
    assert.match(ending.reason, /^the model cannot be reached: /);
  }
});

test("the key appears nowhere, even when the server sends it back in a text, a call or an output", async (t) => {
  const fake = await fakeFor(t, [
    { ...commandCall(`echo ${apiKey}`), text: apiKey },
    { status: 401, message: apiKey },
  ]);
  const outcome = await runWith(fake, { sandbox: fakeSandbox(async () => ({ output: apiKey })) });
  assert.equal(outcome.transcript.length, 3);
  assert.doesNotMatch(JSON.stringify(outcome), new RegExp(apiKey));
});

test("a run whose model went missing fails and may be tried again", async () => {
  const [status, reason, transient] = endOf(await builtin.run(aRequest(), aContext()));
  assert.deepEqual([status, transient], ["failed", true]);
  assert.match(reason, /^no model configured: /);
});
