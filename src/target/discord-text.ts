import { backslash } from "./backslash.ts";
import { shortFence, shortSpan } from "./markup/code.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import type { Wording } from "./wording.ts";

/**
 * Discord's markup (https://support.discord.com/hc/articles/210298617): what Markdown has, but for tables, images and
 * deeper headings. A backslash takes the power of any mark, and is shown within an address: those stay as they are.
 * With `mentions` the text may reach people and roles; without it, it reaches nobody.
 */
export function discordWording({ mentions }: { readonly mentions: boolean }): Wording {
  const tame = (text: string) => escapeText(mentions ? text : parted(text), mentions);
  const dialect: Dialect = {
    escape: tame,
    escapeCode: mentions ? (code) => code : parted,
    escapeUrl: (url) =>
      (mentions ? url : parted(url).replaceAll("@\u200b", "%40")).replaceAll("(", "%28").replaceAll(")", "%29"),
    bold: ["**", "**"],
    italic: ["*", "*"],
    strike: ["~~", "~~"],
    code: shortSpan,
    codeBlock: (code, lang) => shortFence(code).replace("```\n", () => `\`\`\`${isLanguage.test(lang) ? lang : ""}\n`),
    link: (text, url) => (/^https?:/i.test(url) ? `[${text}](${url})` : `${text} (${url})`),
    heading: (piece, level) => (level <= 3 && !piece.includes("\n") ? `${"#".repeat(level)} ${piece}` : `**${piece}**`),
    checks: ["☐", "☑"],
  };
  return { markdown: (text) => renderMarkdown(text, dialect), plain: tame };
}

const isLanguage = /^[\w+#.-]{0,40}$/;
const marks = /[\\*_~`|[\]<]/g;
/** `<@1>`, `<@&1>` and `<#1>` with mentions: a backslash before them would be taken for text. */
const marksButMentions = /[\\*_~`|[\]]|<(?![@#][&!]?\d)/g;
const lineMarks = /^([^\S\n\u2028\u2029]*)(-#|#{1,3}|>{1,3}|[-+])(?=\s)/gm;

function escapeText(text: string, mentions: boolean): string {
  const inAddress = (url: string) => (mentions ? url : url.replaceAll("@\u200b", "%40"));
  return backslash(text, mentions ? marksButMentions : marks, inAddress).replaceAll(lineMarks, "$1\\$2");
}

/** Discord looks for mentions in code as well, and behind a backslash, before it asks who may be reached. */
function parted(text: string): string {
  return text.replaceAll(/@(?=everyone|here)|<(?=@|#)/gi, "$&\u200b");
}

/** Each stands for two bits. All are seen by nobody, and none of them is a blank that Discord takes away at the end. */
const digits = ["\u200b", "\u200c", "\u200d", "\u2060"];
const keyLength = 16;

/** Characters that a marker takes. */
export const markerLength = keyLength * 2 + 2;

/**
 * A part's key as text that nobody sees, for the end of a message: Discord forgets a nonce after minutes and never shows
 * it again, and has no other place for something of a sender's own.
 */
export function marker(key: string): string {
  const values = [...key.slice(0, keyLength)].map((digit) => Number.parseInt(digit, 16));
  // Without a blank, an address at the end of the text would go on to the end of the marker.
  return ` ${digits[0]}${values.map((value) => `${digits[value >> 2]}${digits[value & 3]}`).join("")}`;
}

/** Whether a message ends in a marker, whosever. */
export function isMarked(content: string): boolean {
  return new RegExp(` [${digits.join("")}]{${markerLength - 1}}$`, "u").test(content);
}
