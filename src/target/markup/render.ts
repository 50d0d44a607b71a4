import { type Ink, layBlocks } from "./layout.ts";
import { parseMarkdown } from "./parse.ts";
import { tableText } from "./table.ts";
import type { Item } from "./tree.ts";

/** What stands before and after a piece, or what makes the marked piece of it. */
export type Mark = readonly [before: string, after: string] | ((piece: string) => string);

/**
 * How a service writes marks, as data. What is not set, the service does not have, and its place is taken by something
 * that reads well in plain text. Pieces that functions get are escaped already, code and addresses as well. Slack's, for
 * example:
 *
 *     const mrkdwn: Dialect = {
 *       escape: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
 *       bold: ["*", "*"],
 *       italic: ["_", "_"],
 *       strike: ["~", "~"],
 *       code: shortSpan,
 *       codeBlock: shortFence,
 *       link: (text, url) => `<${url.replaceAll("|", "%7C")}|${text}>`,
 *       bullet: () => "•",
 *       checks: ["☐", "☑"],
 *     };
 */
export interface Dialect {
  /**
   * Takes the power out of text that is no markup. It gets each run of text as a whole; `isLineStart` tells whether what
   * works only at the start of a line would work there. Lines within `text` start after its newlines.
   */
  escape(text: string, isLineStart: boolean): string;
  /** Of code, in a line and in a block; like text when not set. */
  readonly escapeCode?: (code: string) => string;
  /** Of an address, as text and in a link; like text when not set. */
  readonly escapeUrl?: (url: string) => string;
  readonly bold?: Mark;
  readonly italic?: Mark;
  readonly strike?: Mark;
  readonly code?: Mark;
  /** Plain code when not set. */
  readonly codeBlock?: (code: string, lang: string) => string;
  /** "text (url)" when not set. */
  readonly link?: (text: string, url: string) => string;
  /** Bold when not set. */
  readonly heading?: (piece: string, level: number) => string;
  /** "> " before each line when not set. */
  readonly quote?: (piece: string) => string;
  /** Instead of an item's own "-" or "3."; with an order or without. */
  readonly bullet?: (marker: string, isOrdered: boolean) => string;
  /** Instead of "[ ]" and "[x]" of a task that is open or done. */
  readonly checks?: readonly [open: string, done: string];
  /**
   * As a code block when not set; "lines" are text with " | " between the cells. A function gets escaped cells and has to
   * see to newlines and to its own marks in them.
   */
  readonly table?: "lines" | ((header: readonly string[], rows: readonly (readonly string[])[]) => string);
  /** Instead of the rule's own marks, such as "---". */
  readonly rule?: string;
}

/**
 * Writes Markdown in another dialect. A text of nothing but blanks or invisible markup comes out as it is, because a
 * service refuses a message without a word.
 */
export function renderMarkdown(text: string, dialect: Dialect): string {
  const written = layBlocks(parseMarkdown(text), inkOf(dialect));
  return written.trim() === "" ? dialect.escape(text, true) : written;
}

function inkOf(dialect: Dialect): Ink<string> {
  const asText = (text: string) => dialect.escape(text, false);
  const { link, escapeCode = asText, escapeUrl = asText } = dialect;
  const codeBlock = (code: string, lang: string) => dialect.codeBlock?.(escapeCode(code), lang) ?? escapeCode(code);
  return {
    text: dialect.escape,
    join: joined,
    ...(dialect.bold ? { bold: (piece: string) => marked(piece, dialect.bold) } : {}),
    ...(dialect.italic ? { italic: (piece: string) => marked(piece, dialect.italic) } : {}),
    ...(dialect.strike ? { strike: (piece: string) => marked(piece, dialect.strike) } : {}),
    ...(dialect.code ? { code: (code: string) => marked(escapeCode(code), dialect.code) } : {}),
    ...(link ? { link: (piece: string, url: string) => link(piece, escapeUrl(url)) } : {}),
    url: escapeUrl,
    heading: (piece, level) => dialect.heading?.(piece, level) ?? marked(piece, dialect.bold),
    codeBlock,
    quote: (piece) => dialect.quote?.(piece) ?? quoted(piece),
    bullet: (item) => bulletOf(item, dialect),
    indent: (piece, width) => piece.replaceAll(/\n(?=[^\n])/g, `\n${" ".repeat(width)}`),
    table: (header, rows) => tableOf([header, ...rows], dialect, codeBlock),
    rule: (marks) => dialect.rule ?? marks,
  };
}

/** Behind an exclamation mark that no backslash has disarmed, a link would be an image, which is loaded from anywhere. */
const armed = /(?<!\\)(?:\\\\){0,50}!$/;

function joined(pieces: readonly string[]): string {
  return pieces
    .map((piece, at) =>
      piece.startsWith("[") && armed.test((pieces[at - 1] ?? "").slice(-100)) ? `\u200b${piece}` : piece,
    )
    .join("");
}

/** Marks hold only where they touch what they mark: blanks at its ends come out of them. */
function marked(piece: string, mark: Mark | undefined): string {
  const inner = piece.trim();
  if (mark === undefined || inner === "") return piece;
  const start = piece.length - piece.trimStart().length;
  const written = typeof mark === "function" ? mark(inner) : mark[0] + inner + mark[1];
  return piece.slice(0, start) + written + piece.slice(start + inner.length);
}

function quoted(piece: string): string {
  return piece.replaceAll(/^/gm, "> ");
}

function bulletOf({ marker, isChecked }: Item, { bullet, checks = ["[ ]", "[x]"] }: Dialect): string {
  const shown = bullet?.(marker, /\d/.test(marker)) ?? marker;
  return isChecked === undefined ? `${shown} ` : `${shown} ${checks[isChecked ? 1 : 0]} `;
}

type Write = (code: string, lang: string) => string;

function tableOf(rows: readonly (readonly string[])[], dialect: Dialect, codeBlock: Write): string {
  if (dialect.table === "lines") return rows.map((row) => dialect.escape(row.join(" | "), true)).join("\n");
  if (dialect.table === undefined) return codeBlock(tableText(rows), "");
  const [header = [], ...others] = rows.map((row) => row.map((cell) => dialect.escape(cell, false)));
  return dialect.table(header, others);
}
