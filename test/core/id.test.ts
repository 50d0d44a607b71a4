import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, newId } from "../../src/core/id.ts";

test("an id is a UUID of version 7 that carries its time", () => {
  const id = newId(1_732_190_000_000);
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16), 1_732_190_000_000);
});

test("ids of one millisecond differ, and ids sort by their time", () => {
  const ids = Array.from({ length: 1000 }, () => newId(1));
  assert.equal(new Set(ids).size, 1000);
  assert.ok(newId(1000) < newId(1001) && newId(0xffff) < newId(0x10000));
});

test("ids sort in the order they were made, within a millisecond and when the clock goes back a little", () => {
  const times = [...Array<number>(6000).fill(5_000), 4_990, 4_500, 5_000, 5_001];
  const ids = times.map((time) => newId(time));
  assert.deepEqual(ids.toSorted(), ids);
});

test("ids follow a clock that was set back", () => {
  newId(9_000_000);
  assert.equal(Number.parseInt(newId(5_000).replaceAll("-", "").slice(0, 12), 16), 5_000);
});

test("a key depends on every word and on where the words end", () => {
  assert.equal(keyOf("a", 1), keyOf("a", 1));
  assert.match(keyOf("a"), /^[0-9a-f]{32}$/);
  const keys = [keyOf("ab", "c"), keyOf("a", "bc"), keyOf("abc"), keyOf("a", 1), keyOf("a", "1")];
  assert.equal(new Set(keys).size, keys.length);
});
