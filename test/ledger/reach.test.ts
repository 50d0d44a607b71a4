import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StoreUnavailable } from "../../src/core/errors.ts";
import { Reach } from "../../src/ledger/reach.ts";
import { makeClock } from "../tools/clock.ts";

function makeReach() {
  const clock = makeClock();
  const reach = new Reach(10_000, clock.now);
  const fail = () => assert.rejects(reach.listen(Promise.reject(new StoreUnavailable("away"))), StoreUnavailable);
  const answer = () => reach.listen(Promise.resolve("here"));
  return { clock, reach, fail, answer };
}

describe("whether somebody may be called dead", () => {
  test("is clear while the store answers", async () => {
    const { reach, answer } = makeReach();
    assert.equal(reach.mayReclaim, true);
    assert.equal(await answer(), "here");
    assert.equal(reach.mayReclaim, true);
  });

  test("is not while it is away, however long that takes", async () => {
    const { clock, reach, answer, fail } = makeReach();
    await answer();
    await fail();
    assert.equal(reach.mayReclaim, false);
    clock.advance(3_600_000);
    assert.equal(reach.mayReclaim, false);
  });

  test("is not before everybody has had time to report, counted from its first answer", async () => {
    const { clock, reach, answer, fail } = makeReach();
    await fail();
    clock.advance(60_000);
    await answer();
    clock.advance(9_999);
    await answer();
    assert.equal(reach.mayReclaim, false);
    clock.advance(1);
    assert.equal(reach.mayReclaim, true);
    await answer();
    assert.equal(reach.mayReclaim, true);
  });

  test("takes that time anew when it goes away again", async () => {
    const { clock, reach, answer, fail } = makeReach();
    await fail();
    await answer();
    clock.advance(9_000);
    await fail();
    await answer();
    clock.advance(9_000);
    assert.equal(reach.mayReclaim, false);
    clock.advance(1_000);
    assert.equal(reach.mayReclaim, true);
  });

  test("takes that time after a store that stood still and answers all the same", async () => {
    const { clock, reach } = makeReach();
    const { promise, resolve } = Promise.withResolvers<void>();
    const listening = reach.listen(promise);
    clock.advance(10_001);
    resolve();
    await listening;
    assert.equal(reach.mayReclaim, false);
    clock.advance(10_000);
    assert.equal(reach.mayReclaim, true);
  });

  test("has nothing to do with a bug", async () => {
    const { reach } = makeReach();
    await assert.rejects(reach.listen(Promise.reject(new TypeError("a bug"))), TypeError);
    assert.equal(reach.mayReclaim, true);
  });

  test("is not clear after somebody stopped waiting for an answer", () => {
    const { reach } = makeReach();
    reach.missed();
    assert.equal(reach.mayReclaim, false);
  });
});
