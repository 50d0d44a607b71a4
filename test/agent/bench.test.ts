import assert from "node:assert/strict";
import { test } from "node:test";
import { commandCall, endOf, fakeFor, fakeSandbox, runWith } from "./surroundings.ts";

test("commands of one turn run one after the other", async (t) => {
  const calls = ["a", "b", "c"].map((command) => ({ name: "terminal", arguments: { command } }));
  const fake = await fakeFor(t, [{ toolCalls: calls }, { text: "ok" }]);
  let running = 0;
  const sandbox = fakeSandbox(async () => {
    running += 1;
    await new Promise(setImmediate);
    assert.equal(running, 1);
    running -= 1;
    return {};
  });
  assert.equal((await runWith(fake, { sandbox })).status, "completed");
  assert.deepEqual(sandbox.commands, ["a", "b", "c"]);
  assert.deepEqual(sandbox.events, ["open", "close"]);
});

test("a workspace that breaks is replaced and the model is told", async (t) => {
  const fake = await fakeFor(t, [commandCall("boom"), commandCall("ls"), { text: "ok" }]);
  const sandbox = fakeSandbox(async (command) => {
    if (command === "boom") throw new Error("lost");
    return { output: "fine" };
  });
  const outcome = await runWith(fake, { sandbox });
  assert.equal(outcome.status, "completed");
  assert.match(outcome.transcript[1]?.text ?? "", /The workspace broke \(lost\)\. A new one is open/);
  assert.deepEqual(sandbox.events, ["open", "close", "open", "close"]);
});

test("a workspace that breaks and cannot be opened again ends the run as failed", async (t) => {
  const fake = await fakeFor(t, [commandCall("boom")]);
  let opened = 0;
  const sandbox = fakeSandbox(
    async () => Promise.reject(new Error("lost")),
    () => {
      opened += 1;
      if (opened > 1) throw new Error("bwrap is gone");
    },
  );
  assert.deepEqual(endOf(await runWith(fake, { sandbox })), [
    "failed",
    "no workspace could be opened: bwrap is gone",
    true,
  ]);
  assert.deepEqual(sandbox.events, ["open", "close"]);
});

test("an abort ends the run also when the sandbox does not listen, and no further command starts", async (t) => {
  const calls = ["a", "b"].map((command) => ({ name: "terminal", arguments: { command } }));
  const fake = await fakeFor(t, [{ toolCalls: calls }]);
  const controller = new AbortController();
  const sandbox = fakeSandbox(() => {
    controller.abort();
    return new Promise(() => {});
  });
  assert.equal(endOf(await runWith(fake, { sandbox, signal: controller.signal }))[0], "cancelled");
  assert.deepEqual(sandbox.commands, ["a"]);
  assert.deepEqual(sandbox.events, ["open", "close"]);
});

test("a workspace that opens only after the abort is closed all the same", async (t) => {
  const fake = await fakeFor(t, [commandCall("ls")]);
  const controller = new AbortController();
  const inner = fakeSandbox();
  const gate = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const sandbox: typeof inner = {
    ...inner,
    async open(options) {
      controller.abort();
      await gate.promise;
      const workspace = await inner.open(options);
      return { ...workspace, close: () => workspace.close().then(closed.resolve) };
    },
  };
  assert.equal(endOf(await runWith(fake, { sandbox, signal: controller.signal }))[0], "cancelled");
  gate.resolve();
  await closed.promise;
  assert.deepEqual(inner.events, ["open", "close"]);
});
