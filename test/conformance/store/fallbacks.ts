import assert from "node:assert/strict";
import type { ClaimedMessage, MessageRecord, Store } from "../../../src/store/store.ts";
import {
  aClaim,
  aDirectEvent,
  aFailedTry,
  aLastTry,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  aResult,
  noon,
} from "../../tools/rows.ts";
import { answeredJob, heldBy, jobOf, messagesOf, minute, type Suite, states, takenJob } from "./suite.ts";

/** What becomes of messages whose target gives out. */
export function testFallbacks(suite: Suite): void {
  testChains(suite);
  testLanes(suite);
  testNone(suite);
  testDirect(suite);
}

/** Takes the one message that is due. */
async function take(store: Store, now = noon): Promise<ClaimedMessage> {
  const messages = await store.claimMessages(aClaim({ now }));
  assert.equal(messages.length, 1);
  return messages[0]!;
}

function wayOf({ target, extra, text, state, replaces }: MessageRecord) {
  return { target, extra: JSON.parse(extra) as unknown, text, state, replaces };
}

function testChains({ on }: Suite): void {
  on("begin a message to the next target, with the same text, when one is given up", async (store) => {
    const job = await answeredJob(store, { fallback: ["b", "c"] });
    const first = await take(store);
    const later = noon + minute;
    assert.equal(await store.finishAttempt(aLastTry(first, { now: later, error: "Chat not found" })), "replaced");
    const [one, two, ...others] = await messagesOf(store, job.eventId);
    assert.deepEqual(others, []);
    assert.deepEqual([one?.state, one?.reason, one?.attempts.length], ["replaced", "Chat not found", 1]);
    const begun = { target: "b", extra: { chat_id: "at b" }, text: "All is well", state: "pending", replaces: one?.id };
    assert.deepEqual(wayOf(two!), begun);
    assert.deepEqual([two?.readyAt, two?.dueAt, two?.partsSent, two?.attempts], [later, later, 0, []]);
    assert.deepEqual(JSON.parse(two?.fallback ?? ""), [
      { target: "c", extra: { chat_id: "at c" }, lane: null, refusal: null },
    ]);
    assert.equal((await jobOf(store, job.eventId)).state, "delivering");
  });

  on("give the new message tries of its own, and no doubt about an earlier one", async (store) => {
    await answeredJob(store, { fallback: ["b"] });
    const first = await take(store);
    await store.finishAttempt(aFailedTry(first, noon, { outcome: "unknown" }));
    await store.finishAttempt(aLastTry(await take(store), { outcome: "unknown" }));
    const { target, failures, isUnsure, partsSent, fallback, fence } = await take(store);
    assert.deepEqual(
      { target, failures, isUnsure, partsSent, fallback, fence },
      {
        ...{ target: "b", failures: 0, isUnsure: false, partsSent: 0, fallback: null, fence: 1 },
      },
    );
  });

  on("count as done when one of the list took the message", async (store) => {
    const job = await answeredJob(store, { fallback: ["b", "c"] });
    for (const now of [noon, noon + 1]) await store.finishAttempt(aLastTry(await take(store, now), { now }));
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "replaced", "pending"]);
    await store.finishAttempt(anEndedTry(await take(store, noon + 2), { now: noon + 2 }));
    assert.deepEqual(await states(store, job.eventId), ["done", "replaced", "replaced", "sent"]);
    assert.equal((await jobOf(store, job.eventId)).reason, null);
  });

  on("make the job dead when the last of the list is, with its reason", async (store) => {
    const job = await answeredJob(store, { fallback: ["b"] });
    await store.finishAttempt(aLastTry(await take(store), { error: "First" }));
    assert.equal(await store.finishAttempt(aLastTry(await take(store), { error: "Second" })), true);
    assert.deepEqual(await states(store, job.eventId), ["dead", "replaced", "dead"]);
    assert.equal((await jobOf(store, job.eventId)).reason, "Second");
  });

  on("leave the other messages of the job alone, and wait for them", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "z"], fallback: ["b"] });
    const [one, two] = await store.claimMessages(aClaim());
    await store.finishAttempt(aLastTry(one!));
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "sending", "pending"]);
    await store.finishAttempt(anEndedTry(await take(store)));
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "sending", "sent"]);
    await store.finishAttempt(aLastTry(two!));
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "replaced", "sent", "pending"]);
    await store.finishAttempt(anEndedTry(await take(store)));
    assert.deepEqual(await states(store, job.eventId), ["done", "replaced", "replaced", "sent", "sent"]);
  });

  on("are not used by somebody who has lost the message", async (store) => {
    const job = await answeredJob(store, { fallback: ["b"] });
    const lost = await take(store);
    const again = await take(store, noon + minute);
    assert.equal(await store.finishAttempt(aLastTry(lost, { now: noon + minute })), false);
    assert.deepEqual(await states(store, job.eventId), ["delivering", "sending"]);
    assert.equal(await store.finishAttempt(aLastTry(again, { now: noon + minute })), "replaced");
    assert.equal(await store.finishAttempt(aLastTry(again, { now: noon + minute })), false, "nor twice");
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "pending"]);
  });

  on("carry why a place must not be written to", async (store) => {
    const event = anAgentEvent();
    const place = { target: "b", extra: {}, lane: null, refusal: "Nor there" };
    const message = { ...event.job.messages[0]!, refusal: "Not there", fallback: JSON.stringify([place]) };
    await store.accept({ ...event, job: { ...event.job, messages: [message] } });
    const [job] = await store.claimJobs(aClaim());
    await store.finishRun(anEndedRun(job!));
    const first = await take(store);
    assert.equal(first.refusal, "Not there");
    await store.finishAttempt(aLastTry(first));
    assert.equal((await take(store)).refusal, "Nor there");
  });
}

function testLanes({ on }: Suite): void {
  on("put the new message at the end of its lane, and call the next of the old one", async (store) => {
    const other = await answeredJob(store, { at: noon, targets: ["b"], lane: "b 1" });
    const job = await answeredJob(store, { at: noon + 1, lane: "a 1", fallback: ["b"], fallbackLane: "b 1" });
    const behind = await answeredJob(store, { at: noon + 2, lane: "a 1" });
    const [ahead, first] = await store.claimMessages(aClaim({ now: noon + 2 }));
    assert.deepEqual([ahead?.target, first?.target], ["b", "telegram"]);
    const now = noon + 3;
    assert.equal(await store.finishAttempt(aLastTry(first!, { now })), "replaced");
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "waiting"]);
    assert.deepEqual(await states(store, behind.eventId), ["delivering", "pending"]);
    await store.finishAttempt(anEndedTry(ahead!, { now }));
    assert.deepEqual(await states(store, other.eventId), ["done", "sent"]);
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "pending"]);
  });

  on("may go to the same place again, behind what waits there", async (store) => {
    const job = await answeredJob(store, { at: noon, lane: "a 1", fallback: ["a"], fallbackLane: "a 1" });
    const behind = await answeredJob(store, { at: noon + 1, lane: "a 1" });
    const first = await take(store, noon + 1);
    await store.finishAttempt(aLastTry(first, { now: noon + 2 }));
    assert.deepEqual(await states(store, job.eventId), ["delivering", "replaced", "waiting"]);
    assert.deepEqual(await states(store, behind.eventId), ["delivering", "pending"]);
  });
}

function testNone({ on }: Suite): void {
  on("are not used when the run failed, or the answer is to be kept back", async (store) => {
    const failed = await takenJob(store, { fallback: ["b"] });
    const result = aResult({ outcome: "failed", reason: "Down", answer: null });
    await store.finishRun(anEndedRun(failed, { result, next: { move: "giveUp" } }));
    assert.deepEqual(await states(store, failed.eventId), ["dead", "dead"]);
    const silent = await takenJob(store, { fallback: ["b"] });
    await store.finishRun(anEndedRun(silent, { next: { move: "answer", silent: true } }));
    assert.deepEqual(await states(store, silent.eventId), ["done", "kept"]);
  });

  on("are not used when the caller wants nothing to go instead", async (store) => {
    const job = await answeredJob(store, { fallback: ["b"] });
    assert.equal(await store.finishAttempt(aLastTry(await take(store), { next: { move: "giveUp" } })), true);
    assert.deepEqual(await states(store, job.eventId), ["dead", "dead"]);
  });

  on("are not used when somebody has stopped the job", async (store) => {
    const job = await answeredJob(store, { fallback: ["b"] });
    const message = await take(store);
    await store.cancel({ eventId: job.eventId, now: noon, reason: "Stopped" });
    assert.equal(await store.finishAttempt(aLastTry(message)), true);
    assert.deepEqual(await states(store, job.eventId), ["dead", "dead"]);
  });

  on("are stopped with their job: what goes instead is not sent", async (store) => {
    const job = await answeredJob(store, { fallback: ["b", "c"] });
    await store.finishAttempt(aLastTry(await take(store)));
    assert.equal(await store.cancel({ eventId: job.eventId, now: noon, reason: "Stopped" }), 1);
    assert.deepEqual(await states(store, job.eventId), ["cancelled", "replaced", "cancelled"]);
  });
}

function testDirect({ on }: Suite): void {
  on(
    "of a direct delivery are held by its sender's gateway at once, and free the delivery id only at their end",
    async (store) => {
      const args = aDirectEvent({ deliveryId: "42", fallback: ["b"] });
      await store.accept(args);
      const successor = { id: aDirectEvent().job.messages[0]!.id, leaseUntil: noon + 5 * minute };
      const given = aLastTry(heldBy(args)[0]!, { now: noon + 1, next: { move: "giveUp", successor } });
      assert.equal(await store.finishAttempt(given), "replaced");
      const [, second] = await messagesOf(store, args.event.id);
      assert.deepEqual([second?.id, second?.state, second?.text], [successor.id, "sending", "Hello"]);
      assert.deepEqual(second?.attempts, [
        { number: 1, startedAt: noon + 1, endedAt: null, outcome: null, error: null },
      ]);
      assert.equal((await store.accept(aDirectEvent({ deliveryId: "42", at: noon + 2 }))).duplicate, true);
      await store.claimMessages(aClaim({ owner: "two", now: noon + 4 * minute }));
      assert.deepEqual(await states(store, args.event.id), ["delivering", "replaced", "sending"]);
      const held = { id: successor.id, fence: 1 };
      assert.deepEqual((await store.lostLeases({ jobs: [], messages: [held] })).lost, []);
      assert.equal(await store.finishAttempt(anEndedTry(held, { now: noon + 4 * minute })), true);
      assert.deepEqual(await states(store, args.event.id), ["done", "replaced", "sent"]);
    },
  );

  on("of a direct delivery that are all given up refuse it", async (store) => {
    const args = aDirectEvent({ deliveryId: "42", targets: ["a", "z"], fallback: ["b"] });
    await store.accept(args);
    const [one, two] = heldBy(args);
    await store.finishAttempt(anEndedTry(two!));
    await store.finishAttempt(aLastTry(one!));
    const successor = (await messagesOf(store, args.event.id)).find(({ replaces }) => replaces === one!.id);
    await store.finishAttempt(aLastTry({ id: successor!.id, fence: 1 }, { error: "Nor here" }));
    assert.deepEqual(await states(store, args.event.id), ["refused", "replaced", "sent", "dead"]);
    assert.equal((await jobOf(store, args.event.id)).reason, "Nor here");
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, false);
  });

  on("of a direct delivery that a crash cut off are not used", async (store) => {
    const args = aDirectEvent({ fallback: ["b"] });
    await store.accept(args);
    await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
    assert.deepEqual(await states(store, args.event.id), ["refused", "dead"]);
  });

  on("of a direct delivery are withdrawn with it", async (store) => {
    const args = aDirectEvent({ fallback: ["b", "c"] });
    await store.accept(args);
    await store.finishAttempt(aLastTry(heldBy(args)[0]!));
    await store.withdraw({ eventId: args.event.id, now: noon + 1, reason: "Late" });
    assert.deepEqual(await states(store, args.event.id), ["refused", "replaced", "dead"]);
  });
}
