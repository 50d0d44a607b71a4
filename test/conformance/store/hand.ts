import assert from "node:assert/strict";
import type { Store } from "../../../src/store/store.ts";
import {
  aClaim,
  aDirectEvent,
  aFailedTry,
  aLastTry,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  aResult,
  newEvent,
  newJob,
  noon,
} from "../../tools/rows.ts";
import {
  answeredJob,
  everything,
  heldBy,
  idsOf,
  jobOf,
  minute,
  record,
  type Suite,
  states,
  takenJob,
} from "./suite.ts";

/** What a person asks of the ledger. */
export function testByHand(suite: Suite): void {
  testAddedJobs(suite);
  testCancelling(suite);
}

/** An event whose only job is done. */
async function done(store: Store, deliveryId = "42"): Promise<string> {
  const args = aDirectEvent({ deliveryId });
  await store.accept(args);
  await store.finishAttempt(anEndedTry(heldBy(args)[0]!));
  return args.event.id;
}

function testAddedJobs({ on }: Suite): void {
  on("adds an agent's job to an event, which then stands as that job does", async (store) => {
    const eventId = await done(store);
    const parts = {
      at: noon + 5,
      route: "other",
      plan: '{"prompt":"again"}',
      origin: "replayed",
      onCrash: "fail",
    } as const;
    const job = newJob("agent", { ...parts, targets: ["a", "b"] });
    assert.equal(await store.addJob({ eventId, now: noon + 5, job }), true);
    const { state, route, jobs } = await record(store, eventId);
    assert.deepEqual([state, route], ["queued", "reviews"]);
    assert.deepEqual([jobs.length, jobs[0]?.state], [2, "done"]);
    const { messages, ...added } = jobs[1]!;
    assert.deepEqual(added, {
      ...{ id: job.id, kind: "agent", route: "other", origin: "replayed", onCrash: "fail", plan: parts.plan },
      ...{ state: "queued", reason: null, createdAt: noon + 5, updatedAt: noon + 5, runAt: noon + 5, runs: [] },
    });
    assert.deepEqual(
      messages.map(({ target, state, text }) => [target, state, text]),
      [
        ["a", "held", null],
        ["b", "held", null],
      ],
    );
    const [claimed] = await store.claimJobs(aClaim({ now: noon + 5 }));
    assert.deepEqual(
      [claimed?.id, claimed?.route, claimed?.deliveryId, claimed?.eventType],
      [job.id, "other", "42", "pull_request"],
    );
    await store.finishRun(anEndedRun(claimed!));
    for (const message of await store.claimMessages(aClaim({ now: noon + 5 }))) {
      assert.equal(message.route, "other");
      await store.finishAttempt(anEndedTry(message));
    }
    assert.equal((await record(store, eventId)).state, "done");
  });

  on("adds a delivery to an event, whose messages are sent at once", async (store) => {
    const eventId = await done(store);
    const job = newJob("delivery", { at: noon + 5, targets: ["a", "b"], text: "Again", origin: "replayed" });
    assert.equal(await store.addJob({ eventId, now: noon + 5, job }), true);
    const { state, jobs } = await record(store, eventId);
    assert.deepEqual(
      [state, jobs[1]?.kind, jobs[1]?.origin, jobs[1]?.runs],
      ["delivering", "delivery", "replayed", []],
    );
    assert.deepEqual(await store.claimJobs(aClaim({ now: noon + 5 })), []);
    const claimed = await store.claimMessages(aClaim({ now: noon + 5 }));
    assert.deepEqual(
      claimed.map(({ target, text, readyAt, isUnsure }) => [target, text, readyAt, isUnsure]),
      [
        ["a", "Again", noon + 5, false],
        ["b", "Again", noon + 5, false],
      ],
    );
    await store.finishAttempt(anEndedTry(claimed[0]!));
    await store.finishAttempt(aLastTry(claimed[1]!));
    const after = await record(store, eventId);
    assert.deepEqual([after.state, after.reason], ["dead", "Chat not found"]);
  });

  on("keeps the delivery id of an event claimed whatever becomes of a job that is added", async (store) => {
    const eventId = await done(store);
    await store.addJob({ eventId, now: noon + 5, job: newJob("delivery", { at: noon + 5 }) });
    const [message] = await store.claimMessages(aClaim({ now: noon + 5 }));
    await store.finishAttempt(aLastTry(message!));
    assert.equal((await record(store, eventId)).state, "dead", "dead, not refused: no sender waits for it");
    assert.equal((await store.accept(anAgentEvent({ deliveryId: "42" }))).duplicate, true);
  });

  on("takes a delivery that is added back like any other message when its gateway died", async (store) => {
    const eventId = await done(store);
    await store.addJob({ eventId, now: noon, job: newJob("delivery", { at: noon }) });
    const [message] = await store.claimMessages(aClaim());
    const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
    assert.deepEqual([again?.id, again?.isUnsure], [message?.id, true]);
  });

  on("adds nothing to an event that is not there", async (store) => {
    const job = newJob("agent");
    assert.equal(await store.addJob({ eventId: newEvent().id, now: noon, job }), false);
    assert.deepEqual(await everything(store), []);
    assert.deepEqual(await store.claimJobs(aClaim()), []);
  });

  on("adds a job to an event that was ignored, or refused", async (store) => {
    const ignored = newEvent();
    await store.ignore({ ...ignored, reason: "filters" });
    const refused = aDirectEvent();
    await store.accept(refused);
    await store.finishAttempt(aLastTry(heldBy(refused)[0]!));
    for (const eventId of [ignored.id, refused.event.id]) {
      assert.equal(await store.addJob({ eventId, now: noon, job: newJob("agent") }), true);
      assert.equal((await record(store, eventId)).state, "queued");
    }
  });
}

function testCancelling({ on }: Suite): void {
  const cancel = (store: Store, eventId: string) => store.cancel({ eventId, now: noon + 7, reason: "Stopped by hand" });

  async function isStopped(store: Store, eventId: string, expected: string[]): Promise<void> {
    assert.deepEqual(await states(store, eventId), expected);
    const { reason, updatedAt } = await jobOf(store, eventId);
    assert.deepEqual([reason, updatedAt], ["Stopped by hand", noon + 7]);
  }

  on("cancels a job that is queued, or that waits for agents", async (store) => {
    const queued = anAgentEvent();
    await store.accept(queued);
    assert.equal(await cancel(store, queued.event.id), 1);
    await isStopped(store, queued.event.id, ["cancelled", "cancelled"]);
    const parked = anAgentEvent();
    await store.accept(parked);
    await store.park({ reason: "no model", now: noon });
    assert.equal(await cancel(store, parked.event.id), 1);
    await isStopped(store, parked.event.id, ["cancelled", "cancelled"]);
    await store.unpark({ now: noon });
    assert.deepEqual(await store.claimJobs(aClaim({ now: noon + minute })), []);
  });

  on("cancels a job that is running: its run has ended, and what it answers later is not wanted", async (store) => {
    const job = await takenJob(store, { targets: ["a", "b"] });
    assert.equal(await cancel(store, job.eventId), 1);
    await isStopped(store, job.eventId, ["cancelled", "cancelled", "cancelled"]);
    assert.deepEqual(
      (await jobOf(store, job.eventId)).runs.map(({ outcome, endedAt, reason }) => [outcome, endedAt, reason]),
      [["cancelled", noon + 7, "Stopped by hand"]],
    );
    const before = await everything(store);
    assert.equal(await store.finishRun(anEndedRun(job)), false);
    assert.deepEqual(await everything(store), before);
    assert.deepEqual(await store.claimJobs(aClaim({ owner: "two", now: noon + minute })), []);
  });

  on("cancels messages that are not being sent; the others end as they will, and the job with them", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b", "c"] });
    const [sent, sending] = await store.claimMessages(aClaim({ limit: 2 }));
    await store.finishAttempt(anEndedTry(sent!));
    assert.equal(await cancel(store, job.eventId), 1);
    assert.deepEqual(await states(store, job.eventId), ["delivering", "sent", "sending", "cancelled"]);
    assert.equal(await store.finishAttempt(anEndedTry(sending!, { now: noon + 7 })), true);
    await isStopped(store, job.eventId, ["cancelled", "sent", "sent", "cancelled"]);
  });

  on("leaves a job that is being sent to its end, dead when that goes wrong", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b"] });
    const [sending] = await store.claimMessages(aClaim({ limit: 1 }));
    assert.equal(await cancel(store, job.eventId), 1);
    await store.finishAttempt(aLastTry(sending!));
    assert.deepEqual(await states(store, job.eventId), ["dead", "dead", "cancelled"]);
    assert.equal((await jobOf(store, job.eventId)).reason, "Chat not found");
  });

  on("does not try again what was being sent, whether it fails or its gateway dies", async (store) => {
    const failing = await answeredJob(store, { targets: ["a"], lane: "one place" });
    const next = await answeredJob(store, { targets: ["a"], lane: "one place" });
    const [sending] = await store.claimMessages(aClaim());
    assert.equal(await cancel(store, failing.eventId), 1);
    assert.equal(await store.finishAttempt({ ...aFailedTry(sending!, noon + minute), now: noon + 7 }), true);
    await isStopped(store, failing.eventId, ["cancelled", "cancelled"]);
    assert.deepEqual(await states(store, next.eventId), ["delivering", "pending"], "the next of the lane is called");

    await store.claimMessages(aClaim({ now: noon + 7 }));
    assert.equal(await cancel(store, next.eventId), 1);
    assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now: noon + minute })), []);
    const { state, reason, messages } = await jobOf(store, next.eventId);
    assert.deepEqual([state, reason, messages[0]?.state], ["cancelled", "Stopped by hand", "cancelled"]);
    assert.deepEqual(
      messages[0]?.attempts.map(({ outcome }) => outcome),
      ["interrupted"],
    );
  });

  on("gives a job the reason of what went wrong, before that of what was stopped", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b"] });
    const [first, second] = await store.claimMessages(aClaim());
    await store.finishAttempt(aFailedTry(first!, noon + minute));
    assert.equal(await cancel(store, job.eventId), 1);
    await store.finishAttempt(aLastTry(second!));
    assert.deepEqual(await states(store, job.eventId), ["dead", "cancelled", "dead"]);
    assert.equal((await jobOf(store, job.eventId)).reason, "Chat not found");
  });

  on("cancels a job that has no message", async (store) => {
    const job = await takenJob(store, { targets: [] });
    assert.equal(await cancel(store, job.eventId), 1);
    await isStopped(store, job.eventId, ["cancelled"]);
  });

  on("ends a job as dead whose earlier message was given up", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b"] });
    const [first] = await store.claimMessages(aClaim({ limit: 1 }));
    await store.finishAttempt(aLastTry(first!));
    assert.equal(await cancel(store, job.eventId), 1);
    assert.deepEqual(await states(store, job.eventId), ["dead", "dead", "cancelled"]);
  });

  on("cancels a message that waits for its next try, and no late news bring it back", async (store) => {
    const job = await answeredJob(store);
    const [message] = await store.claimMessages(aClaim());
    await store.finishAttempt(aFailedTry(message!, noon + minute));
    assert.equal(await cancel(store, job.eventId), 1);
    await isStopped(store, job.eventId, ["cancelled", "cancelled"]);
    assert.equal(await store.finishAttempt(anEndedTry(message!)), false);
    assert.deepEqual(await store.claimMessages(aClaim({ now: noon + 2 * minute })), []);
  });

  on("leaves a direct delivery alone: it is being sent", async (store) => {
    const args = aDirectEvent({ deliveryId: "42" });
    await store.accept(args);
    assert.equal(await cancel(store, args.event.id), 0);
    await store.finishAttempt(anEndedTry(heldBy(args)[0]!));
    assert.deepEqual(await states(store, args.event.id), ["done", "sent"]);
  });

  on("changes nothing about what has ended, or is not there", async (store) => {
    const eventId = await done(store);
    const ignored = newEvent();
    await store.ignore({ ...ignored, reason: "filters" });
    const before = await everything(store);
    for (const id of [eventId, ignored.id, newEvent().id]) assert.equal(await cancel(store, id), 0);
    assert.deepEqual(await everything(store), before);
  });

  on("cancels all jobs of an event, and keeps its delivery id claimed", async (store) => {
    const event = anAgentEvent({ deliveryId: "42" });
    await store.accept(event);
    const eventId = event.event.id;
    await store.addJob({ eventId, now: noon, job: newJob("agent") });
    await store.addJob({ eventId, now: noon, job: newJob("delivery") });
    assert.equal(await cancel(store, eventId), 3);
    assert.deepEqual(
      (await record(store, eventId)).jobs.map(({ state }) => state),
      ["cancelled", "cancelled", "cancelled"],
    );
    assert.equal((await store.accept(anAgentEvent({ deliveryId: "42" }))).duplicate, true);
  });

  on("leaves the runs and tries that were made before as they ended", async (store) => {
    const job = await takenJob(store);
    const result = aResult({ outcome: "failed", reason: "Down", answer: null });
    await store.finishRun(anEndedRun(job, { result, next: { move: "retry", runAt: noon } }));
    await store.claimJobs(aClaim());
    await cancel(store, job.eventId);
    assert.deepEqual(
      (await jobOf(store, job.eventId)).runs.map(({ outcome, reason }) => [outcome, reason]),
      [
        ["failed", "Down"],
        ["cancelled", "Stopped by hand"],
      ],
    );
    assert.deepEqual(idsOf(await store.listEvents({ limit: 10, state: "cancelled" })), [job.eventId]);
  });
}
