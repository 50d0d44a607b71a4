import assert from "node:assert/strict";
import type { ClaimedMessage, Store, TargetHealth } from "../../../src/store/store.ts";
import {
  aClaim,
  aDirectEvent,
  aFailedTry,
  aLastTry,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  noon,
} from "../../tools/rows.ts";
import { heldBy, minute, type Suite } from "./suite.ts";

const second = 1000;
const well = { mark: "well" } as const;

function trouble(reason = "It does not answer"): TargetHealth {
  return { mark: "trouble", threshold: 3, firstPauseMs: second, longestPauseMs: 3 * second, reason };
}

function busy(until: number): TargetHealth {
  return { mark: "busy", until, reason: "Too many requests" };
}

/** Messages that are to be sent, each of an event of its own. */
async function prepare(store: Store, count: number, target = "telegram"): Promise<void> {
  for (let done = 0; done < count; done += 1) await store.accept(anAgentEvent({ targets: [target] }));
  for (const job of await store.claimJobs(aClaim({ limit: count }))) await store.finishRun(anEndedRun(job));
}

/** Takes what may be sent now; what was taken before is still being sent. */
function take(store: Store, now: number, limit = 10): Promise<readonly ClaimedMessage[]> {
  return store.claimMessages(aClaim({ now, limit, mayReclaim: false }));
}

/** A try that failed in a way that may pass; the next one may be made at once. */
function fail(store: Store, message: ClaimedMessage, now: number, health: TargetHealth | null = trouble()) {
  return store.finishAttempt(aFailedTry(message, now, { now, health }));
}

/** Lets the target be paused at noon by three messages, with as many more waiting as wanted. */
async function paused(store: Store, more = 0): Promise<void> {
  await prepare(store, 3 + more);
  for (const message of await take(store, noon, 3)) await fail(store, message, noon);
  assert.deepEqual(
    (await store.listTroubles({})).map(({ pauses, pausedUntil }) => [pauses, pausedUntil]),
    [[1, noon + second]],
  );
}

/** Circuit breakers, one for each target. */
export function testHealth(suite: Suite): void {
  testPauses(suite);
  testProbes(suite);
  testBusy(suite);
}

function testPauses({ on }: Suite): void {
  on("is troubled by messages in a row, not by the tries of one that nobody can deliver", async (store) => {
    await prepare(store, 2);
    const [hopeless] = await take(store, noon, 1);
    let message = hopeless!;
    for (let tries = 0; tries < 10; tries += 1) {
      await fail(store, message, noon);
      const again = await take(store, noon);
      message = again.find(({ id }) => id === hopeless?.id)!;
      assert.ok(message, `after ${tries + 1} failures`);
    }
    assert.deepEqual(await store.listTroubles({}), [
      { target: "telegram", failures: 1, pauses: 0, pausedUntil: 0, reason: "It does not answer" },
    ]);
  });

  on("pauses it when so many messages in a row failed: its queue waits without burning tries", async (store) => {
    await prepare(store, 5);
    const [one, two, three] = await take(store, noon, 3);
    await fail(store, one!, noon);
    await fail(store, two!, noon + 1);
    assert.equal((await store.listTroubles({}))[0]?.pauses, 0);
    await store.finishAttempt(aFailedTry(three!, noon + 2, { now: noon + 2, health: trouble("The third") }));
    assert.deepEqual(await store.listTroubles({}), [
      { target: "telegram", failures: 3, pauses: 1, pausedUntil: noon + 2 + second, reason: "The third" },
    ]);
    assert.deepEqual(await take(store, noon + 1 + second), []);
    assert.deepEqual(await store.nextDue({}), {
      jobs: undefined,
      messages: [{ target: "telegram", due: noon + 2 + second }],
    });
    assert.equal((await take(store, noon + 2 + second)).length, 1);
  });

  on("leaves other targets alone", async (store) => {
    await paused(store);
    await prepare(store, 2, "slack");
    assert.equal((await take(store, noon)).length, 2);
    assert.deepEqual(await store.nextDue({}), {
      jobs: undefined,
      messages: [{ target: "telegram", due: noon + second }],
    });
  });

  on("names the later of a message's time and the pause's end as due", async (store) => {
    await prepare(store, 3);
    for (const message of await take(store, noon)) {
      await store.finishAttempt(aFailedTry(message, noon + minute, { health: trouble() }));
    }
    assert.deepEqual((await store.nextDue({})).messages, [{ target: "telegram", due: noon + minute }]);
  });

  on("is well again with one message that it takes: failures count in a row", async (store) => {
    await prepare(store, 6);
    const [one, two, three, four, five] = await take(store, noon);
    await fail(store, one!, noon);
    await fail(store, two!, noon);
    await store.finishAttempt(anEndedTry(three!, { health: well }));
    assert.deepEqual(await store.listTroubles({}), []);
    await fail(store, four!, noon);
    await fail(store, five!, noon);
    assert.deepEqual(
      (await store.listTroubles({})).map(({ failures, pauses }) => [failures, pauses]),
      [[2, 0]],
    );
  });

  on("is not judged by what says nothing of it", async (store) => {
    await prepare(store, 4);
    const [one, two, three, four] = await take(store, noon);
    await fail(store, one!, noon);
    await fail(store, two!, noon);
    await store.finishAttempt(aLastTry(three!));
    await fail(store, four!, noon, null);
    assert.deepEqual(
      (await store.listTroubles({})).map(({ failures, pauses }) => [failures, pauses]),
      [[2, 0]],
    );
  });

  on("is not paused longer by what was on its way before the pause", async (store) => {
    await prepare(store, 5);
    const messages = await take(store, noon);
    for (const [index, message] of messages.entries()) await fail(store, message, noon + index);
    assert.deepEqual(
      (await store.listTroubles({})).map(({ failures, pauses, pausedUntil }) => [failures, pauses, pausedUntil]),
      [[5, 1, noon + 2 + second]],
    );
  });

  on("is well when what was on its way during a pause is taken", async (store) => {
    await prepare(store, 4);
    const [one, two, three, four] = await take(store, noon);
    for (const message of [one!, two!, three!]) await fail(store, message, noon);
    await store.finishAttempt(anEndedTry(four!, { now: noon + 1, health: well }));
    assert.deepEqual(await store.listTroubles({}), []);
    assert.equal((await take(store, noon + 1)).length, 3);
  });
}

function testProbes({ on }: Suite): void {
  on("is tried with one message at a time after a pause, whoever asks", async (store) => {
    await paused(store, 3);
    const now = noon + second;
    const [probe, ...others] = await take(store, now);
    assert.ok(probe);
    assert.deepEqual(others, []);
    assert.deepEqual(await take(store, now), []);
    assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now, mayReclaim: false })), []);
    await store.finishAttempt(anEndedTry(probe, { now, health: well }));
    assert.deepEqual(await store.listTroubles({}), []);
    assert.equal((await take(store, now)).length, 5);
  });

  on("is paused twice as long each time its first message fails again, up to the longest pause", async (store) => {
    await paused(store, 3);
    let now = noon + second;
    for (const [index, pauseMs] of [2 * second, 3 * second, 3 * second].entries()) {
      const [probe] = await take(store, now);
      await fail(store, probe!, now);
      const [known] = await store.listTroubles({});
      assert.deepEqual([known?.pauses, known?.pausedUntil], [index + 2, now + pauseMs]);
      assert.deepEqual(await take(store, now + pauseMs - 1), []);
      now += pauseMs;
    }
    const [probe] = await take(store, now);
    await store.finishAttempt(anEndedTry(probe!, { now, health: well }));
    for (const message of await take(store, now, 3)) await fail(store, message, now);
    const [fresh] = await store.listTroubles({});
    assert.deepEqual([fresh?.failures, fresh?.pauses, fresh?.pausedUntil], [3, 1, now + second], "it begins anew");
  });

  on("is tried with the next message when the first one's end says nothing of it", async (store) => {
    await paused(store, 2);
    const now = noon + second;
    const [refused] = await take(store, now);
    await store.finishAttempt(aLastTry(refused!, { now }));
    const [released, ...others] = await take(store, now);
    assert.ok(released && others.length === 0, "still one at a time");
    await store.finishAttempt(aFailedTry(released, now, { now, outcome: "released" }));
    assert.equal((await take(store, now)).length, 1);
  });

  on("is tried again when the gateway died with the first message", async (store) => {
    await paused(store, 2);
    const [probe] = await take(store, noon + second);
    assert.ok(probe);
    const claim = (now: number) => store.claimMessages(aClaim({ owner: "two", now }));
    assert.deepEqual(await claim(noon + second), []);
    assert.equal((await claim(noon + second + 30_000)).length, 1);
  });

  on("takes a direct delivery's end for an answer, too", async (store) => {
    await paused(store, 2);
    const args = aDirectEvent({ targets: ["telegram"] });
    await store.accept(args);
    await store.finishAttempt(anEndedTry(heldBy(args)[0]!, { now: noon + 1, health: well }));
    assert.deepEqual(await store.listTroubles({}), []);
  });
}

function testBusy({ on }: Suite): void {
  on("is left alone for as long as it asks, by one message's word", async (store) => {
    await prepare(store, 3);
    const [one] = await take(store, noon, 1);
    await fail(store, one!, noon, busy(noon + minute));
    assert.deepEqual(await store.listTroubles({}), [
      { target: "telegram", failures: 0, pauses: 1, pausedUntil: noon + minute, reason: "Too many requests" },
    ]);
    assert.deepEqual(await take(store, noon + minute - 1), []);
    assert.equal((await take(store, noon + minute)).length, 1, "one goes first");
  });

  on("is never asked sooner because it named an earlier time later", async (store) => {
    await prepare(store, 3);
    const [one, two, three] = await take(store, noon);
    await fail(store, one!, noon, busy(noon + minute));
    await fail(store, two!, noon, busy(noon + second));
    assert.equal((await store.listTroubles({}))[0]?.pausedUntil, noon + minute);
    await store.finishAttempt(anEndedTry(three!, { health: well }));
    assert.equal((await store.listTroubles({}))[0]?.pausedUntil, noon + minute);
  });

  on("is left alone for as long as it asks although it took what was on its way before", async (store) => {
    await prepare(store, 4);
    const [one, two, three] = await take(store, noon, 3);
    await fail(store, one!, noon, busy(noon + minute));
    await store.finishAttempt(anEndedTry(two!, { now: noon + 1, health: well }));
    await fail(store, three!, noon + 2);
    assert.deepEqual(await take(store, noon + minute - 1), []);
    assert.equal((await store.nextDue({})).messages[0]?.due, noon + minute);
    const [probe, ...others] = await take(store, noon + minute);
    assert.ok(probe && others.length === 0);
    await store.finishAttempt(anEndedTry(probe, { now: noon + minute, health: well }));
    assert.deepEqual(await store.listTroubles({}), []);
  });

  on("is paused when it fails after the time it asked for", async (store) => {
    await prepare(store, 2);
    const [one] = await take(store, noon, 1);
    await fail(store, one!, noon, busy(noon + minute));
    const [probe] = await take(store, noon + minute);
    await fail(store, probe!, noon + minute);
    assert.equal((await store.listTroubles({}))[0]?.pausedUntil, noon + minute + 2 * second);
  });
}
