import { createRequire } from "node:module";
import type { MarkdownIt, Token } from "markdown-it";
import { inlinesOf, merged } from "./inlines.ts";
import { isLinkable } from "./links.ts";
import type { Block, Inline, Item, Row } from "./tree.ts";

/** The parser takes time with the square of what is made to hurt it. Nobody writes so much, or so many marks, to be read. */
const longestMarkdown = 65_536;
const mostMarks = 5_000;
const mostBrackets = 2_000;
/** From each quotation the parser may look at all lines that follow: no more lines than these in all. */
const mostQuotedLines = 200_000;

/** Deeper nesting is read by nobody, and the parser drops what is in it. */
const deepest = 40;

/**
 * Reads CommonMark with tables, strikethrough and task lists of GitHub. HTML is text; so are entities, reference links,
 * underlined headings and indented code, which in an answer are log lines, rulers and columns more often than markup. A
 * backslash escapes what could be markup and is itself text before anything else. A text of more than 65,536 UTF-16 units,
 * with more than 5,000 marks, 2,000 brackets or some hundred quoted lines, or nested more than 20 deep, is one paragraph of text. Newlines must be LF.
 */
export function parseMarkdown(text: string): readonly Block[] {
  if (text.length > longestMarkdown || hasTooMany(text)) return unread(text);
  const tokens = parser().parse(text, {});
  if (tokens.some(({ level }) => level >= deepest - 1)) return unread(text);
  return blocksOf({ tokens, lines: text.split("\n"), at: 0 }, 0);
}

function hasTooMany(text: string): boolean {
  const quotations = count(text, /^[ \t\d.)>*+-]*>/gm);
  return (
    count(text, /[*_~`<]/g) > mostMarks ||
    count(text, /\[/g) > mostBrackets ||
    (quotations > 0 && quotations * count(text, /\n/g) > mostQuotedLines)
  );
}

function count(text: string, pattern: RegExp): number {
  let found = 0;
  for (const _ of text.matchAll(pattern)) found += 1;
  return found;
}

function unread(text: string): readonly Block[] {
  return [{ kind: "paragraph", gap: 0, content: [{ kind: "text", text }] }];
}

let loaded: MarkdownIt | undefined;

/** Loaded when it is first used: a gateway that sends no Markdown does without. */
function parser(): MarkdownIt {
  if (loaded !== undefined) return loaded;
  const create: typeof import("markdown-it").default = createRequire(import.meta.url)("markdown-it");
  loaded = create({ html: false, linkify: false, typographer: false, maxNesting: deepest });
  loaded.disable(["newline", "entity", "text_join", "reference", "lheading", "code"]);
  loaded.validateLink = isLinkable;
  // An address stays as it is written: the parser would show `xn--…` as letters that look like others.
  loaded.normalizeLinkText = (url) => url;
  return loaded;
}

interface Reading {
  readonly tokens: readonly Token[];
  readonly lines: readonly string[];
  /** The token that is read next. */
  at: number;
}

/** Blocks up to the token that closes what they are in; `from` is the line that this starts in. */
function blocksOf(reading: Reading, from: number): Block[] {
  const blocks: Block[] = [];
  let line = from;
  for (;;) {
    const token = reading.tokens[reading.at];
    if (token === undefined || token.nesting < 0) return blocks;
    const [start, end] = token.map ?? [line, line];
    blocks.push({ gap: blankLines(reading.lines, line, start), ...blockOf(token, reading, start) });
    reading.at += 1;
    line = withoutBlankEnd(reading.lines, start, end);
  }
}

/** A block without its place. The type of a union's members must be taken apart one by one. */
type Bare<B> = B extends Block ? Omit<B, "gap"> : never;

/** Reads one block; leaves `at` on its last token. */
function blockOf(token: Token, reading: Reading, start: number): Bare<Block> {
  switch (token.type) {
    case "fence":
      return codeOf(token);
    case "hr":
      return { kind: "rule", marks: token.markup };
    case "heading_open":
      return headingOf(token, reading);
    case "blockquote_open":
      reading.at += 1;
      return { kind: "quote", blocks: blocksOf(reading, start) };
    case "table_open":
      return tableOf(reading);
    case "bullet_list_open":
    case "ordered_list_open":
      return { kind: "list", isOrdered: token.type === "ordered_list_open", items: itemsOf(reading, start) };
    default:
      return paragraphOf(token, reading, start);
  }
}

function blankLines(lines: readonly string[], from: number, to: number): number {
  let count = 0;
  for (let line = to - 1; line >= from && isBlank(lines[line]); line -= 1) count += 1;
  return count;
}

function withoutBlankEnd(lines: readonly string[], start: number, end: number): number {
  return end - blankLines(lines, start, end);
}

function isBlank(line: string | undefined): boolean {
  return line === undefined || /^[\s>]*$/.test(line);
}

/** What follows the name of the language shows nowhere, so what is no name stays with the code. */
function codeOf({ info, content }: Token): Bare<Block> {
  const isLang = /^[\w+#.:/-]{0,40}$/.test(info.trim().split(/\s/, 1)[0] ?? "") && info.length <= 80;
  const text = content.replace(/\n$/, "");
  if (!isLang) return { kind: "code", lang: "", text: `${info}\n${text}` };
  return { kind: "code", lang: info.trim().split(/\s/, 1)[0] ?? "", text };
}

function headingOf({ tag, markup }: Token, reading: Reading): Bare<Block> {
  const content = inlineContent(reading);
  if (content.length === 0) return { kind: "paragraph", content: [{ kind: "text", text: markup }] };
  return { kind: "heading", level: Number(tag.slice(1)), content };
}

/** The parser takes away the indentation of a paragraph's first line, not that of the others. */
function paragraphOf({ level }: Token, reading: Reading, start: number): Bare<Block> {
  const content = inlineContent(reading);
  const indent = level === 0 ? (/^[ \t]*/.exec(reading.lines[start] ?? "")?.[0] ?? "") : "";
  if (indent === "") return { kind: "paragraph", content };
  return { kind: "paragraph", content: merged([{ kind: "text", text: indent }, ...content]) };
}

/** Of the token after the opening one; leaves `at` on the closing one. */
function inlineContent(reading: Reading): Inline[] {
  const token = reading.tokens[reading.at + 1];
  reading.at += 2;
  return token === undefined ? [] : inlinesOf(token);
}

function itemsOf(reading: Reading, from: number): Item[] {
  const items: Item[] = [];
  let line = from;
  reading.at += 1;
  for (let token = reading.tokens[reading.at]; token?.type === "list_item_open"; token = reading.tokens[reading.at]) {
    const [start, end] = token.map ?? [line, line];
    reading.at += 1;
    const blocks = blocksOf(reading, start);
    items.push({ gap: blankLines(reading.lines, line, start), marker: token.info + token.markup, ...task(blocks) });
    reading.at += 1;
    line = withoutBlankEnd(reading.lines, start, end);
  }
  return items;
}

function task(blocks: Block[]): Pick<Item, "blocks" | "isChecked"> {
  const [first, ...others] = blocks;
  if (first?.kind !== "paragraph" || first.content[0]?.kind !== "text") return { blocks };
  const [box, mark] = /^\[([ xX])\]\s+(?=\S)/.exec(first.content[0].text) ?? [];
  if (box === undefined) return { blocks };
  const text = { kind: "text", text: first.content[0].text.slice(box.length) } as const;
  return { isChecked: mark !== " ", blocks: [{ ...first, content: [text, ...first.content.slice(1)] }, ...others] };
}

function tableOf(reading: Reading): Bare<Block> {
  const rows: Row[] = [];
  let cells: Inline[][] = [];
  for (reading.at += 1; ; reading.at += 1) {
    const token = reading.tokens[reading.at];
    if (token === undefined || token.type === "table_close") break;
    if (token.type === "tr_open") cells = [];
    if (token.type === "inline") cells.push(inlinesOf(token));
    if (token.type === "tr_close") rows.push(cells);
  }
  const [header = [], ...others] = rows;
  return { kind: "table", header, rows: others };
}
