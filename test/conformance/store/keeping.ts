import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type FinalEventState, finalEventStates } from "../../../src/store/states.ts";
import type { Store } from "../../../src/store/store.ts";
import { aClaim, aDirectEvent, aLastTry, anAgentEvent, anEndedRun, newEvent, newJob, noon } from "../../tools/rows.ts";
import type { Place } from "../../tools/stores.ts";
import { answeredJob, heldBy, idsOf, minute, record, type Suite, takenJob, takenMessage } from "./suite.ts";

/** Forgetting, and how much there is. */
export function testKeeping(suite: Suite): void {
  testPruning(suite);
  testClaims(suite);
  testSize(suite);
}

type Before = Partial<Record<FinalEventState, number>>;

const always: Before = Object.fromEntries(finalEventStates.map((state) => [state, Number.MAX_SAFE_INTEGER]));

/** An event whose job was done at the time. */
async function done(store: Store, at = noon, body?: Uint8Array): Promise<string> {
  const job = await takenJob(store, { at, ...(body && { body }) });
  await store.finishRun(anEndedRun(job, { now: at, next: { move: "answer", silent: true } }));
  return job.eventId;
}

async function prune(store: Store, before: Before, limit = 100): Promise<number> {
  return (await store.prune({ after: "", limit, before })).forgotten;
}

async function left(store: Store): Promise<string[]> {
  return idsOf(await store.listEvents({ limit: 100 })).reverse();
}

function testPruning({ on }: Suite): void {
  on("forgets finished events that are older than their state's time, to the millisecond", async (store) => {
    const ids: Record<FinalEventState, string> = {
      done: await done(store),
      dead: (await takenJob(store)).eventId,
      cancelled: (await takenJob(store)).eventId,
      refused: "",
      ignored: "",
    };
    const refused = aDirectEvent();
    const ignored = newEvent();
    ids.refused = refused.event.id;
    ids.ignored = ignored.id;
    const dead = (await record(store, ids.dead)).jobs[0]!;
    await store.finishRun(anEndedRun({ ...dead, fence: 1 } as never, { next: { move: "giveUp" } }));
    await store.cancel({ eventId: ids.cancelled, now: noon, reason: "Stopped" });
    await store.accept(refused);
    await store.finishAttempt(aLastTry(heldBy(refused)[0]!));
    await store.ignore({ ...ignored, reason: "filters" });
    const everyone = Object.fromEntries(finalEventStates.map((state) => [state, noon]));
    assert.equal(await prune(store, {}), 0);
    assert.equal(await prune(store, everyone), 0, "not a millisecond too early");
    for (const state of finalEventStates) {
      assert.equal(await prune(store, { [state]: noon + 1 }), 1, state);
      assert.equal(await store.readEvent({ id: ids[state] }), undefined, state);
      delete (ids as Record<string, string>)[state];
      assert.deepEqual((await left(store)).sort(), Object.values(ids).sort());
    }
  });

  on("never forgets what is unfinished", async (store) => {
    const queued = anAgentEvent();
    await store.accept(queued);
    await store.park({ reason: "no model", now: noon });
    await store.accept(anAgentEvent());
    await takenJob(store, { at: noon - 1 });
    await answeredJob(store, { at: noon - 2, lane: "a 1" });
    await answeredJob(store, { at: noon - 2, lane: "a 1" });
    await takenMessage(store, { at: noon - 3 });
    await store.accept(aDirectEvent());
    const before = await left(store);
    assert.equal(before.length, 7);
    assert.equal(await prune(store, always), 0);
    assert.deepEqual(await left(store), before);
  });

  on("never forgets an event that was taken up again, until that has ended too", async (store) => {
    const eventId = await done(store);
    await store.addJob({ eventId, now: noon + minute, job: newJob("agent", { at: noon + minute }) });
    assert.equal(await prune(store, always), 0);
    const [job] = await store.claimJobs(aClaim({ now: noon + minute }));
    await store.finishRun(anEndedRun(job!, { now: noon + 2 * minute, next: { move: "giveUp" } }));
    assert.equal(await prune(store, { done: Number.MAX_SAFE_INTEGER }), 0, "it stands as its newest job");
    assert.equal(await prune(store, { dead: noon + 2 * minute }), 0, "and is as old as its newest news");
    assert.equal(await prune(store, { dead: noon + 2 * minute + 1 }), 1);
  });

  on("never forgets an event whose older job is still at work, and counts from that one's end", async (store) => {
    const running = await takenJob(store);
    await store.addJob({ eventId: running.eventId, now: noon, job: newJob("agent") });
    const [job] = await store.claimJobs(aClaim());
    await store.finishRun(anEndedRun(job!, { next: { move: "answer", silent: true } }));
    assert.equal((await record(store, running.eventId)).state, "done");
    assert.equal(await prune(store, always), 0);
    await store.finishRun(anEndedRun(running, { now: noon + minute, next: { move: "answer", silent: true } }));
    assert.equal(await prune(store, { done: noon + minute }), 0);
    assert.equal(await prune(store, { done: noon + minute + 1 }), 1);
  });

  on("leaves nothing behind of what it forgets, and all of the rest", async (store, place) => {
    await store.finishAttempt(aLastTry(await takenMessage(store, { targets: ["a"] })));
    await done(store);
    const kept = await done(store, noon + minute);
    const before = await record(store, kept);
    assert.equal(await prune(store, { done: noon + 1, dead: noon + 1 }), 2);
    assert.deepEqual(await record(store, kept), before);
    assert.deepEqual(await rowCounts(place), { events: 1, bodies: 1, jobs: 1, runs: 1, messages: 1, attempts: 0 });
  });

  on("goes on from step to step over all events, each step a small one", async (store) => {
    const ids: string[] = [];
    for (let ms = 0; ms < 7; ms += 1) {
      if (ms % 3 === 2) await answeredJob(store, { at: noon + ms });
      else ids.push(await done(store, noon + ms));
    }
    let after: string | undefined = "";
    const steps: number[] = [];
    while (after !== undefined && steps.length < 10) {
      const { forgotten, next }: { forgotten: number; next: string | undefined } = await store.prune({
        after,
        limit: 2,
        before: { done: noon + 6 },
      });
      steps.push(forgotten);
      after = next;
    }
    assert.deepEqual(steps, [2, 1, 1, 0], "the last one is too new");
    assert.equal((await left(store)).length, 3);
    assert.deepEqual(await store.prune({ after: "", limit: 100, before: {} }), { forgotten: 0, next: undefined });
  });
}

async function rowCounts(place: Place): Promise<Record<string, number>> {
  const tables = ["events", "bodies", "jobs", "runs", "messages", "attempts"];
  const counts: Record<string, number> = {};
  for (const table of tables) counts[table] = Number((await place.query(`select count(*) as n from ${table}`))[0]?.n);
  return counts;
}

function testClaims({ on }: Suite): void {
  on("keeps the delivery id of a forgotten event claimed until its own time", async (store) => {
    const job = await takenJob(store, { deliveryId: "42", claimMs: minute });
    await store.finishRun(anEndedRun(job, { next: { move: "answer", silent: true } }));
    assert.equal(await prune(store, always), 1);
    const copy = (at: number) => anAgentEvent({ deliveryId: "42", at });
    assert.deepEqual(await store.accept(copy(noon + minute - 1)), { duplicate: true, isUnderWay: false });
    assert.equal((await store.accept(copy(noon + minute))).duplicate, false);
  });

  on("forgets claims that have run out, and no others, at most so many at once", async (store, place) => {
    for (let ms = 0; ms < 5; ms += 1) await store.accept(anAgentEvent({ deliveryId: `${ms}`, claimMs: minute + ms }));
    const forget = (now: number, limit = 100) => store.pruneClaims({ now, limit });
    assert.equal(await forget(noon + minute - 1), 0);
    assert.equal(await forget(noon + minute + 2, 2), 2);
    assert.equal(await forget(noon + minute + 2, 2), 1);
    assert.equal(await forget(noon + minute + 2, 2), 0);
    const claims = await place.query("select delivery_id as id from claims order by delivery_id");
    assert.deepEqual(
      claims.map(({ id }) => id),
      ["3", "4"],
    );
    assert.equal((await store.accept(anAgentEvent({ deliveryId: "3", at: noon + minute }))).duplicate, true);
  });
}

function testSize({ on }: Suite): void {
  on("measures what is kept: more with each event, less when it is forgotten", async (store) => {
    const measure = async () => (await store.measure({})).bytes;
    const empty = await measure();
    assert.ok(Number.isInteger(empty) && empty >= 0);
    for (let count = 0; count < 20; count += 1) await done(store, noon + count, randomBytes(50_000));
    const full = await measure();
    assert.ok(full - empty >= 1_000_000, `${full - empty} bytes for 20 bodies of 50 000`);
    assert.ok(full - empty < 3_000_000, `${full - empty} bytes for 20 bodies of 50 000`);
    assert.equal(await prune(store, { done: noon + 10 }), 10);
    const half = await measure();
    assert.ok(half < full - 400_000, `${full - half} bytes less`);
    assert.equal(await prune(store, always), 10);
    assert.ok((await measure()) < empty + 200_000);
  });
}
