import { markdownToRanges, type Range, type RangedText, type RangeKind } from "./markup/ranges.ts";
import { plainText } from "./neutralise.ts";
import type { Part } from "./target.ts";
import { isPlain, longerWording } from "./wording.ts";

/** What Telegram counts of a part: the text, without its entities, at its longest. */
export const countedText: (part: string) => string = longerWording(
  { markdown: (text) => partMentions(markdownToRanges(text).text), plain: partMentions },
  "utf16",
);

/** The text of a message, for `sendMessage`. */
export interface TelegramText {
  readonly text: string;
  readonly entities?: readonly object[];
  /** The text for a message without entities. */
  readonly bare: string;
}

/**
 * The text of a part and what its stretches are shown as. Styles stand beside the text, so that nothing in it need be
 * escaped: https://core.telegram.org/bots/api#messageentity. Telegram itself looks for `@names`, which reach people: without
 * `mentions` they are parted, but for those in code, where it does not look.
 */
export function textWithEntities(
  part: Pick<Part, "text" | "address">,
  { mentions }: { readonly mentions: boolean },
): TelegramText {
  const clean = plainText(part.text);
  const quiet = mentions ? (text: string) => text : partMentions;
  if (isPlain(part.address)) return { text: quiet(clean), bare: quiet(clean) };
  const { text, ranges } = markdownToRanges(clean);
  const bare = quiet(text);
  const shown = ranges.filter((range) => !isQuoteInQuote(range, ranges)).slice(0, mostEntities);
  if (shown.length === 0) return { text: bare, bare };
  const parted = mentions ? { text, ranges: shown } : partMentionsBeside({ text, ranges: shown });
  return { text: parted.text, entities: parted.ranges.map(entityOf), bare };
}

const zeroWidthSpace = "\u200b";
/** An `@name` where Telegram sees one: no letter, digit or underscore stands before it, so an e-mail address has none. */
const mention = /(?<![\p{L}\p{N}_])@(?=(\w+))/gu;

function partMentions(text: string): string {
  return text.replaceAll(mention, `@${zeroWidthSpace}`);
}

/** Parts the mentions outside of code, and moves the ranges along. */
function partMentionsBeside({ text, ranges }: RangedText): RangedText {
  const code = ranges.filter(({ kind }) => kind === "code" || kind === "pre");
  const isCode = (from: number, to: number) =>
    code.some(({ offset, length }) => offset <= from && to <= offset + length);
  // Behind each "@".
  const places = [...text.matchAll(mention)]
    .filter(({ index, 1: name = "" }) => !isCode(index, index + 1 + name.length))
    .map(({ index }) => index + 1);
  const starts = [0, ...places];
  const pieces = starts.map((from, nth) => text.slice(from, places[nth]));
  return { text: pieces.join(zeroWidthSpace), ranges: ranges.map((range) => movedBy(places, range)) };
}

/** What is put in at the edge of a range stays outside of it. */
function movedBy(places: readonly number[], range: Range): Range {
  const end = range.offset + range.length;
  const offset = range.offset + places.filter((place) => place <= range.offset).length;
  return { ...range, offset, length: end + places.filter((place) => place < end).length - offset };
}

/** Telegram shows no more than these, and leaves out the rest. */
const mostEntities = 100;

const entityTypes: Readonly<Record<RangeKind, string>> = {
  bold: "bold",
  heading: "bold",
  italic: "italic",
  strike: "strikethrough",
  code: "code",
  pre: "pre",
  link: "text_link",
  quote: "blockquote",
};

function entityOf({ offset, length, kind, url, lang }: Range): object {
  const named = { ...(url === undefined ? {} : { url }), ...(lang === undefined ? {} : { language: lang }) };
  return { type: entityTypes[kind], offset, length, ...named };
}

function isQuoteInQuote(one: Range, ranges: readonly Range[]): boolean {
  if (one.kind !== "quote") return false;
  const end = one.offset + one.length;
  const outer = ranges.slice(0, ranges.indexOf(one)).filter(({ kind }) => kind === "quote");
  return outer.some(({ offset, length }) => offset <= one.offset && end <= offset + length);
}
