import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Paces, type Turn } from "../../src/gateway/pace.ts";
import { log } from "../../src/target/log.ts";
import type { Pace, Target } from "../../src/target/target.ts";
import { makeClock } from "../tools/clock.ts";
import { fc } from "../tools/property.ts";

const never = new AbortController().signal;

/** Paces on a clock that the test moves, with what they sleep for. */
function makePaces() {
  const clock = makeClock();
  const sleepers: { at: number; wake: () => void }[] = [];
  const sleep = (ms: number, signal: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    sleepers.push({ at: clock.now() + ms, wake: resolve });
    signal.addEventListener("abort", () => resolve());
    return promise;
  };
  const paces = new Paces({ now: clock.now, sleep });
  const startedAt = clock.now();
  const starts: { place: string; at: number }[] = [];
  const go = async (target: Target, place = "", how: Turn = { signal: never }) => {
    const isItsTurn = await paces.turn(target, place, how);
    if (isItsTurn) starts.push({ place, at: clock.now() - startedAt });
    return isItsTurn;
  };
  /** Moves the clock on, stopping wherever somebody wakes. */
  const pass = async (ms: number) => {
    const end = clock.now() + ms;
    for (;;) {
      await settle();
      const next = sleepers.filter(({ at }) => at <= end).sort((one, other) => one.at - other.at)[0];
      if (!next) break;
      sleepers.splice(sleepers.indexOf(next), 1);
      clock.advance(Math.max(0, next.at - clock.now()));
      next.wake();
    }
    clock.advance(end - clock.now());
    await settle();
  };
  return { clock, paces, starts, go, pass, at: () => starts.map((start) => start.at) };
}

async function settle(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await turn();
}

function paced(pace: Target["pace"], name = "chat"): Target {
  return { ...log, name, ...(pace ? { pace } : {}) };
}

const twoASecond = paced({ overall: { count: 2, everyMs: 1_000 } });
const onePerPlace = paced({ perPlace: { field: "chat_id", count: 1, everyMs: 1_000 } });

describe("a target's pace", () => {
  test("lets through what the window takes, and the next one when it has room again", async () => {
    const { go, pass, at } = makePaces();
    for (let count = 0; count < 5; count += 1) void go(twoASecond);
    await pass(0);
    assert.deepEqual(at(), [0, 0]);
    await pass(999);
    assert.deepEqual(at(), [0, 0]);
    await pass(1);
    assert.deepEqual(at(), [0, 0, 1_000, 1_000]);
    await pass(1_000);
    assert.deepEqual(at(), [0, 0, 1_000, 1_000, 2_000]);
  });

  test("slides: the window is any second, not each second of the clock", async () => {
    const { go, pass, at } = makePaces();
    void go(twoASecond);
    await pass(900);
    void go(twoASecond);
    void go(twoASecond);
    void go(twoASecond);
    await pass(5_000);
    assert.deepEqual(at(), [0, 900, 1_000, 1_900]);
  });

  test("counts each target by itself, and one without a pace not at all", async () => {
    const { go, pass, at } = makePaces();
    const other = paced(twoASecond.pace, "other");
    for (const target of [twoASecond, twoASecond, other, other, log, log, log]) void go(target);
    await pass(0);
    assert.equal(at().length, 7);
  });

  test("of a place does not hold up other places", async () => {
    const { go, pass, starts } = makePaces();
    for (const place of ["a", "a", "b"]) void go(onePerPlace, place);
    await pass(0);
    assert.deepEqual(
      starts.map(({ place }) => place),
      ["a", "b"],
    );
    await pass(1_000);
    assert.deepEqual(starts.at(-1), { place: "a", at: 1_000 });
  });

  test("of a place and of all holds both", async () => {
    const { go, pass, at } = makePaces();
    const both = paced({ overall: { count: 2, everyMs: 10_000 }, perPlace: { field: "x", count: 1, everyMs: 1_000 } });
    for (const place of ["a", "a", "b"]) void go(both, place);
    await pass(20_000);
    assert.deepEqual(at(), [0, 0, 10_000]);
  });

  test("never lets through more than the window takes, wherever the window is laid", async () => {
    const arrivals = fc.array(fc.tuple(fc.integer({ min: 0, max: 700 }), fc.constantFrom("a", "b", "c")), {
      minLength: 1,
      maxLength: 25,
    });
    await fc.assert(
      fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 4 }), async (comings, count) => {
        const { go, pass, starts } = makePaces();
        const pace = { overall: { count, everyMs: 1_000 }, perPlace: { field: "x", count: 1, everyMs: 500 } };
        for (const [afterMs, place] of comings) {
          await pass(afterMs);
          void go(paced(pace), place);
        }
        await pass(60_000);
        assert.equal(starts.length, comings.length);
        assertKept(
          starts.map(({ at }) => at),
          pace.overall,
        );
        for (const place of ["a", "b", "c"]) {
          assertKept(
            starts.filter((start) => start.place === place).map(({ at }) => at),
            pace.perPlace,
          );
        }
      }),
      { numRuns: 30 },
    );
  });

  function assertKept(starts: readonly number[], { count, everyMs }: Pace): void {
    for (const [index, at] of starts.entries()) {
      const before = starts[index - count];
      assert.ok(before === undefined || at - before >= everyMs, `${count + 1} within ${at - (before ?? 0)} ms`);
    }
  }
});

describe("the wait for a turn", () => {
  test("ends with the signal, and what did not go ahead counts for nothing", async () => {
    const { go, pass, at, paces } = makePaces();
    const { signal, abort } = abortable();
    void go(twoASecond);
    void go(twoASecond);
    await pass(0);
    const waiting = go(twoASecond, "", { signal });
    await settle();
    abort();
    assert.equal(await waiting, false);
    await pass(1_000);
    assert.deepEqual(at(), [0, 0]);
    assert.equal(paces.allowance(twoASecond), 2);
  });

  test("does not begin when the signal is aborted already", async () => {
    const { go } = makePaces();
    assert.equal(await go(log, "", { signal: AbortSignal.abort() }), false);
  });

  test("of a sender who waits is cut short, and counts", async () => {
    const { go, pass, at } = makePaces();
    void go(twoASecond);
    await pass(900);
    for (let count = 0; count < 3; count += 1) void go(twoASecond, "", { signal: never, patienceMs: 50 });
    await pass(50);
    assert.deepEqual(at(), [0, 900, 950, 950]);
    void go(twoASecond);
    await pass(10_000);
    assert.equal(at().at(-1), 1_950);
  });

  test("is not prolonged by a clock that is set back", async () => {
    const { go, pass, clock, at } = makePaces();
    void go(onePerPlace, "a");
    await settle();
    clock.advance(-3_600_000);
    void go(onePerPlace, "a");
    await settle();
    assert.equal(at().length, 2);
    void go(onePerPlace, "a");
    await pass(1_000);
    assert.equal(at().length, 3);
  });

  function abortable() {
    const controller = new AbortController();
    return { signal: controller.signal, abort: () => controller.abort() };
  }
});

describe("what may be sent now", () => {
  test("is what the window has room for, less what waits for it already", async () => {
    const { go, pass, paces } = makePaces();
    const five = paced({ overall: { count: 5, everyMs: 1_000 }, perPlace: { field: "x", count: 1, everyMs: 1_000 } });
    assert.equal(paces.allowance(five), 5);
    void go(five, "a");
    await settle();
    assert.equal(paces.allowance(five), 4);
    void go(five, "a");
    await settle();
    assert.equal(paces.allowance(five), 3);
    await pass(1_000);
    assert.equal(paces.allowance(five), 4);
    await pass(1_000);
    assert.equal(paces.allowance(five), 5);
  });

  test("has no bound where the target has none for all", () => {
    const { paces } = makePaces();
    assert.equal(paces.allowance(log), Number.POSITIVE_INFINITY);
    assert.equal(paces.allowance(onePerPlace), Number.POSITIVE_INFINITY);
  });

  test("has no bound either where the pace does not apply, and nobody waits there", async () => {
    const clock = makeClock();
    const sleep = () => assert.fail("waits");
    const paces = new Paces({ now: clock.now, sleep, applies: ({ name }) => name === "strict" });
    for (let count = 0; count < 5; count += 1) assert.equal(await paces.turn(twoASecond, "", { signal: never }), true);
    assert.equal(paces.allowance(twoASecond), Number.POSITIVE_INFINITY);
    assert.equal(paces.nextAt(twoASecond), undefined);
    assert.equal(paces.allowance({ ...twoASecond, name: "strict" }), 2);
  });

  test("is told ahead: when there is room again, unless somebody waits for it", async () => {
    const { go, pass, paces, clock } = makePaces();
    const now = clock.now();
    void go(twoASecond);
    await pass(300);
    void go(twoASecond);
    await pass(100);
    assert.deepEqual([paces.allowance(twoASecond), paces.nextAt(twoASecond)], [0, now + 1_000]);
    void go(twoASecond);
    await settle();
    assert.equal(paces.nextAt(twoASecond), undefined);
    assert.equal(paces.nextAt(log), undefined);
  });
});

test("places that are idle are forgotten, those in use are not", async () => {
  const { go, pass, paces } = makePaces();
  for (let count = 0; count < 1_000; count += 1) void go(onePerPlace, `place ${count}`);
  await pass(0);
  assert.equal(paces.places, 1_000);
  await pass(500);
  void go(onePerPlace, "place 0.5");
  await pass(499);
  assert.equal(paces.places, 1_001);
  await pass(1);
  void go(onePerPlace, "another");
  await pass(0);
  assert.equal(paces.places, 2);
});
