import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { backslash } from "../../src/target/backslash.ts";

describe("backslash", () => {
  const marks = /[*[\]]/g;
  const cases: [what: string, text: string, written: string][] = [
    ["the marks of a text", "a *b* [c]", "a \\*b\\* \\[c\\]"],
    ["nothing in an address", "see https://a.b/*c*[1] *d*", "see https://a.b/*c*[1] \\*d\\*"],
    ["the end of a link's text in an address", "https://a[https://b](https://c)", "https://a[https://b\\](https://c)"],
  ];
  for (const [what, text, written] of cases) {
    test(`marks ${what}`, () => assert.equal(backslash(text, marks), written));
  }
});
