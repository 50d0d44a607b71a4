import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { longFence, longSpan, shortFence, shortSpan } from "../../../src/target/markup/code.ts";
import { parseMarkdown } from "../../../src/target/markup/parse.ts";
import { type Dialect, renderMarkdown } from "../../../src/target/markup/render.ts";
import { fc } from "../../tools/property.ts";
import { markdownTexts, pathological } from "./texts.ts";

const mrkdwn: Dialect = {
  escape: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  bold: ["*", "*"],
  italic: ["_", "_"],
  strike: ["~", "~"],
  code: shortMark,
  codeBlock: (code) => shortFence(code),
  link: (text, url) => `<${url.replaceAll("|", "%7C")}|${text}>`,
  quote: (piece) => piece.replaceAll(/^/gm, "> "),
  bullet: (marker, isOrdered) => (isOrdered ? marker : "•"),
  checks: ["☐", "☑"],
  rule: "———",
};

function shortMark(piece: string): string {
  return shortSpan(piece);
}

/** As good as nothing: what it writes can be read at a glance. */
const bracketed: Dialect = {
  escape: (text, isLineStart) => (isLineStart ? `^${text}` : text),
  bold: ["{b ", "}"],
};

describe("renderMarkdown, into the dialect of its own example", () => {
  const cases: [what: string, markdown: string, mrkdwn: string][] = [
    ["emphasis", "**bold** *it* _it_ ~~no~~ ***both***", "*bold* _it_ _it_ ~no~ _*both*_"],
    ["emphasis within words of other scripts", "这是**粗体**文字", "这是*粗体*文字"],
    ["code in a line", "`a & b` ``x`y``", "`a &amp; b` `xˋy`"],
    ["a code block", "a\n\n```ts\nlet a = `<b>`;\n```\nz", "a\n\n```\nlet a = `&lt;b&gt;`;\n```\nz"],
    ["a fence in a fence", "````\n```\n````", "```\n`\u200b`\u200b`\u200b\n```"],
    ["headings", "# One\n## *Two* ##\ntext", "*One*\n*_Two_*\ntext"],
    ["lists", "- a\n- b\n  1. c\n  2. **d**\n- e", "• a\n• b\n  1. c\n  2. *d*\n• e"],
    ["a list with other numbers and paragraphs", "3) a\n\n   more\n\n4) b", "3) a\n\n   more\n\n4) b"],
    ["tasks", "- [ ] open\n- [x] done", "• ☐ open\n• ☑ done"],
    ["a quotation", "> a\n> **b**\n>\n> c", "> a\n> *b*\n> \n> c"],
    ["a link", "[the *docs*](https://a.b/c?d=1&e=2|3)", "<https://a.b/c?d=1&amp;e=2%7C3|the _docs_>"],
    ["a bare link", "<https://a.b/c>", "<https://a.b/c|https://a.b/c>"],
    ["an image, which is not loaded", "![a cat](https://a.b/c.png)", "<https://a.b/c.png|a cat>"],
    ["an image without a word", "![](https://a.b/c.png)", "<https://a.b/c.png|https://a.b/c.png>"],
    ["a ruler", "a\n\n***\n\nb", "a\n\n———\n\nb"],
    ["a table", "| a | bb |\n|---|:--|\n| `x` | **yyy** |", "```\na | bb\n--|----\nx | yyy\n```"],
    ["HTML, which is text", "<b>a</b> <!channel> <@U1>", "&lt;b&gt;a&lt;/b&gt; &lt;!channel&gt; &lt;@U1&gt;"],
    ["a link's text that would end it", "[a>b|c](https://a.b)", "<https://a.b|a&gt;b|c>"],
    ["entities, which are text", "&lt;b&gt; &#64;all", "&amp;lt;b&amp;gt; &amp;#64;all"],
    ["line ends", "one\ntwo\\\nthree  \nfour\n\n\n\nfive", "one\ntwo\nthree  \nfour\n\n\n\nfive"],
  ];
  for (const [what, markdown, written] of cases) {
    test(`writes ${what}`, () => assert.equal(renderMarkdown(markdown, mrkdwn), written));
  }
});

describe("renderMarkdown, into a dialect that has next to nothing", () => {
  const cases: [what: string, markdown: string, written: string][] = [
    ["links with their address", "[docs](https://a.b)", "^docs (https://a.b)"],
    ["links that are their address once", "<https://a.b> [a.b/c](https://a.b/c)", "https://a.b https://a.b/c"],
    ["headings in bold", "# a", "{b ^a}"],
    ["code as it is", "`a` and\n```\nb\n```", "^a and\nb"],
    ["tables in columns", "|a|b|\n|-|-|\n|1|2|", "a | b\n--|--\n1 | 2"],
    ["emphasis without marks", "*a* ~~b~~", "^a b"],
  ];
  for (const [what, markdown, written] of cases) {
    test(`writes ${what}`, () => assert.equal(renderMarkdown(markdown, bracketed), written));
  }

  test("tells where a line starts", () => {
    assert.equal(renderMarkdown("a **b** c\n`d` e", bracketed), "^a {b b} c\nd e");
    assert.equal(renderMarkdown("- a\n- **b**\n\n> c", bracketed), "- ^a\n- {b ^b}\n\n> ^c");
    assert.equal(renderMarkdown("x `a`\n**y**", bracketed), "^x a\n{b ^y}");
  });

  test("puts the cells of a table in lines where it is told to", () => {
    assert.equal(renderMarkdown("|a|b|\n|-|-|\n|1|2|", { ...bracketed, table: "lines" }), "^a | b\n^1 | 2");
  });

  const parted: Dialect = { escape: (text) => text.replaceAll(/<(?=@)|\](?=\()/g, "$&.") };
  const joints: [what: string, markdown: string, written: string][] = [
    ["emphasis", "<*@all*> <~~@all~~> <`@all`>", "<.@all> <.@all> <.@all>"],
    ["emphasis in emphasis", "<**~~@all~~**>", "<.@all>"],
    [
      "emphasis that holds an address",
      "[https://bank.com]*(https://evil.com)*",
      "[https://bank.com].(https://evil.com)",
    ],
  ];
  for (const [what, markdown, written] of joints) {
    test(`escapes what comes together where ${what} has no marks`, () =>
      assert.equal(renderMarkdown(markdown, parted), written));
  }

  test("escapes what comes together around a link without a text", () => {
    const angled: Dialect = {
      escape: (text) => text.replaceAll(/<(?=\S)/g, "<."),
      link: (text, url) => `<${url}|${text}>`,
    };
    assert.equal(renderMarkdown("\\<[](https://evil.com)|bank>", angled), "<.https://evil.com|bank>");
    assert.equal(
      renderMarkdown("\\<[https://b.com/](https://evil.com)|x>", angled),
      "<.https://b.com/ (https://evil.com)|x>",
    );
  });

  test("makes no image of a link behind an exclamation mark", () => {
    const linked: Dialect = { escape: (text) => text, link: (text, url) => `[${text}](${url})` };
    assert.equal(renderMarkdown("\\![a](https://evil.com)", linked), "!\u200b[a](https://evil.com)");
  });

  test("answers a text of invisible markup as it is", () => {
    assert.equal(renderMarkdown("``` \n```", bracketed), "^``` \n```");
  });
});

describe("links", () => {
  const shown: [what: string, markdown: string, written: string][] = [
    ["javascript", "[a](javascript:alert(1))", "[a](javascript:alert(1))"],
    ["data", "[a](data:text/html,x)", "[a](data:text/html,x)"],
    ["a scheme of an app", "[a](slack://x) [b](tg://user?id=1)", "[a](slack://x) [b](tg://user?id=1)"],
    ["a scheme in disguise", "[a](JaVaScRiPt&#58;x) [a](\\javascript:x)", "[a](JaVaScRiPt&#58;x) [a](\\javascript:x)"],
    ["a file", "[a](docs/a.md) [b](//a.b) [c](#d)", "[a](docs/a.md) [b](//a.b) [c](#d)"],
    ["an image of data", "![a](data:image/png;base64,x)", "![a](data:image/png;base64,x)"],
  ];
  for (const [what, markdown, written] of shown) {
    test(`to ${what} are text`, () =>
      assert.equal(renderMarkdown(markdown, { ...mrkdwn, escape: (text) => text }), written));
  }

  const traps: [label: string, url: string][] = [
    ["https://bank.com", "https://evil.com"],
    ["bank.com", "https://evil.com/bank.com"],
    ["www.bank.com", "https://bank.com.evil.com"],
    ["bank.com", "https://bank.com@evil.com/"],
    ["log in at bank。com", "https://evil.com"],
    ["bank\u200b.com", "https://evil.com"],
    ["bank\uff0ecom", "https://evil.com"],
    ["https://bank\u034f.com", "https://evil.com"],
    ["bank\ufe0f.com", "https://evil.com"],
    ["ba\u0323nk.com", "https://evil.com"],
    ["https://192.0.2.7/login", "https://evil.com"],
    ["https://localhost/", "https://evil.com"],
    ["https://bank\u00b7com", "https://evil.com"],
    ["https:\u2044\u2044bank", "https://evil.com"],
    ["ｂａｎｋ.com", "https://evil.com"],
    ["b\u0430nk.com", "https://bank.com"],
    ["boss@bank.com", "mailto:boss@evil.com"],
    ["https://a.md", "https://evil.com"],
    ["a".repeat(400), "https://evil.com"],
  ];
  for (const [label, url] of traps) {
    test(`show where they lead when they read otherwise: ${label.slice(0, 30)}`, () => {
      const written = renderMarkdown(`[${label}](${url})`, mrkdwn);
      assert.ok(written.endsWith(`(${url.replace("mailto:", "")})`) && !written.includes("<"), written);
    });
  }

  test("show an address as it is written, not as letters that look like others", () => {
    assert.match(renderMarkdown("<https://xn--bnk-5cd.com/>", mrkdwn), /\|https:\/\/xn--bnk-5cd\.com\/>$/);
  });

  const honest: [label: string, url: string][] = [
    ["https://a.b/logo.png", "https://a.b/logo.png"],
    ["bank.com", "https://www.bank.com/login"],
    ["https://bank.com/a", "https://bank.com/b"],
    ["README.md", "https://github.com/a/b/blob/main/README.md"],
    ["the docs", "https://a.b"],
    ["v1.2.3", "https://a.b"],
    ["münchen.de", "https://münchen.de/"],
    ["me@a.com", "mailto:me@a.com"],
  ];
  for (const [label, url] of honest) {
    test(`stay links when they say where they lead: ${label}`, () => {
      assert.match(renderMarkdown(`[${label}](${url})`, mrkdwn), /^<.*>$/);
    });
  }
});

describe("parseMarkdown", () => {
  test("keeps the words of a fence's opening line that name no language", () => {
    assert.deepEqual(parseMarkdown("```what is <this>, then\na\n```"), [
      { gap: 0, kind: "code", lang: "what", text: "a" },
    ]);
    const long = `\`\`\`${"x".repeat(90)}\na\n\`\`\``;
    assert.deepEqual(parseMarkdown(long), [{ gap: 0, kind: "code", lang: "", text: `${"x".repeat(90)}\na` }]);
  });

  test("takes what is nested too deep, or too long, for text and drops nothing", () => {
    for (const text of [
      `${">".repeat(60)}a`,
      `${"- ".repeat(60)}a`,
      "x".repeat(70_000),
      `${"*a **b ".repeat(3000)}${"c** d*".repeat(3000)}`,
    ]) {
      const words = renderMarkdown(text, { escape: (one) => one });
      assert.ok(words.includes(text.at(-1) ?? ""));
      assert.equal(words.replaceAll(/\s/g, ""), text.replaceAll(/\s/g, ""));
    }
  });

  test("drops no letter of any text", () => {
    const letters = (text: string) => text.replaceAll(/[^\p{L}\p{N}]/gu, "");
    fc.assert(
      fc.property(markdownTexts, (raw) => {
        // The name of a code block's language is not shown.
        const text = raw.replaceAll(/(`{3,}|~{3,})(?!\n)/g, "``");
        const written = letters(renderMarkdown(text, { escape: (one) => one }));
        for (const word of ["Alpha", "Beta", "Gamma"]) {
          assert.equal(written.split(word).length, letters(text).split(word).length, word);
        }
      }),
    );
  });

  for (const [what, text] of pathological) {
    test(`takes 64 KiB of ${what} in little time`, () => {
      const started = performance.now();
      renderMarkdown(text.slice(0, 65_536), mrkdwn);
      const tookMs = performance.now() - started;
      assert.ok(tookMs < 5_000, `${tookMs} ms`);
      assert.ok(renderMarkdown(text.repeat(12), mrkdwn).length >= text.length);
    });
  }
});

describe("code between marks", () => {
  test("is never ended by what is in it", () => {
    for (const code of ["a", "`", "``", "a`b", "```", "`a", "~~~\n```\n````", "a``"]) {
      const [span] = parseMarkdown(longSpan(code.replaceAll("\n", " ")));
      assert.deepEqual(span, {
        gap: 0,
        kind: "paragraph",
        content: [{ kind: "code", text: code.replaceAll("\n", " ") }],
      });
      assert.deepEqual(parseMarkdown(longFence(code, "ts")), [{ gap: 0, kind: "code", text: code, lang: "ts" }]);
      assert.equal(shortSpan(code).slice(1, -1).includes("`"), false);
      assert.equal(shortFence(code).slice(4, -3).includes("``"), false);
    }
  });
});
