import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { markdownToRanges, type RangeKind } from "../../../src/target/markup/ranges.ts";
import { fc } from "../../tools/property.ts";
import { markdownTexts, pathological } from "./texts.ts";

/** Text with each range in brackets, so that a wrong offset is seen. */
function shown(markdown: string, kinds?: RangeKind[]): string {
  const { text, ranges } = markdownToRanges(markdown, kinds);
  const marks: { at: number; mark: string }[] = [];
  for (const { offset, kind, url = "", lang = "" } of ranges) {
    marks.push({ at: offset, mark: `<${kind}${url && `=${url}`}${lang && `=${lang}`}:` });
  }
  for (const { offset, length } of [...ranges].reverse()) marks.push({ at: offset + length, mark: ">" });
  let written = "";
  for (let at = 0; at <= text.length; at += 1) {
    written += marks
      .filter(({ at: place, mark }) => place === at && mark === ">")
      .map(({ mark }) => mark)
      .join("");
    written += marks
      .filter(({ at: place, mark }) => place === at && mark !== ">")
      .map(({ mark }) => mark)
      .join("");
    written += text[at] ?? "";
  }
  return written;
}

describe("markdownToRanges", () => {
  const cases: [what: string, markdown: string, text: string][] = [
    ["emphasis, in UTF-16 units", "😀 **a *b* c** ~~d~~", "😀 <bold:a <italic:b> c> <strike:d>"],
    ["code", "`a*b*` x\n```ts\nlet a;\n```", "<code:a*b*> x\n<pre=ts:let a;>"],
    ["a code block without a language", "```\na\n\n  b\n```", "<pre:a\n\n  b>"],
    ["links", "[a **b**](https://c.d)", "<link=https://c.d:a <bold:b>>"],
    ["addresses of e-mail as text", "[us](mailto:a@b.c) <a@b.c>", "us (a@b.c) a@b.c"],
    ["a link that reads otherwise", "[bank.com](https://e.f)", "bank.com (https://e.f)"],
    ["headings and quotations", "# A\n> **b**\n> c", "<heading:A>\n<quote:<bold:b>\nc>"],
    ["lists, indented with their ranges", "- **a**\n  **b\n  c**\n- `d`", "- <bold:a>\n  <bold:b\n  c>\n- <code:d>"],
    ["a code block in a list", "1. x\n   ```\n   a\n   b\n   ```\n2. y", "1. x\n   <pre:a\n   b>\n2. y"],
    ["a table as code", "|a|b|\n|-|-|\n|1|2|", "<pre:a | b\n--|--\n1 | 2>"],
    ["text without markup as it is", "\n snake_case <b> \\\\n  \n", "\n snake_case <b> \\\\n  \n"],
  ];
  for (const [what, markdown, text] of cases) {
    test(`answers ${what}`, () => assert.equal(shown(markdown), text));
  }

  test("writes in plain text what the service does not have", () => {
    assert.equal(shown("> a\n> **b**", ["bold"]), "> a\n> <bold:b>");
    assert.equal(shown("[a](https://b.c) `d`\n# e", []), "a (https://b.c) d\ne");
  });

  test("answers ranges within the text, none empty, none blank at its ends, none across another", () => {
    fc.assert(
      fc.property(markdownTexts, (markdown) => {
        for (const kinds of [undefined, ["bold", "code", "pre"] as RangeKind[]]) {
          const { text, ranges } = markdownToRanges(markdown, kinds);
          for (const { offset, length } of ranges) {
            const inner = text.slice(offset, offset + length);
            assert.ok(length > 0 && inner.length === length && inner.trim() === inner, JSON.stringify([text, ranges]));
            for (const other of ranges) {
              const [from, to] = [
                Math.max(offset, other.offset),
                Math.min(offset + length, other.offset + other.length),
              ];
              assert.ok(from >= to || to - from === Math.min(length, other.length), JSON.stringify([text, ranges]));
            }
          }
        }
      }),
    );
  });

  test("takes 64 KiB of anything in little time", () => {
    for (const [what, text] of pathological) {
      const started = performance.now();
      markdownToRanges(text.slice(0, 65_536), ["bold"]);
      assert.ok(performance.now() - started < 5_000, what);
    }
  });
});
