import assert from "node:assert/strict";
import type { Store } from "../../../src/store/store.ts";
import { aClaim, aFailedTry, aLastTry, anAgentEvent, anEndedRun, anEndedTry, newJob, noon } from "../../tools/rows.ts";
import { answeredJob, idsOf, jobOf, minute, record, type Suite, states, takenJob } from "./suite.ts";

const lane = "telegram 7";

/** Order per place. */
export function testLanes(suite: Suite): void {
  testOrder(suite);
  testPromotion(suite);
  testCancelling(suite);
}

/** Answered jobs with one message each, in the order in which their texts became known. */
async function answered(store: Store, count: number): Promise<string[]> {
  const events: string[] = [];
  for (let ms = 0; ms < count; ms += 1) events.push((await answeredJob(store, { lane, at: noon + ms })).eventId);
  return events;
}

/** How each event's only message stands. */
async function messageStates(store: Store, events: readonly string[]): Promise<(string | undefined)[]> {
  return Promise.all(events.map(async (id) => (await states(store, id))[1]));
}

async function claimAt(store: Store, now: number) {
  return store.claimMessages(aClaim({ now }));
}

function testOrder({ on }: Suite): void {
  on("go one after the other, in the order in which their texts became known", async (store) => {
    const late = await takenJob(store, { lane, at: noon });
    const early = await takenJob(store, { lane, at: noon + 1 });
    const middle = await takenJob(store, { lane, at: noon + 2 });
    const events = [early, middle, late].map(({ eventId }) => eventId);
    for (const [index, job] of [early, middle, late].entries()) {
      await store.finishRun(anEndedRun(job, { now: noon + 10 + index }));
    }
    for (const [index, expected] of [
      ["sending", "waiting", "waiting"],
      ["sent", "sending", "waiting"],
      ["sent", "sent", "sending"],
    ].entries()) {
      const claimed = await claimAt(store, noon + 20);
      assert.equal(claimed.length, 1, "one at a time");
      assert.equal(claimed[0]?.readyAt, noon + 10 + index);
      assert.deepEqual(await messageStates(store, events), expected);
      assert.deepEqual(await claimAt(store, noon + 20), []);
      await store.finishAttempt(anEndedTry(claimed[0]!));
    }
    assert.deepEqual(await messageStates(store, events), ["sent", "sent", "sent"]);
  });

  on("do not wait for another place, nor when they belong to none", async (store) => {
    await answeredJob(store, { lane: "telegram 7" });
    await answeredJob(store, { lane: "telegram 8" });
    await answeredJob(store);
    await answeredJob(store);
    assert.equal((await claimAt(store, noon)).length, 4);
  });

  on("of one job follow each other in its order", async (store) => {
    const job = await answeredJob(store, { lane, targets: ["telegram", "telegram", "telegram"] });
    assert.deepEqual(await states(store, job.eventId), ["delivering", "pending", "waiting", "waiting"]);
    const { messages } = await jobOf(store, job.eventId);
    for (const { id } of messages) {
      const [claimed] = await claimAt(store, noon);
      assert.equal(claimed?.id, id);
      await store.finishAttempt(anEndedTry(claimed!));
    }
    assert.deepEqual(await states(store, job.eventId), ["done", "sent", "sent", "sent"]);
  });

  on("keep their place through failures, restarts and deaths of gateways", async (store) => {
    const events = await answered(store, 2);
    const [first] = await claimAt(store, noon + 1);
    await store.finishAttempt(aFailedTry(first!, noon + minute, { now: noon + 2 }));
    assert.deepEqual(await messageStates(store, events), ["pending", "waiting"]);
    assert.deepEqual(await claimAt(store, noon + minute - 1), [], "nobody passes while it waits for its next try");
    const [second] = await claimAt(store, noon + minute);
    assert.equal(second?.id, first?.id);
    await store.finishAttempt(aFailedTry(second!, noon + minute, { outcome: "released" }));
    assert.deepEqual(await messageStates(store, events), ["pending", "waiting"]);
    const [third] = await claimAt(store, noon + minute);
    const [fourth] = await store.claimMessages(aClaim({ owner: "two", now: noon + 2 * minute }));
    assert.deepEqual([third?.id, fourth?.id], [first?.id, first?.id]);
    assert.deepEqual(await messageStates(store, events), ["sending", "waiting"]);
  });

  on("are no more to do than their first: those that wait are not due", async (store) => {
    await answered(store, 3);
    assert.deepEqual(await store.nextDue({}), { jobs: undefined, messages: [{ target: "telegram", due: noon }] });
    await claimAt(store, noon + 5);
    assert.deepEqual(await store.nextDue({}), { jobs: undefined, messages: [] });
  });
}

function testPromotion({ on }: Suite): void {
  on("go on when the first was sent, and are due at once", async (store) => {
    const events = await answered(store, 3);
    const [first] = await claimAt(store, noon + 5);
    await store.finishAttempt(anEndedTry(first!, { now: noon + 9 }));
    assert.deepEqual(await messageStates(store, events), ["sent", "pending", "waiting"]);
    const [second] = (await jobOf(store, events[1]!)).messages;
    assert.deepEqual(
      [second?.dueAt, second?.readyAt],
      [noon + 9, noon + 1],
      "its age counts from when its text was known",
    );
  });

  on("go on when the first is given up", async (store) => {
    const events = await answered(store, 2);
    const [first] = await claimAt(store, noon + 5);
    await store.finishAttempt(aLastTry(first!));
    assert.deepEqual(await messageStates(store, events), ["dead", "pending"]);
  });

  on("go on when the first would keep them waiting too long, which is then in no lane any more", async (store) => {
    const events = await answered(store, 3);
    const [first] = await claimAt(store, noon + 5);
    await store.finishAttempt(aFailedTry(first!, noon + minute, { leaveLane: true }));
    assert.deepEqual(await messageStates(store, events), ["pending", "pending", "waiting"]);
    assert.equal((await jobOf(store, events[0]!)).messages[0]?.lane, null);
    const both = await claimAt(store, noon + minute);
    assert.equal(both.length, 2, "both are on their way");
    await store.finishAttempt(anEndedTry(both.find(({ id }) => id === first?.id)!));
    assert.deepEqual(await messageStates(store, events), ["sent", "sending", "waiting"], "who left calls nobody");
    await store.finishAttempt(anEndedTry(both.find(({ id }) => id !== first?.id)!));
    assert.deepEqual(await messageStates(store, events), ["sent", "sent", "pending"]);
  });

  on("go on when late news come that the first was sent", async (store) => {
    const events = await answered(store, 2);
    const [first] = await claimAt(store, noon + 5);
    await store.claimMessages(aClaim({ owner: "two", now: noon + minute, limit: 0 }));
    assert.deepEqual(await messageStates(store, events), ["pending", "waiting"]);
    await store.finishAttempt(anEndedTry(first!));
    assert.deepEqual(await messageStates(store, events), ["sent", "pending"]);
  });

  on("of one job go on when an earlier one of it is dead", async (store) => {
    const job = await answeredJob(store, { lane, targets: ["telegram", "telegram"] });
    const [first] = await claimAt(store, noon);
    await store.finishAttempt(aLastTry(first!));
    assert.deepEqual(await states(store, job.eventId), ["delivering", "dead", "pending"]);
    const [second] = await claimAt(store, noon);
    await store.finishAttempt(anEndedTry(second!));
    assert.deepEqual(await states(store, job.eventId), ["dead", "dead", "sent"]);
  });

  on("begin anew when nobody is left in them", async (store) => {
    await answered(store, 1);
    const [first] = await claimAt(store, noon);
    await store.finishAttempt(anEndedTry(first!));
    const next = await answeredJob(store, { lane, at: noon + 5 });
    assert.deepEqual(await states(store, next.eventId), ["delivering", "pending"]);
  });

  on("take what is sent again at their end", async (store) => {
    const [event] = await answered(store, 1);
    const job = newJob("delivery", { lane, at: noon + 5 });
    await store.addJob({ eventId: event!, now: noon + 5, job });
    const { jobs } = await record(store, event!);
    assert.deepEqual([jobs[1]?.state, jobs[1]?.messages[0]?.state], ["delivering", "waiting"]);
    const [first] = await claimAt(store, noon + 5);
    await store.finishAttempt(anEndedTry(first!));
    assert.deepEqual(idsOf(await claimAt(store, noon + 5)), idsOf(job.messages));
  });

  on("keep a place for no answer that is kept back, and none for a run that failed", async (store) => {
    const silent = await takenJob(store, { lane });
    const failed = await takenJob(store, { lane });
    const good = await takenJob(store, { lane });
    await store.finishRun(anEndedRun(silent, { next: { move: "answer", silent: true } }));
    await store.finishRun(anEndedRun(failed, { next: { move: "giveUp" } }));
    await store.finishRun(anEndedRun(good));
    assert.deepEqual(await states(store, good.eventId), ["delivering", "pending"]);
  });
}

function testCancelling({ on }: Suite): void {
  const cancel = (store: Store, eventId: string) => store.cancel({ eventId, now: noon + 7, reason: "Stopped" });

  on("go on when the first is cancelled before it is sent", async (store) => {
    const events = await answered(store, 3);
    assert.equal(await cancel(store, events[0]!), 1);
    assert.deepEqual(await messageStates(store, events), ["cancelled", "pending", "waiting"]);
  });

  on("stay in order when one that waits is cancelled", async (store) => {
    const events = await answered(store, 3);
    assert.equal(await cancel(store, events[1]!), 1);
    assert.deepEqual(await messageStates(store, events), ["pending", "cancelled", "waiting"]);
    const [first] = await claimAt(store, noon + 9);
    await store.finishAttempt(anEndedTry(first!));
    assert.deepEqual(await messageStates(store, events), ["sent", "cancelled", "pending"]);
  });

  on("wait for the first, which is being sent when somebody stops it", async (store) => {
    const events = await answered(store, 2);
    const [first] = await claimAt(store, noon + 5);
    assert.equal(await cancel(store, events[0]!), 1);
    assert.deepEqual(await messageStates(store, events), ["sending", "waiting"]);
    await store.finishAttempt(anEndedTry(first!));
    assert.deepEqual(await messageStates(store, events), ["sent", "pending"]);
  });

  on("go on when a job with several messages in several places is cancelled", async (store) => {
    const both = anAgentEvent({ targets: ["a", "b"] });
    const [one, two] = both.job.messages;
    const messages = [
      { ...one!, lane: "a 1" },
      { ...two!, lane: "b 1" },
    ];
    await store.accept({ ...both, job: { ...both.job, messages } });
    const [job] = await store.claimJobs(aClaim());
    await store.finishRun(anEndedRun(job!));
    const behind = [
      await answeredJob(store, { targets: ["a"], lane: "a 1", at: noon + 1 }),
      await answeredJob(store, { targets: ["b"], lane: "b 1", at: noon + 1 }),
    ].map(({ eventId }) => eventId);
    assert.deepEqual(await messageStates(store, behind), ["waiting", "waiting"]);
    assert.equal(await cancel(store, both.event.id), 1);
    assert.deepEqual(await states(store, both.event.id), ["cancelled", "cancelled", "cancelled"]);
    assert.deepEqual(await messageStates(store, behind), ["pending", "pending"]);
  });
}
