import assert from "node:assert/strict";
import { test } from "node:test";
import { accept } from "../../../src/store/postgres/accept.ts";
import type { Result } from "../../../src/store/sql/statement.ts";
import { aDirectEvent } from "../../tools/rows.ts";

/** Plays the database: each answer is what the next statement finds. Gives what `accept` makes of it, and how much it asked. */
function play(answers: readonly object[][]) {
  const work = accept(aDirectEvent({ deliveryId: "42" }));
  let step = work.next({ changes: 0, rows: [] } satisfies Result);
  let asked = 0;
  while (!step.done) {
    step = work.next({ changes: 0, rows: answers[asked] ?? [] });
    asked += 1;
  }
  return { answer: step.value, asked };
}

const taken = [{ accepted: 0 }];
const made = [{ accepted: 1 }];

test("an event is accepted with one statement", () => {
  assert.deepEqual(play([made]), { answer: { duplicate: false }, asked: 1 });
});

test("a copy says whether the first is being sent", () => {
  for (const isUnderWay of [true, false]) {
    assert.deepEqual(play([taken, [{ isUnderWay }]]), { answer: { duplicate: true, isUnderWay }, asked: 2 });
  }
});

test("a copy of a direct delivery that fails between the two looks is no copy: it is accepted", () => {
  assert.deepEqual(play([taken, [], made]), { answer: { duplicate: false }, asked: 3 });
});

test("a copy whose first comes and goes again and again is never called a duplicate of something that failed", () => {
  const { answer } = play(Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? taken : [])));
  assert.deepEqual(answer, { duplicate: true, isUnderWay: true });
});
