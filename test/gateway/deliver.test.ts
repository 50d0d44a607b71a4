import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Platform } from "../../src/config/platforms.ts";
import { newId } from "../../src/core/id.ts";
import type { Message } from "../../src/ledger/ledger.ts";
import type { MessageRecord } from "../../src/store/store.ts";
import { eventOf } from "../core/event.ts";
import { globalSecret, type Scene, setScene } from "../tools/scene.ts";
import { until } from "../tools/wait.ts";

/** A message of an agent's answer, taken to be sent. */
async function takeMessage(
  scene: Scene,
  text: string,
  draft: { target?: string; extra?: Record<string, string> } = {},
) {
  const event = eventOf({ id: newId(scene.clock.now()), receivedAt: scene.clock.now(), deliveryId: newId(0) });
  const plan = { prompt: "Look", skills: [], tools: [] };
  await scene.ledger.acceptRun(event, plan, [{ target: draft.target ?? "telegram", extra: draft.extra ?? {} }]);
  const [job] = await scene.ledger.takeJobs(1);
  await scene.ledger.ran(job!, { status: "completed", answer: text, transcript: [] });
  const [message] = await scene.ledger.takeMessages(1);
  return message as Message;
}

async function kept(scene: Scene): Promise<MessageRecord> {
  const [event] = await scene.events();
  return event?.jobs[0]?.messages[0] as MessageRecord;
}

/** Changes how a platform stands, as another configuration would. */
function setPlatform(scene: Scene, name: string, platform: Platform): void {
  (scene.config.platforms as Map<string, Platform>).set(name, platform);
}

describe("sending a message", () => {
  test("notes the try in one line, with the service's name for it", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, "All is well");
    assert.equal(await scene.deliveries.send(message, true), true);
    const { level, target, reference, route, event, ...line } = scene.lines.find(({ msg }) => msg === "Message sent")!;
    assert.deepEqual([level, target, reference, route, event], ["info", "telegram", "1", "route", "push"]);
    assert.deepEqual([line.message, line.try, line.ms], [message.id, 1, 0]);
    assert.doesNotMatch(JSON.stringify(scene.lines), /All is well/);
  });

  test("goes to the address of the route, else to the platform's home", async (t) => {
    const scene = await setScene(t);
    await scene.deliveries.send(await takeMessage(scene, "one", { extra: { chat_id: "-7", thread_id: "9" } }), true);
    await scene.deliveries.send(await takeMessage(scene, "two"), true);
    assert.deepEqual(
      scene.telegram.messages.map(({ chatId, threadId }) => [chatId, threadId]),
      [
        ["-7", 9],
        ["42", undefined],
      ],
    );
  });

  test("to an address that the payload did not resolve is given up, with words on what to do", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, "Hi", { extra: { chat_id: "{chat.id}" } });
    assert.equal(await scene.deliveries.send(message, true), false);
    const { state, reason } = await kept(scene);
    assert.equal(state, "dead");
    assert.match(reason ?? "", /\{chat\.id\}.*did not resolve/);
    assert.equal(scene.telegram.tries, 0);
  });

  test("to a target that this version does not have is given up", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, "Hi", { target: "carrier_pigeon" });
    await scene.deliveries.send(message, true);
    const { state, reason } = await kept(scene);
    assert.deepEqual([state, reason], ["dead", 'This version has no target "carrier_pigeon"']);
  });

  test("to a target that is not set up any more is tried again later: it may be mended", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, "Hi");
    setPlatform(scene, "telegram", { unusable: "it is not enabled" });
    await scene.deliveries.send(message, true);
    const { state, reason, dueAt } = await kept(scene);
    assert.deepEqual([state, dueAt], ["pending", scene.clock.now() + 2_000]);
    assert.match(reason ?? "", /"telegram" cannot be used: it is not enabled/);
  });

  test("with a target that has a bug is recorded without its words, and the gateway goes on", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, "Hi");
    const values = {
      home_channel: "42",
      get token(): string {
        throw new TypeError(`a bug with ${globalSecret}`);
      },
    };
    setPlatform(scene, "telegram", { values });
    assert.equal(await scene.deliveries.send(message, true), false);
    const { attempts, reason } = await kept(scene);
    assert.deepEqual([attempts[0]?.outcome, /failed unexpectedly/.test(reason ?? "")], ["unknown", true]);
    const line = scene.lines.find(({ level }) => level === "error");
    assert.match(JSON.stringify(line), /a bug with \[redacted\]/);
  });

  test("tells apart what was certainly not taken and what may have been", async (t) => {
    const scene = await setScene(t);
    for (const [mode, outcome] of [
      ["limited", "refused"],
      ["lost", "unknown"],
      ["broken", "unknown"],
    ] as const) {
      scene.clock.advance(1);
      scene.telegram.upcoming.push(mode);
      await scene.deliveries.send(await takeMessage(scene, "Hi"), false);
      assert.equal((await kept(scene)).attempts[0]?.outcome, outcome, mode);
    }
  });

  test("is final for a sender that waits, however the target failed", async (t) => {
    const scene = await setScene(t);
    scene.telegram.upcoming.push("limited");
    await scene.deliveries.send(await takeMessage(scene, "Hi"), false);
    assert.equal((await kept(scene)).state, "dead");
  });

  test("records each part but the last as soon as it was taken", async (t) => {
    const scene = await setScene(t);
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.outage.delays.set("recordPart", promise);
    const message = await takeMessage(scene, `${"a".repeat(4096)}${"b".repeat(4096)}c`);
    const sending = scene.deliveries.send(message, true);
    await until("the first record", () => scene.outage.asked.get("recordPart") === 1);
    await scene.events();
    assert.equal(scene.telegram.tries, 1, "the next part waits for the record");
    resolve();
    assert.equal(await sending, true);
    assert.equal(scene.outage.asked.get("recordPart"), 2);
    assert.equal((await kept(scene)).reference, "3");
  });

  test("goes on after the parts that were taken before", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, `${"a".repeat(4096)}${"b".repeat(4096)}c`);
    assert.equal(await scene.deliveries.send({ ...message, partsSent: 2 }, true), true);
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text),
      ["c"],
    );
  });

  test("blots out secrets, also one that would be cut in two", async (t) => {
    const scene = await setScene(t);
    const text = `${"a".repeat(4090)}${globalSecret} and ${scene.telegram.token}`;
    await scene.deliveries.send(await takeMessage(scene, text), true);
    const sent = scene.telegram.messages.map((one) => one.text).join("");
    assert.match(sent, /\[reda/);
    assert.doesNotMatch(sent, /the secret|of all routes|fake-bot-token/);
  });

  test("waits for the ledger when the target has taken it", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, "Hi");
    scene.outage.failing.add("finishAttempt");
    const sending = scene.deliveries.send(message, true);
    await until("the second try to record", () => (scene.outage.asked.get("finishAttempt") ?? 0) >= 2);
    scene.outage.failing.clear();
    assert.equal(await sending, true);
    assert.equal(scene.telegram.tries, 1);
    assert.equal((await kept(scene)).state, "sent");
  });

  test("ends when the gateway must, with the message left to the next one", async (t) => {
    const scene = await setScene(t);
    scene.telegram.mode = "hang";
    const message = await takeMessage(scene, "Hi");
    const sending = scene.deliveries.send(message, true);
    await until("the try", () => scene.telegram.tries === 1);
    scene.end.abort();
    assert.equal(await sending, false);
    assert.equal((await kept(scene)).state, "pending");
  });
});

test("a direct delivery is known as under way, and its messages as held, for as long as it is", async (t) => {
  const scene = await setScene(t);
  const event = eventOf({ receivedAt: scene.clock.now(), deliveryId: "42" });
  const other = eventOf({ ...event, route: "other" });
  const messages = await scene.ledger.acceptDirect(event, "Hi", [{ target: "telegram", extra: {} }]);
  const sending = scene.deliveries.sendNow(event, messages!);
  assert.ok(scene.deliveries.underWay(event));
  assert.equal(scene.deliveries.underWay(other), undefined);
  assert.deepEqual(scene.deliveries.held, messages);
  assert.equal(await sending, true);
  assert.equal(scene.deliveries.underWay(event), undefined);
  assert.deepEqual(scene.deliveries.held, []);
});
