import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Trouble } from "../../src/core/trouble.ts";

const longest = { firstMs: 1_000, longestMs: 300_000, random: () => 1 };

describe("trouble", () => {
  test("doubles the wait with each failure up to the longest, and begins anew when it is over", () => {
    const trouble = new Trouble(longest);
    const pauses = Array.from({ length: 11 }, () => trouble.failed("down").pauseMs);
    assert.deepEqual(pauses.slice(0, 4), [1_000, 2_000, 4_000, 8_000]);
    assert.deepEqual(pauses.slice(-2), [300_000, 300_000]);
    trouble.over();
    assert.equal(trouble.failed("down").pauseMs, 1_000);
  });

  test("waits anything up to that, as chance will have it", () => {
    assert.equal(new Trouble({ ...longest, random: () => 0 }).failed("down").pauseMs, 0);
    assert.equal(new Trouble({ ...longest, random: () => 0.25 }).failed("down").pauseMs, 250);
  });

  test("calls each reason news once, until it is over", () => {
    const trouble = new Trouble(longest);
    const news = ["down", "down", "reset", "down", "reset"].map((reason) => trouble.failed(reason).isNews);
    assert.deepEqual(news, [true, false, true, false, false]);
    assert.equal(trouble.over(), true);
    assert.equal(trouble.over(), false);
    assert.equal(trouble.failed("down").isNews, true);
  });

  test("stops calling anything news when every reason is another one", () => {
    const trouble = new Trouble(longest);
    const news = Array.from({ length: 100 }, (_, index) => trouble.failed(`port ${index}`).isNews);
    assert.equal(news.filter((isNews) => isNews).length, 20);
  });
});
