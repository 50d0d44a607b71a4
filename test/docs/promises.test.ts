import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { repeatWords } from "../../scripts/targets-table.ts";
import { globalRetry } from "../../src/config/retry.ts";
import { configSchema } from "../../src/config/schema.ts";
import { DeliveryError } from "../../src/core/errors.ts";
import { healthAfter, jitteredMs, unsureReason } from "../../src/ledger/retry.ts";
import * as targets from "../../src/target/registry.ts";
import type { Target } from "../../src/target/target.ts";
import { pages } from "./blocks.ts";

const page = readFileSync(new URL(`../../${pages.promises}`, import.meta.url), "utf8");
const config = configSchema.parse({});
const rule = globalRetry(config.retry);
const all: readonly Target[] = Object.values(targets);

/** The rows of the table whose head begins with this cell, as cells. */
function table(head: string): string[][] {
  const lines = page.split("\n");
  const start = lines.findIndex((line) => line.startsWith(`| ${head} |`)) + 2;
  assert.ok(start > 1, `there is no table "${head}"`);
  const end = lines.findIndex((line, index) => index >= start && !line.startsWith("|"));
  return lines.slice(start, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** Such as `1 h 26 min 24 s`. */
function spoken(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const parts = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ] as const;
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count} ${unit}`] : [])).join(" ");
}

test("the tests that the page names are there", () => {
  const named = [...page.matchAll(/`((?:test|chaos)\/[^`]+)`/g)].map(([, path]) => path!);
  assert.ok(named.length > 30);
  assert.deepEqual(
    named.filter((path) => !existsSync(new URL(`../../${path}`, import.meta.url))),
    [],
  );
});

test("every promise says where it is tested, and all but one what it does not say", () => {
  const promises = page.split(/^## /m).slice(1, -1);
  assert.ok(promises.length > 10);
  const without = (words: string) =>
    promises.filter((text) => !text.includes(words)).map((text) => text.split("\n")[0]);
  assert.deepEqual(without("\n- Tested: "), []);
  assert.deepEqual(without("\n- Not promised: "), ["Trouble with the store ends by itself"]);
});

test("the waits between tries are those of the default rule", () => {
  const rows = Array.from({ length: rule.tries - 1 }, (_, index) => {
    const [longest, average] = [1, 0.5].map((chance) => spoken(jitteredMs(rule, index + 1, () => chance)));
    return [String(index + 2), longest, average];
  });
  assert.deepEqual(table("Before try"), rows);
});

test("every kind of target is there, with what becomes of a copy", () => {
  const kinds = new Set(all.map(({ repeats }) => repeatWords[repeats]));
  assert.deepEqual(new Set(table("Sent twice").map(([kind]) => kind)), kinds);
});

const failure = new DeliveryError("Broken", { sent: "no" });

for (const [words, value, expected] of [
  ["a message is tried 8 times", rule.tries, 8],
  ["No try is made later than 24 hours", rule.maxAgeMs, 86_400_000],
  ["for 10 minutes (`retry.keep_order_for`)", rule.keepOrderMs, 600_000],
  ["It arrives at least once", rule.whenUnknown, "at_least_once"],
  ["is made twice more (`retry.run_tries`)", rule.runTries, 3],
  ["(`store.lease`, 30 s)", config.store.lease, 30_000],
  ["within `shutdown_timeout` (30 s)", config.shutdown_timeout, 30_000],
  [
    "the tries of five messages in a row failed in a way that may pass, the target is paused for 5 s",
    healthAfter(failure, 0),
    { mark: "trouble", threshold: 5, firstPauseMs: 5_000, longestPauseMs: 300_000, reason: failure.message },
  ],
  [
    "30 messages a second to Telegram and one to each chat",
    targets.telegram.pace,
    { overall: { count: 30, everyMs: 1000 }, perPlace: { field: "chat_id", count: 1, everyMs: 1000 } },
  ],
  ["80 comments a minute to GitHub", targets.github_comment.pace, { overall: { count: 80, everyMs: 60_000 } }],
] as const) {
  test(`it is true that: ${words}`, () => {
    assert.ok(page.replaceAll(/\s+/g, " ").includes(words), "the page does not say so");
    assert.deepEqual(value, expected);
  });
}

test("the reason of what is given up is the one that the page shows", () => {
  const [, shown = "nothing"] = /`dead` with\s+the reason "([^"]+)"/.exec(page) ?? [];
  assert.equal(unsureReason("the words"), `${shown}: the words`);
});
