import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { breakEmbeds } from "../../src/target/embeds.ts";

const shown = (text: string) => text.replaceAll("\u200b", "∅");

describe("breakEmbeds", () => {
  const broken: [what: string, text: string, harmless: string][] = [
    ["an image", "see ![a](x)", "see !∅[a](x)"],
    ["an image by reference", "![a][b] ![b] ![b][]", "!∅[a][b] !∅[b] !∅[b][]"],
    ["an image in a link", "[![a](x)](y)", "[!∅[a](x)](y)"],
    ["an image in a list's code", "- ```\n  ![a](x)", "- ```\n  !∅[a](x)"],
    ["elements", "<img src=x> <IMAGE/src=x> <svg\nx>", "<∅img src=x> <∅IMAGE/src=x> <∅svg\nx>"],
    ["an element's end", "<video src=x></video>", "<∅video src=x><∅/video>"],
    ["a language in HTML", '<pre lang="mermaid">', '<∅pre lang="mermaid">'],
    ["a drawing", "```mermaid\nA\n```", "```∅mermaid\nA\n```"],
    ["a drawing behind blanks and in capitals", "~~~~ \tPlantUML x\nA", "~~~~ \t∅PlantUML x\nA"],
    ["a drawing in a list", "- ```mermaid\n  A", "- ```∅mermaid\n  A"],
    ["a drawing in braces", "```{.mermaid}\nA", "```∅{.mermaid}\nA"],
    ["a drawing whose name is written with entities", "```mer&#109;aid\nA", "```∅mer&#109;aid\nA"],
    ["a table of GitLab's with Markdown in it", "```json:table\n{}", "```∅json:table\n{}"],
    [
      "an image behind HTML that could hide the code",
      "<select>\n\n```\n![a](x)\n```",
      "<select>\n\n```\n!∅[a](x)\n```",
    ],
  ];
  for (const [what, text, harmless] of broken) {
    test(`breaks ${what}, and only once`, () => {
      assert.equal(shown(breakEmbeds(text)), harmless);
      assert.equal(breakEmbeds(breakEmbeds(text)), breakEmbeds(text));
    });
  }

  for (const text of [
    "Done! [a](x) !important a!=b",
    "`![a](x)` and `<img>`",
    "```html\n<img src=x> ![a](x)\n```",
    "<details><summary>a</summary>b<br></details> <pre>a</pre> <code>b</code> <imgx> a < img",
    "```ts\nmermaid\n```\n```mermaids\n```",
  ]) {
    test(`leaves alone ${JSON.stringify(text)}`, () => assert.equal(shown(breakEmbeds(text)), text));
  }

  test("takes nothing for code when it is told so, nor where GitLab reads the text in its own way", () => {
    const text = ">>>\n```\n![a](x)\n```";
    assert.equal(breakEmbeds(text), text);
    assert.equal(shown(breakEmbeds(text, { isGitlab: true })), text.replace("!", "!∅"));
    assert.equal(shown(breakEmbeds(text, { spareCode: false })), text.replace("!", "!∅"));
  });

  test("takes time in proportion to the text", () => {
    for (const piece of ["`", "```a", "~~~ ", "![", "<", "<img", "``` \t", "```&"]) {
      const started = performance.now();
      breakEmbeds(piece.repeat(1_000_000 / piece.length), { spareCode: false });
      assert.ok(performance.now() - started < 2000, JSON.stringify(piece));
    }
  });
});
