import { truncate } from "./text.ts";
import type { Json, JsonObject, RawNumber } from "./types.ts";

// `JSON.rawJSON` and the reviver's third argument (ECMAScript proposal "JSON.parse source text access") are in every
// Node this program runs on; the compiler's library does not know them yet.
interface LosslessJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
  parse(text: string, reviver: (key: string, value: Json, context: { source?: string }) => Json): Json;
}
const lossless = JSON as unknown as LosslessJson;

/** Deeper JSON is refused: V8 parses it but cannot print it again (its stack ends at about 5 000 levels). */
const deepest = 500;

/**
 * Parses JSON so that every number can be printed again with all its digits. Bytes must be UTF-8 without a byte order mark.
 * @throws SyntaxError when it is not JSON or is nested deeper than 500 levels.
 */
export function parseJson(source: string | Buffer): Json {
  // Bytes are looked through twice as fast as characters.
  const { depth, isLossy } = survey(typeof source === "string" ? Buffer.from(source) : source);
  if (depth > deepest) throw new SyntaxError(`JSON is nested deeper than ${deepest} levels`);
  const text = source.toString();
  // Keeping the digits takes several times as long, and most payloads have no number that needs it.
  if (!isLossy) return JSON.parse(text) as Json;
  return lossless.parse(text, (_key, value, { source: digits }) =>
    typeof value === "number" && digits !== undefined && digits !== String(value) ? lossless.rawJSON(digits) : value,
  );
}

/** What to know before parsing: the deepest level, and whether JavaScript would print any number otherwise than it stands there. */
function survey(bytes: Buffer): { depth: number; isLossy: boolean } {
  let level = 0;
  let depth = 0;
  let isLossy = false;
  // Asked in each round, the length would cost a third of the time.
  const { length } = bytes;
  for (let at = 0; at < length; at += 1) {
    const byte = bytes[at]!;
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === 0x7b || byte === 0x5b) {
      level += 1;
      if (level > depth) depth = level;
    } else if (byte === 0x7d || byte === 0x5d) level -= 1;
    else if (byte === minus || isDigit(byte)) {
      const end = endOfNumber(bytes, at);
      isLossy ||= isLossyNumber(bytes, at, end);
      at = end - 1;
    }
  }
  return { depth, isLossy };
}

const quote = 0x22;
const backslash = 0x5c;
const minus = 0x2d;

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** Position of the quote that ends the string which begins at `start`, or the end of the text. */
function endOfString(bytes: Buffer, start: number): number {
  const { length } = bytes;
  let at = start + 1;
  for (; at < length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) break;
    if (byte === backslash) at += 1;
  }
  return at;
}

/** Position after the digits, points, signs and `e`s that begin at `start`: only they can stand in a number. */
function endOfNumber(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && (isDigit(bytes[at]!) || isMark(bytes[at]!))) at += 1;
  return at;
}

function isMark(byte: number): boolean {
  return byte === 0x2e || byte === 0x65 || byte === 0x45 || byte === 0x2b || byte === minus;
}

function isLossyNumber(bytes: Buffer, start: number, end: number): boolean {
  let isPlain = end - start <= 15 && bytes[start] !== minus;
  for (let at = start; at < end && isPlain; at += 1) isPlain = isDigit(bytes[at]!);
  // Whole numbers of up to 15 digits always print as they were written.
  if (isPlain) return false;
  const text = bytes.toString("latin1", start, end);
  return String(Number(text)) !== text;
}

/** A number that prints as these digits, which must be a JSON number. */
export function rawNumber(digits: string): RawNumber {
  return lossless.rawJSON(digits);
}

export function isRawNumber(value: unknown): value is RawNumber {
  return lossless.isRawJSON(value);
}

export function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

export interface JsonLayout {
  /** Spaces per level; without them all stands on one line. */
  readonly indent?: number;
  /** Most UTF-16 code units; a character is never split. */
  readonly max: number;
}

/**
 * The head of a value's JSON text as `JSON.stringify` prints it. Printing ends at `max`, so that the head of a large payload
 * costs no more than that of a small one.
 */
export function jsonHead(value: Json, { indent = 0, max }: JsonLayout): string {
  const page: Page = { text: "", indent, max };
  print(page, value, indent === 0 ? "" : "\n");
  return truncate(page.text, max);
}

interface Page {
  text: string;
  readonly indent: number;
  readonly max: number;
}

/** `line` is what a new line begins with at this level. */
function print(page: Page, value: Json, line: string): void {
  if (isList(value)) printList(page, value, line);
  else if (isObject(value)) printObject(page, value, line);
  else if (typeof value === "string") page.text += quoted(value, page.max);
  else page.text += JSON.stringify(value);
}

function printList(page: Page, list: readonly Json[], line: string): void {
  const inner = line + " ".repeat(page.indent);
  let before = `[${inner}`;
  for (const item of list) {
    if (page.text.length > page.max) return;
    page.text += before;
    print(page, item, inner);
    before = `,${inner}`;
  }
  page.text += list.length === 0 ? "[]" : `${line}]`;
}

function printObject(page: Page, object: JsonObject, line: string): void {
  const inner = line + " ".repeat(page.indent);
  const keys = Object.keys(object);
  let before = `{${inner}`;
  for (const key of keys) {
    if (page.text.length > page.max) return;
    page.text += `${before}${quoted(key, page.max)}${page.indent === 0 ? ":" : ": "}`;
    print(page, object[key] as Json, inner);
    before = `,${inner}`;
  }
  page.text += keys.length === 0 ? "{}" : `${line}}`;
}

function quoted(text: string, max: number): string {
  // What is cut off here would stand behind the end of the page anyway.
  return JSON.stringify(text.length > max ? text.slice(0, max + 1) : text);
}
