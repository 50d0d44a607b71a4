import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { jobMoves, jobStates, messageMoves, messageStates } from "../../src/store/states.ts";

const page = readFileSync(new URL("../../docs/ARCHITECTURE.md", import.meta.url), "utf8");

type Moves = Readonly<Record<string, { readonly from: readonly string[]; readonly to: string; readonly when: string }>>;

function tablesOf(name: string, states: Readonly<Record<string, string>>, moves: Moves): string {
  return [
    ...[`| ${name} | |`, "|---|---|"],
    ...Object.entries(states).map(([state, words]) => `| \`${state}\` | ${words} |`),
    ...["", "| Move | From → to | When |", "|---|---|---|"],
    ...Object.entries(moves).map(
      ([move, { from, to, when }]) => `| \`${move}\` | ${from.join(", ")} → ${to} | ${when} |`,
    ),
    "",
  ].join("\n");
}

for (const [name, tables] of Object.entries({
  Job: tablesOf("Job", jobStates, jobMoves),
  Message: tablesOf("Message", messageStates, messageMoves),
})) {
  test(`the states and moves of a ${name.toLowerCase()} in docs/ARCHITECTURE.md are those of store/states.ts`, () => {
    const start = page.indexOf(`| ${name} | |`);
    assert.ok(start > 0, "there is no such table");
    const end = page.slice(start).search(/\n\n(?!\| Move)/);
    assert.equal(`${page.slice(start, end < 0 ? undefined : start + end).trimEnd()}\n`, tables);
  });
}

test("the files that docs/ARCHITECTURE.md names are there", () => {
  const named = [...page.matchAll(/`([a-z]+\/[a-z_/-]*\.ts)`/g)].map(([, path]) => path!);
  const missing = named.filter((path) => !existsSync(new URL(`../../src/${path}`, import.meta.url)));
  assert.ok(named.length > 15);
  assert.deepEqual(missing, []);
});
