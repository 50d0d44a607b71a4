import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Rates } from "../../src/gateway/rates.ts";
import { makeClock } from "../tools/clock.ts";
import { fc } from "../tools/property.ts";

function open(limit: number) {
  const clock = makeClock();
  return { rates: new Rates(limit, clock.now), clock };
}

describe("a budget", () => {
  test("lasts for as many requests as it has, in a window that begins with the first", () => {
    const { rates, clock } = open(2);
    assert.equal(rates.spend("a"), undefined);
    clock.advance(30_000);
    assert.equal(rates.spentFor("a"), undefined);
    assert.equal(rates.spend("a"), undefined);
    assert.equal(rates.spentFor("a"), 30);
    assert.equal(rates.spend("a"), 30);
    clock.advance(29_999);
    assert.equal(rates.spend("a"), 1);
    clock.advance(1);
    assert.equal(rates.spend("a"), undefined);
    assert.equal(rates.spend("a"), undefined);
    assert.equal(rates.spend("a"), 60);
  });

  test("is each route's own, and failed verifications have another one", () => {
    const { rates } = open(1);
    assert.equal(rates.fail("a"), undefined);
    assert.equal(rates.fail("a"), 60);
    assert.equal(rates.spend("a"), undefined);
    assert.equal(rates.spend("a"), 60);
    assert.equal(rates.spend("b"), undefined);
    assert.equal(rates.fail("b"), undefined);
  });

  test("takes back what was given, and never more than was spent", () => {
    const { rates } = open(2);
    rates.giveBack("a");
    rates.giveBack("a");
    for (const expected of [undefined, undefined, 60]) assert.equal(rates.spend("a"), expected);
    rates.giveBack("a");
    assert.equal(rates.spentFor("a"), undefined);
    for (const expected of [undefined, 60]) assert.equal(rates.spend("a"), expected);
  });

  test("does not stay spent when the clock is set back", () => {
    const { rates, clock } = open(1);
    rates.spend("a");
    clock.advance(-3_600_000);
    assert.equal(rates.spend("a"), undefined);
    assert.equal(rates.spend("a"), 60);
  });

  test("never lets more through in a window than it has, and always says a wait that is enough", () => {
    const steps = fc.array(fc.nat(40_000), { maxLength: 60 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), steps, (limit, waits) => {
        const { rates, clock } = open(limit);
        const taken: number[] = [];
        for (const wait of waits) {
          clock.advance(wait);
          const seconds = rates.spend("a");
          if (seconds === undefined) taken.push(clock.now());
          else assert.ok(seconds >= 1 && seconds <= 60 && Number.isInteger(seconds));
        }
        // A window begins with a request: from any first one of a window, at most `limit` fit into its minute.
        let start = Number.NEGATIVE_INFINITY;
        let count = 0;
        for (const at of taken) {
          if (at >= start + 60_000) [start, count] = [at, 0];
          count += 1;
          assert.ok(count <= limit);
        }
      }),
    );
  });
});
