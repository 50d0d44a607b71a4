import { type Fence, fenceAround, findFences } from "./fences.ts";
import { segmentCount } from "./segments.ts";

/** What one message of a service may hold, and how many of them a text may become. */
export interface SplitLimit {
  /** `segments` are those of SMS: 160 or 153 characters of GSM-7, 70 or 67 units of UCS-2. */
  readonly unit: "utf16" | "codepoints" | "bytes" | "segments";
  /** Size of one part, in `unit`. */
  readonly max: number;
  /** Most parts; the last one ends in a notice when more was left. */
  readonly parts: number;
  /** What the service counts of a part, where markup or escaping changes its length; the part itself when not set. */
  readonly rendered?: (part: string) => string;
  /** A series of at least so many parts is numbered: "(2/5)" is each part's last line. Never when not set. */
  readonly numberedFrom?: number;
}

/**
 * Cuts Markdown into parts that fit: after a paragraph, else a line, else a word, else between two graphemes. A fenced
 * code block that a cut divides is closed at the end of the part and opened again in the next; what is lost at a cut is
 * blank. The same text and limit give the same parts. A text that fits is answered as it is. No part is blank unless the
 * text is. Only a character of which the rendered form is longer than a whole part makes a part too long.
 */
export function splitText(text: string, limit: SplitLimit): string[] {
  if (text.length <= widest(limit) && fits(text, limit)) return [text];
  const label = labelFor(limit);
  const enough = Math.max(2, limit.numberedFrom ?? Number.POSITIVE_INFINITY);
  const parts = cutAll(text, limit, "", label === undefined ? Number.POSITIVE_INFINITY : enough);
  if (label === undefined || parts.length < enough) return parts;
  const series = cutAll(text, limit, label);
  return series.map((part, index) => `${part}\n\n(${index + 1}/${series.length})`);
}

/** The widest number that a part may get, for which room is kept: how many parts there are is known only at the end. */
function labelFor(limit: SplitLimit): string | undefined {
  const number = "9".repeat(String(limit.parts).length);
  const label = `\n\n(${number}/${number})`;
  return limit.numberedFrom !== undefined && leavesRoom(label, limit) ? label : undefined;
}

/** The size of a text in a unit. A lone surrogate counts as U+FFFD, which it becomes on its way. */
export function measure(text: string, unit: SplitLimit["unit"]): number {
  if (unit === "utf16") return text.length;
  if (unit === "bytes") return Buffer.byteLength(text);
  if (unit === "segments") return segmentCount(text);
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function sizeOf(part: string, { rendered, unit }: SplitLimit): number {
  return measure(rendered ? rendered(part) : part, unit);
}

function fits(part: string, limit: SplitLimit): boolean {
  return sizeOf(part, limit) <= limit.max;
}

/** No more UTF-16 units of the text than these are tried in one part. Markup can take up as much as what it marks. */
function widest({ unit, max, rendered }: SplitLimit): number {
  const perUnit = unit === "segments" ? 160 : unit === "codepoints" ? 2 : 1;
  return max * perUnit * (rendered ? 2 : 1);
}

/** The marks of a fence, the notice and the number together must leave a part something to say. */
function leavesRoom(addition: string, { unit, max }: SplitLimit): boolean {
  return measure(addition.repeat(4), unit) <= max;
}

const notices = ["\n\n[cut: the answer was longer]", "\n[cut]"];

/** What stays the same while a text is cut. */
interface Sheet {
  readonly text: string;
  readonly limit: SplitLimit;
  readonly fences: readonly Fence[];
  readonly widest: number;
}

/** The parts without their label, for which each of them has room; no more than `enough` of them. */
function cutAll(whole: string, limit: SplitLimit, label: string, enough = Number.POSITIVE_INFINITY): string[] {
  const text = whole.trimEnd();
  const sheet: Sheet = { text, limit, widest: widest(limit), fences: fencesToMind(text, limit) };
  const notice = notices.find((one) => leavesRoom(one, limit)) ?? "";
  const parts: string[] = [];
  for (let at = startOfPart(sheet, 0); at < text.length; ) {
    const isRest = text.length - at <= sheet.widest && fits(dress(sheet, at, text.length) + label, limit);
    const isCutOff = !isRest && parts.length >= limit.parts - 1;
    const added = isCutOff ? notice : "";
    const end = isRest ? text.length : endOfPart(sheet, at, added + label);
    if (text.slice(at, end).trim() !== "") parts.push(dress(sheet, at, end) + added);
    if (isCutOff || parts.length >= enough) break;
    at = startOfPart(sheet, end);
  }
  return parts.length > 0 ? parts : [""];
}

/** Those that leave room for code between their marks, in as much of the text as all parts together can hold. */
function fencesToMind(text: string, limit: SplitLimit): Fence[] {
  const reach = widest(limit) * 2 * (limit.parts + 1);
  const fences = findFences(text.slice(0, reach));
  return fences.filter(({ opening, marks, indent }) => leavesRoom(`${opening}\n${indent}${marks}\n`, limit));
}

/** The part from one position to another, as a text of its own: its code fences are opened and closed within it. */
function dress({ text, fences }: Sheet, at: number, end: number): string {
  const first = codeAround(fences, at);
  const last = codeAround(fences, end);
  const piece = text.slice(at, end).trimEnd();
  if (first === undefined && last === undefined) return piece;
  const head = first === undefined ? "" : `${first.opening}\n`;
  const body = first === undefined ? piece : outdent(piece, first.indent, first.end - at);
  if (last === undefined) return head + body;
  return `${head}${body}\n${last === first ? "" : last.indent}${last.marks}`;
}

/** The fence that a position stands in the code of: from the line after its opening to its closing one. */
function codeAround(fences: readonly Fence[], position: number): Fence | undefined {
  const fence = fenceAround(fences, position);
  return fence !== undefined && fence.body <= position ? fence : undefined;
}

/** Code of a list is opened again outside of it, and so would its closing marks be too far in to close it. */
function outdent(piece: string, indent: string, upTo: number): string {
  if (indent === "") return piece;
  const code = piece.slice(0, upTo).replaceAll(`\n${indent}`, "\n");
  return (code.startsWith(indent) ? code.slice(indent.length) : code) + piece.slice(upTo);
}

/** Where the part that starts at `at` ends when `tail` comes behind it. */
function endOfPart(sheet: Sheet, at: number, tail: string): number {
  let high = Math.min(at + sheet.widest, sheet.text.length);
  let longest = at;
  for (let tries = 0; tries < 5 && high > at; tries += 1) {
    longest = longestFit(sheet, at, high, tail);
    const end = goodPlace(sheet, at, longest);
    if (end > at && fits(dress(sheet, at, end) + tail, sheet.limit)) return end;
    // Closing a fence, or a mark that lost its other half, can take more than the shorter text saves.
    high = end - 1;
  }
  return wholeCharacter(sheet.text, at, longest);
}

/** The furthest end, up to `high`, that fits as far as trying tells; at least one unit. */
function longestFit(sheet: Sheet, at: number, high: number, tail: string): number {
  const { limit } = sheet;
  let fitting = at;
  let tooFar = high + 1;
  const probe = (end: number) => {
    if (end <= fitting || end >= tooFar) return 0;
    const size = sizeOf(dress(sheet, at, end) + tail, limit);
    if (size <= limit.max) fitting = end;
    else tooFar = end;
    return size;
  };
  // Most text becomes about as long as it is. To render far more than fits is what takes time.
  const near = Math.min(high, at + limit.max);
  const fixed = measure(tail, limit.unit);
  const ratio = (limit.max - fixed) / Math.max(1, probe(near) - fixed);
  const guess = at + Math.floor((near - at) * ratio);
  // Each try renders: a part that is a little shorter than it could be costs less.
  const slack = limit.rendered ? sheet.widest >> 6 : 0;
  probe(Math.min(high, guess));
  probe(guess + slack + 1);
  while (tooFar - fitting > 1 && (fitting === at || tooFar - fitting > slack + 1)) probe((fitting + tooFar) >> 1);
  return Math.max(fitting, at + 1);
}

/** The best place for a cut up to `longest`. A cut in the first half would waste more than it reads better. */
function goodPlace(sheet: Sheet, at: number, longest: number): number {
  const { text } = sheet;
  const half = at + (longest - at) / 2;
  const firstWord = at + (text.slice(at, longest).length - text.slice(at, longest).trimStart().length);
  const window = text.slice(at, longest + 2);
  for (const mark of ["\n\n", "\n", " "]) {
    const place = besideFence(sheet, at, at + window.lastIndexOf(mark, longest - at), half);
    if (place > firstWord && place >= half) return place;
  }
  return besideFence(sheet, at, wholeGrapheme(text, at, longest), longest);
}

/** Moves a cut out of a fence's own lines, and before a whole fence where at least `atLeast` is left of the part. */
function besideFence({ text, fences }: Sheet, at: number, place: number, atLeast: number): number {
  const fence = fenceAround(fences, place);
  if (fence === undefined) return place;
  const isBeforeCode = text.slice(fence.body, place).trim() === "";
  if (fence.start > at && (isBeforeCode || fence.start >= atLeast)) return fence.start;
  return Math.min(place, Math.max(fence.close, at + 1));
}

/** Made when first needed, because making it takes longer than all else that happens when the program is loaded. */
let segmenter: Intl.Segmenter | undefined;
/** What is looked at behind a place to tell whether a grapheme ends there. */
const lookAhead = 64;

function wholeGrapheme(text: string, at: number, place: number): number {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  const segment = segmenter.segment(text.slice(at, place + lookAhead)).containing(place - at);
  const start = at + (segment?.index ?? place - at);
  return start > at ? start : wholeCharacter(text, at, place);
}

/** One grapheme may be longer than a part (hundreds of accents on a letter): then it is cut between its characters. */
function wholeCharacter(text: string, at: number, place: number): number {
  const isWithinPair = /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(place - 1, place + 1));
  if (!isWithinPair) return Math.max(place, at + 1);
  return place - 1 > at ? place - 1 : place + 1;
}

const blanks = /\s*/y;

/** Where the next part starts after a cut: blank lines are skipped, an indentation stays unless it fills the part. */
function startOfPart(sheet: Sheet, cut: number): number {
  const { text, fences } = sheet;
  blanks.lastIndex = cut;
  const word = cut + (blanks.exec(text)?.[0].length ?? 0);
  const fence = codeAround(fences, cut);
  // Only its closing line is left of the fence, and the part before has closed it.
  if (fence !== undefined && word >= fence.close) return startOfPart(sheet, fence.end);
  const newline = text.slice(cut, word).lastIndexOf("\n");
  if (newline < 0 && cut > 0 && text[cut - 1] !== "\n") return word;
  const line = cut + newline + 1;
  return word - line > sheet.widest / 8 ? word : line;
}
