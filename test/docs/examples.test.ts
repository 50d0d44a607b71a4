import assert from "node:assert/strict";
import { test } from "node:test";
import { missing } from "../needs.ts";
import { blocksOf, pages } from "./blocks.ts";
import { exampleKinds, examplesIn, filesIn, runExample } from "./examples.ts";
import { openTerminal, replay } from "./session.ts";

const written = [pages.routes, pages.templates, pages.scripts, pages.subscriptions];

for (const page of written) {
  const blocks = blocksOf(page);
  const files = filesIn(blocks);

  for (const example of examplesIn(blocks)) {
    const needs = /^ *script: .*\.py$/m.test(example.route.text) ? missing("python3") : false;
    test(`the example at ${example.name} does what the page says`, { skip: needs }, (t) =>
      runExample(t, example, files),
    );
  }

  const sessions = blocks.filter(({ kind }) => kind === "session");
  if (sessions.length > 0) {
    test(`the commands of ${page} print what the page shows`, async (t) => {
      const terminal = await openTerminal(t);
      for (const session of sessions) await replay(terminal, session);
    });
  }

  test(`${page} has examples, and none that no test reads`, () => {
    const known = [...exampleKinds, "config", "session"];
    const unknown = blocks.filter(({ kind }) => !known.includes(kind));
    assert.deepEqual(
      unknown.map(({ line, language, kind }) => `${page}:${line} ${language} ${kind}`),
      [],
    );
    assert.ok(blocks.length > 3);
  });
}
