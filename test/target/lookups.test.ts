import assert from "node:assert/strict";
import { test } from "node:test";
import { Lookups } from "../../src/target/lookups.ts";

function counting(now = { ms: 0 }) {
  const asked: string[] = [];
  const lookups = new Lookups<string>(1000, () => now.ms);
  const get = (name: string) =>
    lookups.get(["service", name], async () => {
      asked.push(name);
      return name.toUpperCase();
    });
  return { asked, get, lookups, now };
}

test("asks once for what is known, again when its time is up, and again when it is to be forgotten", async () => {
  const { asked, get, lookups, now } = counting();
  assert.equal(await get("a"), "A");
  now.ms = 999;
  assert.equal(await get("a"), "A");
  assert.deepEqual(asked, ["a"]);
  now.ms = 1000;
  await get("a");
  lookups.forget(["service", "a"]);
  await get("a");
  assert.deepEqual(asked, ["a", "a", "a"]);
});

test("keeps no failure", async () => {
  const lookups = new Lookups<string>(1000, () => 0);
  await assert.rejects(
    lookups.get(["a"], () => Promise.reject(new Error("away"))),
    /away/,
  );
  assert.equal(await lookups.get(["a"], async () => "here"), "here");
});

test("holds a thousand answers and drops the oldest first, whatever payloads ask for", async () => {
  const { asked, get } = counting();
  for (let number = 0; number <= 1000; number += 1) await get(String(number));
  asked.length = 0;
  await get("1");
  await get("1000");
  assert.deepEqual(asked, []);
  await get("0");
  assert.deepEqual(asked, ["0"]);
});
