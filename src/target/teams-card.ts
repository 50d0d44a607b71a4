import { backslash } from "./backslash.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import type { Wording } from "./wording.ts";

/** Stand in a line of code and of a title; no text has them, because control characters are taken out before. */
const inCode = "\u0002";
const inTitle = "\u0003";

const marks = /[\\*[\]]|!$|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;
const lineMarks = /^([^\S\n\u2028\u2029]*)(#{1,6}(?=\s)|>|[-+](?=\s))/gm;
const lineNumber = /^([^\S\n\u2028\u2029]*\d{1,9})([.)])(?=\s)/gm;

/**
 * Text of a TextBlock, which has some of Markdown (https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features)
 * and functions in two braces. An `<at>` reaches nobody without an entity beside it, but need not look as if.
 */
function escapeText(text: string): string {
  const tame = text.replaceAll(/\{(?=\{)|<(?=\/?at\b)/gi, "$&\u200b");
  return backslash(tame, marks).replaceAll(lineMarks, "$1\\$2").replaceAll(lineNumber, "$1\u200b$2");
}

const dialect: Dialect = {
  escape: escapeText,
  bold: ["**", "**"],
  italic: ["_", "_"],
  codeBlock: (code) => code.replaceAll(/^/gm, inCode),
  link: (text, url) => `[${text.replaceAll("\n", " ")}](${url})`,
  escapeUrl: (url) => url.replaceAll("(", "%28").replaceAll(")", "%29"),
  heading: (piece) => piece.replaceAll(/^/gm, inTitle),
  // Each line is a block of its own, in which a list would begin anew.
  bullet: (marker, isOrdered) => (isOrdered ? marker.replace(/(?=\D)/, "\u200b") : "•"),
  checks: ["☐", "☑"],
};

/** The lines of a card, for `cardOf`. */
export const cardWording: Wording = { markdown: (text) => renderMarkdown(text, dialect), plain: escapeText };

/** An Adaptive Card with a block for each line: within a block Teams would join them. */
export function cardOf(wording: string): object {
  const content = {
    type: "AdaptiveCard",
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    version: "1.4",
    body: isBlank(wording) ? [blockOf("(no text)", true)] : blocksOf(wording.split("\n")),
    msteams: { width: "Full" },
  };
  const contentType = "application/vnd.microsoft.card.adaptive";
  return { type: "message", attachments: [{ contentType, contentUrl: null, content }] };
}

/** A blank line is the space before the next one. */
function blocksOf(lines: readonly string[]): object[] {
  const shown = lines.map((line, index) => ({ line, isAfterBlank: index > 0 && isBlank(lines[index - 1] ?? "") }));
  return shown.filter(({ line }) => !isBlank(line)).map(({ line, isAfterBlank }) => blockOf(line, isAfterBlank));
}

function isBlank(line: string): boolean {
  return line.replaceAll(inCode, "").trim() === "";
}

function blockOf(line: string, isAfterBlank: boolean): object {
  return {
    type: "TextBlock",
    text: spaced(line.replaceAll(inCode, "").replaceAll(inTitle, "")),
    wrap: true,
    ...(isAfterBlank ? {} : { spacing: "None" }),
    ...(line.includes(inCode) ? { fontType: "Monospace" } : {}),
    ...(line.includes(inTitle) ? { weight: "Bolder", size: "Medium" } : {}),
  };
}

/** Blanks that would be lost: those at the start of a line, and all but the last of several. */
function spaced(line: string): string {
  return line.replaceAll("\t", "    ").replaceAll(/^ +| +(?= )/g, (blanks) => "\u00a0".repeat(blanks.length));
}
