import { backslash } from "./backslash.ts";
import { longFence, longSpan } from "./markup/code.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import type { Wording } from "./wording.ts";

export interface MattermostWordingOptions {
  /** Whether the text may reach those that it names. */
  readonly mentions: boolean;
  /** An incoming webhook also reads the markup of Slack: `<!channel>`, `<@name>`, `<address|text>`. */
  readonly isHook: boolean;
}

/** Mattermost's Markdown (https://docs.mattermost.com/collaborate/format-messages.html), which is that of GitHub. */
export function mattermostWording({ mentions, isHook }: MattermostWordingOptions): Wording {
  const part = mentions ? same : partMentions;
  const inAddress = mentions ? same : encodeMentions;
  const tame = (text: string) => escapeText(part(text), isHook, inAddress);
  const dialect: Dialect = {
    escape: tame,
    escapeCode: (code) => (mentions ? code : partMassMentions(isHook ? partSlackMentions(code) : code)),
    escapeUrl: (url) => inAddress(url).replaceAll("(", "%28").replaceAll(")", "%29"),
    bold: ["**", "**"],
    italic: ["*", "*"],
    strike: ["~~", "~~"],
    code: longSpan,
    codeBlock: longFence,
    link: (text, url) => `[${text.replaceAll("\n", " ")}](${url})`,
    heading: (piece, level) => `${"#".repeat(level)} ${piece.replaceAll("\n", " ")}`,
    table: (header, rows) => [header, header.map(() => "---"), ...rows].map(tableLine).join("\n"),
  };
  return { markdown: (text) => renderMarkdown(text, dialect), plain: tame };
}

function same(text: string): string {
  return text;
}

function tableLine(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll(/\s*\n\s*/g, " ")).join(" | ")} |`;
}

/** What stands before a link of ours would make an image of it. */
const marks = /[\\*_~`[\]|]|!$/g;
/** Titles, quotations, lists, rulers and underlined titles. */
const lineMarks = /^([^\S\n\u2028\u2029]*)(#{1,6}(?=\s)|>|[-+=])/gm;
const lineNumber = /^([^\S\n\u2028\u2029]*\d{1,9})([.)])(?=\s)/gm;

/** In a webhook's text a `<` stays the markup of Slack behind a backslash, but not as an entity. */
function escapeText(text: string, isHook: boolean, inAddress: (url: string) => string): string {
  const encoded = text.replaceAll(/&(?=#?\w{1,32};)/g, "&amp;");
  const tame = isHook ? encoded.replaceAll("<", "&lt;") : encoded.replaceAll("<", "\\<");
  // The backslash before a "<" stands there already.
  const escaped = backslash(tame, isHook ? marks : /\\(?!<)|[*_~`[\]|]|!$/g, inAddress);
  return escaped.replaceAll(lineMarks, "$1\\$2").replaceAll(lineNumber, "$1\\$2");
}

/** Mattermost takes an `@` for a mention where no letter or digit stands before it; `:@all` is one, `a@b.c` is not. */
const mention = /(?<![A-Za-z0-9])@(?=[\p{L}\p{N}_.-])/gu;

function partMentions(text: string): string {
  return partMassMentions(text).replaceAll(mention, "@\u200b");
}

function partMassMentions(text: string): string {
  return text.replaceAll(/@(?=all|channel|here|everyone)/gi, "@\u200b");
}

function partSlackMentions(text: string): string {
  return text.replaceAll(/<(?=[!@])/g, "<\u200b");
}

/** Of an address, whether its mentions were parted or not. */
function encodeMentions(url: string): string {
  return url.replaceAll(/(?<![A-Za-z0-9])@\u200b?/g, "%40");
}
