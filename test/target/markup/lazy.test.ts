import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

test("the parser of Markdown is loaded when a text is to be read, not with the program", async () => {
  const { cache } = createRequire(import.meta.url);
  const isLoaded = () => Object.keys(cache).some((file) => file.includes("markdown-it"));
  await import("../../../src/target/registry.ts");
  const { markdownToPlain } = await import("../../../src/target/markup/plain.ts");
  assert.equal(isLoaded(), false);
  assert.equal(markdownToPlain("**a**"), "a");
  assert.equal(isLoaded(), true);
});
