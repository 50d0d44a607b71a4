import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { StoreUnavailable } from "../../src/core/errors.ts";
import { Withdrawals } from "../../src/ledger/withdrawals.ts";

/** Withdrawals from a store that is away until the test says otherwise. */
function makeWithdrawals(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const end = new AbortController();
  t.after(() => end.abort());
  const state = { error: new StoreUnavailable("away") as Error | undefined };
  const asked: string[] = [];
  const withdrawals = new Withdrawals(async (eventId) => {
    asked.push(eventId);
    if (state.error) throw state.error;
  }, end.signal);
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    for (let count = 0; count < 10; count += 1) await turn();
  };
  return { withdrawals, asked, state, end, pass };
}

describe("a direct delivery that has to be taken back", () => {
  test("is tried again every second until the store does it", async (t) => {
    const { withdrawals, asked, state, pass } = makeWithdrawals(t);
    withdrawals.add("a");
    await pass(0);
    await pass(999);
    assert.deepEqual(asked, ["a"]);
    await pass(1);
    assert.deepEqual(asked, ["a", "a"]);
    state.error = undefined;
    await pass(1_000);
    await pass(10_000);
    assert.deepEqual(asked, ["a", "a", "a"]);
  });

  test("waits for the ones before it, and one that comes later is done too", async (t) => {
    const { withdrawals, asked, state, pass } = makeWithdrawals(t);
    withdrawals.add("a");
    withdrawals.add("b");
    await pass(0);
    withdrawals.add("c");
    state.error = undefined;
    await pass(1_000);
    assert.deepEqual(asked, ["a", "a", "b", "c"]);
    withdrawals.add("d");
    await pass(0);
    assert.equal(asked.at(-1), "d");
  });

  test("is not tried again when the store has a bug with it, and the next one is", async (t) => {
    const { withdrawals, asked, state, pass } = makeWithdrawals(t);
    state.error = new TypeError("a bug");
    withdrawals.add("a");
    withdrawals.add("b");
    await pass(5_000);
    assert.deepEqual(asked, ["a", "b"]);
  });

  test("is left to its lease when the gateway ends", async (t) => {
    const { withdrawals, asked, end, pass } = makeWithdrawals(t);
    withdrawals.add("a");
    await pass(0);
    end.abort();
    await pass(10_000);
    assert.deepEqual(asked, ["a"]);
  });

  test("does not fill the memory while the store is away: the oldest is left to its lease", async (t) => {
    const { withdrawals, asked, state, pass } = makeWithdrawals(t);
    for (let count = 0; count <= 10_001; count += 1) withdrawals.add(`event ${count}`);
    await pass(0);
    state.error = undefined;
    await pass(1_000);
    // One is already being tried when the others come.
    assert.equal(new Set(asked).size, 10_001);
    assert.ok(!asked.includes("event 1"));
  });
});
