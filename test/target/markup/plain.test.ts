import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { markdownToPlain } from "../../../src/target/markup/plain.ts";
import { fc } from "../../tools/property.ts";
import { pathological } from "./texts.ts";

describe("markdownToPlain", () => {
  const untouched: [what: string, text: string][] = [
    ["names with underscores", "snake_case_names and __init__ and __main__.py, MAX_FILE_SIZE"],
    ["a product", "2 * 3 * 4 = 24, 2*3*4, 2**3**4, 2*3 and 4*5, 2*(a+b)*c"],
    ["arguments", "def f(*args, **kwargs)"],
    ["links without an address", "[a]() ![b]()"],
    ["patterns of file names", "*.ts and *.js, src/**/*.ts"],
    ["dots on lines of their own", "\n.\n..\n"],
    ["HTML", '<b>bold</b> <script>alert("x")</script> <!-- c --> a<b'],
    ["ampersands and entities", "R&D, a=1&copy=2, &amp; &lt; &#64;"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a text that looks like one
    ["placeholders", "{a.b} {{ c }} ${d} %s %(e)s"],
    ["backslashes", '\\\\n \\n C:\\dir\\file \\\\server\\share "\\"quoted\\""'],
    ["tabs within lines", "a\tb\n\tc\td\n    e   f"],
    ["blank lines", "\n\na\n\n\n\nb   \n  \nc\n\n"],
    ["lists as they are", "- a\n- b\n   * c\n\n\n+  d\n10) e\n- [ ] f"],
    ["a diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new"],
    ["a log", "[ERROR]: no such file\n[12:00:01] ok [x] (y)\n    at f (a.ts:1:2)\n===\n---\nDone"],
    ["quotations", "> a\n>> b"],
    ["an underlined heading", "Title\n=====\nSub\n---\n"],
    ["JSON", '{"a": [1, 2], "b": "c\\nd"}\n[\n  "x"\n]'],
    ["a prompt", "$ ls ~/a ~b\n#comment without a space"],
    ["addresses", "https://a.b/c_d_e?f=_g me@a.b @user #1"],
    ["brackets that are no link", "[a](b) [c][d] [e] (f)"],
    ["other scripts", "東京 مرحبا שלום 👩‍👩‍👧‍👦 e\u0301"],
    ["nothing", ""],
    ["blanks", " \n \n"],
  ];
  for (const [what, text] of untouched) {
    test(`leaves ${what} as they are`, () => assert.equal(markdownToPlain(text), text));
  }

  const written: [what: string, markdown: string, plain: string][] = [
    ["emphasis", "**a** *b* ~~c~~ `d_e`", "a b c d_e"],
    ["headings", "# A\ntext\n## B", "A\ntext\nB"],
    ["links", "[docs](https://a.b) <https://c.d> <me@a.b>", "docs (https://a.b) https://c.d me@a.b"],
    ["images", "![cat](https://a.b/c.png)", "cat (https://a.b/c.png)"],
    ["code", "See:\n\n```js\nlet a = 1;\n\n  b();\n```\n\nDone", "See:\n\nlet a = 1;\n\n  b();\n\nDone"],
    ["tables", "| a | b |\n|---|---|\n| 東京 | **x** |\n| c | 👍 |", "a    | b\n-----|---\n東京 | x\nc    | 👍"],
    ["escapes", "\\*not bold\\* 1\\. a\\_b", "*not bold* 1. a_b"],
    ["lists with markup", "- **a**\n  - b\n\n    c\n- [x] d", "- a\n  - b\n\n    c\n- [x] d"],
    [
      "what is marked among what is not",
      "  two\n\ttab **b**\n\n\n\n    four\nsnake_case",
      "  two\n\ttab b\n\n\n\n    four\nsnake_case",
    ],
  ];
  for (const [what, markdown, plain] of written) {
    test(`writes ${what} without marks`, () => assert.equal(markdownToPlain(markdown), plain));
  }

  test("puts a table that is too wide in lines", () => {
    assert.equal(markdownToPlain(`|a|b|\n|-|-|\n|${"x".repeat(90)}|y|`), `a | b\n${"x".repeat(90)} | y`);
  });

  test("leaves any text of words, blanks and full stops as it is", () => {
    const words = fc.constantFrom(
      "a",
      "bc_d",
      "1.5",
      ".",
      ",",
      " ",
      "\n",
      "\t",
      "é",
      "😀",
      "\n\n",
      "@",
      "/x",
      "%",
      "&",
      "<",
      "{",
    );
    fc.assert(
      fc.property(fc.array(words, { maxLength: 80, size: "max" }), (list) => {
        assert.equal(markdownToPlain(list.join("")), list.join(""));
      }),
    );
  });

  test("takes a megabyte of anything in little time", () => {
    for (const [what, text] of pathological) {
      const started = performance.now();
      markdownToPlain(text.repeat(10));
      assert.ok(performance.now() - started < 5_000, what);
    }
  });
});
