import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { messageRule, nextDelayMs, type RetryRule, runRule } from "../../src/ledger/retry.ts";
import { fc } from "../tools/property.ts";

const rules: [name: string, rule: RetryRule, delaysMs: number[]][] = [
  ["a message", messageRule, [2_000, 10_000, 50_000, 250_000, 1_250_000, 6_250_000, 31_250_000]],
  ["a run", runRule, [5_000, 30_000]],
];

for (const [name, rule, delaysMs] of rules) {
  describe(`the retry rule of ${name}`, () => {
    test("makes longer and longer pauses, and then no more", () => {
      const delays = Array.from({ length: rule.tries + 2 }, (_, index) => nextDelayMs(rule, index + 1, () => 0));
      assert.deepEqual(delays.slice(0, delaysMs.length), delaysMs);
      assert.deepEqual(new Set(delays.slice(delaysMs.length)), new Set([undefined]));
    });

    test("takes up to half of a pause off", () => {
      for (const [index, delay] of delaysMs.entries()) {
        assert.equal(
          nextDelayMs(rule, index + 1, () => 1),
          delay / 2,
        );
        assert.equal(
          nextDelayMs(rule, index + 1, () => 0.5),
          delay * 0.75,
        );
      }
    });

    test("never goes beyond its bounds", () => {
      const failures = fc.integer({ min: 1, max: 200 });
      const random = fc.double({ min: 0, max: 1, noNaN: true });
      fc.assert(
        fc.property(failures, random, (count, number) => {
          const delay = nextDelayMs(rule, count, () => number);
          if (count >= rule.tries) return delay === undefined;
          const full = delaysMs[count - 1]!;
          return delay !== undefined && Number.isInteger(delay) && delay >= full / 2 && delay <= full;
        }),
      );
    });
  });
}

test("a pause is never longer than the rule's longest", () => {
  const rule: RetryRule = { tries: 100, firstDelayMs: 1_000, factor: 10, longestDelayMs: 60_000 };
  const delays = [1, 2, 3, 50, 99].map((failures) => nextDelayMs(rule, failures, () => 0));
  assert.deepEqual(delays, [1_000, 10_000, 60_000, 60_000, 60_000]);
});

test("the tries of a message span between five and eleven hours", () => {
  const span = (random: number) =>
    Array.from(
      { length: messageRule.tries - 1 },
      (_, index) => nextDelayMs(messageRule, index + 1, () => random) ?? 0,
    ).reduce((sum, delay) => sum + delay, 0) / 3_600_000;
  assert.ok(span(0) > 10 && span(0) < 11, `${span(0)} hours`);
  assert.ok(span(1) > 5, `${span(1)} hours`);
});
