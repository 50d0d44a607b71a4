import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./loading.ts";

const dayMs = 86_400_000;

test("without a word about it, finished events are kept for 30 days and up to 2 GiB", async (t) => {
  const { retention } = await load(t, "");
  const age = 30 * dayMs;
  assert.deepEqual(retention, {
    maxAgeMs: { done: age, dead: age, refused: age, cancelled: age, ignored: age },
    maxBytes: 2 * 1024 ** 3,
  });
});

test("a state's own age wins over the one of all, and off has no end", async (t) => {
  const { retention } = await load(t, "retention: { max_age: 7d, states: { dead: off, ignored: 12h } }");
  assert.deepEqual(retention.maxAgeMs, {
    done: 7 * dayMs,
    refused: 7 * dayMs,
    cancelled: 7 * dayMs,
    ignored: dayMs / 2,
  });
});

test("both bounds can be switched off, and a state has an age all the same when it names one", async (t) => {
  const { retention } = await load(t, "retention: { max_age: off, max_size: off, states: { done: 3650d } }");
  assert.deepEqual(retention, { maxAgeMs: { done: 3650 * dayMs }, maxBytes: undefined });
});

for (const [written, bytes] of [
  ["1048576", 1_048_576],
  ['"1048576"', 1_048_576],
  ["1024KiB", 1_048_576],
  ["1500KB", 1_500_000],
  ["1.5MiB", 1_572_864],
  ["500MB", 500_000_000],
  ["2 GiB", 2_147_483_648],
  ["3GB", 3_000_000_000],
  ["1TB", 1e12],
  ["1024TiB", 2 ** 50],
] as const) {
  test(`the size ${written} is ${bytes} bytes`, async (t) => {
    assert.equal((await load(t, `retention: { max_size: ${written} }`)).retention.maxBytes, bytes);
  });
}
