import assert from "node:assert/strict";
import { aClaim, anAgentEvent, anEndedRun, aResult, newJob, noon } from "../../tools/rows.ts";
import { everything, idsOf, jobOf, messagesOf, minute, record, type Suite, states, takenJob } from "./suite.ts";

const failed = aResult({ outcome: "failed", reason: "The model is down", answer: null });

/** Jobs and their runs. */
export function testJobs(suite: Suite): void {
  testClaims(suite);
  testEnds(suite);
  testLosses(suite);
  testLimits(suite);
  testParking(suite);
}

function testClaims({ on }: Suite): void {
  on("are claimed oldest first, only when due, no more than the limit, and never twice", async (store) => {
    const events = [3, 1, 2, 9].map((ms) => anAgentEvent({ at: noon + ms }));
    for (const event of events) await store.accept(event);
    const [third, first, second] = events;
    const claim = async (limit: number) => idsOf(await store.claimJobs(aClaim({ now: noon + 5, limit })));
    assert.deepEqual(await claim(2), [first?.job.id, second?.job.id]);
    assert.deepEqual(await claim(0), []);
    assert.deepEqual(await claim(10), [third?.job.id]);
    assert.deepEqual(await claim(10), []);
  });

  on("carry what the run needs, and open a run", async (store) => {
    const args = anAgentEvent({ plan: '{"prompt":"p"}', deliveryId: "42" });
    await store.accept(args);
    const [job] = await store.claimJobs(aClaim({ now: noon + 1 }));
    const { fence, ...rest } = job!;
    assert.deepEqual(rest, {
      ...{ id: args.job.id, eventId: args.event.id, route: "reviews", eventType: "pull_request", deliveryId: "42" },
      ...{ plan: '{"prompt":"p"}', failures: 0 },
    });
    const { runs, state } = await jobOf(store, args.event.id);
    assert.equal(state, "running");
    assert.deepEqual(
      runs.map(({ number, startedAt, endedAt, outcome }) => ({ number, startedAt, endedAt, outcome })),
      [{ number: fence, startedAt: noon + 1, endedAt: null, outcome: null }],
    );
  });
}

function testEnds({ on }: Suite): void {
  on("move to delivering with the answer, which their messages then carry", async (store) => {
    const job = await takenJob(store, { targets: ["a", "b"] });
    const result = aResult({ answer: "Done", transcript: '[{"role":"assistant"}]', inputTokens: 7, outputTokens: 3 });
    assert.equal(await store.finishRun(anEndedRun(job, { now: noon + 5, result })), true);
    assert.deepEqual(await states(store, job.eventId), ["delivering", "pending", "pending"]);
    const { runs, messages } = await jobOf(store, job.eventId);
    assert.deepEqual({ ...runs[0], number: 0 }, { number: 0, startedAt: noon, endedAt: noon + 5, ...result });
    for (const { text, readyAt, dueAt } of messages) {
      assert.deepEqual([text, readyAt, dueAt], ["Done", noon + 5, noon + 5]);
    }
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

  on("are done with their run when they have no message", async (store) => {
    const job = await takenJob(store, { targets: [] });
    assert.equal(await store.finishRun(anEndedRun(job)), true);
    assert.deepEqual(await states(store, job.eventId), ["done"]);
  });

  on("wait for their next run after a failure, and count it", async (store) => {
    const job = await takenJob(store);
    await store.finishRun(anEndedRun(job, { result: failed, next: { move: "retry", runAt: noon + minute } }));
    const waiting = await jobOf(store, job.eventId);
    assert.deepEqual([waiting.state, waiting.reason, waiting.runAt], ["queued", "The model is down", noon + minute]);
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

  on("keep every run, with its own words", async (store) => {
    let job = await takenJob(store);
    for (const turn of [1, 2, 3]) {
      const result = aResult({ outcome: "timeout", reason: `Turn ${turn}`, answer: null, transcript: `[${turn}]` });
      await store.finishRun(anEndedRun(job, { result, next: { move: "retry", runAt: noon } }));
      job = (await store.claimJobs(aClaim()))[0]!;
      assert.equal(job.failures, turn);
    }
    await store.finishRun(anEndedRun(job));
    const { runs } = await jobOf(store, job.eventId);
    assert.deepEqual(
      runs.map(({ outcome, reason, transcript }) => [outcome, reason, transcript]),
      [...[1, 2, 3].map((turn) => ["timeout", `Turn ${turn}`, `[${turn}]`]), ["completed", null, "[]"]],
    );
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
    const [current] = await store.claimJobs(aClaim({ owner: "two", now: noon + minute }));
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
}

function testLosses({ on }: Suite): void {
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

  on("are not taken from their owner while it says that it works on them", async (store) => {
    const job = await takenJob(store);
    assert.deepEqual(await store.claimJobs(aClaim({ now: noon + 60 * minute, active: [job.id] })), []);
    assert.equal(await store.finishRun(anEndedRun(job, { now: noon + 60 * minute })), true);
  });

  on("are taken back from an owner that does not know of them, once their lease has run out", async (store) => {
    const job = await takenJob(store);
    const other = await takenJob(store);
    assert.deepEqual(await store.claimJobs(aClaim({ now: noon + 29_999, active: [other.id] })), []);
    const again = await store.claimJobs(aClaim({ now: noon + 30_000, active: [other.id] }));
    assert.deepEqual(idsOf(again), [job.id]);
    assert.ok(again[0]!.fence > job.fence);
    assert.deepEqual(await states(store, other.eventId), ["running", "held"]);
  });

  on("are taken from another owner whatever the caller works on", async (store) => {
    const job = await takenJob(store);
    const claimed = await store.claimJobs(aClaim({ owner: "two", now: noon + minute, active: [job.id] }));
    assert.deepEqual(idsOf(claimed), [job.id]);
  });

  on("are left with their holders while it is too early to call anybody dead", async (store) => {
    const job = await takenJob(store);
    const queued = anAgentEvent();
    await store.accept(queued);
    const claim = { owner: "two", now: noon + minute, mayReclaim: false };
    assert.deepEqual(
      idsOf(await store.claimJobs(aClaim(claim))),
      [queued.job.id],
      "what is due is claimed all the same",
    );
    assert.deepEqual(await states(store, job.eventId), ["running", "held"]);
    assert.equal(await store.finishRun(anEndedRun(job, { now: noon + minute })), true);
  });

  on("take a late answer when nobody has run them again meanwhile", async (store) => {
    const job = await takenJob(store);
    await store.claimJobs(aClaim({ owner: "two", now: noon + minute, limit: 0 }));
    assert.deepEqual(await states(store, job.eventId), ["queued", "held"]);
    for (const next of [{ move: "retry", runAt: noon }, { move: "release" }, { move: "giveUp" }] as const) {
      assert.equal(await store.finishRun(anEndedRun(job, { next, result: failed })), false, next.move);
    }
    assert.equal(await store.finishRun(anEndedRun(job, { now: noon + minute + 1 })), true);
    assert.deepEqual(await states(store, job.eventId), ["delivering", "pending"]);
    const { runs, messages } = await jobOf(store, job.eventId);
    assert.deepEqual(
      runs.map(({ outcome, endedAt, answer }) => [outcome, endedAt, answer]),
      [["completed", noon + minute + 1, "All is well"]],
    );
    assert.equal(messages[0]?.text, "All is well");
    assert.deepEqual(await store.claimJobs(aClaim({ owner: "two", now: noon + 2 * minute })), []);
  });

  on("do not take a late answer when somebody runs them again", async (store) => {
    const job = await takenJob(store);
    const [again] = await store.claimJobs(aClaim({ owner: "two", now: noon + minute }));
    const result = aResult({ answer: "Late" });
    assert.equal(await store.finishRun(anEndedRun(job, { result })), false);
    await store.finishRun(anEndedRun(again!, { result: aResult({ answer: "In time" }) }));
    assert.equal((await messagesOf(store, job.eventId))[0]?.text, "In time");
    assert.equal(await store.finishRun(anEndedRun(job, { result })), false);
  });

  on("are given up, with their messages, when the gateway died during all the runs they may have", async (store) => {
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
  });

  on(
    "that must not run twice are given up, with their messages, when the gateway died during the first",
    async (store) => {
      const job = await takenJob(store, { onCrash: "fail", targets: ["a", "b"] });
      assert.deepEqual(await store.claimJobs(aClaim({ owner: "two", now: noon + minute })), []);
      const { state, reason, runs, messages } = await jobOf(store, job.eventId);
      assert.equal(state, "dead");
      assert.match(reason ?? "", /on_crash: fail/);
      assert.deepEqual([runs.length, runs[0]?.outcome], [1, "interrupted"]);
      for (const message of messages) assert.deepEqual([message.state, message.reason], ["dead", reason]);
      assert.equal(await store.finishRun(anEndedRun(job)), false, "a late answer comes too late");
    },
  );

  on(
    "that must not run twice after a crash are run again after a failure, or when they were given back",
    async (store) => {
      const job = await takenJob(store, { onCrash: "fail" });
      await store.finishRun(anEndedRun(job, { result: failed, next: { move: "retry", runAt: noon } }));
      const [again] = await store.claimJobs(aClaim());
      await store.finishRun(anEndedRun(again!, { result: failed, next: { move: "release" } }));
      assert.deepEqual(idsOf(await store.claimJobs(aClaim())), [job.id]);
    },
  );
}

function testLimits({ on }: Suite): void {
  on("of a route run no more at a time than it may, whoever asks, and more when some have ended", async (store) => {
    for (let count = 0; count < 5; count += 1) await store.accept(anAgentEvent());
    const claim = (owner: string) => store.claimJobs(aClaim({ owner, limits: { reviews: 2 } }));
    const first = await claim("one");
    assert.equal(first.length, 2);
    assert.deepEqual(await claim("one"), []);
    assert.deepEqual(await claim("two"), []);
    await store.finishRun(anEndedRun(first[0]!));
    assert.equal((await claim("two")).length, 1, "an answer makes room");
    await store.finishRun(anEndedRun(first[1]!, { result: failed, next: { move: "retry", runAt: noon + minute } }));
    const third = await claim("one");
    assert.equal(third.length, 1, "a failure makes room");
    await store.finishRun(anEndedRun(third[0]!, { next: { move: "release" } }));
    assert.equal((await claim("one")).length, 1, "what is given back makes room");
    assert.equal((await store.claimJobs(aClaim())).length, 1, "who names no limit has none");
  });

  on("of other routes are found behind those of a full one", async (store) => {
    for (let count = 0; count < 12; count += 1)
      await store.accept(anAgentEvent({ at: noon - 12 + count, route: "full" }));
    const others = [1, 2, 3].map((ms) => anAgentEvent({ at: noon + ms, route: ms === 2 ? "third" : "other" }));
    for (const other of others) await store.accept(other);
    const claim = async (limit: number, limits: Record<string, number>) =>
      (await store.claimJobs(aClaim({ now: noon + 5, limit, limits }))).map(({ route }) => route);
    assert.deepEqual(await claim(1, { full: 0 }), ["other"]);
    assert.deepEqual(await claim(3, { full: 1 }), ["full", "third", "other"]);
    assert.deepEqual(await claim(3, { full: 1 }), []);
    assert.deepEqual(await claim(3, { full: 3, other: 1, third: 1 }), ["full", "full"]);
  });

  on("of several full routes do not hide the last one", async (store) => {
    const routes = ["a", "b", "c", "d"];
    for (const [index, route] of routes.entries()) {
      for (let count = 0; count < 4; count += 1) await store.accept(anAgentEvent({ at: noon + index, route }));
    }
    const limits = { a: 1, b: 1, c: 1 };
    const claimed = await store.claimJobs(aClaim({ now: noon + 5, limit: 5, limits }));
    assert.deepEqual(
      claimed.map(({ route }) => route),
      ["a", "b", "c", "d", "d"],
    );
  });

  on("whose lease ran out make room for others of their route", async (store) => {
    await takenJob(store);
    await store.accept(anAgentEvent());
    const claim = (now: number) => store.claimJobs(aClaim({ owner: "two", now, limits: { reviews: 1 } }));
    assert.deepEqual(await claim(noon + 29_999), []);
    assert.equal((await claim(noon + 30_000)).length, 1);
    assert.deepEqual(await claim(noon + 30_000), []);
  });

  on("count for the route they follow, not for the one their event came in on", async (store) => {
    const event = anAgentEvent({ route: "old" });
    await store.accept(event);
    await store.addJob({ eventId: event.event.id, now: noon, job: newJob("agent", { route: "new", at: noon + 1 }) });
    const claimed = await store.claimJobs(aClaim({ now: noon + 1, limits: { old: 0 } }));
    assert.deepEqual(
      claimed.map(({ route }) => route),
      ["new"],
    );
    assert.deepEqual(await store.claimJobs(aClaim({ now: noon + 1, limits: { old: 0 } })), []);
  });
}

function testParking({ on }: Suite): void {
  on("wait while agents cannot run, and come back at their time", async (store) => {
    const later = await takenJob(store);
    await store.finishRun(anEndedRun(later, { result: failed, next: { move: "retry", runAt: noon + minute } }));
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
    assert.deepEqual(idsOf(await store.claimJobs(aClaim({ now: noon + 2 }))), [queued.job.id]);
    const active = [running.id, queued.job.id];
    assert.deepEqual(idsOf(await store.claimJobs(aClaim({ now: noon + minute, active }))), [later.id]);
  });
}
