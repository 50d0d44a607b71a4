import { fc } from "../../tools/property.ts";

const pieces = fc.constantFrom(
  ...["Alpha", "Beta", "Gamma", " ", "\n", "\n\n", "*", "**", "_", "__", "~~", "`", "``", "```\n", "~~~\n"],
  ...[
    "# ",
    "> ",
    "- ",
    "1. ",
    "- [ ] ",
    "    ",
    "\t",
    "| ",
    "|-|-|\n",
    "[",
    "](",
    ")",
    "![",
    "https://a.b/c",
    "<",
    ">",
  ],
  ...["&amp;", "\\", "---\n", "***\n", "😀", "e\u0301", "\ud800", "(", ".", "[a]: "],
);

/** Markdown of every kind, most of it broken. */
export const markdownTexts = fc.array(pieces, { maxLength: 60, size: "max" }).map((list) => list.join(""));

const n = 60_000;
/** Texts that bad parsers never come back from, and just short enough to be parsed. */
export const pathological: readonly (readonly [what: string, text: string])[] = [
  ["opening brackets", "[".repeat(n)],
  ["stars", "*".repeat(n)],
  ["stars and letters", "*a ".repeat(n / 3)],
  ["stars that could open and close", "a**b".repeat(n / 4)],
  ["stars and underscores", "*a_ ".repeat(n / 4)],
  ["underscores in words", "_a_b".repeat(n / 4)],
  ["backticks", "`".repeat(n)],
  ["more and more backticks", Array.from({ length: 440 }, (_, index) => "`".repeat(index + 1)).join(" ")],
  ["quotation marks", ">".repeat(n)],
  ["quotations in quotations", `${">".repeat(19)} a\n`.repeat(n / 22)],
  ["a lazy quotation", `${"> ".repeat(19)}a\n${"b\n".repeat(n / 2)}`],
  ["quotations that take in each other", "a\n>>>\n".repeat(n / 6)],
  ["links that are never closed", "[a](".repeat(n / 4)],
  ["images that are never closed", "![".repeat(n / 2)],
  ["links in links", `${"[".repeat(n / 2)}${"](a)".repeat(n / 8)}`],
  ["real links", "[a](https://a.b) ".repeat(n / 17)],
  ["links with long texts", `[${"a.".repeat(n / 3)}](https://a.b)`],
  ["a wide table", `|${"a|".repeat(20_000)}\n|${"-|".repeat(20_000)}\n${"|\n".repeat(10_000)}`],
  ["a table with one long cell", `|${"a".repeat(n / 3)}|\n|-|\n${"|x|\n".repeat(n / 8)}`],
  ["lists in lists", Array.from({ length: 400 }, (_, index) => `${" ".repeat(index * 2)}- a`).join("\n")],
  ["markers of lists", "- ".repeat(n / 2)],
  ["a long list", "- a\n\n".repeat(n / 5)],
  ["a long list of numbers", Array.from({ length: 10_000 }, (_, index) => `${index}. a`).join("\n")],
  ["fences", "```\n".repeat(n / 4)],
  ["less-than signs", "<".repeat(n)],
  ["autolinks", "<http://".repeat(n / 8)],
  ["backslashes", "\\".repeat(n)],
  ["newlines", "\n".repeat(n)],
  ["lines", "a\n".repeat(n / 2)],
  ["spaces", `a${" ".repeat(n)}`],
  ["bold with spaces", `**a${" a".repeat(n / 2)}**`],
  ["strikes", "~~a ".repeat(n / 4)],
  ["stars and underscores in turn", "*_".repeat(n / 2)],
];
