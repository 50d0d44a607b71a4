import assert from "node:assert/strict";
import { aClaim, aDirectEvent, aLastTry, anAgentEvent, anEndedTry, newJob, noon } from "../../tools/rows.ts";
import { everything, heldBy, idsOf, jobOf, minute, record, type Suite, states } from "./suite.ts";

/** Texts that are sent while the event's sender waits. */
export function testDirectDeliveries(suite: Suite): void {
  testEnds(suite);
  testCopies(suite);
  testWithdrawing(suite);
}

function testEnds({ on }: Suite): void {
  on("begin as sending, held by who accepted them, and are done when every target took its message", async (store) => {
    const args = aDirectEvent({ targets: ["a", "b"], deliveryId: "42" });
    await store.accept(args);
    assert.deepEqual(await states(store, args.event.id), ["delivering", "sending", "sending"]);
    assert.deepEqual(await store.claimMessages(aClaim({ owner: "two" })), []);
    assert.deepEqual(await store.claimJobs(aClaim({ owner: "two" })), []);
    for (const held of heldBy(args)) assert.equal(await store.finishAttempt(anEndedTry(held)), true);
    assert.deepEqual(await states(store, args.event.id), ["done", "sent", "sent"]);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, true);
  });

  on("that are refused free their delivery id, once all messages have ended", async (store) => {
    const args = aDirectEvent({ targets: ["a", "b"], deliveryId: "42" });
    await store.accept(args);
    const [one, two] = heldBy(args);
    await store.finishAttempt(aLastTry(one!, { error: "No such chat" }));
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, true);
    await store.finishAttempt(anEndedTry(two!));
    const { state, reason } = await jobOf(store, args.event.id);
    assert.deepEqual([state, reason], ["refused", "No such chat"]);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, false);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, true);
  });

  on("that are refused late leave a newer claim of the same id alone", async (store) => {
    const first = aDirectEvent({ deliveryId: "42", claimMs: 1000, leaseMs: 10 * minute });
    await store.accept(first);
    const second = aDirectEvent({ deliveryId: "42", at: noon + 2000 });
    assert.equal((await store.accept(second)).duplicate, false);
    await store.finishAttempt(aLastTry(heldBy(first)[0]!));
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42", at: noon + 3000 }))).duplicate, true);
  });

  on("that were cut off are refused, not sent again, and free their delivery id", async (store) => {
    const args = aDirectEvent({ targets: ["a", "b"], deliveryId: "42" });
    await store.accept(args);
    const [one, two] = heldBy(args);
    await store.finishAttempt(anEndedTry(one!));
    assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now: noon + minute })), []);
    const { state, messages } = await jobOf(store, args.event.id);
    assert.equal(state, "refused");
    assert.deepEqual(
      messages.map((message) => message.state),
      ["sent", "dead"],
    );
    assert.deepEqual(
      messages[1]?.attempts.map(({ outcome }) => outcome),
      ["interrupted"],
    );
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42", at: noon + minute }))).duplicate, false);
    assert.equal(await store.finishAttempt(anEndedTry(two!)), false, "late news come too late");
  });

  on("are not cut off by their own owner while it says that it sends them", async (store) => {
    const args = aDirectEvent({ deliveryId: "42" });
    await store.accept(args);
    const active = idsOf(args.job.messages);
    await store.claimMessages(aClaim({ now: noon + 60 * minute, active }));
    assert.deepEqual(await states(store, args.event.id), ["delivering", "sending"]);
    await store.claimMessages(aClaim({ now: noon + 60 * minute, active: [] }));
    assert.deepEqual(await states(store, args.event.id), ["refused", "dead"]);
  });

  on("are not cut off while it is too early to call anybody dead", async (store) => {
    const args = aDirectEvent();
    await store.accept(args);
    await store.claimMessages(aClaim({ owner: "two", now: noon + minute, mayReclaim: false }));
    assert.deepEqual(await states(store, args.event.id), ["delivering", "sending"]);
  });
}

function testCopies({ on }: Suite): void {
  const copy = (ms: number) => aDirectEvent({ deliveryId: "42", at: noon + ms });
  const underWay = { duplicate: true, isUnderWay: true };

  on(
    "make a copy that comes meanwhile neither new nor a duplicate: nobody knows yet whether they count",
    async (store) => {
      const first = copy(0);
      await store.accept(first);
      assert.deepEqual(await store.accept(copy(1)), underWay);
      assert.deepEqual(await store.accept(anAgentEvent({ deliveryId: "42", at: noon + 2 })), underWay);
      await store.finishAttempt(anEndedTry(heldBy(first)[0]!));
      assert.deepEqual(await store.accept(copy(3)), { duplicate: true, isUnderWay: false });
    },
  );

  on("make a copy new once they were refused", async (store) => {
    const first = copy(0);
    await store.accept(first);
    await store.finishAttempt(aLastTry(heldBy(first)[0]!));
    assert.deepEqual(await store.accept(copy(1)), { duplicate: false });
    assert.deepEqual(await store.accept(copy(2)), underWay);
  });

  on("are duplicates, not under way, when they are only sent again by hand", async (store) => {
    const first = copy(0);
    await store.accept(first);
    await store.finishAttempt(anEndedTry(heldBy(first)[0]!));
    await store.addJob({ eventId: first.event.id, now: noon + 1, job: newJob("delivery", { at: noon + 1 }) });
    assert.deepEqual(await store.accept(copy(2)), { duplicate: true, isUnderWay: false });
  });
}

function testWithdrawing({ on }: Suite): void {
  const withdraw = { now: noon + 5, reason: "The ledger answered too late" };

  on("are refused when they are withdrawn, and their delivery id is free", async (store) => {
    const args = aDirectEvent({ targets: ["a", "b"], deliveryId: "42" });
    await store.accept(args);
    await store.withdraw({ eventId: args.event.id, ...withdraw });
    const { state, reason, messages } = await jobOf(store, args.event.id);
    assert.deepEqual([state, reason], ["refused", withdraw.reason]);
    for (const message of messages) {
      assert.deepEqual([message.state, message.reason], ["dead", withdraw.reason]);
      assert.deepEqual(
        message.attempts.map(({ outcome, endedAt }) => [outcome, endedAt]),
        [["interrupted", noon + 5]],
      );
    }
    assert.equal(await store.finishAttempt(anEndedTry(heldBy(args)[0]!)), false);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, false);
  });

  on("that have ended are not withdrawn any more, and what was never kept neither", async (store) => {
    const args = aDirectEvent({ deliveryId: "42" });
    await store.accept(args);
    await store.finishAttempt(anEndedTry(heldBy(args)[0]!));
    const before = await everything(store);
    await store.withdraw({ eventId: args.event.id, ...withdraw });
    await store.withdraw({ eventId: aDirectEvent().event.id, ...withdraw });
    assert.deepEqual(await everything(store), before);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, true);
  });

  on("that are withdrawn leave alone what was added by hand", async (store) => {
    const args = aDirectEvent();
    await store.accept(args);
    await store.addJob({ eventId: args.event.id, now: noon + 1, job: newJob("delivery", { at: noon + 1 }) });
    await store.claimMessages(aClaim({ now: noon + 1 }));
    await store.withdraw({ eventId: args.event.id, ...withdraw });
    assert.deepEqual(
      (await record(store, args.event.id)).jobs.map(({ state, messages }) => [state, messages[0]?.state]),
      [
        ["refused", "dead"],
        ["delivering", "sending"],
      ],
    );
  });
}
