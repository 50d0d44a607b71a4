import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { measure, type SplitLimit, splitText } from "../../src/core/split.ts";
import { fc } from "../tools/property.ts";

const twelve = { unit: "utf16", max: 12, parts: 9 } as const;
const notice = "[cut: the answer was longer]";

describe("splitText", () => {
  const cuts: [what: string, text: string, parts: string[]][] = [
    ["after a paragraph", "first one\n\nsecond", ["first one", "second"]],
    ["after a line", "first one\nsecond", ["first one", "second"]],
    ["after a word", "first one second", ["first one", "second"]],
    ["after a word that just fits", "first one ab second", ["first one ab", "second"]],
    ["between characters where there is nothing better", "a".repeat(30), ["a".repeat(12), "a".repeat(12), "aaaaaa"]],
    ["between graphemes", `${"a".repeat(10)}👩‍👩‍👧‍👦`, ["a".repeat(10), "👩‍👩‍👧‍👦"]],
    ["and skips blank lines", "first one\n\n\n\n \nsecond", ["first one", "second"]],
    ["and skips blanks that fill a part", `a${" ".repeat(90)}b`, ["a", "b"]],
    ["and leaves what fits as it is", " a\n\n", [" a\n\n"]],
  ];
  for (const [what, text, parts] of cuts) {
    test(`cuts ${what}`, () => assert.deepEqual(splitText(text, twelve), parts));
  }

  test("keeps what the next line is indented by", () => {
    const text = `${"word ".repeat(8)}\n\n  - second`;
    assert.deepEqual(splitText(text, { ...twelve, max: 45 }), ["word ".repeat(8).trimEnd(), "  - second"]);
  });

  test("ends the last part in a notice when more was left", () => {
    const parts = splitText("word ".repeat(100), { unit: "utf16", max: 130, parts: 2 });
    assert.equal(parts.length, 2);
    assert.ok(parts[1]?.endsWith(`\n\n${notice}`));
    assert.ok(parts.every((part) => part.length <= 130));
  });

  test("says nothing of more when only blanks were left", () => {
    assert.deepEqual(splitText(`${"a".repeat(12)}\n\n\n`, { ...twelve, parts: 1 }), ["a".repeat(12)]);
  });

  test("closes a code fence that it cuts and opens it again in the next part", () => {
    const text = `Look:\n\n\`\`\`ts\n${"let a = 1;\n".repeat(12)}\`\`\`\n\nDone`;
    const parts = splitText(text, { unit: "utf16", max: 60, parts: 9 });
    assert.ok(parts.length > 2);
    assert.ok(parts.every((part) => part.length <= 60));
    assert.match(parts[0] ?? "", /^Look:/);
    for (const part of parts.slice(1, -1)) assert.match(part, /^```ts\n(let a = 1;\n)+```/);
    assert.match(parts.at(-1) ?? "", /```\n\nDone$/);
    assert.equal(parts.join("").match(/let a = 1;/g)?.length, 12);
  });

  test("keeps a code block in one part where it can", () => {
    const code = "~~~~ts `a`\nlet a = 1;\nlet b = 2;\n~~~~";
    assert.deepEqual(splitText(`${"word ".repeat(10)}\n${code}`, { unit: "utf16", max: 80, parts: 9 }), [
      "word ".repeat(10).trimEnd(),
      code,
    ]);
  });

  test("takes the code of a list out of its indentation when it goes on in another part", () => {
    const text = `1. Do:\n\n     \`\`\`sh\n${"     make it so\n".repeat(9)}     \`\`\`\n2. Done`;
    const parts = splitText(text, { unit: "utf16", max: 110, parts: 9 });
    assert.match(parts[0] ?? "", / {5}make it so\n {5}```$/);
    assert.match(parts[1] ?? "", /^```sh\n(make it so\n)+```\n2\. Done$/);
  });

  test("leaves no empty code block when nothing but the closing fence is left", () => {
    const text = `\`\`\`\n${"a".repeat(50)}\n\`\`\`\nafter it`;
    assert.deepEqual(splitText(text, { unit: "utf16", max: 58, parts: 9 }), [
      `\`\`\`\n${"a".repeat(50)}\n\`\`\``,
      "after it",
    ]);
  });

  test("numbers a series from the count on that it is told", () => {
    const limit = { unit: "utf16", max: 40, parts: 12, numberedFrom: 3 } as const;
    assert.deepEqual(splitText("word ".repeat(12), limit).length, 2);
    assert.doesNotMatch(splitText("word ".repeat(12), limit).join(""), /\(/);
    const parts = splitText("word ".repeat(30), limit);
    for (const [index, part] of parts.entries()) {
      assert.ok(part.endsWith(`\n\n(${index + 1}/${parts.length})`), part);
      assert.ok(part.length <= 40);
    }
    const many = splitText("word ".repeat(500), limit);
    assert.equal(many.length, 12);
    assert.ok(many[11]?.endsWith("\n\n(12/12)") && many.every((part) => part.length <= 40));
  });

  test("measures what becomes of a part, not its source", () => {
    const escaped = {
      unit: "utf16",
      max: 50,
      parts: 99,
      rendered: (part: string) => part.replaceAll("&", "&amp;"),
    } as const;
    const parts = splitText("& ".repeat(100), escaped);
    assert.ok(parts.every((part) => escaped.rendered(part).length <= 50));
    assert.equal(parts.join(" "), "& ".repeat(100).trim());
    const whole = { unit: "utf16", max: 4096, parts: 9, rendered: (part: string) => part } as const;
    assert.deepEqual(
      splitText("a".repeat(8200), whole).map(({ length }) => length),
      [4096, 4096, 8],
    );
    const bare = { unit: "utf16", max: 50, parts: 99, rendered: (part: string) => part.replaceAll("**", "") } as const;
    assert.equal(splitText("**ab** ".repeat(14), bare).length, 1);
  });

  test("renders little more than what fits", () => {
    const sizes: number[] = [];
    const rendered = (part: string) => {
      sizes.push(part.length);
      return part;
    };
    splitText("word and more ".repeat(5000), { unit: "utf16", max: 4000, parts: 5, numberedFrom: 3, rendered });
    assert.ok(Math.max(...sizes) < 4000 * 1.1, `${Math.max(...sizes)}`);
    assert.ok(sizes.length < 40, `${sizes.length}`);
  });

  test("cuts a letter with more accents than a part can hold between them", () => {
    const letter = `e${"\u0301".repeat(300)}`;
    const parts = splitText(letter, { unit: "bytes", max: 80, parts: 20 });
    assert.ok(parts.every((part) => Buffer.byteLength(part) <= 80));
    assert.equal(parts.join(""), letter);
  });

  test("does not cut a surrogate pair, however it cuts a letter", () => {
    const letter = `e${"\u{1e8d0}".repeat(100)}`;
    const parts = splitText(letter, { unit: "utf16", max: 14, parts: 100 });
    assert.ok(parts.every((part) => part.isWellFormed() && part.length <= 14));
    assert.equal(parts.join(""), letter);
  });
});

describe("measure", () => {
  const sizes: [text: string, unit: SplitLimit["unit"], size: number][] = [
    ["a😀é", "utf16", 4],
    ["a😀é", "codepoints", 3],
    ["a😀é", "bytes", 7],
    ["", "segments", 0],
    ["a".repeat(160), "segments", 1],
    ["a".repeat(161), "segments", 2],
    ["a".repeat(306), "segments", 2],
    ["a".repeat(307), "segments", 3],
    ["€".repeat(80), "segments", 1],
    ["€".repeat(81), "segments", 2],
    // An escape does not end a segment: 76 of two septets fit in 153.
    ["€".repeat(153), "segments", 3],
    ["я".repeat(70), "segments", 1],
    ["я".repeat(71), "segments", 2],
    ["я".repeat(134), "segments", 2],
    [`${"я".repeat(66)}😀${"я".repeat(66)}`, "segments", 3],
  ];
  for (const [text, unit, size] of sizes) {
    test(`counts ${size} ${unit} in ${JSON.stringify(text.slice(0, 8))} × ${text.length}`, () => {
      assert.equal(measure(text, unit), size);
    });
  }
});

const units = fc.constantFrom<SplitLimit["unit"]>("utf16", "codepoints", "bytes");
/** Few kinds of pieces, so that fences, blanks and odd characters meet often. */
const pieces = fc.constantFrom(
  ...[
    "a",
    "word ",
    "\n",
    "\n\n",
    "   ",
    "```\n",
    "```ts\n",
    "\n```\n",
    "~~~\n",
    "\n  ```\n",
    "- ",
    "> ",
    "\t",
    "\u3000",
  ],
  ...["😀", "👩‍👩‍👧‍👦", "e\u0301", "\ud800", "\udc00", "&", "**", "`", "🇩🇪", "\u200d"],
);
const texts = fc.array(pieces, { maxLength: 120, size: "max" }).map((list) => list.join(""));

describe("every text, cut by every limit", () => {
  test("gives parts that fit, that are not blank, and that are the same each time", () => {
    fc.assert(
      fc.property(texts, units, fc.integer({ min: 12, max: 90 }), fc.boolean(), (text, unit, max, isNumbered) => {
        const limit = { unit, max, parts: 4, ...(isNumbered ? { numberedFrom: 2 } : {}) };
        const parts = splitText(text, limit);
        assert.ok(parts.length >= 1 && parts.length <= 4);
        for (const part of parts) {
          assert.ok(measure(part, unit) <= max, `${measure(part, unit)} of ${max} ${unit}: ${JSON.stringify(part)}`);
          assert.ok(part.trim() !== "" || text.trim() === "", JSON.stringify(parts));
          assert.ok(part.isWellFormed() || !text.isWellFormed());
        }
        assert.deepEqual(splitText(text, limit), parts);
      }),
    );
  });

  test("loses nothing but blanks at the cuts", () => {
    fc.assert(
      fc.property(texts, units, fc.integer({ min: 12, max: 90 }), (text, unit, max) => {
        const words = text.replaceAll(/[`~]/g, "");
        const parts = splitText(words, { unit, max, parts: 1000 });
        assert.equal(parts.join("").replaceAll(/\s/g, ""), words.replaceAll(/\s/g, ""));
      }),
    );
  });

  test("never leaves a fence open that it opened, nor code outside of one", () => {
    const blocks = fc.array(fc.tuple(fc.constantFrom("word ", "line\n"), fc.nat(30), fc.nat(20)), {
      maxLength: 6,
      size: "max",
    });
    fc.assert(
      fc.property(blocks, fc.integer({ min: 40, max: 90 }), (list, max) => {
        const text = list.map(
          ([piece, n, lines]) => `${piece.repeat(n)}\n\`\`\`ts\n${"code;\n".repeat(lines)}\`\`\`\n`,
        );
        for (const part of splitText(text.join(""), { unit: "utf16", max, parts: 1000 })) {
          let isOpen = false;
          for (const line of part.split("\n")) {
            if (line.startsWith("```")) isOpen = !isOpen;
            else assert.equal(line === "code;", isOpen, part);
          }
          assert.equal(isOpen, false, part);
        }
      }),
    );
  });

  test("does so with what the rendered form takes, too", () => {
    const rendered = (part: string) => part.replaceAll("&", "&amp;").replaceAll("**", "");
    fc.assert(
      fc.property(texts, fc.integer({ min: 24, max: 90 }), (text, max) => {
        for (const part of splitText(text, { unit: "utf16", max, parts: 5, rendered, numberedFrom: 3 })) {
          assert.ok(rendered(part).length <= max, JSON.stringify(part));
        }
      }),
    );
  });

  for (const max of [1, 3, 10]) {
    test(`gives no text message of more than ${max} segments`, () => {
      fc.assert(
        fc.property(
          fc.array(fc.constantFrom("word ", "€", "я", "😀", "\n"), { maxLength: 1500, size: "max" }),
          (list) => {
            for (const part of splitText(list.join(""), { unit: "segments", max, parts: 9, numberedFrom: 2 })) {
              assert.ok(measure(part, "segments") <= max);
            }
          },
        ),
        { numRuns: 30 },
      );
    });
  }
});

describe("a megabyte", () => {
  const shapes: [what: string, piece: string][] = [
    ["one word", "a"],
    ["spaces", " "],
    ["newlines", "\n"],
    ["a blank line now and then", `${" ".repeat(5000)}\n`],
    ["fences", "```\n"],
    ["fences of two kinds in each other", "```\n~~~\n"],
    ["a fence and a lot of code", "code;\n"],
    ["backticks", "`"],
    ["indented fences", "     ```\n     a\n     ```\n"],
    ["accents", "\u0301"],
    ["families", "👩‍👩‍👧‍👦"],
    ["joiners", "\u200d"],
    ["flags", "🇩🇪"],
    ["lone surrogates", "\ud800"],
    ["swapped surrogates", "\udc00\ud800"],
    ["wide blanks", "\u3000"],
  ];
  const limits: SplitLimit[] = [
    { unit: "utf16", max: 4096, parts: 10, numberedFrom: 3 },
    { unit: "bytes", max: 2048, parts: 1000 },
    { unit: "segments", max: 10, parts: 10, numberedFrom: 2 },
    { unit: "codepoints", max: 100, parts: 100_000 },
  ];
  for (const [what, piece] of shapes) {
    test(`of ${what} is cut in little time`, () => {
      const text = `x${piece.repeat(1_000_000 / piece.length)}x`;
      for (const limit of limits) {
        const started = performance.now();
        const parts = splitText(text, limit);
        const tookMs = performance.now() - started;
        assert.ok(tookMs < 5_000, `${tookMs} ms for ${limit.max} ${limit.unit}`);
        assert.ok(parts.every((part) => measure(part, limit.unit) <= limit.max));
      }
    });
  }
});
