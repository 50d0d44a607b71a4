import assert from "node:assert/strict";
import type { ClaimedMessage, Store } from "../../../src/store/store.ts";
import { aClaim, aFailedTry, aLastTry, anAgentEvent, anEndedRun, anEndedTry, noon } from "../../tools/rows.ts";
import {
  answeredJob,
  everything,
  idsOf,
  jobOf,
  messagesOf,
  minute,
  type Suite,
  states,
  takenJob,
  takenMessage,
} from "./suite.ts";

/** Messages and their tries. */
export function testMessages(suite: Suite): void {
  testClaims(suite);
  testEnds(suite);
  testLosses(suite);
  testUnsure(suite);
}

/** The message as the only job of the only event has it. */
async function onlyMessage(store: Store) {
  const [event] = await store.listEvents({ limit: 1 });
  const [message] = await messagesOf(store, event!.id);
  return message!;
}

function testClaims({ on }: Suite): void {
  on("are claimed when due, oldest first, no more than the limit, with all that sending needs", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b", "c"] });
    const claimed = await store.claimMessages(aClaim({ limit: 2 }));
    assert.deepEqual(
      claimed.map(({ target }) => target),
      ["a", "b"],
    );
    const { id, fence, ...rest } = claimed[0]!;
    assert.deepEqual(rest, {
      ...{ jobId: job.id, target: "a", extra: "{}", text: "All is well", partsSent: 0, failures: 0 },
      ...{ refusal: null, fallback: null },
      ...{ readyAt: noon, isUnsure: false, route: "reviews", eventType: "pull_request" },
    });
    assert.ok(fence > 0 && id.length > 0);
    assert.deepEqual(
      (await store.claimMessages(aClaim())).map(({ target }) => target),
      ["c"],
    );
    assert.deepEqual(await store.claimMessages(aClaim()), []);
    assert.deepEqual(await states(store, job.eventId), ["delivering", "sending", "sending", "sending"]);
  });

  on("are not claimed before the agent has answered", async (store) => {
    await takenJob(store);
    assert.deepEqual(await store.claimMessages(aClaim({ now: noon + minute })), []);
  });

  on("are claimed no more of a target than may be sent now, oldest first over all targets", async (store) => {
    const targets = ["a", "a", "b", "a", "b", "c"];
    for (const [index, target] of targets.entries()) await answeredJob(store, { at: noon + index, targets: [target] });
    const claim = async (limits: Record<string, number>, limit = 10) => {
      const claimed = await store.claimMessages(aClaim({ now: noon + 10, limits, limit }));
      return claimed.map(({ target, readyAt }) => `${target}${readyAt - noon}`);
    };
    assert.deepEqual(await claim({ a: 0, b: 0, c: 0 }), []);
    assert.deepEqual(await claim({ a: 1, b: 1, c: 0 }), ["a0", "b2"]);
    assert.deepEqual(await claim({ a: 5, b: 0 }, 2), ["a1", "a3"]);
    assert.deepEqual(await claim({ b: 0 }), ["c5"]);
    assert.deepEqual(await claim({}), ["b4"]);
  });
}

function testEnds({ on }: Suite): void {
  on("finish their job when the last of them is sent", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b"] });
    const [one, two] = await store.claimMessages(aClaim());
    assert.equal(await store.finishAttempt(anEndedTry(one!, { now: noon + 7, reference: "m-1" })), true);
    assert.deepEqual(await states(store, job.eventId), ["delivering", "sent", "sending"]);
    await store.finishAttempt(anEndedTry(two!));
    assert.deepEqual(await states(store, job.eventId), ["done", "sent", "sent"]);
    const [message] = await messagesOf(store, job.eventId);
    assert.equal(message?.reference, "m-1");
    assert.deepEqual(
      { ...message?.attempts[0], number: 0 },
      { number: 0, startedAt: noon, endedAt: noon + 7, outcome: "sent", error: null },
    );
  });

  on("are sent again at the time of the retry, with the failures counted", async (store) => {
    const message = await takenMessage(store);
    await store.finishAttempt(aFailedTry(message, noon + minute));
    assert.deepEqual(await store.claimMessages(aClaim({ now: noon + minute - 1 })), []);
    const [again] = await store.claimMessages(aClaim({ now: noon + minute }));
    assert.deepEqual([again?.id, again?.failures, again?.readyAt], [message.id, 1, noon]);
    assert.deepEqual(
      (await onlyMessage(store)).attempts.map(({ outcome, error }) => [outcome, error]),
      [
        ["refused", "Too many requests"],
        [null, null],
      ],
    );
  });

  on("that are given back count no failure, and keep their age", async (store) => {
    const message = await takenMessage(store);
    await store.finishAttempt(aFailedTry(message, noon + 3, { now: noon + 3, outcome: "released", error: "Shutdown" }));
    const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + 3 }));
    assert.deepEqual([again?.id, again?.failures, again?.readyAt, again?.isUnsure], [message.id, 0, noon, false]);
    assert.deepEqual((await onlyMessage(store)).attempts[0]?.outcome, "released");
  });

  on("that are given up make the job dead, but only when the others have ended", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b"] });
    const [one, two] = await store.claimMessages(aClaim());
    await store.finishAttempt(aLastTry(one!));
    assert.deepEqual(await states(store, job.eventId), ["delivering", "dead", "sending"]);
    await store.finishAttempt(anEndedTry(two!));
    assert.deepEqual(await states(store, job.eventId), ["dead", "dead", "sent"]);
    assert.equal((await jobOf(store, job.eventId)).reason, "Chat not found");
  });

  on("give their job the reason of the first that is dead", async (store) => {
    const job = await answeredJob(store, { targets: ["a", "b"] });
    const [one, two] = await store.claimMessages(aClaim());
    await store.finishAttempt(aLastTry(two!, { error: "Second" }));
    await store.finishAttempt(aLastTry(one!, { error: "First" }));
    assert.equal((await jobOf(store, job.eventId)).reason, "First");
  });

  on("remember which parts were taken, also for who sends them after a lost lease", async (store) => {
    const message = await takenMessage(store);
    assert.equal(await store.recordPart({ id: message.id, fence: message.fence, partsSent: 2 }), true);
    const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
    assert.equal(again?.partsSent, 2);
    const part = (fence: number, partsSent: number) => store.recordPart({ id: message.id, fence, partsSent });
    assert.equal(await part(message.fence, 3), false, "old holder");
    assert.equal((await onlyMessage(store)).partsSent, 2);
    assert.equal(await part(again!.fence, 3), true);
    await store.finishAttempt(anEndedTry(again!));
    assert.equal(await part(again!.fence, 4), false, "ended");
    assert.equal((await onlyMessage(store)).partsSent, 3);
  });

  on("listen to the newest holder only: an older one changes nothing", async (store) => {
    const old = await takenMessage(store);
    const [current] = await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
    assert.equal(current?.id, old.id);
    const before = await everything(store);
    const health = { mark: "busy", until: noon + minute, reason: "busy" } as const;
    const ends = [anEndedTry(old, { health }), aFailedTry(old, noon, { health }), aLastTry(old, { health })];
    for (const end of ends) assert.equal(await store.finishAttempt(end), false, end.next.move);
    assert.deepEqual(await everything(store), before);
    assert.deepEqual(await store.listTroubles({}), []);
    assert.equal(await store.finishAttempt(anEndedTry(current!)), true);
    assert.equal(await store.finishAttempt(anEndedTry(current!)), false, "the same end twice");
  });
}

function testLosses({ on }: Suite): void {
  on("are pending again when their lease has run out, and say that the try was interrupted", async (store) => {
    const message = await takenMessage(store);
    assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now: noon + 29_999 })), []);
    await store.claimMessages(aClaim({ owner: "two", now: noon + 30_000, limit: 0 }));
    const [event] = await store.listEvents({ limit: 1 });
    assert.deepEqual(await states(store, event!.id), ["delivering", "pending"]);
    const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + 30_000 }));
    assert.deepEqual([again?.id, again?.failures], [message.id, 0]);
    const { attempts } = await onlyMessage(store);
    assert.deepEqual(
      attempts.map(({ outcome, endedAt }) => [outcome, endedAt]),
      [
        ["interrupted", noon + 30_000],
        [null, null],
      ],
    );
    assert.match(attempts[0]?.error ?? "", /^Interrupted/);
  });

  on("are not taken from their owner while it says that it sends them", async (store) => {
    const message = await takenMessage(store);
    const claim = aClaim({ now: noon + 60 * minute, active: [message.id] });
    assert.deepEqual(await store.claimMessages(claim), []);
    assert.equal(await store.finishAttempt(anEndedTry(message, { now: noon + 60 * minute })), true);
  });

  on("are taken back from an owner that does not know of them, once their lease has run out", async (store) => {
    const message = await takenMessage(store);
    assert.deepEqual(await store.claimMessages(aClaim({ now: noon + 29_999 })), []);
    const [again] = await store.claimMessages(aClaim({ now: noon + 30_000 }));
    assert.deepEqual([again?.id, again?.isUnsure], [message.id, true]);
    assert.equal(await store.finishAttempt(anEndedTry(message)), false);
  });

  on("are left with their holders while it is too early to call anybody dead", async (store) => {
    const message = await takenMessage(store);
    await answeredJob(store);
    const claimed = await store.claimMessages(aClaim({ owner: "two", now: noon + minute, mayReclaim: false }));
    assert.equal(claimed.length, 1, "what is due is claimed all the same");
    assert.notEqual(claimed[0]?.id, message.id);
    assert.equal(await store.finishAttempt(anEndedTry(message)), true);
  });

  on("take late news that they were sent when nobody has tried again meanwhile", async (store) => {
    const message = await takenMessage(store);
    await store.claimMessages(aClaim({ owner: "two", now: noon + minute, limit: 0 }));
    assert.equal((await onlyMessage(store)).state, "pending");
    assert.equal(await store.finishAttempt(aFailedTry(message, noon)), false, "a failure is no news any more");
    assert.equal(await store.finishAttempt(aLastTry(message)), false);
    assert.equal(await store.recordPart({ id: message.id, fence: message.fence, partsSent: 1 }), true);
    const late = anEndedTry(message, { now: noon + minute + 1, reference: "m-1" });
    assert.equal(await store.finishAttempt(late), true);
    const { state, reference, reason, attempts } = await onlyMessage(store);
    assert.deepEqual([state, reference, reason], ["sent", "m-1", null]);
    assert.deepEqual(
      attempts.map(({ outcome, endedAt, error }) => [outcome, endedAt, error]),
      [["sent", noon + minute + 1, null]],
    );
    assert.equal((await store.listEvents({ limit: 1 }))[0]?.state, "done");
    assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now: noon + 2 * minute })), []);
  });

  on("do not take late news when somebody tries again", async (store) => {
    const message = await takenMessage(store);
    const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
    assert.equal(await store.finishAttempt(anEndedTry(message)), false);
    assert.equal((await onlyMessage(store)).state, "sending");
    await store.finishAttempt(aFailedTry(again!, noon + 2 * minute, { now: noon + minute }));
    assert.equal(await store.finishAttempt(anEndedTry(message)), false, "not even after that try");
  });
}

function testUnsure({ on }: Suite): void {
  /** Takes the message for its next try. */
  const next = async (store: Store, now = noon): Promise<ClaimedMessage> =>
    (await store.claimMessages(aClaim({ now })))[0]!;
  const unknown = (message: ClaimedMessage, now = noon) =>
    aFailedTry(message, now, { now, outcome: "unknown", error: "No answer" });

  on(
    "are unsure after a try of which nobody knows whether it went through, and stay so after a sure refusal",
    async (store) => {
      const first = await takenMessage(store);
      assert.equal(first.isUnsure, false);
      await store.finishAttempt(unknown(first));
      const second = await next(store);
      assert.deepEqual([second.isUnsure, second.failures], [true, 1]);
      await store.finishAttempt(aFailedTry(second, noon));
      const third = await next(store);
      assert.deepEqual([third.isUnsure, third.failures], [true, 2]);
      await store.finishAttempt(aFailedTry(third, noon, { outcome: "released" }));
      assert.equal((await next(store)).isUnsure, true);
    },
  );

  on("are unsure when their gateway died during a try", async (store) => {
    await takenMessage(store);
    const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
    assert.deepEqual([again?.isUnsure, again?.failures], [true, 0]);
  });

  on("are not unsure after a refusal, or when they were given back", async (store) => {
    const first = await takenMessage(store);
    await store.finishAttempt(aFailedTry(first, noon));
    const second = await next(store);
    assert.equal(second.isUnsure, false);
    await store.finishAttempt(aFailedTry(second, noon, { outcome: "released" }));
    assert.equal((await next(store)).isUnsure, false);
  });

  on("are sure again once the part in question was taken", async (store) => {
    const first = await takenMessage(store);
    await store.finishAttempt(unknown(first));
    const second = await next(store);
    await store.recordPart({ id: second.id, fence: second.fence, partsSent: 1 });
    await store.finishAttempt(aFailedTry(second, noon));
    const third = await next(store);
    assert.deepEqual([third.isUnsure, third.partsSent], [false, 1]);
    await store.finishAttempt(unknown(third));
    assert.equal((await next(store)).isUnsure, true, "the next part is another question");
  });

  on("carry their own route's and event's names", async (store) => {
    const event = anAgentEvent({ route: "r", type: "t" });
    await store.accept(event);
    const [job] = await store.claimJobs(aClaim());
    await store.finishRun(anEndedRun(job!));
    const [message] = await store.claimMessages(aClaim());
    assert.deepEqual([message?.route, message?.eventType], ["r", "t"]);
    assert.deepEqual(idsOf([message!]), idsOf(event.job.messages));
  });
}
