import assert from "node:assert/strict";
import { newId } from "../../../src/core/id.ts";
import type { Held } from "../../../src/store/store.ts";
import {
  aClaim,
  aDirectEvent,
  aFailedTry,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  aResult,
  noon,
} from "../../tools/rows.ts";
import { answeredJob, everything, idsOf, jobOf, minute, type Suite, states, takenJob, takenMessage } from "./suite.ts";

const failed = aResult({ outcome: "failed", reason: "Down", answer: null });

/** What runs out, and when. */
export function testLeases(suite: Suite): void {
  testHolding(suite);
  testDueTimes(suite);
  testShifting(suite);
}

function held({ id, fence }: Held): Held {
  return { id, fence };
}

function testHolding({ on }: Suite): void {
  on("are extended for their holders, and the lost ones are named", async (store) => {
    const kept = await takenJob(store);
    const lost = await takenJob(store);
    const message = await takenMessage(store);
    const leaseUntil = noon + 2 * minute;
    const jobs = [held(kept), { id: lost.id, fence: lost.fence + 1 }];
    const messages = [held(message), { id: newId(noon), fence: 1 }];
    assert.deepEqual((await store.lostLeases({ jobs, messages })).lost, [lost.id, messages[1]?.id]);
    const answer = await store.extendLeases({ jobs, messages, leaseUntil });
    assert.deepEqual(answer.lost, [lost.id, messages[1]?.id]);
    assert.deepEqual(idsOf(await store.claimJobs(aClaim({ owner: "two", now: noon + minute }))), [lost.id]);
    assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now: noon + minute })), []);
    assert.equal((await store.claimMessages(aClaim({ owner: "two", now: leaseUntil }))).length, 1);
  });

  on(
    "of what has ended are lost, and so are those that somebody else has, or that nobody has any more",
    async (store) => {
      const ended = await answeredJob(store, { at: noon });
      const [sent] = await store.claimMessages(aClaim());
      await store.finishAttempt(anEndedTry(sent!));
      const takenOver = await takenJob(store, { at: noon + 1 });
      const cutOff = await takenMessage(store, { at: noon + 2 });
      await store.claimJobs(aClaim({ owner: "two", now: noon + minute, limit: 1 }));
      await store.claimMessages(aClaim({ owner: "two", now: noon + minute, limit: 0 }));
      const rows = { jobs: [held(ended), held(takenOver)], messages: [held(sent!), held(cutOff)] };
      const before = await everything(store);
      const all = idsOf([ended, takenOver, sent!, cutOff]);
      assert.deepEqual((await store.lostLeases(rows)).lost, all);
      assert.deepEqual((await store.extendLeases({ ...rows, leaseUntil: noon + 2 * minute })).lost, all);
      assert.deepEqual(await everything(store), before);
    },
  );

  on("that ran out are extended all the same while nobody has taken them", async (store) => {
    const job = await takenJob(store);
    const { lost } = await store.extendLeases({ jobs: [held(job)], messages: [], leaseUntil: noon + 3 * minute });
    assert.deepEqual(lost, []);
    assert.deepEqual(await store.claimJobs(aClaim({ owner: "two", now: noon + 2 * minute })), []);
  });

  on("of nothing are neither lost nor extended", async (store) => {
    assert.deepEqual(await store.extendLeases({ jobs: [], messages: [], leaseUntil: noon }), { lost: [] });
    assert.deepEqual(await store.lostLeases({ jobs: [], messages: [] }), { lost: [] });
  });

  on("are lost to somebody who stops the job", async (store) => {
    const job = await takenJob(store);
    assert.deepEqual((await store.lostLeases({ jobs: [held(job)], messages: [] })).lost, []);
    await store.cancel({ eventId: job.eventId, now: noon, reason: "Stopped" });
    assert.deepEqual((await store.lostLeases({ jobs: [held(job)], messages: [] })).lost, [job.id]);
  });

  on("of others run out at once when a gateway takes over, its own do not", async (store) => {
    const theirs = await takenJob(store);
    const direct = aDirectEvent({ owner: "one" });
    await store.accept(direct);
    const mine = anAgentEvent();
    await store.accept(mine);
    await store.claimJobs(aClaim({ owner: "two" }));
    await store.expireLeases({ owner: "two", now: noon + 1 });
    assert.deepEqual(idsOf(await store.claimJobs(aClaim({ owner: "two", now: noon + 1 }))), [theirs.id]);
    assert.deepEqual(await states(store, mine.event.id), ["running", "held"]);
    await store.claimMessages(aClaim({ owner: "two", now: noon + 1 }));
    assert.deepEqual(await states(store, direct.event.id), ["refused", "dead"]);
  });
}

function testDueTimes({ on }: Suite): void {
  on("are told apart from what is due: the next job, and each target's next message", async (store) => {
    const due = () => store.nextDue({});
    assert.deepEqual(await due(), { jobs: undefined, messages: [] });
    const job = await takenJob(store);
    assert.deepEqual(await due(), { jobs: undefined, messages: [] });
    await store.finishRun(anEndedRun(job, { result: failed, next: { move: "retry", runAt: noon + 500 } }));
    await store.accept(anAgentEvent({ at: noon + 700 }));
    assert.deepEqual(await due(), { jobs: noon + 500, messages: [] });
    const [again] = await store.claimJobs(aClaim({ now: noon + 500 }));
    await store.finishRun(anEndedRun(again!, { now: noon + 600 }));
    assert.deepEqual(await due(), { jobs: noon + 700, messages: [{ target: "telegram", due: noon + 600 }] });
    const [message] = await store.claimMessages(aClaim({ now: noon + 600 }));
    await store.finishAttempt(aFailedTry(message!, noon + 900));
    assert.deepEqual(await due(), { jobs: noon + 700, messages: [{ target: "telegram", due: noon + 900 }] });
    await store.park({ reason: "no model", now: noon + 600 });
    assert.equal((await due()).jobs, undefined);
  });

  on("leave each target its own next time", async (store) => {
    for (const [index, target] of ["b", "a", "b", "c", "a"].entries()) {
      await answeredJob(store, { at: noon + index, targets: [target] });
    }
    assert.deepEqual((await store.nextDue({})).messages, [
      { target: "a", due: noon + 1 },
      { target: "b", due: noon },
      { target: "c", due: noon + 3 },
    ]);
  });
}

function testShifting({ on }: Suite): void {
  for (const by of [10 * minute, -10 * minute]) {
    on(
      `keep their length when the clock is set by ${by / minute} minutes, and so does every other wait`,
      async (store) => {
        const retried = await takenJob(store);
        await store.finishRun(anEndedRun(retried, { result: failed, next: { move: "retry", runAt: noon + minute } }));
        const running = await takenJob(store);
        const message = await takenMessage(store, { deliveryId: "42", claimMs: 2 * minute });
        const health = { mark: "busy", until: noon + 2 * minute, reason: "busy" } as const;
        await store.finishAttempt(aFailedTry(message, noon + minute, { health }));
        await store.shiftTimes({ by });
        const now = noon + by;
        const active = [running.id];
        assert.deepEqual(await store.claimJobs(aClaim({ now: now + minute - 1, active })), []);
        assert.deepEqual(idsOf(await store.claimJobs(aClaim({ now: now + minute, active }))), [retried.id]);
        assert.deepEqual(await store.claimJobs(aClaim({ owner: "two", now: now + 29_999 })), [], "the lease");
        assert.deepEqual(await store.claimMessages(aClaim({ now: now + 2 * minute - 1 })), [], "the pause");
        const [again] = await store.claimMessages(aClaim({ now: now + 2 * minute }));
        assert.equal(again?.readyAt, now, "its age");
        const copy = (at: number) => anAgentEvent({ deliveryId: "42", at });
        assert.equal((await store.accept(copy(now + 2 * minute - 1))).duplicate, true, "the claim");
        assert.equal((await store.accept(copy(now + 2 * minute))).duplicate, false);
      },
    );
  }

  on("of others run out at their own time after the clock was set", async (store) => {
    const job = await takenJob(store);
    const message = await takenMessage(store);
    await store.shiftTimes({ by: -minute });
    const claim = (now: number) => aClaim({ owner: "two", now: now - minute });
    assert.deepEqual(await store.claimJobs(claim(noon + 29_999)), []);
    assert.deepEqual(idsOf(await store.claimJobs(claim(noon + 30_000))), [job.id]);
    assert.deepEqual(idsOf(await store.claimMessages(claim(noon + 30_000))), [message.id]);
  });

  on("of what has ended are history, which no clock changes", async (store) => {
    const job = await answeredJob(store);
    const [message] = await store.claimMessages(aClaim());
    await store.finishAttempt(anEndedTry(message!));
    const before = await jobOf(store, job.eventId);
    await store.shiftTimes({ by: minute });
    assert.deepEqual(await jobOf(store, job.eventId), before);
  });
}
