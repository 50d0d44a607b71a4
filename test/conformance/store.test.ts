import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { StoreUnavailable } from "../../src/core/errors.ts";
import { newId } from "../../src/core/id.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { jobMoves, messageMoves } from "../../src/store/states.ts";
import type {
  ClaimedJob,
  ClaimedMessage,
  EventRecord,
  JobRecord,
  MessageRecord,
  Store,
} from "../../src/store/store.ts";
import { makeHome } from "../tools/home.ts";
import { watchMoves } from "../tools/moves.ts";
import {
  type AcceptParts,
  aClaim,
  aDirectEvent,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  aResult,
  newEvent,
  noon,
} from "../tools/rows.ts";

const minute = 60_000;

/** An empty store of its own for one test; whatever it stands on is gone when the test ends. */
type OpenStore = (t: TestContext) => Promise<Store>;

const stores: Record<string, OpenStore> = {
  async sqlite(t) {
    const home = await makeHome(t);
    return openSqlite({ path: join(home.folder, "ledger.db"), readOnly: false });
  },
};

async function record(store: Store, id: string): Promise<EventRecord> {
  const found = await store.readEvent({ id });
  assert.ok(found, `event ${id} is not there`);
  return found;
}

/** The only job of an event. */
async function jobOf(store: Store, id: string): Promise<JobRecord> {
  const { jobs } = await record(store, id);
  assert.equal(jobs.length, 1);
  return jobs[0]!;
}

async function messagesOf(store: Store, id: string): Promise<readonly MessageRecord[]> {
  return (await jobOf(store, id)).messages;
}

async function states(store: Store, id: string): Promise<[job: string, ...messages: string[]]> {
  const { state, messages } = await jobOf(store, id);
  return [state, ...messages.map((message) => message.state)];
}

/** Accepts an agent event and takes its job. */
async function takenJob(store: Store, parts: AcceptParts = {}): Promise<ClaimedJob> {
  const event = anAgentEvent(parts);
  await store.accept(event);
  const [job] = await store.claimJobs(aClaim({ now: event.event.receivedAt }));
  assert.equal(job?.id, event.job.id);
  return job!;
}

/** An agent's answer whose messages are to be sent. */
async function answeredJob(store: Store, parts: AcceptParts = {}): Promise<ClaimedJob> {
  const job = await takenJob(store, parts);
  assert.equal(await store.finishRun(anEndedRun(job)), true);
  return job;
}

async function takenMessage(store: Store, parts: AcceptParts = {}): Promise<ClaimedMessage> {
  await answeredJob(store, parts);
  const [message] = await store.claimMessages(aClaim());
  return message!;
}

/** What must not change when an operation is refused. */
async function everything(store: Store): Promise<(EventRecord | undefined)[]> {
  const rows = await store.listEvents({ limit: 1000 });
  return Promise.all(rows.map(({ id }) => store.readEvent({ id })));
}

for (const [name, openStore] of Object.entries(stores)) {
  const seen = new Set<string>();

  describe(`${name} as a store`, () => {
    /** A test on a store that is watched and closed. */
    const on = (title: string, body: (store: Store, raw: Store) => Promise<void>) =>
      test(title, async (t) => {
        const raw = await openStore(t);
        t.after(() => raw.close());
        await body(watchMoves(raw, seen), raw);
      });

    describe("accepting", () => {
      on("keeps the event, its job and its messages, and gives them back as they were", async (store) => {
        const body = Buffer.from([0, 255, 10, 13, 128, 0]);
        const args = anAgentEvent({
          body,
          headers: '{"x-a":"b"}',
          plan: '{"prompt":"Zürich 東京"}',
          targets: ["a", "b"],
        });
        assert.deepEqual(await store.accept(args), { duplicate: false });
        const { jobs, ...event } = await record(store, args.event.id);
        assert.deepEqual(
          { ...event, body: Buffer.from(event.body) },
          { ...args.event, body, state: "queued", reason: null },
        );
        const { messages, ...job } = jobs[0]!;
        assert.deepEqual(job, {
          id: args.job.id,
          kind: "agent",
          state: "queued",
          reason: null,
          plan: args.job.plan,
          createdAt: noon,
          updatedAt: noon,
          runAt: noon,
          runs: [],
        });
        assert.deepEqual(
          messages.map(({ id, target, text, state, attempts }) => ({ id, target, text, state, attempts })),
          args.job.messages.map(({ id, target }) => ({ id, target, text: null, state: "held", attempts: [] })),
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
        const first = anAgentEvent({ deliveryId: "42" });
        const copy = anAgentEvent({ deliveryId: "42", at: noon + 59 * minute });
        await store.accept(first);
        const before = await everything(store);
        assert.deepEqual(await store.accept(copy), { duplicate: true });
        assert.deepEqual(await store.accept(aDirectEvent({ deliveryId: "42", at: noon + 1 })), { duplicate: true });
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

      on("takes one of fifty copies that come at once", async (_store, raw) => {
        const copies = Array.from({ length: 50 }, () => anAgentEvent({ deliveryId: "42" }));
        const answers = await Promise.all(copies.map((copy) => raw.accept(copy)));
        assert.equal(answers.filter(({ duplicate }) => !duplicate).length, 1);
        assert.equal((await raw.listEvents({ limit: 100 })).length, 1);
        assert.equal((await raw.claimJobs(aClaim({ limit: 100 }))).length, 1);
      });

      on("keeps an ignored event with its reason, without a job and without a claim", async (store) => {
        const ignored = newEvent({ deliveryId: "42" });
        await store.ignore({ ...ignored, reason: 'filters[0]: "action" equals "opened"' });
        const event = await record(store, ignored.id);
        assert.equal(event.state, "ignored");
        assert.equal(event.reason, 'filters[0]: "action" equals "opened"');
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
    });

    describe("jobs", () => {
      on("are claimed oldest first, only when due, no more than the limit, and never twice", async (store) => {
        const events = [3, 1, 2, 9].map((ms) => anAgentEvent({ at: noon + ms }));
        for (const event of events) await store.accept(event);
        const [third, first, second] = events;
        const claim = (limit: number) => store.claimJobs(aClaim({ now: noon + 5, limit }));
        assert.deepEqual(
          (await claim(2)).map(({ id }) => id),
          [first?.job.id, second?.job.id],
        );
        assert.deepEqual(
          (await claim(0)).map(({ id }) => id),
          [],
        );
        assert.deepEqual(
          (await claim(10)).map(({ id }) => id),
          [third?.job.id],
        );
        assert.deepEqual(await claim(10), []);
      });

      on("carry what the run needs, and open a run", async (store) => {
        const args = anAgentEvent({ plan: '{"prompt":"p"}', deliveryId: "42" });
        await store.accept(args);
        const [job] = await store.claimJobs(aClaim({ now: noon + 1 }));
        assert.deepEqual(
          { ...job },
          {
            id: args.job.id,
            fence: job?.fence,
            eventId: args.event.id,
            route: "reviews",
            eventType: "pull_request",
            deliveryId: "42",
            plan: '{"prompt":"p"}',
            failures: 0,
          },
        );
        const { runs, state } = await jobOf(store, args.event.id);
        assert.equal(state, "running");
        assert.deepEqual(
          runs.map(({ startedAt, endedAt, outcome }) => ({ startedAt, endedAt, outcome })),
          [{ startedAt: noon + 1, endedAt: null, outcome: null }],
        );
      });

      on("move to delivering with the answer, which their messages then carry", async (store) => {
        const job = await takenJob(store, { targets: ["a", "b"] });
        const result = aResult({
          answer: "Done",
          transcript: '[{"role":"assistant"}]',
          inputTokens: 7,
          outputTokens: 3,
        });
        assert.equal(await store.finishRun(anEndedRun(job, { now: noon + 5, result })), true);
        assert.deepEqual(await states(store, job.eventId), ["delivering", "pending", "pending"]);
        const { runs, messages } = await jobOf(store, job.eventId);
        assert.deepEqual({ ...runs[0], number: 0 }, { number: 0, startedAt: noon, endedAt: noon + 5, ...result });
        assert.deepEqual(
          messages.map(({ text }) => text),
          ["Done", "Done"],
        );
      });

      on("are done at once when the answer is kept back", async (store) => {
        const job = await takenJob(store, { targets: ["a", "b"] });
        await store.finishRun(anEndedRun(job, { next: { move: "answer", silent: true } }));
        assert.deepEqual(await states(store, job.eventId), ["done", "kept", "kept"]);
        assert.deepEqual(await store.claimMessages(aClaim()), []);
        const [message] = await messagesOf(store, job.eventId);
        assert.match(message?.reason ?? "", /SILENT/);
        assert.equal((await jobOf(store, job.eventId)).runs[0]?.answer, "All is well");
      });

      on("wait for their next run after a failure, and count it", async (store) => {
        const job = await takenJob(store);
        const result = aResult({ outcome: "failed", reason: "The model is down", answer: null });
        await store.finishRun(anEndedRun(job, { result, next: { move: "retry", runAt: noon + minute } }));
        const waiting = await jobOf(store, job.eventId);
        assert.deepEqual(
          [waiting.state, waiting.reason, waiting.runAt],
          ["queued", "The model is down", noon + minute],
        );
        assert.deepEqual(await store.claimJobs(aClaim({ now: noon + minute - 1 })), []);
        const [again] = await store.claimJobs(aClaim({ now: noon + minute }));
        assert.equal(again?.failures, 1);
        assert.ok((again?.fence ?? 0) > job.fence);
        const { runs, reason } = await jobOf(store, job.eventId);
        assert.deepEqual(
          runs.map(({ outcome }) => outcome),
          ["failed", null],
        );
        assert.equal(reason, null);
      });

      on("are given back without a failure", async (store) => {
        const job = await takenJob(store);
        const result = aResult({ outcome: "released", reason: "Given back", answer: null });
        await store.finishRun(anEndedRun(job, { now: noon + 3, result, next: { move: "release" } }));
        assert.deepEqual(await states(store, job.eventId), ["queued", "held"]);
        const [again] = await store.claimJobs(aClaim({ now: noon + 3 }));
        assert.equal(again?.failures, 0);
        assert.deepEqual(
          (await jobOf(store, job.eventId)).runs.map(({ outcome }) => outcome),
          ["released", null],
        );
      });

      on("are given up with their messages", async (store) => {
        const job = await takenJob(store, { targets: ["a", "b"] });
        const result = aResult({ outcome: "budget", reason: "Too many steps", answer: null });
        await store.finishRun(anEndedRun(job, { result, next: { move: "giveUp" } }));
        assert.deepEqual(await states(store, job.eventId), ["dead", "dead", "dead"]);
        const { reason, messages } = await jobOf(store, job.eventId);
        assert.deepEqual([reason, messages[0]?.reason], ["Too many steps", "Too many steps"]);
      });

      on("listen to the newest holder only: an older one changes nothing", async (store) => {
        const old = await takenJob(store);
        const [current] = await store.claimJobs(
          aClaim({ owner: "two", now: noon + minute, leaseUntil: noon + 2 * minute }),
        );
        assert.equal(current?.id, old.id);
        const before = await everything(store);
        const moves = [
          { move: "answer", silent: false },
          { move: "answer", silent: true },
          { move: "retry", runAt: noon },
          { move: "release" },
          { move: "giveUp" },
        ] as const;
        for (const next of moves) assert.equal(await store.finishRun(anEndedRun(old, { next })), false, next.move);
        assert.deepEqual(await everything(store), before);
        assert.equal(await store.finishRun(anEndedRun(current!)), true);
        assert.equal(await store.finishRun(anEndedRun(current!)), false, "the same end twice");
      });

      on("go back to the queue when their lease has run out, and say that the run was interrupted", async (store) => {
        const job = await takenJob(store);
        assert.deepEqual(await store.claimJobs(aClaim({ owner: "two", now: noon + 29_999 })), []);
        await store.claimJobs(aClaim({ owner: "two", now: noon + 30_000, limit: 0 }));
        assert.deepEqual(await states(store, job.eventId), ["queued", "held"]);
        const [again] = await store.claimJobs(aClaim({ owner: "two", now: noon + 30_000 }));
        assert.deepEqual([again?.id, again?.failures], [job.id, 0]);
        const { runs } = await jobOf(store, job.eventId);
        assert.deepEqual(
          runs.map(({ outcome }) => outcome),
          ["interrupted", null],
        );
        assert.equal(runs[0]?.endedAt, noon + 30_000);
        assert.match(runs[0]?.reason ?? "", /^Interrupted/);
      });

      on("are never taken from their owner by itself", async (store) => {
        const job = await takenJob(store);
        assert.deepEqual(await store.claimJobs(aClaim({ now: noon + 60 * minute })), []);
        assert.equal(await store.finishRun(anEndedRun(job, { now: noon + 60 * minute })), true);
      });

      on(
        "are given up, with their messages, when the gateway died during all the runs they may have",
        async (store) => {
          const event = anAgentEvent({ targets: ["a", "b"] });
          await store.accept(event);
          const claim = (turn: number) =>
            store.claimJobs(aClaim({ owner: `gateway ${turn}`, now: noon + turn * minute, maxInterruptions: 3 }));
          for (const turn of [0, 1, 2]) assert.equal((await claim(turn)).length, 1, `turn ${turn}`);
          assert.deepEqual(await claim(3), []);
          const { state, reason, runs, messages } = await jobOf(store, event.event.id);
          assert.equal(state, "dead");
          assert.match(reason ?? "", /3 runs/);
          assert.deepEqual(
            runs.map(({ outcome }) => outcome),
            ["interrupted", "interrupted", "interrupted"],
          );
          for (const message of messages) assert.deepEqual([message.state, message.reason], ["dead", reason]);
        },
      );

      on("wait while agents cannot run, and come back at their time", async (store) => {
        const later = await takenJob(store);
        await store.finishRun(
          anEndedRun(later, { result: aResult({ outcome: "failed" }), next: { move: "retry", runAt: noon + minute } }),
        );
        const running = await takenJob(store);
        const queued = anAgentEvent();
        await store.accept(queued);
        assert.equal(await store.park({ reason: "no model configured", now: noon + 1 }), 2);
        assert.equal(await store.park({ reason: "no model configured", now: noon + 1 }), 0);
        assert.deepEqual(await states(store, running.eventId), ["running", "held"]);
        const waiting = await record(store, queued.event.id);
        assert.deepEqual([waiting.state, waiting.reason], ["waiting", "no model configured"]);
        assert.deepEqual(await store.claimJobs(aClaim({ now: noon + 2 })), []);
        assert.equal(await store.unpark({ now: noon + 2 }), 2);
        assert.equal(await store.unpark({ now: noon + 2 }), 0);
        assert.equal((await record(store, queued.event.id)).reason, null);
        assert.deepEqual(
          (await store.claimJobs(aClaim({ now: noon + 2 }))).map(({ id }) => id),
          [queued.job.id],
        );
        assert.deepEqual(
          (await store.claimJobs(aClaim({ now: noon + minute }))).map(({ id }) => id),
          [later.id],
        );
      });
    });

    describe("messages", () => {
      on("are claimed when due, oldest first, no more than the limit, with all that sending needs", async (store) => {
        const job = await answeredJob(store, { targets: ["a", "b", "c"] });
        const claimed = await store.claimMessages(aClaim({ limit: 2 }));
        assert.deepEqual(
          claimed.map(({ target }) => target),
          ["a", "b"],
        );
        const { id, fence, ...rest } = claimed[0]!;
        assert.deepEqual(rest, {
          jobId: job.id,
          target: "a",
          extra: "{}",
          text: "All is well",
          partsSent: 0,
          failures: 0,
          route: "reviews",
          eventType: "pull_request",
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
        const retry = {
          outcome: "refused",
          error: "Too many requests",
          next: { move: "retry", dueAt: noon + minute },
        } as const;
        await store.finishAttempt(anEndedTry(message, retry));
        assert.deepEqual(await store.claimMessages(aClaim({ now: noon + minute - 1 })), []);
        const [again] = await store.claimMessages(aClaim({ now: noon + minute }));
        assert.deepEqual([again?.id, again?.failures], [message.id, 1]);
        const [event] = await store.listEvents({ limit: 1 });
        const [kept] = await messagesOf(store, event!.id);
        assert.deepEqual(
          kept?.attempts.map(({ outcome, error }) => [outcome, error]),
          [
            ["refused", "Too many requests"],
            [null, null],
          ],
        );
      });

      on("that are given up make the job dead, but only when the others have ended", async (store) => {
        const job = await answeredJob(store, { targets: ["a", "b"] });
        const [one, two] = await store.claimMessages(aClaim());
        await store.finishAttempt(
          anEndedTry(one!, { outcome: "refused", error: "Chat not found", next: { move: "giveUp" } }),
        );
        assert.deepEqual(await states(store, job.eventId), ["delivering", "dead", "sending"]);
        await store.finishAttempt(anEndedTry(two!));
        assert.deepEqual(await states(store, job.eventId), ["dead", "dead", "sent"]);
        assert.equal((await jobOf(store, job.eventId)).reason, "Chat not found");
      });

      on("remember which parts were taken, also for who sends them after a lost lease", async (store) => {
        const message = await takenMessage(store);
        assert.equal(await store.recordPart({ id: message.id, fence: message.fence, partsSent: 2 }), true);
        const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
        assert.equal(again?.partsSent, 2);
        assert.equal(
          await store.recordPart({ id: message.id, fence: message.fence, partsSent: 3 }),
          false,
          "old holder",
        );
        assert.equal(await store.recordPart({ id: message.id, fence: again!.fence, partsSent: 3 }), true);
        await store.finishAttempt(anEndedTry(again!));
        assert.equal(await store.recordPart({ id: message.id, fence: again!.fence, partsSent: 4 }), false, "ended");
      });

      on("listen to the newest holder only: an older one changes nothing", async (store) => {
        const old = await takenMessage(store);
        const [current] = await store.claimMessages(aClaim({ owner: "two", now: noon + minute }));
        assert.equal(current?.id, old.id);
        const before = await everything(store);
        const moves = [{ move: "take" }, { move: "retry", dueAt: noon }, { move: "giveUp" }] as const;
        for (const next of moves) assert.equal(await store.finishAttempt(anEndedTry(old, { next })), false, next.move);
        assert.deepEqual(await everything(store), before);
        assert.equal(await store.finishAttempt(anEndedTry(current!)), true);
        assert.equal(await store.finishAttempt(anEndedTry(current!)), false, "the same end twice");
      });

      on("are pending again when their lease has run out, and say that the try was interrupted", async (store) => {
        const message = await takenMessage(store);
        assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now: noon + 29_999 })), []);
        await store.claimMessages(aClaim({ owner: "two", now: noon + 30_000, limit: 0 }));
        const [event] = await store.listEvents({ limit: 1 });
        assert.deepEqual(await states(store, event!.id), ["delivering", "pending"]);
        const [again] = await store.claimMessages(aClaim({ owner: "two", now: noon + 30_000 }));
        assert.deepEqual([again?.id, again?.failures], [message.id, 0]);
        const [kept] = await messagesOf(store, event!.id);
        assert.deepEqual(
          kept?.attempts.map(({ outcome }) => outcome),
          ["interrupted", null],
        );
      });

      on("are never taken from their owner by itself", async (store) => {
        const message = await takenMessage(store);
        assert.deepEqual(await store.claimMessages(aClaim({ now: noon + 60 * minute })), []);
        assert.equal(await store.finishAttempt(anEndedTry(message, { now: noon + 60 * minute })), true);
      });
    });

    describe("direct deliveries", () => {
      const heldBy = (args: ReturnType<typeof aDirectEvent>) => args.job.messages.map(({ id }) => ({ id, fence: 1 }));

      on(
        "begin as sending, held by who accepted them, and are done when every target took its message",
        async (store) => {
          const args = aDirectEvent({ targets: ["a", "b"], deliveryId: "42" });
          await store.accept(args);
          assert.deepEqual(await states(store, args.event.id), ["delivering", "sending", "sending"]);
          assert.deepEqual(await store.claimMessages(aClaim({ owner: "two" })), []);
          assert.deepEqual(await store.claimJobs(aClaim({ owner: "two" })), []);
          for (const held of heldBy(args)) assert.equal(await store.finishAttempt(anEndedTry(held)), true);
          assert.deepEqual(await states(store, args.event.id), ["done", "sent", "sent"]);
          assert.equal((await store.accept(aDirectEvent({ deliveryId: "42" }))).duplicate, true);
        },
      );

      on("that are refused free their delivery id, once all messages have ended", async (store) => {
        const args = aDirectEvent({ targets: ["a", "b"], deliveryId: "42" });
        await store.accept(args);
        const [one, two] = heldBy(args);
        await store.finishAttempt(
          anEndedTry(one!, { outcome: "refused", error: "No such chat", next: { move: "giveUp" } }),
        );
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
        const [held] = heldBy(first);
        await store.finishAttempt(anEndedTry(held!, { outcome: "refused", error: "No", next: { move: "giveUp" } }));
        assert.equal((await store.accept(aDirectEvent({ deliveryId: "42", at: noon + 3000 }))).duplicate, true);
      });

      on("that were cut off are refused, not sent again, and free their delivery id", async (store) => {
        const args = aDirectEvent({ targets: ["a", "b"], deliveryId: "42" });
        await store.accept(args);
        const [one] = heldBy(args);
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
      });

      on("are not cut off by their own owner", async (store) => {
        const args = aDirectEvent({ deliveryId: "42" });
        await store.accept(args);
        await store.claimMessages(aClaim({ now: noon + 60 * minute }));
        assert.deepEqual(await states(store, args.event.id), ["delivering", "sending"]);
      });
    });

    describe("leases", () => {
      on("are extended for their holders, and the lost ones are named", async (store) => {
        const kept = await takenJob(store);
        const lost = await takenJob(store);
        const message = await takenMessage(store);
        const leaseUntil = noon + 2 * minute;
        const jobs = [
          { id: kept.id, fence: kept.fence },
          { id: lost.id, fence: lost.fence + 1 },
        ];
        const messages = [
          { id: message.id, fence: message.fence },
          { id: newId(noon), fence: 1 },
        ];
        const answer = await store.extendLeases({ jobs, messages, leaseUntil });
        assert.deepEqual(answer.lost, [lost.id, messages[1]?.id]);
        const claimed = await store.claimJobs(aClaim({ owner: "two", now: noon + minute }));
        assert.deepEqual(
          claimed.map(({ id }) => id),
          [lost.id],
        );
        assert.deepEqual(await store.claimMessages(aClaim({ owner: "two", now: noon + minute })), []);
        assert.equal((await store.claimMessages(aClaim({ owner: "two", now: leaseUntil }))).length, 1);
      });

      on("of what has ended are lost", async (store) => {
        const job = await answeredJob(store);
        const [message] = await store.claimMessages(aClaim());
        await store.finishAttempt(anEndedTry(message!));
        const held = {
          jobs: [{ id: job.id, fence: job.fence }],
          messages: [{ id: message!.id, fence: message!.fence }],
        };
        assert.deepEqual((await store.extendLeases({ ...held, leaseUntil: noon + minute })).lost, [
          job.id,
          message!.id,
        ]);
      });

      on("of others run out at once when a gateway takes over, its own do not", async (store) => {
        const theirs = await takenJob(store);
        const direct = aDirectEvent({ owner: "one" });
        await store.accept(direct);
        const mine = anAgentEvent();
        await store.accept(mine);
        await store.claimJobs(aClaim({ owner: "two" }));
        await store.expireLeases({ owner: "two", now: noon + 1 });
        const claimed = await store.claimJobs(aClaim({ owner: "two", now: noon + 1 }));
        assert.deepEqual(
          claimed.map(({ id }) => id),
          [theirs.id],
        );
        assert.deepEqual(await states(store, mine.event.id), ["running", "held"]);
        await store.claimMessages(aClaim({ owner: "two", now: noon + 1 }));
        assert.deepEqual(await states(store, direct.event.id), ["refused", "dead"]);
      });
    });

    describe("looking", () => {
      on("says when the next job and the next message is due", async (store) => {
        assert.deepEqual({ ...(await store.nextDue({})) }, { jobs: undefined, messages: undefined });
        const job = await takenJob(store);
        assert.deepEqual({ ...(await store.nextDue({})) }, { jobs: undefined, messages: undefined });
        await store.finishRun(
          anEndedRun(job, { result: aResult({ outcome: "failed" }), next: { move: "retry", runAt: noon + 500 } }),
        );
        await store.accept(anAgentEvent({ at: noon + 700 }));
        assert.deepEqual({ ...(await store.nextDue({})) }, { jobs: noon + 500, messages: undefined });
        const [again] = await store.claimJobs(aClaim({ now: noon + 500 }));
        await store.finishRun(anEndedRun(again!, { now: noon + 600 }));
        assert.deepEqual({ ...(await store.nextDue({})) }, { jobs: noon + 700, messages: noon + 600 });
        const [message] = await store.claimMessages(aClaim({ now: noon + 600 }));
        await store.finishAttempt(
          anEndedTry(message!, { outcome: "refused", error: "no", next: { move: "retry", dueAt: noon + 900 } }),
        );
        assert.deepEqual({ ...(await store.nextDue({})) }, { jobs: noon + 700, messages: noon + 900 });
        await store.park({ reason: "no model", now: noon + 600 });
        assert.equal((await store.nextDue({})).jobs, undefined);
      });

      on("lists events newest first, by route and by state, page by page", async (store) => {
        const done = await takenJob(store, { at: noon, route: "one" });
        await store.finishRun(anEndedRun(done, { next: { move: "answer", silent: true } }));
        const queued = [1, 2, 3].map((ms) => anAgentEvent({ at: noon + ms, route: ms === 2 ? "two" : "one" }));
        for (const args of queued) await store.accept(args);
        const ignored = newEvent({ at: noon + 4, route: "one" });
        await store.ignore({ ...ignored, reason: "no" });
        const ids = [done.eventId, ...queued.map(({ event }) => event.id), ignored.id].reverse();
        const list = async (args: Partial<Parameters<Store["listEvents"]>[0]>) =>
          (await store.listEvents({ limit: 10, ...args })).map(({ id }) => ids.indexOf(id));
        assert.deepEqual(await list({}), [0, 1, 2, 3, 4]);
        assert.deepEqual(await list({ limit: 2 }), [0, 1]);
        assert.deepEqual(await list({ limit: 2, before: ids[1]! }), [2, 3]);
        assert.deepEqual(await list({ route: "two" }), [2]);
        assert.deepEqual(await list({ route: "Two" }), []);
        assert.deepEqual(await list({ state: "queued" }), [1, 2, 3]);
        assert.deepEqual(await list({ state: "ignored" }), [0]);
        assert.deepEqual(await list({ state: "done", route: "one" }), [4]);
        assert.deepEqual(await list({ state: "queued", route: "one", before: ids[1]!, limit: 1 }), [3]);
        const [row] = await store.listEvents({ limit: 1 });
        assert.deepEqual(
          { ...row },
          {
            id: ignored.id,
            route: "one",
            type: "pull_request",
            deliveryId: ignored.deliveryId,
            receivedAt: noon + 4,
            state: "ignored",
            reason: "no",
          },
        );
      });

      on("finds an event by a beginning of its id that no other has", async (store) => {
        const ids = ["0190aaaa-1111-7000-8000-000000000001", "0190aaaa-1111-7000-8000-000000000002", "0190bbbb-1"];
        for (const id of ids) await store.accept(anAgentEvent({ id }));
        const find = async (id: string) => (await store.readEvent({ id }))?.id;
        assert.equal(await find(ids[0]!), ids[0]);
        assert.equal(await find("0190b"), ids[2]);
        assert.equal(await find("0190aaaa-1111-7000-8000-00000000000"), undefined);
        assert.equal(await find("0190aaaa-1111-7000-8000-000000000002"), ids[1]);
        assert.equal(await find("0190c"), undefined);
        for (const pattern of ["0190b%", "0190_", "%", "*", "0190b*", "' or 1=1 --"]) {
          assert.equal(await find(pattern), undefined, pattern);
        }
      });

      on("finds an event whose whole id is the beginning of another's", async (store) => {
        for (const id of ["0190aaaa", "0190aaaa-2"]) await store.accept(anAgentEvent({ id }));
        assert.equal((await store.readEvent({ id: "0190aaaa" }))?.id, "0190aaaa");
      });
    });

    test("carries out what was asked before it closes, and nothing after", async (t) => {
      const store = await openStore(t);
      const asked = Array.from({ length: 20 }, () => store.accept(anAgentEvent()));
      await Promise.all([store.close(), store.close()]);
      for (const answer of await Promise.all(asked)) assert.equal(answer.duplicate, false);
      await assert.rejects(store.accept(anAgentEvent()), StoreUnavailable);
      await assert.rejects(store.listEvents({ limit: 1 }), StoreUnavailable);
      await store.close();
    });

    test("makes every move of the tables in the course of this suite, each by the operation it belongs to", () => {
      const all = [
        ...Object.keys(jobMoves).map((move) => `job.${move}`),
        ...Object.keys(messageMoves).map((move) => `message.${move}`),
      ];
      assert.deepEqual([...seen].sort(), all.sort());
    });
  });
}
