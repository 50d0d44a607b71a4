import { RE2JS } from "re2js";

/** Searches a text; takes time linear in its length. */
export type Pattern = (text: string) => boolean;

/**
 * Compiles a `regex` for RE2, which cannot be made to run for ever by a hostile text. Two habits of other engines are
 * translated: `\Z`, and `\u` with four hex digits. What RE2 lacks (lookaround, backreferences) is an error.
 * @throws Error whose message says what the pattern may not hold.
 */
export function compilePattern(source: string): Pattern {
  const compiled = RE2JS.compile(translate(source));
  return (text) => compiled.test(text);
}

/** A pair of `\u` escapes that stands for one character beyond the first plane comes first; then any escape at all. */
const escapes = /\\u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})|\\u([\da-fA-F]{4})|\\[\s\S]/g;

function translate(source: string): string {
  return source.replaceAll(escapes, (found, high?: string, low?: string, hex?: string) => {
    if (high !== undefined && low !== undefined) {
      const point = 0x10000 + (Number.parseInt(high, 16) - 0xd800) * 0x400 + (Number.parseInt(low, 16) - 0xdc00);
      return `\\x{${point.toString(16)}}`;
    }
    if (hex !== undefined) return `\\x{${hex}}`;
    return found === "\\Z" ? "\\z" : found;
  });
}
