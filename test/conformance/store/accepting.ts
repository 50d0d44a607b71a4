import assert from "node:assert/strict";
import { aClaim, aDirectEvent, anAgentEvent, newEvent, noon } from "../../tools/rows.ts";
import { everything, idsOf, minute, record, type Suite } from "./suite.ts";

const duplicate = { duplicate: true, isUnderWay: false };

/** A request's part of the port. */
export function testAccepting({ on }: Suite): void {
  on("keeps the event, its job and its messages, and gives them back as they were", async (store) => {
    const body = Buffer.from([0, 255, 10, 13, 128, 0]);
    const plan = '{"prompt":"Zürich 東京"}';
    const args = anAgentEvent({
      body,
      headers: '{"x-a":"b"}',
      plan,
      targets: ["a", "b"],
      lane: "a 1",
      onCrash: "fail",
      fallback: ["c"],
    });
    assert.deepEqual(await store.accept(args), { duplicate: false });
    const { jobs, ...event } = await record(store, args.event.id);
    assert.deepEqual(
      { ...event, body: Buffer.from(event.body) },
      { ...args.event, body, state: "queued", reason: null, ignored: null },
    );
    const { messages, ...job } = jobs[0]!;
    assert.deepEqual(job, {
      ...{ id: args.job.id, kind: "agent", route: "reviews", origin: null, onCrash: "fail", plan },
      ...{ state: "queued", reason: null, createdAt: noon, updatedAt: noon, runAt: noon, runs: [] },
    });
    assert.deepEqual(
      messages,
      args.job.messages.map(({ id, target }) => ({
        ...{ id, target, extra: "{}", lane: "a 1", text: null, state: "held", reason: null, reference: null },
        ...{ partsSent: 0, readyAt: null, dueAt: noon, attempts: [] },
        ...{ refusal: null, fallback: args.job.messages[0]?.fallback, replaces: null },
      })),
    );
  });

  on("keeps a direct delivery as one that is being sent", async (store) => {
    const args = aDirectEvent({ targets: ["a", "b"], text: "Hello 東京" });
    await store.accept(args);
    const { jobs, state } = await record(store, args.event.id);
    assert.deepEqual([state, jobs[0]?.kind, jobs[0]?.runs], ["delivering", "direct", []]);
    assert.deepEqual(
      jobs[0]?.messages,
      args.job.messages.map(({ id, target }) => ({
        ...{ id, target, extra: "{}", lane: null, text: "Hello 東京", state: "sending", reason: null, reference: null },
        ...{ partsSent: 0, readyAt: noon, dueAt: noon, refusal: null, fallback: null, replaces: null },
        attempts: [{ number: 1, startedAt: noon, endedAt: null, outcome: null, error: null }],
      })),
    );
  });

  on("keeps bodies of every size and kind byte for byte", async (store) => {
    const bodies = [
      Buffer.alloc(0),
      Buffer.from("x"),
      Buffer.from("repetition ".repeat(100_000)),
      Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * index * 31) % 256)),
    ];
    for (const body of bodies) {
      const args = anAgentEvent({ body });
      await store.accept(args);
      assert.ok(Buffer.from((await record(store, args.event.id)).body).equals(body), `${body.length} bytes`);
    }
  });

  on("finds a delivery id claimed and keeps nothing of the copy", async (store) => {
    await store.accept(anAgentEvent({ deliveryId: "42" }));
    const copy = anAgentEvent({ deliveryId: "42", at: noon + 59 * minute });
    const before = await everything(store);
    assert.deepEqual(await store.accept(copy), duplicate);
    assert.deepEqual(await store.accept(aDirectEvent({ deliveryId: "42", at: noon + 1 })), duplicate);
    assert.deepEqual(await everything(store), before);
    assert.equal(await store.readEvent({ id: copy.event.id }), undefined);
  });

  on("tells routes, and ids that differ in case, apart", async (store) => {
    await store.accept(anAgentEvent({ deliveryId: "a", route: "one" }));
    for (const parts of [{ route: "two" }, { route: "One" }, { deliveryId: "A" }, { deliveryId: "a " }]) {
      const { duplicate } = await store.accept(anAgentEvent({ deliveryId: "a", route: "one", ...parts }));
      assert.equal(duplicate, false, JSON.stringify(parts));
    }
  });

  on("lets a claim run out to the millisecond, and makes a new one then", async (store) => {
    const at = (ms: number) => anAgentEvent({ deliveryId: "42", claimMs: minute, at: noon + ms });
    assert.equal((await store.accept(at(0))).duplicate, false);
    assert.equal((await store.accept(at(minute - 1))).duplicate, true);
    assert.equal((await store.accept(at(minute))).duplicate, false);
    assert.equal((await store.accept(at(minute + 1))).duplicate, true);
    assert.equal((await store.listEvents({ limit: 10 })).length, 2);
  });

  on("takes one of fifty copies that come at once", async (_watched, { store }) => {
    const copies = Array.from({ length: 50 }, () => anAgentEvent({ deliveryId: "42" }));
    const answers = await Promise.all(copies.map((copy) => store.accept(copy)));
    assert.equal(answers.filter((answer) => !answer.duplicate).length, 1);
    assert.equal((await store.listEvents({ limit: 100 })).length, 1);
    assert.equal((await store.claimJobs(aClaim({ limit: 100 }))).length, 1);
  });

  on("keeps an ignored event with its reason, without a job and without a claim", async (store) => {
    const ignored = newEvent({ deliveryId: "42" });
    await store.ignore({ ...ignored, reason: 'filters[0]: "action" equals "opened"' });
    const event = await record(store, ignored.id);
    assert.deepEqual([event.state, event.reason], ["ignored", 'filters[0]: "action" equals "opened"']);
    assert.deepEqual(event.jobs, []);
    assert.deepEqual(await store.claimJobs(aClaim()), []);
    assert.equal((await store.accept(anAgentEvent({ deliveryId: "42" }))).duplicate, false);
  });

  on("leaves nothing behind of an event whose id is taken, and goes on", async (store) => {
    const first = anAgentEvent();
    await store.accept(first);
    const before = await everything(store);
    await assert.rejects(store.accept(anAgentEvent({ id: first.event.id, deliveryId: "other" })));
    assert.deepEqual(await everything(store), before);
    assert.equal((await store.accept(anAgentEvent({ deliveryId: "other" }))).duplicate, false);
  });

  on("leaves nothing behind of an event whose message's id is taken", async (store) => {
    const first = anAgentEvent();
    await store.accept(first);
    const other = anAgentEvent({ deliveryId: "other" });
    const copy = { ...other, job: { ...other.job, messages: first.job.messages } };
    await assert.rejects(store.accept(copy));
    assert.deepEqual(idsOf(await store.listEvents({ limit: 10 })), [first.event.id]);
    assert.equal((await store.accept(other)).duplicate, false, "its delivery id is free");
  });

  on("takes delivery ids of ten thousand characters, and tells them apart by the last one", async (store) => {
    const long = "0123456789".repeat(1000);
    const first = aDirectEvent({ deliveryId: `${long}a` });
    assert.equal((await store.accept(first)).duplicate, false);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: `${long}a` }))).duplicate, true);
    assert.equal((await store.accept(aDirectEvent({ deliveryId: `${long}b` }))).duplicate, false);
    assert.equal((await record(store, first.event.id)).deliveryId, `${long}a`);
    await store.withdraw({ eventId: first.event.id, now: noon, reason: "too late" });
    assert.equal(
      (await store.accept(aDirectEvent({ deliveryId: `${long}a` }))).duplicate,
      false,
      "freed like a short one",
    );
  });
}
