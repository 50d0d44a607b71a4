import { merged } from "./inlines.ts";
import { isDeceptive } from "./links.ts";
import { type Block, type Inline, type Item, isSameAddress, type Link, type Row, shownUrl, textOf } from "./tree.ts";

/**
 * What a form of text is written with: each function makes a piece of it, `T`, of plain text or of pieces. Code and table
 * cells come as plain text, everything else is written already.
 */
export interface Ink<T> {
  /** `isLineStart`: nothing but what may be without marks stands before it on its line. */
  text(text: string, isLineStart: boolean): T;
  join(pieces: readonly T[]): T;
  /** Of these four, what is not set has no marks: it is text. */
  bold?(piece: T): T;
  italic?(piece: T): T;
  strike?(piece: T): T;
  code?(code: string): T;
  /** Not set where links cannot be named: "text (url)" is written instead. */
  link?(piece: T, url: string): T;
  /** An address that stands as text. */
  url(url: string): T;
  heading(piece: T, level: number): T;
  codeBlock(code: string, lang: string): T;
  quote(piece: T): T;
  bullet(item: Item): T;
  /** Puts blanks before all lines but the first. */
  indent(piece: T, width: number): T;
  table(header: readonly string[], rows: readonly (readonly string[])[]): T;
  rule(marks: string): T;
}

/** Writes blocks one below the other, with as many blank lines between them as their source has. */
export function layBlocks<T>(blocks: readonly Block[], ink: Ink<T>): T {
  return ink.join(withBreaks(blocks, ink, (block) => layBlock(block, ink)));
}

function withBreaks<T, P extends { readonly gap: number }>(list: readonly P[], ink: Ink<T>, lay: (one: P) => T): T[] {
  return list.flatMap((one, index) => (index === 0 ? [lay(one)] : [lineBreak(ink, one.gap), lay(one)]));
}

function lineBreak<T>(ink: Ink<T>, blankLines: number): T {
  return ink.text("\n".repeat(blankLines + 1), false);
}

function layBlock<T>(block: Block, ink: Ink<T>): T {
  switch (block.kind) {
    case "paragraph":
      return layInlines(block.content, ink, true);
    case "heading":
      return ink.heading(layInlines(block.content, ink, true), block.level);
    case "code":
      return ink.codeBlock(block.text, block.lang);
    case "quote":
      return ink.quote(layBlocks(block.blocks, ink));
    case "list":
      return ink.join(withBreaks(block.items, ink, (item) => layItem(item, ink)));
    case "table":
      return ink.table(cellTexts(block.header), block.rows.map(cellTexts));
    case "rule":
      return ink.rule(block.marks);
  }
}

function cellTexts(row: Row): string[] {
  return row.map(textOf);
}

function layItem<T>(item: Item, ink: Ink<T>): T {
  const content = layBlocks(item.blocks, ink);
  return ink.join([ink.bullet(item), ink.indent(content, item.marker.length + 1)]);
}

/**
 * What would be written without marks, as one text with what stands beside it. Each piece is made harmless by itself, and
 * two harmless ones may be a mention or a link when nothing is left between them: `<*@all*>` where there are no italics.
 */
function joinUnmarked<T>(content: readonly Inline[], ink: Ink<T>): Inline[] {
  return merged(content.flatMap((inline) => unmarked(inline, ink)));
}

function unmarked<T>(inline: Inline, ink: Ink<T>): readonly Inline[] {
  switch (inline.kind) {
    case "text":
      return [inline];
    case "code":
      return ink.code === undefined || isBlank(inline.text) ? [{ kind: "text", text: inline.text }] : [inline];
    case "image":
      return unmarked(linkTo(inline), ink);
    case "link":
      return unmarkedLink(inline, ink);
    default: {
      const hasMarks = ink[inline.kind] !== undefined && !isBlank(textOf(inline.content));
      return hasMarks ? [inline] : inline.content.flatMap((inner) => unmarked(inner, ink));
    }
  }
}

/** A link that lies becomes text with its address behind it. An address that its text says already is written once. */
function unmarkedLink<T>(link: Link, ink: Ink<T>): readonly Inline[] {
  const { content, url, isDeceptive: isTrap } = link;
  const label = textOf(content);
  const address = { kind: "text", text: shownUrl(url) } as const;
  if (isBlank(label)) return [address];
  if (ink.link === undefined ? isSameAddress(label, url) : !isTrap) return [link];
  const inner = content.flatMap((one) => unmarked(one, ink));
  return [...inner, { kind: "text", text: " (" }, address, { kind: "text", text: ")" }];
}

/** Nothing to be seen. */
function isBlank(text: string): boolean {
  return !/[^\s\p{Cf}\p{Default_Ignorable_Code_Point}]/u.test(text);
}

function layInlines<T>(content: readonly Inline[], ink: Ink<T>, isStart: boolean): T {
  let isLineStart = isStart;
  const pieces = joinUnmarked(content, ink).map((inline) => {
    const piece = layInline(inline, ink, isLineStart);
    isLineStart = "text" in inline && inline.kind === "text" && /\n[ \t]*$/.test(inline.text);
    return piece;
  });
  return ink.join(pieces);
}

function layInline<T>(inline: Inline, ink: Ink<T>, isLineStart: boolean): T {
  switch (inline.kind) {
    case "text":
      return ink.text(inline.text, isLineStart);
    case "code":
      return ink.code?.(inline.text) ?? ink.text(inline.text, isLineStart);
    case "image":
      return layLink(linkTo(inline), ink, isLineStart);
    case "link":
      return layLink(inline, ink, isLineStart);
    default: {
      const piece = layInlines(inline.content, ink, isLineStart);
      return ink[inline.kind]?.(piece) ?? piece;
    }
  }
}

/** An image is shown as a link: loading it would tell its server who reads the message, and when. */
export function linkTo({ alt, url }: Inline & { kind: "image" }): Link {
  const content = [{ kind: "text", text: isBlank(alt) ? url : alt }] as const;
  return { kind: "link", url, content, isDeceptive: isDeceptive(alt, url) };
}

/** `joinUnmarked` has left no other links. */
function layLink<T>({ url, content }: Link, ink: Ink<T>, isLineStart: boolean): T {
  return ink.link?.(layInlines(content, ink, isLineStart), url) ?? ink.url(shownUrl(url));
}
