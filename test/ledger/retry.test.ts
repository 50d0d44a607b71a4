import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import type { MessageRule } from "../../src/core/retry.ts";
import {
  afterFailure,
  type FailedTry,
  healthAfter,
  jitteredMs,
  mustNotRepeat,
  runRule,
  unsureReason,
} from "../../src/ledger/retry.ts";
import { fc } from "../tools/property.ts";
import { noon } from "../tools/rows.ts";
import { aRule } from "../tools/terms.ts";

const random = fc.double({ min: 0, max: 1, noNaN: true });

function refusal(retryAfterMs?: number | "never"): DeliveryError {
  return new DeliveryError("It said no", retryAfterMs === undefined ? { sent: "no" } : { sent: "no", retryAfterMs });
}

const lostAnswer = new DeliveryError("No answer", { sent: "maybe" });

/** What follows on a message's first failed try at the moment it was ready, unless the parts say otherwise. */
function next(parts: Partial<FailedTry> = {}, rule: Partial<MessageRule> = {}, number = 1) {
  const failed = { failures: 1, readyAt: noon, now: noon, error: refusal(), repeats: "doubled", ...parts } as const;
  return afterFailure({ ...aRule, ...rule }, failed, () => number);
}

describe("the wait before the next try", () => {
  test("may be longer and longer, up to the rule's longest", () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 50].map((failures) => jitteredMs(aRule, failures, () => 1));
    assert.deepEqual(longest, [4_000, 24_000, 144_000, 864_000, 5_184_000, 31_104_000, 86_400_000, 86_400_000]);
  });

  test("of a run may be longer as well", () => {
    const longest = [1, 2, 3, 4, 5].map((failures) => jitteredMs(runRule, failures, () => 1));
    assert.deepEqual([runRule.tries, ...longest], [3, 5_000, 30_000, 180_000, 600_000, 600_000]);
  });

  test("is anything up to that, in proportion to chance", () => {
    assert.deepEqual(
      [0.25, 0.5, 0.75].map((number) => jitteredMs(aRule, 2, () => number)),
      [6_000, 12_000, 18_000],
    );
  });

  test("is a quarter of a second at least, or all of a rule's shorter one", () => {
    assert.equal(
      jitteredMs(aRule, 1, () => 0),
      250,
    );
    assert.equal(
      jitteredMs({ ...aRule, firstDelayMs: 100 }, 1, () => 0),
      100,
    );
    assert.equal(
      jitteredMs({ ...aRule, firstDelayMs: 0 }, 500, () => 1),
      0,
    );
  });

  test("never leaves its bounds, whatever the rule", () => {
    const backoffs = fc.record({
      firstDelayMs: fc.integer({ min: 1, max: 86_400_000 }),
      factor: fc.double({ min: 1, max: 100, noNaN: true }),
      longestDelayMs: fc.integer({ min: 1, max: 86_400_000 }),
    });
    fc.assert(
      fc.property(backoffs, fc.integer({ min: 1, max: 1_000 }), random, (backoff, failures, number) => {
        const wait = jitteredMs(backoff, failures, () => number);
        const longest = Math.min(backoff.firstDelayMs * backoff.factor ** (failures - 1), backoff.longestDelayMs);
        return Number.isInteger(wait) && wait >= Math.floor(Math.min(250, longest)) && wait <= Math.ceil(longest);
      }),
    );
  });
});

describe("after a failed try", () => {
  test("there is another one when the wait is over", () => {
    assert.deepEqual(next(), { dueAt: noon + 4_000, leaveLane: false });
    assert.deepEqual(next({ failures: 2, now: noon + 10_000 }, {}, 0.5), { dueAt: noon + 22_000, leaveLane: false });
  });

  test("the service is not asked before the time it named, and may be asked later than that", () => {
    assert.deepEqual(next({ error: refusal(7_000) }), { dueAt: noon + 7_000, leaveLane: false });
    assert.deepEqual(next({ error: refusal(500) }), { dueAt: noon + 4_000, leaveLane: false });
    assert.deepEqual(next({ error: refusal(0) }, {}, 0), { dueAt: noon + 250, leaveLane: false });
  });

  test("a service that asks for a year is asked again after a day", () => {
    const { dueAt } = next({ error: refusal(365 * 86_400_000) }, { maxAgeMs: 30 * 86_400_000 }) as { dueAt: number };
    assert.equal(dueAt, noon + 86_400_000);
  });

  test("the wait is within the bounds of chance and of what the service named", () => {
    const asked = fc.option(fc.integer({ min: 0, max: 3_600_000 }), { nil: undefined });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), asked, random, (failures, retryAfterMs, number) => {
        const decision = next({ failures, error: refusal(retryAfterMs) }, {}, number);
        if ("giveUp" in decision) return false;
        const wait = decision.dueAt - noon;
        const jitter = jitteredMs(aRule, failures, () => number);
        return wait === Math.max(jitter, retryAfterMs ?? 0) && wait <= aRule.maxAgeMs;
      }),
    );
  });

  test("that was the last one the message is given up, with the number of tries and the target's words", () => {
    assert.deepEqual(next({ failures: 8 }), { giveUp: "Given up after 8 tries: It said no" });
    assert.deepEqual(next({ failures: 8, error: refusal(7_000) }), { giveUp: "Given up after 8 tries: It said no" });
    assert.deepEqual(next({ failures: 1 }, { tries: 1 }), { giveUp: "Given up after one try: It said no" });
    assert.ok("dueAt" in next({ failures: 7 }));
  });

  test("the last one is made when the message has reached its age, not later", () => {
    const { dueAt } = next({ failures: 5, now: noon + 80_000_000 }) as { dueAt: number };
    assert.equal(dueAt, noon + 80_000_000 + 5_184_000);
    const last = next({ failures: 6, now: noon + 80_000_000 });
    assert.deepEqual(last, { dueAt: noon + 86_400_000, leaveLane: true });
    const asked = next({ now: noon + 80_000_000, error: refusal(80_000_000) });
    assert.deepEqual(asked, { dueAt: noon + 86_400_000, leaveLane: true });
  });

  test("at that age the message is given up, with its age and the target's words", () => {
    assert.ok("dueAt" in next({ now: noon + 86_399_999 }));
    for (const late of [0, 1, 86_400_000]) {
      const decision = next({ now: noon + 86_400_000 + late });
      assert.deepEqual(decision, { giveUp: "Given up after 24 h: It said no" });
    }
    for (const [maxAgeMs, words] of [
      [1_800_000, "30 min"],
      [5_400_000, "1.5 h"],
      [45_000, "45 s"],
    ] as const) {
      const decision = next({ now: noon + maxAgeMs }, { maxAgeMs });
      assert.deepEqual(decision, { giveUp: `Given up after ${words}: It said no` });
    }
  });

  test("no try is ever due after the message's age, nor in the past", () => {
    const ages = fc.integer({ min: 0, max: 2 * aRule.maxAgeMs });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 }), ages, random, (failures, age, number) => {
        const decision = next({ failures, now: noon + age }, {}, number);
        if ("giveUp" in decision) return failures >= aRule.tries || age >= aRule.maxAgeMs;
        return decision.dueAt > noon + age && decision.dueAt <= noon + aRule.maxAgeMs;
      }),
    );
  });

  test("that the service refused for good the message is given up, with nothing but its words", () => {
    assert.deepEqual(next({ error: refusal("never") }), { giveUp: "It said no" });
  });

  test("later messages to the place wait until the order has been kept long enough", () => {
    const leaves = (now: number, rule: Partial<MessageRule> = {}) => {
      const decision = next({ now }, rule);
      return "dueAt" in decision && decision.leaveLane;
    };
    assert.equal(leaves(noon + 600_000 - 4_000), false);
    assert.equal(leaves(noon + 600_000 - 3_999), true);
    assert.equal(leaves(noon, { keepOrderMs: 0 }), true);
  });
});

describe("after a try whose end nobody knows", () => {
  for (const repeats of ["recognised", "findable", "doubled"] as const) {
    test(`a service by which a copy is "${repeats}" gets it again, where the rule is at_least_once`, () => {
      assert.ok("dueAt" in next({ error: lostAnswer, repeats }));
    });
  }

  test("one that shows two copies gets no second one, where the rule is at_most_once", () => {
    const decision = next({ error: lostAnswer }, { whenUnknown: "at_most_once" });
    assert.deepEqual(decision, { giveUp: unsureReason("No answer") });
    assert.match(unsureReason("No answer"), /may have been sent.*at_most_once: No answer$/);
  });

  test("at_most_once is no reason where a copy is recognised or found, nor when nothing was sent", () => {
    for (const repeats of ["recognised", "findable"] as const) {
      assert.ok("dueAt" in next({ error: lostAnswer, repeats }, { whenUnknown: "at_most_once" }), repeats);
    }
    assert.ok("dueAt" in next({}, { whenUnknown: "at_most_once" }));
    assert.equal(mustNotRepeat({ ...aRule, whenUnknown: "at_most_once" }, "doubled"), true);
    assert.equal(mustNotRepeat({ ...aRule, whenUnknown: "at_most_once" }, "findable"), false);
    assert.equal(mustNotRepeat(aRule, "doubled"), false);
  });

  test("a service that can be asked for it gets some seconds to show what it took", () => {
    assert.deepEqual(next({ error: lostAnswer, repeats: "findable" }, {}, 0), {
      dueAt: noon + 5_000,
      leaveLane: false,
    });
    assert.deepEqual(next({ error: lostAnswer, repeats: "recognised" }, {}, 0), {
      dueAt: noon + 250,
      leaveLane: false,
    });
    assert.deepEqual(next({ repeats: "findable" }, {}, 0), { dueAt: noon + 250, leaveLane: false });
  });
});

describe("what a failed try says of its target", () => {
  test("is trouble, five messages of which pause it for five seconds at first and five minutes at most", () => {
    for (const error of [refusal(), lostAnswer]) {
      assert.deepEqual(healthAfter(error, noon), {
        mark: "trouble",
        threshold: 5,
        firstPauseMs: 5_000,
        longestPauseMs: 300_000,
        reason: error.message,
      });
    }
  });

  test("is that it is busy, when it named a time, for a day at most", () => {
    assert.deepEqual(healthAfter(refusal(7_000), noon), { mark: "busy", until: noon + 7_000, reason: "It said no" });
    const year = healthAfter(refusal(365 * 86_400_000), noon);
    assert.equal(year?.mark === "busy" && year.until, noon + 86_400_000);
  });

  test("is nothing when the message itself was refused", () => {
    assert.equal(healthAfter(refusal("never"), noon), null);
  });
});
