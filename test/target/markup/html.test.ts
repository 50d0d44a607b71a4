import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { markdownToHtml } from "../../../src/target/markup/html.ts";
import { fc } from "../../tools/property.ts";
import { markdownTexts, pathological } from "./texts.ts";

describe("markdownToHtml", () => {
  const cases: [what: string, markdown: string, html: string][] = [
    ["paragraphs and line ends", "a\nb\n\nc", "<p>a<br>\nb</p>\n<p>c</p>"],
    ["emphasis", "**a** *b* ~~c~~ `d`", "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d</code></p>"],
    ["headings and rulers", "## a\n---", "<h2>a</h2>\n<hr>"],
    ["code", "```ts\na < b\n```", '<pre><code class="language-ts">a &#60; b\n</code></pre>'],
    ["quotations", "> a", "<blockquote>\n<p>a</p>\n</blockquote>"],
    ["lists", "- a\n- b\n  1. c\n\n     d", "<ul>\n<li>a</li>\n<li>b\n<ol>\n<li>c\n<p>d</p></li>\n</ol></li>\n</ul>"],
    ["where a list starts", "3. a", '<ol start="3">\n<li>a</li>\n</ol>'],
    ["tasks", "- [ ] a\n- [x] b", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>"],
    [
      "tables",
      "|a|\n|-|\n|**1**|",
      "<table>\n<thead>\n<tr><th>a</th></tr>\n</thead>\n<tbody>\n<tr><td><strong>1</strong></td></tr>\n</tbody>\n</table>",
    ],
    ["links", "[a](https://b.c/?d=1&e=2)", '<p><a href="https://b.c/?d=1&#38;e=2">a</a></p>'],
    ["a link that reads otherwise", "[a.com](https://b.c)", '<p><a href="https://b.c">a.com</a> (https://b.c)</p>'],
    ["an image, which is not loaded", "![a](https://b.c/d.png)", '<p><a href="https://b.c/d.png">a</a></p>'],
    ["HTML as text", '<img src=x onerror="a()">', "<p>&#60;img src=x onerror=&#34;a()&#34;&#62;</p>"],
    ["a bad link as text", "[a](javascript:b)", "<p>[a](javascript:b)</p>"],
    ["a language that would leave its attribute", '```a"b\nc\n```', "<pre><code>a&#34;b\nc\n</code></pre>"],
  ];
  for (const [what, markdown, html] of cases) {
    test(`writes ${what}`, () => assert.equal(markdownToHtml(markdown), html));
  }

  const allowed =
    /^(?:<\/?(?:p|h[1-6]|blockquote|ul|li|table|thead|tbody|tr|th|td|strong|em|del|pre|code|a|ol)>|<(?:br|hr)>|<ol start="\d+">|<code class="language-[\w+#.:/-]+">|<a href="(?:https?:\/\/|mailto:)[^"<>]+">)$/;

  test("writes no other tags and attributes, and closes each in its turn", () => {
    fc.assert(
      fc.property(markdownTexts, (markdown) => {
        const open: string[] = [];
        for (const [tag] of markdownToHtml(markdown).matchAll(/<[^>]*>?/g)) {
          assert.match(tag, allowed);
          const name = /\w+/.exec(tag)?.[0] ?? "";
          if (tag.startsWith("</")) assert.equal(open.pop(), name);
          else if (name !== "br" && name !== "hr") open.push(name);
        }
        assert.deepEqual(open, []);
      }),
    );
  });

  test("takes a megabyte of anything in little time", () => {
    for (const [what, text] of pathological) {
      for (const one of [text.slice(0, 65_536), text.repeat(10)]) {
        const started = performance.now();
        markdownToHtml(one);
        assert.ok(performance.now() - started < 5_000, what);
      }
    }
  });
});
