import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import {
  beginnings,
  finalJobStates,
  finalMessageStates,
  jobMoves,
  jobStates,
  messageMoves,
  messageStates,
} from "../../src/store/states.ts";

interface Table {
  readonly states: readonly string[];
  readonly moves: readonly [name: string, move: { readonly from: readonly string[]; readonly to: string }][];
  readonly begin: readonly string[];
  readonly final: readonly string[];
}

const tables: Record<string, Table> = {
  job: {
    states: Object.keys(jobStates),
    moves: Object.entries(jobMoves),
    begin: Object.values(beginnings).map(({ job }) => job),
    final: finalJobStates,
  },
  message: {
    states: Object.keys(messageStates),
    moves: Object.entries(messageMoves),
    begin: Object.values(beginnings).map(({ message }) => message),
    final: finalMessageStates,
  },
};

const page = new URL("../../docs/ARCHITECTURE.md", import.meta.url);
const noPage = existsSync(page) ? false : "docs/ARCHITECTURE.md is not there";

for (const [name, { states, moves, begin, final }] of Object.entries(tables)) {
  describe(`the states of a ${name}`, () => {
    test("are all there that a move or a beginning names", () => {
      for (const state of [...begin, ...final, ...moves.flatMap(([, { from, to }]) => [...from, to])]) {
        assert.ok(states.includes(state), state);
      }
    });

    test("can all be reached", () => {
      const reached = new Set(begin);
      for (const state of reached) for (const [, { from, to }] of moves) if (from.includes(state)) reached.add(to);
      assert.deepEqual([...reached].sort(), [...states].sort());
    });

    test("have a way out each, or are final", () => {
      for (const state of states) {
        const hasWayOut = moves.some(([, { from }]) => from.includes(state));
        assert.equal(hasWayOut, !final.includes(state), state);
      }
    });

    test("lead to a final one from everywhere", () => {
      const leading = new Set(final);
      for (let before = -1; before !== leading.size; ) {
        before = leading.size;
        for (const [, { from, to }] of moves) if (leading.has(to)) for (const state of from) leading.add(state);
      }
      assert.deepEqual([...leading].sort(), [...states].sort());
    });

    test("never lead back to themselves in one move", () => {
      for (const [move, { from, to }] of moves) assert.ok(!from.includes(to), move);
    });

    test("and their moves are in the architecture's page, word by word", { skip: noPage }, () => {
      const text = readFileSync(page, "utf8");
      for (const word of [...states, ...moves.map(([move]) => move)]) {
        assert.ok(text.includes(`\`${word}\``), `\`${word}\` is missing`);
      }
    });
  });
}
