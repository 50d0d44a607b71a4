import assert from "node:assert/strict";
import type { Store } from "../../../src/store/store.ts";
import { aClaim, anAgentEvent, anEndedRun, aResult, newEvent, newJob, noon } from "../../tools/rows.ts";
import { answeredJob, idsOf, minute, type Suite, takenJob } from "./suite.ts";

const hour = 60 * minute;

/** Lists, records and counts. */
export function testLooking(suite: Suite): void {
  testLists(suite);
  testRecords(suite);
}

function testLists({ on }: Suite): void {
  on("lists events newest first, by route and by state, page by page", async (store) => {
    const done = await takenJob(store, { at: noon, route: "one" });
    await store.finishRun(anEndedRun(done, { next: { move: "answer", silent: true } }));
    const queued = [1, 2, 3].map((ms) => anAgentEvent({ at: noon + ms, route: ms === 2 ? "two" : "one" }));
    for (const args of queued) await store.accept(args);
    const ignored = newEvent({ at: noon + 4, route: "one" });
    await store.ignore({ ...ignored, reason: "no" });
    const ids = [done.eventId, ...queued.map(({ event }) => event.id), ignored.id].reverse();
    const list = async (args: Partial<Parameters<Store["listEvents"]>[0]>) =>
      idsOf(await store.listEvents({ limit: 10, ...args })).map((id) => ids.indexOf(id));
    assert.deepEqual(await list({}), [0, 1, 2, 3, 4]);
    assert.deepEqual(await list({ limit: 2 }), [0, 1]);
    assert.deepEqual(await list({ limit: 2, before: ids[1]! }), [2, 3]);
    assert.deepEqual(await list({ route: "two" }), [2]);
    assert.deepEqual(await list({ route: "Two" }), []);
    assert.deepEqual(await list({ state: "queued" }), [1, 2, 3]);
    assert.deepEqual(await list({ state: "ignored" }), [0]);
    assert.deepEqual(await list({ state: "ignored", route: "two" }), []);
    assert.deepEqual(await list({ state: "done", route: "one" }), [4]);
    assert.deepEqual(await list({ state: "queued", route: "one", before: ids[1]!, limit: 1 }), [3]);
    assert.deepEqual(await list({ state: "o'neill" }), []);
    const [row] = await store.listEvents({ limit: 1 });
    assert.deepEqual(row, {
      ...{ id: ignored.id, route: "one", type: "pull_request", deliveryId: ignored.deliveryId, receivedAt: noon + 4 },
      ...{ state: "ignored", reason: "no" },
    });
  });

  on("lists events of a time, to the millisecond: from its beginning, up to its end", async (store) => {
    const times = [-48 * hour, -1, 0, 1, hour, 48 * hour];
    for (const ms of times) await store.accept(anAgentEvent({ at: noon + ms, route: ms === 1 ? "other" : "reviews" }));
    const list = async (args: Partial<Parameters<Store["listEvents"]>[0]>) =>
      (await store.listEvents({ limit: 10, ...args })).map(({ receivedAt }) => receivedAt - noon).reverse();
    assert.deepEqual(await list({ since: noon }), [0, 1, hour, 48 * hour]);
    assert.deepEqual(await list({ until: noon }), [-48 * hour, -1]);
    assert.deepEqual(await list({ since: noon, until: noon + hour }), [0, 1]);
    assert.deepEqual(await list({ since: noon, until: noon + hour + 1, route: "other" }), [1]);
    assert.deepEqual(await list({ since: noon - 1, until: noon + 1, state: "queued", route: "reviews" }), [-1, 0]);
    assert.deepEqual(await list({ since: noon + 49 * hour }), []);
    assert.deepEqual(await list({ since: 0, until: 1 }), []);
    assert.deepEqual(await list({ since: -1e15, until: 1e15 }), times);
  });

  on("lists events by their own time although the machine that made their ids was hours off", async (store) => {
    const { id } = newEvent({ at: noon - 5 * hour });
    await store.accept(anAgentEvent({ id, at: noon }));
    assert.deepEqual(idsOf(await store.listEvents({ limit: 10, since: noon, until: noon + 1 })), [id]);
  });

  on("lists an event as its newest job stands", async (store) => {
    const done = await takenJob(store);
    await store.finishRun(anEndedRun(done, { next: { move: "answer", silent: true } }));
    const ignored = newEvent();
    await store.ignore({ ...ignored, reason: "filters" });
    const list = async (state: string) => idsOf(await store.listEvents({ limit: 10, state }));
    for (const eventId of [done.eventId, ignored.id]) {
      await store.addJob({ eventId, now: noon + 1, job: newJob("agent", { at: noon + 1 }) });
    }
    assert.deepEqual(await list("queued"), [ignored.id, done.eventId]);
    assert.deepEqual([await list("done"), await list("ignored")], [[], []]);
    const [job] = await store.claimJobs(aClaim({ now: noon + 1, limit: 1 }));
    const result = aResult({ outcome: "failed", reason: "Down", answer: null });
    await store.finishRun(anEndedRun(job!, { result, next: { move: "giveUp" } }));
    assert.deepEqual(await list("dead"), [done.eventId]);
    const row = (await store.listEvents({ limit: 10 })).find(({ id }) => id === done.eventId);
    assert.deepEqual([row?.state, row?.reason], ["dead", "Down"]);
    await store.cancel({ eventId: ignored.id, now: noon, reason: "Stopped" });
    assert.deepEqual(await list("cancelled"), [ignored.id]);
  });

  on("lists an event once, however many jobs it has", async (store) => {
    const event = anAgentEvent();
    await store.accept(event);
    for (const ms of [1, 2]) {
      await store.addJob({ eventId: event.event.id, now: noon + ms, job: newJob("agent", { at: noon + ms }) });
    }
    assert.equal((await store.listEvents({ limit: 10 })).length, 1);
    assert.equal((await store.listEvents({ limit: 10, state: "queued" })).length, 1);
  });
}

function testRecords({ on }: Suite): void {
  on("finds an event by a beginning of its id that no other has", async (store) => {
    const ids = ["0190aaaa-1111-7000-8000-000000000001", "0190aaaa-1111-7000-8000-000000000002", "0190bbbb-1"];
    for (const id of ids) await store.accept(anAgentEvent({ id }));
    const find = async (id: string) => (await store.readEvent({ id }))?.id;
    assert.equal(await find(ids[0]!), ids[0]);
    assert.equal(await find("0190b"), ids[2]);
    assert.equal(await find("0190aaaa-1111-7000-8000-00000000000"), undefined);
    assert.equal(await find("0190aaaa-1111-7000-8000-000000000002"), ids[1]);
    assert.equal(await find("0190c"), undefined);
    for (const pattern of ["0190b%", "0190_", "%", "*", "0190b*", "' or 1=1 --", ""]) {
      assert.equal(await find(pattern), undefined, pattern);
    }
  });

  on("finds an event whose whole id is the beginning of another's", async (store) => {
    for (const id of ["0190aaaa", "0190aaaa-2"]) await store.accept(anAgentEvent({ id }));
    assert.equal((await store.readEvent({ id: "0190aaaa" }))?.id, "0190aaaa");
  });

  on("counts jobs by their state, but for those that are done", async (store) => {
    assert.deepEqual(await store.tallyJobs({}), {});
    const silent = await takenJob(store);
    await store.finishRun(anEndedRun(silent, { next: { move: "answer", silent: true } }));
    assert.deepEqual(await store.tallyJobs({}), {});
    await answeredJob(store);
    await answeredJob(store);
    await takenJob(store);
    const dead = await takenJob(store);
    await store.finishRun(anEndedRun(dead, { next: { move: "giveUp" } }));
    await store.addJob({ eventId: dead.eventId, now: noon, job: newJob("agent") });
    assert.deepEqual(await store.tallyJobs({}), { delivering: 2, running: 1, dead: 1, queued: 1 });
  });

  on("tells the time", async (store) => {
    const now = store.now();
    assert.ok(Number.isInteger(now));
    assert.ok(Math.abs(now - Date.now()) < 5_000);
    assert.ok(store.now() >= now);
  });
}
