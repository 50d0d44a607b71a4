import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../tools/property.ts";
import { aClaim, anEndedRun, anEndedTry } from "../tools/rows.ts";
import { makeGrounds, violations } from "../tools/stores.ts";
import { isFinal, look, type Model, newModel, type Real } from "./model/model.ts";
import {
  Accept,
  Cancel,
  Claim,
  Crash,
  claimMs,
  FinishAttempt,
  FinishRun,
  Heartbeat,
  leaseMs,
  Park,
  Prune,
  RecordPart,
  Replay,
  second,
  Wait,
  Withdraw,
} from "./model/steps.ts";

// Random sequences of everything that gateways and people do to a ledger, against a small model of what must come of it.

const minute = 60 * second;

/** Goes on until nothing is left to do: whatever happened before, everything comes to an end. */
async function drain(model: Model, real: Real): Promise<void> {
  const { store, place } = real;
  for (let turn = 0; turn < 100; turn += 1) {
    model.now += minute;
    const claim = aClaim({ owner: "last", now: model.now, leaseUntil: model.now + leaseMs, limit: 100 });
    const jobs = await store.claimJobs(claim);
    for (const job of jobs) assert.equal(await store.finishRun(anEndedRun(job, { now: model.now })), true);
    const messages = await store.claimMessages(claim);
    for (const message of messages)
      assert.equal(await store.finishAttempt(anEndedTry(message, { now: model.now })), true);
    if (jobs.length + messages.length === 0) break;
  }
  const { jobs, messages } = await look(place);
  for (const { state } of jobs.values()) assert.ok(isFinal.jobs(state), `a job is left "${state}"`);
  for (const { state } of messages.values()) assert.ok(isFinal.messages(state), `a message is left "${state}"`);
  assert.deepEqual(await violations(place), []);
}

const owner = fc.constantFrom("one", "two");
const lane = fc.constantFrom("a 1", "a 1", "a 1", "a 2", undefined);
const pick = fc.nat({ max: 20 });
const what = fc.constantFrom("jobs" as const, "messages" as const);

function accepting(kind: "agent" | "direct") {
  const parts = fc.record({
    targets: fc.constantFrom(["a"], ["a", "b"], ["a", "a"]),
    onCrash: fc.constantFrom("rerun" as const, "fail" as const),
    lane,
    fallback: fc.constantFrom([], ["b"], ["b", "a"]),
    fallbackLane: lane,
  });
  const made = fc.tuple(fc.constantFrom("r", "s"), fc.constantFrom("1", "2", "3"), owner, parts);
  return made.map(([route, deliveryId, who, { lane, fallbackLane, ...rest }]) => {
    const lanes = { ...(lane !== undefined && { lane }), ...(fallbackLane !== undefined && { fallbackLane }) };
    return new Accept(kind, route, deliveryId, who, { ...rest, ...lanes });
  });
}

const claiming = fc
  .tuple(what, owner, fc.constantFrom(0, 1, 2, 10), fc.constantFrom(true, true, true, false))
  .map((args) => new Claim(...args));

const running = fc
  .tuple(pick, fc.constantFrom("answer", "answer", "answer", "silent", "retry", "release", "giveUp"))
  .map(([which, move]) => new FinishRun(which, move as FinishRun["move"]));

const sending = fc
  .tuple(pick, fc.constantFrom("sent", "sent", "sent", "refused", "unknown", "released", "leaves", "dead"))
  .map(([which, end]) => new FinishAttempt(which, end as FinishAttempt["end"]));

// What leads further comes several times, so that sequences get somewhere.
const steps = [
  ...[accepting("agent"), accepting("agent"), accepting("direct"), claiming, claiming, claiming, running, running],
  ...[sending, sending, pick.map((which) => new RecordPart(which)), owner.map((who) => new Heartbeat(who))],
  ...[
    owner.map((who) => new Crash(who)),
    pick.map((which) => new Cancel(which)),
    pick.map((which) => new Withdraw(which)),
  ],
  fc.tuple(pick, fc.constantFrom("agent" as const, "delivery" as const), lane).map((args) => new Replay(...args)),
  ...[fc.constantFrom(second, 5 * second, claimMs).map((ms) => new Wait(ms)), fc.constant(new Wait(leaseMs))],
  fc.constant(new Park()),
  fc.constantFrom(0, second, minute).map((ageMs) => new Prune(ageMs)),
];

for (const [name, { skip, clear }] of Object.entries(makeGrounds())) {
  test(`${name} does what the model says, whatever is asked of it in whatever order`, { skip }, async (t) => {
    const counts = { runs: 0, steps: 0 };
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 100, size: "max" }), async (commands) => {
        const place = await clear(t);
        const real: Real = { store: place.store, place, seen: await look(place) };
        const model = newModel();
        await fc.asyncModelRun(() => ({ model, real }), commands);
        await drain(model, real);
        counts.runs += 1;
        counts.steps += [...commands].length;
      }),
      { numRuns: 60, interruptAfterTimeLimit: 12_000 },
    );
    t.diagnostic(`${counts.steps} steps in ${counts.runs} sequences`);
  });
}
