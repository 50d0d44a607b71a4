import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Platform } from "../../src/config/platforms.ts";
import { DeliveryError } from "../../src/core/errors.ts";
import { newId } from "../../src/core/id.ts";
import type { Event } from "../../src/core/types.ts";
import { Deliveries } from "../../src/gateway/deliver.ts";
import type { Message } from "../../src/ledger/ledger.ts";
import type { MessageRecord, Place } from "../../src/store/store.ts";
import type { Part } from "../../src/target/target.ts";
import { telegram } from "../../src/target/telegram.ts";
import { eventOf } from "../core/event.ts";
import { makeTimeTravel } from "../tools/crew.ts";
import { overlayTelegram } from "../tools/overlay.ts";
import { globalSecret, type Scene, setScene } from "../tools/scene.ts";
import { aTake } from "../tools/terms.ts";
import { until } from "../tools/wait.ts";

interface DraftParts {
  readonly target?: string;
  readonly extra?: Record<string, string>;
  readonly route?: string;
  readonly refusal?: string;
  readonly fallback?: readonly Place[];
}

/** A message of an agent's answer, on its way. */
async function addMessage(scene: Scene, text: string, draft: DraftParts = {}): Promise<void> {
  const { target = "telegram", extra = {}, route = "ci", refusal = null, fallback = [] } = draft;
  const now = scene.clock.now();
  const event = eventOf({ id: newId(now), receivedAt: now, deliveryId: newId(0), route });
  const plan = { prompt: "Look", skills: [], tools: [] };
  await scene.ledger.acceptRun(event, plan, [{ target, extra, lane: null, refusal, fallback }], {
    route,
    onCrash: "rerun",
  });
  const [job] = await scene.ledger.takeJobs(aTake(1));
  await scene.ledger.ran(job!, { status: "completed", answer: text, transcript: [] });
}

/** A message of an agent's answer, taken to be sent. */
async function takeMessage(scene: Scene, text: string, draft: DraftParts = {}): Promise<Message> {
  await addMessage(scene, text, draft);
  return takeNext(scene);
}

/** The message that is due, taken to be sent. */
async function takeNext(scene: Scene): Promise<Message> {
  const [message] = await scene.ledger.takeMessages(aTake(1));
  assert.ok(message, "nothing is due");
  return message;
}

/** The messages of a direct delivery, which the caller must send. */
async function takeDirect(
  scene: Scene,
  text: string,
  draft: DraftParts = {},
): Promise<{ event: Event; messages: readonly Message[] }> {
  const now = scene.clock.now();
  const event = eventOf({ id: newId(now), receivedAt: now, deliveryId: newId(0), route: "ci" });
  const messages = await scene.ledger.acceptDirect(event, text, [
    { target: "telegram", extra: {}, lane: null, refusal: null, fallback: [], ...draft },
  ]);
  assert.ok(Array.isArray(messages));
  return { event, messages };
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
    assert.deepEqual([level, target, reference, route, event], ["info", "telegram", "1", "ci", "push"]);
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
    assert.deepEqual([state, dueAt], ["pending", scene.clock.now() + 4_000]);
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
      // A target that asked for time, or failed after that, is left alone for a while.
      scene.clock.advance(600_000);
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
    const message = await takeMessage(scene, `${"a".repeat(4000)}\n\n${"b".repeat(4000)}\n\n${"c".repeat(200)}`);
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
    const message = await takeMessage(scene, `${"a".repeat(4000)}\n\n${"b".repeat(4000)}\n\n${"c".repeat(200)}`);
    assert.equal(await scene.deliveries.send({ ...message, partsSent: 2 }, true), true);
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text),
      [`${"c".repeat(200)}\n\n(3/3)`],
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

/** A text of three parts. */
const threeParts = `${"a".repeat(4000)}\n\n${"b".repeat(4000)}\n\n${"c".repeat(200)}`;

function texts(scene: Scene): (string | undefined)[] {
  return scene.telegram.messages.map(({ text }) => text[0]);
}

describe("a failed try", () => {
  test("is followed by the next as the route says, over what its target says, over the rest", async (t) => {
    const retry = { tries: 2, first_delay: "1m" };
    const routes = {
      ci: { prompt: "Look", deliver: "telegram" },
      hasty: { prompt: "Look", deliver: "telegram", retry: { tries: 1 } },
    };
    const scene = await setScene(t, { routes, sections: { retry }, telegram: { retry: { tries: 3 } } });
    scene.telegram.mode = "broken";
    await scene.deliveries.send(await takeMessage(scene, "Hi", { route: "hasty" }), true);
    assert.match((await kept(scene)).reason ?? "", /^Given up after one try: .*502/);
    scene.clock.advance(1);
    await scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    assert.equal((await kept(scene)).dueAt, scene.clock.now() + 60_000);
    for (let tries = 2; tries <= 3; tries += 1) {
      assert.equal((await kept(scene)).state, "pending");
      scene.clock.advance(360_000);
      await scene.deliveries.send(await takeNext(scene), true);
    }
    assert.match((await kept(scene)).reason ?? "", /^Given up after 3 tries: /);
  });

  test("says of a part when the first of its tries can have been at the earliest", async (t) => {
    const seen: Part[] = [];
    overlayTelegram(t, {
      send: async (part) => {
        seen.push(part);
        throw new DeliveryError("Later", { sent: "no" });
      },
    });
    const scene = await setScene(t);
    const readyAt = scene.clock.now();
    await scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    scene.clock.advance(4_000);
    await scene.deliveries.send(await takeNext(scene), true);
    assert.deepEqual(
      seen.map(({ firstTriedAt }) => firstTriedAt),
      [readyAt, readyAt],
    );
    assert.equal(seen[0]?.key, seen[1]?.key);
  });
});

describe("a message that may have been sent before", () => {
  /** A message whose first try lost its answer: Telegram has it. */
  async function leaveUnsure(scene: Scene, text = "Hi"): Promise<void> {
    scene.telegram.upcoming.push("lost");
    await scene.deliveries.send(await takeMessage(scene, text), true);
    assert.equal((await kept(scene)).attempts[0]?.outcome, "unknown");
    scene.clock.advance(60_000);
  }

  const once = { sections: { retry: { when_unknown: "at_most_once" } } };

  test("is sent again where the rule is at_least_once", async (t) => {
    const scene = await setScene(t);
    await leaveUnsure(scene);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), true);
    assert.equal(scene.telegram.messages.length, 2);
  });

  test("is given up after the try itself where the rule is at_most_once", async (t) => {
    const scene = await setScene(t, once);
    scene.telegram.upcoming.push("lost");
    assert.equal(await scene.deliveries.send(await takeMessage(scene, "Hi"), true), false);
    const { state, reason } = await kept(scene);
    assert.equal(state, "dead");
    assert.match(reason ?? "", /may have been sent.*at_most_once: Cannot send to Telegram/);
  });

  test("is given up before anything is sent where the rule is at_most_once and the gateway died", async (t) => {
    const scene = await setScene(t, once);
    await takeMessage(scene, "Hi");
    const next = await setScene(t, { after: scene });
    await next.ledger.takeOver();
    assert.equal(await next.deliveries.send(await takeNext(next), true), false);
    const { state, reason, attempts } = await kept(next);
    assert.deepEqual([state, scene.telegram.tries], ["dead", 0]);
    assert.match(reason ?? "", /may have been sent/);
    assert.deepEqual(
      attempts.map(({ outcome }) => outcome),
      ["interrupted", "unknown"],
    );
    assert.ok(next.lines.some(({ level, msg }) => level === "warn" && /given up/.test(msg)));
  });

  test("is sent again in any case where the service recognises it", async (t) => {
    overlayTelegram(t, { repeats: "recognised" });
    const scene = await setScene(t, once);
    await leaveUnsure(scene);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), true);
  });

  test("counts as sent when the service has it, and nothing is sent", async (t) => {
    const asked: Part[] = [];
    const find = async (part: Part) => {
      asked.push(part);
      return { reference: "found" };
    };
    overlayTelegram(t, { repeats: "findable", find });
    const scene = await setScene(t, once);
    await leaveUnsure(scene);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), true);
    const { state, reference, readyAt } = await kept(scene);
    assert.deepEqual([state, reference, scene.telegram.tries], ["sent", "found", 1]);
    assert.deepEqual(
      asked.map(({ text, firstTriedAt }) => [text, firstTriedAt]),
      [["Hi", readyAt]],
    );
  });

  test("is sent when the service does not have it, once", async (t) => {
    overlayTelegram(t, { repeats: "findable", find: async () => undefined });
    const scene = await setScene(t, once);
    await leaveUnsure(scene);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), true);
    assert.equal(scene.telegram.tries, 2);
  });

  test("waits when the service cannot tell now, and is as unsure as before", async (t) => {
    const answers = [new DeliveryError("Busy", { sent: "no" }), undefined];
    const find = async () => {
      const answer = answers.shift();
      if (answer) throw answer;
      return { reference: "found" };
    };
    overlayTelegram(t, { repeats: "findable", find });
    const scene = await setScene(t, once);
    await leaveUnsure(scene);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), false);
    const { state, reason, attempts } = await kept(scene);
    assert.deepEqual([state, reason, attempts[1]?.outcome], ["pending", "Busy", "unknown"]);
    scene.clock.advance(60_000);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), true);
    assert.equal(scene.telegram.tries, 1);
  });

  for (const [whenUnknown, tries, state] of [
    ["at_least_once", 2, "sent"],
    ["at_most_once", 1, "dead"],
  ] as const) {
    test(`that the service can never tell of goes by the rule, ${whenUnknown}`, async (t) => {
      const find = async () => {
        throw new DeliveryError("Too many", { sent: "no", retryAfterMs: "never" });
      };
      overlayTelegram(t, { repeats: "findable", find });
      const scene = await setScene(t, { sections: { retry: { when_unknown: whenUnknown } } });
      await leaveUnsure(scene);
      await scene.deliveries.send(await takeNext(scene), true);
      assert.deepEqual([scene.telegram.tries, (await kept(scene)).state], [tries, state]);
    });
  }

  test("is not even asked for when it must be let go of", async (t) => {
    const asked: Part[] = [];
    const find = async (part: Part) => {
      asked.push(part);
      return undefined;
    };
    overlayTelegram(t, { repeats: "findable", find });
    const scene = await setScene(t, { isShared: true });
    await leaveUnsure(scene);
    const message = await takeNext(scene);
    scene.clock.advance(30_000);
    assert.equal(await scene.deliveries.send(message, true), false);
    scene.deliveries.leave();
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), false);
    assert.deepEqual([asked, scene.telegram.tries], [[], 1]);
  });

  test("is unsure in its next part only", async (t) => {
    const asked: number[] = [];
    const find = async ({ index }: Part) => {
      asked.push(index);
      return { reference: "found" };
    };
    overlayTelegram(t, { repeats: "findable", find });
    const scene = await setScene(t);
    scene.telegram.upcoming.push("ok");
    await leaveUnsureAtSecond(scene);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), true);
    assert.deepEqual([asked, texts(scene)], [[1], ["a", "b", "c"]]);
    assert.equal((await kept(scene)).reference, "3");
  });

  async function leaveUnsureAtSecond(scene: Scene): Promise<void> {
    scene.telegram.upcoming.splice(0, 1, "ok", "lost");
    await scene.deliveries.send(await takeMessage(scene, threeParts), true);
    scene.clock.advance(60_000);
  }
});

describe("a message whose lease has run out by our clock", () => {
  test("is not sent: another gateway may have it by now", async (t) => {
    const scene = await setScene(t, { isShared: true });
    const message = await takeMessage(scene, "Hi");
    scene.clock.advance(30_000);
    assert.equal(await scene.deliveries.send(message, true), false);
    assert.equal(scene.telegram.tries, 0);
    assert.ok(scene.lines.some(({ level, msg }) => level === "warn" && /its lease was lost/.test(msg)));
    const { state, attempts } = await kept(scene);
    assert.deepEqual([state, attempts[0]?.outcome], ["pending", "released"]);
    const again = await takeNext(scene);
    assert.deepEqual([again.failures, again.isUnsure], [0, false]);
  });

  test("is left to the gateway that has it", async (t) => {
    const scene = await setScene(t, { isShared: true });
    const message = await takeMessage(scene, "Hi");
    scene.clock.advance(30_000);
    const other = await setScene(t, { after: scene, isShared: true });
    const taken = await takeNext(other);
    assert.equal(await scene.deliveries.send(message, true), false);
    assert.equal((await kept(scene)).state, "sending");
    assert.equal(await other.deliveries.send(taken, true), true);
    assert.equal(scene.telegram.messages.length, 1);
  });

  test("is refused when its sender waits", async (t) => {
    const scene = await setScene(t, { isShared: true });
    const { event, messages } = await takeDirect(scene, "Hi");
    scene.clock.advance(30_000);
    assert.equal(await scene.deliveries.sendNow(event, messages), false);
    assert.deepEqual([(await kept(scene)).state, scene.telegram.tries], ["dead", 0]);
    assert.deepEqual(await scene.ledger.troubles(), []);
  });

  test("is sent where there is no other gateway", async (t) => {
    const scene = await setScene(t);
    const message = await takeMessage(scene, "Hi");
    scene.clock.advance(3_600_000);
    assert.equal(await scene.deliveries.send(message, true), true);
  });

  test("is not sent on when that happens between two parts, while it waits for its turn", async (t) => {
    const scene = await setScene(t, { isShared: true, isPaced: true });
    const travel = makeTimeTravel(t, scene);
    const sending = scene.deliveries.send(await takeMessage(scene, threeParts), true);
    await until("the first part", () => scene.outage.asked.get("recordPart") === 1);
    travel(40_000);
    assert.equal(await sending, false);
    const { state, partsSent } = await kept(scene);
    assert.deepEqual([state, partsSent, scene.telegram.tries], ["pending", 1, 1]);
  });

  test("goes no further when the ledger says that somebody else has it", async (t) => {
    const scene = await setScene(t, { isShared: true });
    const other = await setScene(t, { after: scene, isShared: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    const message = await takeMessage(scene, threeParts);
    overlayTelegram(t, {
      send: async () => {
        await promise;
        return {};
      },
    });
    const sending = scene.deliveries.send(message, true);
    // The other gateway's clock is ahead.
    await other.ledger.takeMessages({ ...aTake(0) });
    scene.clock.advance(30_000);
    const taken = await takeNext(other);
    scene.clock.advance(-30_000);
    resolve();
    assert.equal(await sending, false);
    assert.equal(taken.id, message.id);
    assert.ok(scene.lines.some(({ msg }) => /its lease was lost/.test(msg)));
    assert.equal((await kept(scene)).state, "sending");
  });

  test("was sent all the same when that is noticed afterwards, and the log says so", async (t) => {
    const scene = await setScene(t, { isShared: true });
    const other = await setScene(t, { after: scene, isShared: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.outage.delays.set("finishAttempt", promise);
    overlayTelegram(t, {
      send: async () => {
        scene.clock.advance(30_000);
        await takeNext(other);
        return { reference: "1" };
      },
    });
    const sending = scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    resolve();
    assert.equal(await sending, true);
    assert.ok(scene.lines.some(({ level, msg }) => level === "warn" && /Message sent, but its lease/.test(msg)));
  });
});

describe("when nothing more is to be begun", () => {
  test("a long message is given back between two parts, and goes on there", async (t) => {
    const scene = await setScene(t);
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.outage.delays.set("recordPart", promise);
    const sending = scene.deliveries.send(await takeMessage(scene, threeParts), true);
    await until("the first part", () => scene.outage.asked.get("recordPart") === 1);
    scene.deliveries.leave();
    resolve();
    assert.equal(await sending, false);
    const { state, partsSent, attempts } = await kept(scene);
    assert.deepEqual([state, partsSent, attempts[0]?.outcome], ["pending", 1, "released"]);
    assert.ok(scene.lines.some(({ level, msg }) => level === "info" && msg === "Message given back"));
    const next = await setScene(t, { after: scene });
    const message = await takeNext(next);
    assert.deepEqual([message.failures, message.isUnsure], [0, false]);
    assert.equal(await next.deliveries.send(message, true), true);
    assert.deepEqual(texts(scene), ["a", "b", "c"]);
  });

  test("a try that is under way is not cut off", async (t) => {
    const scene = await setScene(t);
    const { promise, resolve } = Promise.withResolvers<void>();
    const signals: AbortSignal[] = [];
    overlayTelegram(t, {
      send: async (_part, _settings, { signal }) => {
        signals.push(signal);
        await promise;
        return { reference: "1" };
      },
    });
    const sending = scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    await until("the try", () => signals.length === 1);
    scene.deliveries.leave();
    assert.equal(signals[0]?.aborted, false);
    resolve();
    assert.equal(await sending, true);
    assert.equal((await kept(scene)).state, "sent");
  });

  test("a message that waits for its turn is given back, and one that is taken in that moment", async (t) => {
    const scene = await setScene(t, { isPaced: true });
    await scene.deliveries.send(await takeMessage(scene, "one"), true);
    scene.clock.advance(1);
    const second = await takeMessage(scene, "two");
    const sending = scene.deliveries.send(second, true);
    scene.deliveries.leave();
    assert.equal(await sending, false);
    assert.equal(await scene.deliveries.send(await takeNext(scene), true), false);
    const { state, attempts } = await kept(scene);
    assert.deepEqual([state, scene.telegram.tries], ["pending", 1]);
    assert.deepEqual(
      attempts.map(({ outcome }) => outcome),
      ["released", "released"],
    );
  });

  test("a direct delivery goes on to its last part: its sender waits", async (t) => {
    const scene = await setScene(t);
    const { event, messages } = await takeDirect(scene, threeParts);
    scene.deliveries.leave();
    assert.equal(await scene.deliveries.sendNow(event, messages), true);
    assert.deepEqual(texts(scene), ["a", "b", "c"]);
  });

  test("it is known when nothing is being sent any more", async (t) => {
    const scene = await setScene(t);
    scene.telegram.mode = "hang";
    const sending = scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    await until("the try", () => scene.telegram.tries === 1);
    let isIdle = false;
    const idle = scene.deliveries.idle().then(() => {
      isIdle = true;
    });
    await scene.events();
    assert.equal(isIdle, false);
    scene.end.abort();
    await Promise.all([sending, idle]);
  });
});

describe("the pace of a target", () => {
  test("is kept between the parts of a message, and between messages to one chat", async (t) => {
    const scene = await setScene(t, { isPaced: true });
    const travel = makeTimeTravel(t, scene);
    const sending = scene.deliveries.send(await takeMessage(scene, threeParts), true);
    for (const tries of [1, 2, 3]) {
      await until("a part", () => scene.telegram.messages.length === tries);
      await scene.events();
      travel(999);
      await scene.events();
      assert.equal(scene.telegram.tries, tries);
      travel(1);
    }
    assert.equal(await sending, true);
    const other = await takeMessage(scene, "elsewhere", { extra: { chat_id: "7" } });
    assert.equal(await scene.deliveries.send(other, true), true);
  });

  test("is that of the vendor's server, and counts for no other", async (t) => {
    const { config, routes, ledger, memory, log, clock, secrets, end, ...scene } = await setScene(t);
    const deliveries = new Deliveries({
      config,
      routes,
      ledger,
      memory,
      log,
      now: clock.now,
      secrets,
      signal: end.signal,
    });
    const allowance = () => deliveries.paces.allowance(telegram);
    assert.equal(allowance(), Number.POSITIVE_INFINITY);
    const vendors = telegram.settings.base_url?.default;
    for (const base_url of [undefined, vendors]) {
      setPlatform({ ...scene, config } as Scene, "telegram", { values: { base_url } });
      assert.equal(allowance(), telegram.pace?.overall?.count);
    }
  });

  test("is kept for a sender that waits too, but only for a moment", async (t) => {
    const scene = await setScene(t, { isPaced: true });
    overlayTelegram(t, { pace: { overall: { count: 1, everyMs: 60_000 } } });
    const travel = makeTimeTravel(t, scene);
    const first = await takeDirect(scene, "one");
    assert.equal(await scene.deliveries.sendNow(first.event, first.messages), true);
    const second = await takeDirect(scene, "two");
    const sending = scene.deliveries.sendNow(second.event, second.messages);
    await scene.events();
    travel(2_990);
    await scene.events();
    assert.equal(scene.telegram.tries, 1);
    travel(10);
    assert.equal(await sending, true);
  });
});

describe("a target that keeps failing", () => {
  test("is paused after five messages in a row, which the log says once", async (t) => {
    const scene = await setScene(t);
    scene.telegram.mode = "broken";
    for (let count = 1; count <= 5; count += 1) {
      assert.deepEqual(
        scene.lines.filter(({ msg }) => msg === "Target paused"),
        [],
      );
      await scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    }
    const line = await until("the line", () => scene.lines.find(({ msg }) => msg === "Target paused"));
    const until_ = new Date(scene.clock.now() + 5_000).toISOString();
    assert.deepEqual([line.level, line.target, line.until, line.failures], ["warn", "telegram", until_, 5]);
    assert.match(String(line.reason), /Telegram answered 502/);
    const { event, messages } = await takeDirect(scene, "Hi");
    await scene.deliveries.sendNow(event, messages);
    await scene.events();
    assert.equal(scene.lines.filter(({ msg }) => msg === "Target paused").length, 1);
    assert.deepEqual(await scene.ledger.takeMessages(aTake()), []);
  });

  test("and asks for time is left alone until then", async (t) => {
    const scene = await setScene(t);
    scene.telegram.upcoming.push("limited");
    await scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    await addMessage(scene, "Another", { extra: { chat_id: "7" } });
    assert.deepEqual(await scene.ledger.takeMessages(aTake()), []);
    const line = await until("the line", () => scene.lines.find(({ msg }) => msg === "Target paused"));
    assert.equal(line.until, new Date(scene.clock.now() + 7_000).toISOString());
    scene.clock.advance(7_000);
    assert.equal((await scene.ledger.takeMessages(aTake())).length, 1);
  });

  test("is well again when it takes something", async (t) => {
    const scene = await setScene(t);
    scene.telegram.upcoming.push("broken");
    await scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    assert.equal((await scene.ledger.troubles()).length, 1);
    await scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    assert.deepEqual(await scene.ledger.troubles(), []);
  });

  test("is not blamed for what was cut off at the gateway's end", async (t) => {
    const scene = await setScene(t);
    scene.telegram.mode = "hang";
    const sending = scene.deliveries.send(await takeMessage(scene, "Hi"), true);
    await until("the try", () => scene.telegram.tries === 1);
    scene.end.abort();
    await sending;
    assert.deepEqual(await scene.ledger.troubles(), []);
  });
});

test("a direct delivery is known as under way, and its messages as held, for as long as it is", async (t) => {
  const scene = await setScene(t);
  const { event, messages } = await takeDirect(scene, "Hi");
  const other = eventOf({ ...event, route: "other" });
  const sending = scene.deliveries.sendNow(event, messages);
  assert.ok(scene.deliveries.underWay(event));
  assert.equal(scene.deliveries.underWay(other), undefined);
  assert.deepEqual(scene.deliveries.held, messages);
  assert.equal(await sending, true);
  assert.equal(scene.deliveries.underWay(event), undefined);
  assert.deepEqual(scene.deliveries.held, []);
});
