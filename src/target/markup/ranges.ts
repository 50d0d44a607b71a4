import { type Ink, layBlocks } from "./layout.ts";
import { parseMarkdown } from "./parse.ts";
import { hasSameWords } from "./plain.ts";
import { tableText } from "./table.ts";
import { isSameAddress, shownUrl } from "./tree.ts";

/** What a range of text can be shown as. `pre` is a block of code, `code` a piece of it. */
export type RangeKind = "bold" | "italic" | "strike" | "code" | "pre" | "link" | "quote" | "heading";

/** A stretch of text in UTF-16 units, never empty. One holds another as a whole or has nothing in common with it. */
export interface Range {
  readonly offset: number;
  readonly length: number;
  readonly kind: RangeKind;
  /** Of a `link`: http or https. */
  readonly url?: string;
  /** Of a `pre` whose language is known. */
  readonly lang?: string;
}

/** Plain text and what its parts are shown as; the outer range comes before those within it. */
export interface RangedText {
  readonly text: string;
  readonly ranges: readonly Range[];
}

const everyKind: readonly RangeKind[] = ["bold", "italic", "strike", "code", "pre", "link", "quote", "heading"];

/**
 * Markdown as plain text with ranges, for services that take styles beside the text and where nothing need be escaped.
 * `kinds` are those that the service has, all when not set; the place of others is taken by what reads well in plain
 * text. A text without any Markdown comes out as it is, byte for byte.
 */
export function markdownToRanges(text: string, kinds: readonly RangeKind[] = everyKind): RangedText {
  const { text: written, ranges } = layBlocks(parseMarkdown(text), rangedInk(new Set(kinds)));
  if (written.trim() === "" || (ranges.length === 0 && hasSameWords(written, text))) return { text, ranges: [] };
  return { text: written, ranges };
}

function rangedInk(kinds: ReadonlySet<RangeKind>): Ink<RangedText> {
  const as = (kind: RangeKind, more: Partial<Range> = {}) => {
    return (piece: RangedText) => (kinds.has(kind) ? ranged(piece, { kind, ...more }) : piece);
  };
  const pre = (code: string, lang: string) => as("pre", lang === "" ? {} : { lang })(bare(code));
  return {
    text: bare,
    join: joined,
    bold: as("bold"),
    italic: as("italic"),
    strike: as("strike"),
    code: (code) => as("code")(bare(code)),
    ...(kinds.has("link") ? { link: linked } : {}),
    url: bare,
    heading: as("heading"),
    codeBlock: pre,
    quote: (piece) => (kinds.has("quote") ? ranged(piece, { kind: "quote" }) : withPrefix(piece, "> ", "> ")),
    bullet: ({ marker, isChecked }) => bare(`${marker} ${isChecked === undefined ? "" : isChecked ? "[x] " : "[ ] "}`),
    indent: (piece, width) => withPrefix(piece, "", " ".repeat(width)),
    table: (header, rows) => pre(tableText([header, ...rows]), ""),
    rule: bare,
  };
}

/** Services make links to the web only; an e-mail address that can be read can be used. */
function linked(piece: RangedText, url: string): RangedText {
  if (!/^mailto:/i.test(url)) return ranged(piece, { kind: "link", url });
  return isSameAddress(piece.text, url) ? piece : joined([piece, bare(` (${shownUrl(url)})`)]);
}

function bare(text: string): RangedText {
  return { text, ranges: [] };
}

function joined(pieces: readonly RangedText[]): RangedText {
  let offset = 0;
  const ranges: Range[] = [];
  for (const piece of pieces) {
    for (const range of piece.ranges) ranges.push({ ...range, offset: range.offset + offset });
    offset += piece.text.length;
  }
  return { text: pieces.map(({ text }) => text).join(""), ranges };
}

/** Blanks at its ends stay outside of the range. A piece of blanks gets none. */
function ranged({ text, ranges }: RangedText, range: Omit<Range, "offset" | "length">): RangedText {
  const offset = text.length - text.trimStart().length;
  const length = text.trim().length;
  return length === 0 ? { text, ranges } : { text, ranges: [{ ...range, offset, length }, ...ranges] };
}

/** Puts something before the lines of a piece, blank ones left out of the `others`; the ranges move and grow with it. */
function withPrefix({ text, ranges }: RangedText, first: string, others: string): RangedText {
  const { prefixed, starts } = prefixLines(text, first, others);
  const moved = (position: number) => position + growthBefore(starts, position);
  return {
    text: prefixed,
    ranges: ranges.map((range) => {
      const offset = moved(range.offset);
      return { ...range, offset, length: moved(range.offset + range.length - 1) + 1 - offset };
    }),
  };
}

/** `starts`: where something was put in, and how much had been by then, that included. */
type Growth = readonly { readonly at: number; readonly total: number }[];

function prefixLines(text: string, first: string, others: string): { prefixed: string; starts: Growth } {
  const starts = [{ at: 0, total: first.length }];
  let total = first.length;
  const body = text.replaceAll(/\n(?=[^\n])/g, (newline, at: number) => {
    total += others.length;
    starts.push({ at: at + 1, total });
    return newline + others;
  });
  return { prefixed: first + body, starts };
}

function growthBefore(starts: Growth, position: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle]?.at ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  return starts[low - 1]?.total ?? 0;
}
