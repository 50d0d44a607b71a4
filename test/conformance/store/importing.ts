import assert from "node:assert/strict";
import { finalEventStates } from "../../../src/store/states.ts";
import type { EventRecord, ImportArgs, Store } from "../../../src/store/store.ts";
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
  heldBy,
  idsOf,
  jobOf,
  minute,
  record,
  type Suite,
  states,
  takenJob,
  takenMessage,
} from "./suite.ts";

/** Events that come from another ledger. */
export function testImporting(suite: Suite): void {
  testFinished(suite);
  testUnfinished(suite);
}

const later = noon + 60 * minute;
const cancelled = { cancel: "Not brought over" };

/** Forgets everything that is kept, so that it can come back as from elsewhere. */
async function forget(store: Store): Promise<void> {
  for (const { id } of await store.listEvents({ limit: 1000 }))
    await store.cancel({ eventId: id, now: noon, reason: "" });
  await store.claimMessages(aClaim({ owner: "nobody", now: later, limit: 0 }));
  for (const { id } of await store.listEvents({ limit: 1000 }))
    await store.cancel({ eventId: id, now: noon, reason: "" });
  const before = Object.fromEntries(finalEventStates.map((state) => [state, Number.MAX_SAFE_INTEGER]));
  await store.prune({ after: "", limit: 1000, before });
  await store.pruneClaims({ now: Number.MAX_SAFE_INTEGER, limit: 1000 });
  assert.deepEqual(await store.listEvents({ limit: 1 }), []);
}

/** Brings an event as it is now into an empty ledger. */
async function moved(
  store: Store,
  eventId: string,
  unfinished: ImportArgs["unfinished"],
  claimUntil: number | null = null,
) {
  const original = await record(store, eventId);
  await forget(store);
  assert.equal(await store.importEvent({ record: original, now: later, claimUntil, unfinished }), true);
  return original;
}

/** The id of the only event. */
async function onlyId(store: Store): Promise<string> {
  const [event] = await store.listEvents({ limit: 2 });
  return event!.id;
}

/** An event of every final state, with everything that can be known of one. */
async function finishedEvents(store: Store): Promise<EventRecord[]> {
  const cancel = (eventId: string) => store.cancel({ eventId, now: noon + 9, reason: "Stopped" });
  const failed = aResult({ outcome: "failed", reason: "Down", answer: null, transcript: "[1]", inputTokens: 1 });
  const done = await takenJob(store, { targets: ["a", "b"], lane: "a 1", plan: '{"prompt":"東京"}', onCrash: "fail" });
  await store.finishRun(anEndedRun(done, { result: failed, next: { move: "retry", runAt: noon + 1 } }));
  const [again] = await store.claimJobs(aClaim({ now: noon + 1 }));
  await store.finishRun(anEndedRun(again!, { now: noon + 2, result: aResult({ inputTokens: 7, outputTokens: 3 }) }));
  const [message] = await store.claimMessages(aClaim({ now: noon + 2 }));
  await store.recordPart({ id: message!.id, fence: message!.fence, partsSent: 2 });
  await store.finishAttempt(
    aFailedTry(message!, noon + 3, { outcome: "unknown", error: "No answer", leaveLane: true }),
  );
  for (const next of await store.claimMessages(aClaim({ now: noon + 3 }))) {
    await store.finishAttempt(anEndedTry(next, { now: noon + 4, reference: `sent as ${next.target}` }));
  }
  const dead = await takenMessage(store, { body: Buffer.alloc(3000, "x"), fallback: ["c", "d"] });
  await store.finishAttempt(aLastTry(dead));
  for (const now of [noon, noon]) await store.finishAttempt(aLastTry((await store.claimMessages(aClaim({ now })))[0]!));
  await store.finishRun(anEndedRun(await takenJob(store), { next: { move: "answer", silent: true } }));
  const refused = aDirectEvent();
  await store.accept(refused);
  await store.finishAttempt(aLastTry(heldBy(refused)[0]!));
  await cancel((await takenJob(store)).eventId);
  const ignored = newEvent();
  await store.ignore({ ...ignored, reason: "filters[0]" });
  const replayed = await answeredJob(store);
  await cancel(replayed.eventId);
  await store.addJob({
    eventId: replayed.eventId,
    now: noon + 9,
    job: newJob("delivery", { at: noon + 9, origin: "replay" }),
  });
  for (const next of await store.claimMessages(aClaim({ now: noon + 9 }))) await store.finishAttempt(anEndedTry(next));
  const rows = await store.listEvents({ limit: 100 });
  return Promise.all(rows.map(({ id }) => record(store, id)));
}

function testFinished({ on }: Suite): void {
  on("keeps finished events exactly as they were", async (store) => {
    const events = await finishedEvents(store);
    const kinds = new Set(events.map(({ state }) => state));
    assert.deepEqual([...kinds].sort(), [...finalEventStates].sort(), "one of each state");
    const rows = await store.listEvents({ limit: 100 });
    await forget(store);
    for (const event of events) {
      const args = { record: event, now: later, claimUntil: null, unfinished: cancelled };
      assert.equal(await store.importEvent(args), true);
    }
    for (const event of events) assert.deepEqual(await record(store, event.id), event);
    assert.deepEqual(await store.listEvents({ limit: 100 }), rows);
    assert.deepEqual(await store.nextDue({}), { jobs: undefined, messages: [] });
  });

  on("leaves an event alone that is there already", async (store) => {
    const message = await takenMessage(store);
    const id = await onlyId(store);
    const before = await record(store, id);
    await store.finishAttempt(anEndedTry(message));
    const args = { record: before, now: later, claimUntil: later + minute, unfinished: "resume" } as const;
    assert.equal(await store.importEvent(args), false);
    assert.deepEqual(await states(store, id), ["done", "sent"]);
  });

  on("claims the delivery id until then, or not at all", async (store) => {
    const copy = (at: number) => anAgentEvent({ deliveryId: "42", at });
    const { eventId } = await answeredJob(store, { deliveryId: "42" });
    const original = await moved(store, eventId, cancelled, later + minute);
    assert.equal((await store.accept(copy(later + minute - 1))).duplicate, true);
    assert.equal((await store.accept(copy(later + minute))).duplicate, false);
    await forget(store);
    await store.importEvent({ record: original, now: later, claimUntil: null, unfinished: cancelled });
    assert.equal((await store.accept(copy(later))).duplicate, false);
  });

  on("takes no delivery id from an event that came here in the meantime", async (store) => {
    const { eventId } = await answeredJob(store, { deliveryId: "42" });
    const original = await record(store, eventId);
    await forget(store);
    const newer = aDirectEvent({ deliveryId: "42", at: later });
    await store.accept(newer);
    await store.importEvent({
      record: original,
      now: later,
      claimUntil: later + 2 * 60 * minute,
      unfinished: cancelled,
    });
    assert.deepEqual(await store.accept(aDirectEvent({ deliveryId: "42", at: later + 1 })), {
      duplicate: true,
      isUnderWay: true,
    });
  });
}

function testUnfinished({ on }: Suite): void {
  on("goes on with a job that was queued, or waited for agents", async (store) => {
    const { eventId } = await takenJob(store);
    const [job] = await store.claimJobs(aClaim({ owner: "two", now: noon + minute }));
    const result = aResult({ outcome: "failed", reason: "Down", answer: null });
    await store.finishRun(anEndedRun(job!, { result, next: { move: "retry", runAt: later + minute } }));
    await store.park({ reason: "no model", now: noon });
    await moved(store, eventId, "resume");
    assert.deepEqual(await states(store, eventId), ["queued", "held"]);
    assert.deepEqual(await store.claimJobs(aClaim({ now: later })), [], "its time has not come");
    const [again] = await store.claimJobs(aClaim({ now: later + minute }));
    assert.equal(again?.failures, 1);
    assert.ok(again!.fence > job!.fence);
    await store.finishRun(anEndedRun(again!));
    assert.deepEqual(await states(store, eventId), ["delivering", "pending"]);
  });

  on("runs again what was running, and says that the run was interrupted", async (store) => {
    const job = await takenJob(store);
    await moved(store, job.eventId, "resume");
    assert.deepEqual(await states(store, job.eventId), ["queued", "held"]);
    const { runs } = await jobOf(store, job.eventId);
    assert.deepEqual(
      runs.map(({ outcome, endedAt }) => [outcome, endedAt]),
      [["interrupted", later]],
    );
    assert.match(runs[0]?.reason ?? "", /^Interrupted/);
    const [again] = await store.claimJobs(aClaim({ now: later }));
    assert.ok(again!.fence > job.fence);
    assert.equal(await store.finishRun(anEndedRun(again!)), true);
  });

  on("gives up what was running and must not run twice", async (store) => {
    const job = await takenJob(store, { onCrash: "fail" });
    await moved(store, job.eventId, "resume");
    assert.deepEqual(await states(store, job.eventId), ["dead", "dead"]);
    const { reason, runs } = await jobOf(store, job.eventId);
    assert.match(reason ?? "", /on_crash: fail/);
    assert.equal(runs[0]?.outcome, "interrupted");
  });

  on("sends on what was being sent, each message where it was, and in order", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b", "a", "b"], lane: "a 1" });
    const [first] = await store.claimMessages(aClaim());
    await store.finishAttempt(anEndedTry(first!, { reference: "m-1" }));
    const [second] = await store.claimMessages(aClaim());
    await store.recordPart({ id: second!.id, fence: second!.fence, partsSent: 2 });
    await store.finishAttempt(aFailedTry(second!, noon));
    await store.claimMessages(aClaim());
    assert.deepEqual(await states(store, job.eventId), ["delivering", "sent", "sending", "waiting", "waiting"]);
    const original = await moved(store, job.eventId, "resume");
    assert.deepEqual(await states(store, job.eventId), ["delivering", "sent", "pending", "waiting", "waiting"]);
    const [sent, sending] = (await jobOf(store, job.eventId)).messages;
    assert.deepEqual(sent, original.jobs[0]?.messages[0]);
    assert.deepEqual(
      sending?.attempts.map(({ outcome }) => outcome),
      ["refused", "interrupted"],
    );
    const order: string[] = [];
    for (let message = (await store.claimMessages(aClaim({ now: later })))[0]; message; ) {
      order.push(message.id);
      if (order.length === 1) {
        const { failures, partsSent, readyAt, isUnsure } = message;
        assert.deepEqual(
          { failures, partsSent, readyAt, isUnsure },
          { failures: 1, partsSent: 2, readyAt: noon, isUnsure: true },
        );
        assert.ok(message.fence > second!.fence + 1);
      }
      await store.finishAttempt(anEndedTry(message));
      message = (await store.claimMessages(aClaim({ now: later })))[0];
    }
    assert.deepEqual(order, idsOf(original.jobs[0]!.messages).slice(1));
    assert.equal((await record(store, job.eventId)).state, "done");
  });

  for (const [what, end] of [
    ["nobody knows whether it went through", aFailedTry({ id: "", fence: 0 }, noon, { outcome: "unknown" })],
    ["its gateway died", undefined],
  ] as const) {
    on(`is unsure of a message that waits after a try of which ${what}`, async (store) => {
      const message = await takenMessage(store);
      const { id, fence } = message;
      if (end) await store.finishAttempt({ ...end, id, fence });
      else await store.claimMessages(aClaim({ owner: "two", now: noon + minute, limit: 0 }));
      const eventId = await onlyId(store);
      assert.deepEqual(await states(store, eventId), ["delivering", "pending"]);
      await moved(store, eventId, "resume");
      assert.equal((await store.claimMessages(aClaim({ now: later })))[0]?.isUnsure, true);
    });
  }

  on("is sure of a message that was only refused", async (store) => {
    const message = await takenMessage(store);
    await store.finishAttempt(aFailedTry(message, noon));
    const id = await onlyId(store);
    await moved(store, id, "resume");
    const [again] = await store.claimMessages(aClaim({ now: later }));
    assert.deepEqual([again?.isUnsure, again?.failures], [false, 1]);
  });

  on("refuses a direct delivery that was being sent, so that its sender may come again", async (store) => {
    const args = aDirectEvent({ deliveryId: "42", targets: ["a", "b"] });
    await store.accept(args);
    await store.finishAttempt(anEndedTry(heldBy(args)[0]!));
    const original = await record(store, args.event.id);
    await forget(store);
    await store.importEvent({ record: original, now: later, claimUntil: later + minute, unfinished: "resume" });
    assert.deepEqual(await states(store, args.event.id), ["refused", "sent", "dead"]);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42", at: later }))).duplicate, false);
  });

  on("sends what goes instead of another, and then what is left of its fallback", async (store) => {
    await store.finishAttempt(aLastTry(await takenMessage(store, { fallback: ["b", "c"] })));
    const id = await onlyId(store);
    await moved(store, id, "resume");
    assert.deepEqual(await states(store, id), ["delivering", "replaced", "pending"]);
    for (const target of ["b", "c"]) {
      const [message] = await store.claimMessages(aClaim({ now: later }));
      assert.equal(message?.target, target);
      await store.finishAttempt(aLastTry(message!, { now: later }));
    }
    assert.deepEqual(await states(store, id), ["dead", "replaced", "replaced", "dead"]);
  });

  on("sends what stands in one lane in order, whatever comes first", async (store) => {
    const events: string[] = [];
    for (let ms = 0; ms < 3; ms += 1) events.push((await answeredJob(store, { lane: "a 1", at: noon + ms })).eventId);
    const records = await Promise.all(events.map((id) => record(store, id)));
    await forget(store);
    for (const index of [0, 2, 1]) {
      await store.importEvent({ record: records[index]!, now: later, claimUntil: null, unfinished: "resume" });
    }
    for (const ms of [0, 1, 2]) {
      const claimed = await store.claimMessages(aClaim({ now: later }));
      assert.deepEqual(
        claimed.map(({ readyAt }) => readyAt),
        [noon + ms],
      );
      await store.finishAttempt(anEndedTry(claimed[0]!));
    }
  });

  const unfinished: [what: string, make: (store: Store) => Promise<string>, ends: string[]][] = [
    [
      "queued",
      async (store) => {
        const event = anAgentEvent();
        await store.accept(event);
        return event.event.id;
      },
      ["cancelled", "cancelled"],
    ],
    ["running", async (store) => (await takenJob(store)).eventId, ["cancelled", "cancelled"]],
    [
      "being sent",
      async (store) => {
        const { eventId } = await answeredJob(store, { targets: ["a", "b", "c"] });
        const [first] = await store.claimMessages(aClaim({ limit: 2 }));
        await store.finishAttempt(anEndedTry(first!));
        return eventId;
      },
      ["cancelled", "sent", "cancelled", "cancelled"],
    ],
  ];
  for (const [what, make, ends] of unfinished) {
    on(`cancels a job that is ${what} when it is not to go on here`, async (store) => {
      const id = await make(store);
      await moved(store, id, cancelled);
      assert.deepEqual(await states(store, id), ends);
      const { reason, runs, messages } = await jobOf(store, id);
      assert.equal(reason, "Not brought over");
      for (const run of runs) assert.ok(run.outcome, "no run is left open");
      for (const attempt of messages.flatMap(({ attempts }) => attempts)) assert.ok(attempt.outcome);
      const claim = aClaim({ owner: "two", now: later + minute });
      assert.deepEqual([await store.claimJobs(claim), await store.claimMessages(claim)], [[], []]);
    });
  }
}
