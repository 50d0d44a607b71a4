import { type SplitLimit, splitText } from "../core/split.ts";
import { openFence } from "./markdown.ts";

// A hidden marker at the end of a comment in Markdown, by which the comment is found again when its answer was lost.

/** Of a code block that the text leaves open: one with longer marks stays open, and its reader sees the marker. */
const longestMarks = 20;

/** What a text may be long, in code points, so that its comment with closed fence and marker is no longer than `max`. */
export function roomBeforeMarker(max: number): SplitLimit {
  const end = ending("`".repeat(longestMarks), "0".repeat(32));
  return { unit: "codepoints", max: max - end.length, parts: 1 };
}

/**
 * The text with the marker of `key` behind it. `neutralise` takes the power out of the text; when that makes it too long
 * for `limit`, it is asked again to take nothing for code, so that the cut brings nothing to life.
 */
export function markedBody(
  text: string,
  key: string,
  limit: SplitLimit,
  neutralise: (text: string, options: { readonly spareCode: boolean }) => string,
): string {
  const shown = harmless(text, limit, neutralise);
  const marks = openFence(shown) ?? "";
  return shown + ending(marks.length > longestMarks ? "" : marks, key);
}

function harmless(text: string, limit: SplitLimit, neutralise: Parameters<typeof markedBody>[3]): string {
  const body = neutralise(text, { spareCode: true });
  if (splitText(body, limit)[0] === body) return body;
  return splitText(neutralise(text, { spareCode: false }), limit)[0] ?? "";
}

/**
 * What stands behind the text: the end of a code block that it left open, and the marker. The blank line ends every other
 * block but open HTML, where a comment does not show either; what the text hides in an open `<!--` ends with the marker.
 */
function ending(marks: string, key: string): string {
  return `${marks === "" ? "" : `\n${marks}`}\n\n${marker(key)}`;
}

function marker(key: string): string {
  return `<!-- postern:${key} -->`;
}

/**
 * Whether a comment, or the end of it, carries the marker of `key`. Only one at the very end is the gateway's: one within
 * the text may be a stranger's copy of another.
 */
export function isMarked(end: unknown, key: string): boolean {
  return typeof end === "string" && end.trimEnd().endsWith(`\n${marker(key)}`);
}
