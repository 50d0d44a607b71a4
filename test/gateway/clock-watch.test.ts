import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { StoreUnavailable } from "../../src/core/errors.ts";
import { ClockWatch } from "../../src/gateway/clock-watch.ts";
import { createLog } from "../../src/lib/log.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { makeClock } from "../tools/clock.ts";
import { makeHome } from "../tools/home.ts";
import { aClaim, anAgentEvent, anEndedRun, anEndedTry, aResult } from "../tools/rows.ts";

const year = 365 * 86_400_000;
const minute = 60_000;

/** A watch whose two clocks are told the time, over a real store with a run and a message that wait a minute. */
async function setUp(t: TestContext) {
  const store = await openSqlite({ path: join((await makeHome(t)).folder, "ledger.db"), readOnly: false });
  t.after(() => store.close());
  const clock = makeClock();
  const monotonic = makeClock();
  const at = clock.now();
  await store.accept(anAgentEvent({ at }));
  const [first] = await store.claimJobs(aClaim({ now: at }));
  const failed = aResult({ outcome: "failed", reason: "down", answer: null });
  await store.finishRun(anEndedRun(first!, { now: at, result: failed, next: { move: "retry", runAt: at + minute } }));
  await store.accept(anAgentEvent({ at }));
  const [second] = await store.claimJobs(aClaim({ now: at }));
  await store.finishRun(anEndedRun(second!, { now: at }));
  const [message] = await store.claimMessages(aClaim({ now: at }));
  const next = { move: "retry", dueAt: at + minute, leaveLane: false } as const;
  await store.finishAttempt(anEndedTry(message!, { now: at, outcome: "refused", error: "no", next }));
  const jumps: number[] = [];
  const lines: string[] = [];
  const log = createLog({ level: "debug", pretty: false, secrets: () => [], write: (line) => void lines.push(line) });
  const watch = () =>
    new ClockWatch({
      ...{ store, log, now: clock.now, monotonicMs: monotonic.now },
      jumped: (byMs) => jumps.push(byMs),
    });
  const pass = (ms: number) => {
    clock.advance(ms);
    monotonic.advance(ms);
  };
  const waits = async () => {
    const { jobs, messages } = await store.nextDue({});
    return [jobs! - clock.now(), messages[0]!.due - clock.now()];
  };
  return { store, clock, monotonic, watch, pass, waits, jumps, lines };
}

for (const [way, jump] of [
  ["forward", year],
  ["back", -year],
] as const) {
  test(`what waits a minute waits a minute when the clock is set a year ${way}`, async (t) => {
    const { clock, watch, pass, waits, jumps, lines } = await setUp(t);
    const watching = watch();
    pass(20_000);
    await watching.look();
    clock.advance(jump);
    await watching.look();
    assert.deepEqual(await waits(), [40_000, 40_000]);
    assert.deepEqual(jumps, [jump]);
    assert.match(lines.join(""), /The clock was set/);
    await watching.look();
    assert.equal(jumps.length, 1, "one jump is one jump");
  });
}

test("a clock that is corrected a little now and then moves nothing", async (t) => {
  const { clock, watch, pass, waits, jumps } = await setUp(t);
  const watching = watch();
  for (let turn = 0; turn < 10; turn += 1) {
    clock.advance(1_000);
    pass(1_000);
    await watching.look();
  }
  assert.deepEqual([await waits(), jumps], [[40_000, 40_000], []]);
});

test("a clock that was set back while no gateway ran does not hold what waits, and once is enough", async (t) => {
  const { clock, watch, waits, jumps } = await setUp(t);
  const before = watch();
  await before.start();
  await before.stop();
  clock.advance(-year);
  for (const _ of [1, 2]) {
    const watching = watch();
    await watching.start();
    await watching.stop();
    assert.deepEqual([await waits(), jumps], [[minute, minute], [-year]]);
  }
});

for (const [way, jump] of [
  ["forward", year],
  ["back", -year],
] as const) {
  test(`of several gateways that see the clock set ${way}, one moves things along and all are told`, async (t) => {
    const { clock, watch, pass, waits, jumps } = await setUp(t);
    const gateways = [watch(), watch(), watch()];
    for (const one of gateways) await one.start();
    for (const one of gateways) t.after(() => one.stop());
    pass(61_000);
    for (const one of gateways) await one.look();
    clock.advance(jump);
    for (const one of gateways) await one.look();
    pass(61_000);
    for (const one of gateways) await one.look();
    assert.deepEqual(await waits(), [minute - 122_000, minute - 122_000]);
    assert.deepEqual(jumps, [jump, jump, jump]);
  });
}

test("a gateway that has not seen a jump yet does not undo what another wrote down", async (t) => {
  const { clock, monotonic, store, watch, waits } = await setUp(t);
  const [first, late] = [watch(), watch()];
  await first.start();
  await late.start();
  t.after(() => Promise.all([first.stop(), late.stop()]));
  clock.advance(year);
  await first.look();
  // The other still goes by the old time when it would write it down.
  const before = (await store.readDocument({ name: "clock" }))?.text;
  clock.advance(-year);
  monotonic.advance(61_000);
  clock.advance(61_000);
  await late.look();
  assert.equal((await store.readDocument({ name: "clock" }))?.text, before);
  clock.advance(year);
  await late.look();
  assert.deepEqual(await waits(), [minute - 61_000, minute - 61_000]);
});

test("what could not be moved along is moved along at the next look", async (t) => {
  const { store, clock, watch, waits } = await setUp(t);
  const { shiftTimes } = store;
  let isAway = true;
  Object.assign(store, {
    shiftTimes: (args: { readonly by: number }) =>
      isAway ? Promise.reject(new StoreUnavailable("away")) : shiftTimes(args),
  });
  const watching = watch();
  clock.advance(year);
  await watching.look();
  isAway = false;
  await watching.look();
  assert.deepEqual(await waits(), [minute, minute]);
});
