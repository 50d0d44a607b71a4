import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Lane, type LaneOptions } from "../../src/gateway/lane.ts";
import { silentLog } from "../../src/lib/log.ts";

interface Item {
  readonly id: string;
  readonly fence: number;
}

interface Work {
  readonly item: Item;
  readonly signal: AbortSignal;
  end(): void;
}

/** A lane over a list of ids that are due, on a clock that the test moves. */
function layLane(t: TestContext, options: Partial<LaneOptions<Item>> = {}) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 0;
  const due: { id: string; at: number }[] = [];
  const works: Work[] = [];
  const takes: number[] = [];
  const errors: unknown[] = [];
  const lane = new Lane<Item>({
    name: "test",
    capacity: 2,
    async take(limit) {
      takes.push(limit);
      const ready = due.filter(({ at }) => at <= now).slice(0, limit);
      for (const one of ready) due.splice(due.indexOf(one), 1);
      return ready.map(({ id }) => ({ id, fence: 1 }));
    },
    work(item, signal) {
      const { promise, resolve } = Promise.withResolvers<void>();
      works.push({ item, signal, end: resolve });
      return promise;
    },
    nextTimes: async () => due.map(({ at }) => at),
    log: { ...silentLog, error: (fields) => errors.push(fields) },
    now: () => now,
    ...options,
  });
  t.after(() => lane.shut());
  return {
    lane,
    due,
    works,
    takes,
    errors,
    ids: () => works.map(({ item }) => item.id).join(" "),
    async advance(ms: number) {
      now += ms;
      t.mock.timers.tick(ms);
      await settle();
    },
  };
}

/** Lets everything that waits for nothing but its turn go on. */
async function settle(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await turn();
}

describe("a lane", () => {
  test("takes what is due when it opens, no more than it has places for, and the next when one is free", async (t) => {
    const { lane, due, works, ids } = layLane(t);
    due.push(...["a", "b", "c", "d"].map((id) => ({ id, at: 0 })));
    lane.open();
    await settle();
    assert.equal(ids(), "a b");
    assert.equal(lane.active.length, 2);
    works[1]?.end();
    await settle();
    assert.equal(ids(), "a b c");
    works[0]?.end();
    works[2]?.end();
    await settle();
    assert.equal(ids(), "a b c d");
    works[3]?.end();
    await settle();
    assert.deepEqual(lane.active, []);
  });

  test("does nothing before it is open", async (t) => {
    const { lane, due, takes } = layLane(t);
    due.push({ id: "a", at: 0 });
    lane.wake();
    await settle();
    assert.deepEqual(takes, []);
  });

  test("looks when it is woken, once for many that wake it", async (t) => {
    const { lane, due, ids, takes } = layLane(t);
    lane.open();
    await settle();
    due.push({ id: "a", at: 0 });
    for (let count = 0; count < 100; count += 1) lane.wake();
    await settle();
    assert.equal(ids(), "a");
    assert.ok(takes.length <= 3, `it looked ${takes.length} times`);
  });

  test("is not deaf while it looks", async (t) => {
    const due: string[] = [];
    const looks: (() => void)[] = [];
    const { lane, ids } = layLane(t, {
      async take() {
        const found = due.splice(0);
        await new Promise<void>((resolve) => looks.push(resolve));
        return found.map((id) => ({ id, fence: 1 }));
      },
    });
    lane.open();
    await settle();
    // It has looked already and found nothing, and now there is something.
    due.push("a");
    lane.wake();
    for (const look of looks.splice(0)) look();
    await settle();
    for (const look of looks.splice(0)) look();
    await settle();
    assert.equal(ids(), "a");
  });

  test("sleeps until the next item is due", async (t) => {
    const { lane, due, ids, advance, takes } = layLane(t);
    due.push({ id: "a", at: 1000 });
    lane.open();
    await settle();
    await advance(999);
    assert.equal(ids(), "");
    const before = takes.length;
    await advance(1);
    assert.equal(ids(), "a");
    assert.ok(takes.length > before);
  });

  test("looks again after a second at the latest: another process may have left something", async (t) => {
    for (const nextTimes of [async () => [], async () => [Number.POSITIVE_INFINITY], async () => [3_600_000]]) {
      const { lane, due, ids, advance } = layLane(t, { nextTimes });
      lane.open();
      await settle();
      due.push({ id: "a", at: 0 });
      await advance(999);
      assert.equal(ids(), "");
      await advance(1);
      assert.equal(ids(), "a");
      lane.shut();
      t.mock.timers.reset();
    }
  });

  test("does not look again and again for what is due but may not be taken", async (t) => {
    const takes: number[] = [];
    const { lane, advance } = layLane(t, {
      async take() {
        takes.push(takes.length);
        return [];
      },
      nextTimes: async () => [-60_000, 0],
    });
    lane.open();
    await settle();
    for (let count = 0; count < 99; count += 1) await advance(10);
    assert.ok(takes.length <= 2, `it looked ${takes.length} times`);
    await advance(30);
    assert.ok(takes.length <= 3, `it looked ${takes.length} times`);
  });

  test("looks at the next time that matters, whatever is due and may not be taken", async (t) => {
    const { lane, due, ids, advance } = layLane(t, {
      nextTimes: async () => [-60_000, 300, ...due.map(({ at }) => at)],
    });
    lane.open();
    await settle();
    due.push({ id: "a", at: 0 });
    await advance(299);
    assert.equal(ids(), "");
    await advance(1);
    assert.equal(ids(), "a");
  });

  test("looks at once when something has become due while it looked", async (t) => {
    let now = 0;
    const takes: number[] = [];
    const { lane, advance } = layLane(t, {
      now: () => now,
      async take() {
        takes.push(now);
        now += 5;
        return [];
      },
      nextTimes: async () => (takes.length === 1 ? [3] : []),
    });
    lane.open();
    await settle();
    await advance(10);
    assert.deepEqual(takes, [0, 5]);
  });

  test("is woken by the end of its own work", async (t) => {
    const { lane, due, works, takes } = layLane(t, { nextTimes: async () => [-60_000] });
    due.push({ id: "a", at: 0 });
    lane.open();
    await settle();
    const before = takes.length;
    works[0]?.end();
    await settle();
    assert.ok(takes.length > before);
  });

  test("goes on after the ledger could not be read", async (t) => {
    let isAway = true;
    const { lane, ids, advance, errors } = layLane(t, {
      async take() {
        if (isAway) throw new Error("away");
        return [{ id: "a", fence: 1 }].slice(ids() === "" ? 0 : 1);
      },
    });
    lane.open();
    await settle();
    assert.equal(errors.length, 1);
    isAway = false;
    await advance(1000);
    assert.equal(ids(), "a");
  });

  test("goes on after its work has thrown", async (t) => {
    const { lane, due, errors } = layLane(t, {
      async work() {
        throw new Error("a bug");
      },
    });
    due.push({ id: "a", at: 0 }, { id: "b", at: 0 }, { id: "c", at: 0 });
    lane.open();
    await settle();
    assert.equal(errors.length, 3);
    assert.deepEqual(lane.active, []);
    await lane.idle();
  });

  test("that is shut takes nothing more and is idle when its work has ended", async (t) => {
    const { lane, due, works, ids, advance } = layLane(t);
    due.push({ id: "a", at: 0 });
    lane.open();
    await settle();
    lane.shut();
    due.push({ id: "b", at: 0 });
    lane.wake();
    let isIdle = false;
    const idle = lane.idle().then(() => {
      isIdle = true;
    });
    await advance(10_000);
    assert.equal(isIdle, false);
    works[0]?.end();
    await idle;
    await advance(10_000);
    assert.equal(ids(), "a");
  });

  test("that is shut while it takes something is not idle before that has ended too", async (t) => {
    const { promise, resolve } = Promise.withResolvers<Item[]>();
    const { lane, works, ids } = layLane(t, { take: () => promise });
    lane.open();
    await settle();
    lane.shut();
    let isIdle = false;
    const idle = lane.idle().then(() => {
      isIdle = true;
    });
    await settle();
    assert.equal(isIdle, false);
    resolve([{ id: "a", fence: 1 }]);
    await settle();
    assert.deepEqual([ids(), isIdle], ["a", false]);
    works[0]?.end();
    await idle;
  });

  test("aborts the items that are named, or all, also those that it was taking at the time", async (t) => {
    let take: () => Promise<Item[]> = async () => [
      { id: "a", fence: 1 },
      { id: "b", fence: 1 },
    ];
    const { lane, works } = layLane(t, { capacity: 3, take: () => take() });
    lane.open();
    const { promise, resolve } = Promise.withResolvers<Item[]>();
    take = () => promise;
    lane.wake();
    await settle();
    const aborted = () => works.map(({ item, signal }) => `${item.id} ${signal.aborted}`);
    lane.abort(["b", "x"]);
    assert.deepEqual(aborted(), ["a false", "b true"]);
    lane.shut();
    lane.abort();
    resolve([{ id: "c", fence: 1 }]);
    await settle();
    assert.deepEqual(aborted(), ["a true", "b true", "c true"]);
  });
});
