import { truncate } from "../core/text.ts";
import { shortFence, shortSpan } from "./markup/code.ts";
import { markdownToRanges } from "./markup/ranges.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import { oneLine } from "./neutralise.ts";
import type { Part } from "./target.ts";
import { longerWording, type Wording, worded } from "./wording.ts";

/** A message's words: plain, or in DingTalk's Markdown with the line that lists of chats and notifications show. */
export type Content = { readonly content: string } | { readonly title: string; readonly text: string };

const longestTitle = 60;

/**
 * https://open.dingtalk.com/document/orgapp/enterprise-internal-robots-send-markdown-messages: headings, quotations, bold, italic, links,
 * images, lists. A newline alone is a blank there; what stands between two is a paragraph.
 */
const dialect: Dialect = {
  escape: (text, isLineStart) =>
    broken(text.replaceAll(/[\\`*_[\]]/g, "\\$&")).replaceAll(starts(isLineStart), "$1\\$2"),
  // Where code is not known as such, its tags would be.
  escapeCode: (code) =>
    code.replaceAll(/<(?=\/?(?:a|img|font|iframe|script|style|video|audio|object|embed|svg)\b)/gi, "<\u200b"),
  escapeUrl: (url) => url.replaceAll(/[()<>\s\\]/g, (character) => percent(character)),
  bold: ["**", "**"],
  italic: ["*", "*"],
  code: shortSpan,
  codeBlock: shortFence,
  link: (text, url) => `[${text.replaceAll(/\s*\n/g, " ")}](${url})`,
  heading: (piece, level) => `${"#".repeat(level)} ${piece}`,
  checks: ["☐", "☑"],
  table: (header, rows) => [header, ...rows].map((row) => row.join(" | ").replaceAll(/\s*\n/g, " ")).join("  \n"),
  // Three hyphens below a line would make a heading of it.
  rule: "———",
};

/** Lone newlines are kept, and no tag of HTML (`<font>`, `<img>`) begins. */
function broken(text: string): string {
  return untagged(text).replaceAll(/(?<!\n)\n(?!\n)/g, "  \n");
}

function untagged(text: string): string {
  return text.replaceAll(/<(?=[a-z/!])/gi, "<\u200b");
}

/** What makes a heading, a quotation or an item of a list at the start of a line. */
function starts(isLineStart: boolean): RegExp {
  return isLineStart ? /^([^\S\n\u2028\u2029]*)([#>+-])/gm : /(\n[^\S\n\u2028\u2029]*)([#>+-])/g;
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

const wording: Wording = {
  markdown: (text) => {
    const { text: words, ranges } = markdownToRanges(text);
    // Nothing needs the marks of Markdown, and nothing is lost to them.
    if (ranges.length === 0) return JSON.stringify({ content: words } satisfies Content);
    return JSON.stringify({ title: titleOf(words), text: renderMarkdown(text, dialect) } satisfies Content);
  },
  plain: (text) => JSON.stringify({ content: text } satisfies Content),
};

function titleOf(words: string): string {
  const line = words.split("\n").find((line) => line.trim() !== "") ?? "";
  return truncate(untagged(oneLine(line)), longestTitle) || "Message";
}

/** For `limit.rendered`: the content as JSON, the longer of the two ways in which a route may want it. */
export const longestContent: (text: string) => string = longerWording(wording, "bytes");

export function contentOf(part: Part): Content {
  return JSON.parse(worded(part, wording)) as Content;
}
