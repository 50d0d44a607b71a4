import assert from "node:assert/strict";
import { test } from "node:test";
import { DatabaseClock } from "../../../src/store/postgres/clock.ts";
import { makeClock } from "../../tools/clock.ts";

/** A database's clock, and the two of a machine that never agree with it. */
function setUp() {
  const database = makeClock();
  const monotonic = makeClock();
  const uptime = makeClock();
  monotonic.advance(-1_000_000);
  const clock = new DatabaseClock(async () => database.now(), { monotonicMs: monotonic.now, uptimeMs: uptime.now });
  const pass = (ms: number) => {
    for (const one of [database, monotonic, uptime]) one.advance(ms);
  };
  return { database, uptime, clock, pass };
}

test("tells the database's time, between two looks too", async () => {
  const { database, clock, pass } = setUp();
  await clock.look();
  assert.equal(clock.now(), database.now());
  pass(29_000);
  assert.equal(clock.now(), database.now());
});

test("knows that time has passed while the machine was suspended", async () => {
  const { database, uptime, clock, pass } = setUp();
  await clock.look();
  pass(5_000);
  // What a suspended machine's monotonic clock does not count.
  database.advance(3_600_000);
  uptime.advance(3_600_000);
  assert.equal(clock.now(), database.now());
  await clock.look();
  pass(1_000);
  assert.equal(clock.now(), database.now());
});

test("does not take the whole seconds of the machine's uptime for a sleep", async () => {
  const { database, uptime, clock, pass } = setUp();
  await clock.look();
  pass(10_000);
  uptime.advance(1_000);
  assert.equal(clock.now(), database.now());
});

test("follows the database when its clock was set, at the next look", async () => {
  const { database, clock } = setUp();
  await clock.look();
  database.advance(-86_400_000);
  assert.equal(clock.now(), database.now() + 86_400_000);
  await clock.look();
  assert.equal(clock.now(), database.now());
});
