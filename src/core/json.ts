import type { Json, JsonObject, RawNumber } from "./types.ts";

// `JSON.rawJSON` and the reviver's third argument (ECMAScript proposal "JSON.parse source text access") are in every
// Node this program runs on; the compiler's library does not know them yet.
interface LosslessJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
  parse(text: string, reviver: (key: string, value: Json, context: { source?: string }) => Json): Json;
}
const lossless = JSON as unknown as LosslessJson;

/**
 * Numbers that JavaScript would print otherwise than their sender wrote them: 16 digits or more, a trailing zero after the
 * point, an exponent, minus zero, or so small that they print with an exponent. In JSON a number follows `:`, `[` or `,`.
 * A match inside a string only costs time.
 */
const lossyNumber = /[:[,]\s*-?(?:[\d.]{16}|\d+\.\d*0(?!\d)|\d[\d.]*[eE]|0\.0{6}|(?<=-)0(?![.\d]))/;

/** Deeper JSON is refused: V8 parses it but cannot print it again (its stack ends at about 5 000 levels). */
const deepest = 500;

/**
 * Parses JSON so that every number can be printed again with all its digits.
 * @throws SyntaxError when the text is not JSON or is nested deeper than 500 levels.
 */
export function parseJson(text: string): Json {
  if (isTooDeep(text)) throw new SyntaxError(`JSON is nested deeper than ${deepest} levels`);
  if (!lossyNumber.test(text)) return JSON.parse(text) as Json;
  return lossless.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && source !== String(value) ? lossless.rawJSON(source) : value,
  );
}

function isTooDeep(text: string): boolean {
  // Each level costs an opening and a closing character.
  if (text.length <= deepest * 2) return false;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > deepest) return true;
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
  return false;
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
