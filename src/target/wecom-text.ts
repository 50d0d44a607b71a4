import { shortFence, shortSpan } from "./markup/code.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import { plainText } from "./neutralise.ts";
import type { Part } from "./target.ts";
import { isPlain } from "./wording.ts";

// WeCom's Markdown has no escapes. What would be markup is broken by a space without width, which nobody sees.

const gap = "\u200b";
/** Mentions, and the few tags that are more than text. */
const tag = /<(?=[\s/]*(?:@|a\b|font\b))/gi;

function breakTags(text: string): string {
  return text.replaceAll(tag, `<${gap}`);
}

function silence(text: string, isLineStart: boolean): string {
  const inner = breakTags(text)
    .replaceAll(/\](?=[([:])/g, `]${gap}`)
    .replaceAll(/\*(?=\*)/g, `*${gap}`);
  return inner.replaceAll(isLineStart ? lineStart : nextLineStart, gap);
}

const lineStart = /^(?=#{1,6} |>)/gm;
const nextLineStart = /(?<=\n)(?=#{1,6} |>)/g;

/** https://developer.work.weixin.qq.com/document/path/91770: no italics, lists, tables and blocks of code. */
const dialect: Dialect = {
  escape: silence,
  escapeCode: breakTags,
  escapeUrl: (url) => url.replaceAll("(", "%28").replaceAll(")", "%29").replaceAll("<", "%3C"),
  bold: ["**", "**"],
  code: shortSpan,
  codeBlock: (code) => silence(code, true),
  link: (text, url) => `[${text}](${url})`,
  heading: (piece, level) => `${"#".repeat(level)} ${piece}`,
  table: "lines",
};

/** Of AI bots, which show blocks of code as well. */
const botDialect: Dialect = { ...dialect, codeBlock: shortFence };

/** What a robot or an app sends: text, which every client shows, and Markdown only where there is markup. */
export function contentOf({ text, address }: Pick<Part, "text" | "address">) {
  const clean = plainText(text);
  if (isPlain(address) || markdownToPlain(clean) === clean) {
    return { msgtype: "text", text: { content: breakTags(clean) } };
  }
  return { msgtype: "markdown", markdown: { content: renderMarkdown(clean, dialect) } };
}

/** What an AI bot sends, which knows nothing but Markdown. */
export function botContentOf({ text, address }: Pick<Part, "text" | "address">): string {
  const clean = plainText(text);
  return isPlain(address) ? silence(clean, true) : renderMarkdown(clean, botDialect);
}

/** For `limit.rendered`: the longest of what could be sent. */
export function longestOf(text: string): string {
  const clean = plainText(text);
  const all = [silence(clean, true), renderMarkdown(clean, dialect), renderMarkdown(clean, botDialect)];
  return all.reduce((one, other) => (Buffer.byteLength(other) > Buffer.byteLength(one) ? other : one));
}
