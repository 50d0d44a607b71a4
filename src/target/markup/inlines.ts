import type { Token } from "markdown-it";
import { isDeceptive } from "./links.ts";
import { type Inline, textOf } from "./tree.ts";

interface Reading {
  readonly tokens: readonly Token[];
  /** The token that is read next. */
  at: number;
}

/** Nobody writes more emphasis within emphasis than this, but somebody may to make us fall. */
const deepestInline = 40;

/** The running text of a block, from the parser's token of the type `inline`. */
export function inlinesOf(inline: Token): Inline[] {
  const tokens = inline.children ?? [];
  if (tokens.some(({ level }) => level > deepestInline)) return [{ kind: "text", text: inline.content }];
  return inlinesUpTo({ tokens, at: 0 });
}

/** Inlines up to the token that closes what they are in; leaves `at` on it. */
function inlinesUpTo(reading: Reading): Inline[] {
  const found: Inline[] = [];
  for (; reading.at < reading.tokens.length; reading.at += 1) {
    const token = reading.tokens[reading.at];
    if (token === undefined || token.nesting < 0) break;
    found.push(...inlineOf(token, reading));
  }
  return merged(found);
}

const emphasis: Readonly<Record<string, "bold" | "italic" | "strike">> = {
  strong_open: "bold",
  em_open: "italic",
  s_open: "strike",
};

function inlineOf(token: Token, reading: Reading): readonly Inline[] {
  if (token.type === "code_inline") return [{ kind: "code", text: token.content }];
  if (token.type === "image") return imageOf(token, String(token.attrGet("src")));
  if (token.nesting === 0) return [{ kind: "text", text: plainTextOf(token) }];
  const before = neighbour(reading, -1);
  reading.at += 1;
  const content = inlinesUpTo(reading);
  if (token.type === "link_open") return linkOf(content, String(token.attrGet("href")));
  const kind = emphasis[token.type];
  const isWord = isWithinWord(token, before, neighbour(reading, 1)) || isName(token, content);
  if (kind !== undefined && !isWord) return [{ kind, content }];
  const marks = { kind: "text", text: token.markup } as const;
  return [marks, ...content, marks];
}

/** The character beside the token that is read; empty text is what the parser leaves of marks. */
function neighbour({ tokens, at }: Reading, step: 1 | -1): string {
  for (let place = at + step; Math.abs(place - at) <= 4; place += step) {
    const token = tokens[place];
    if (token?.type !== "text") return "";
    if (token.content !== "") return token.content.at(step === 1 ? 0 : -1) ?? "";
  }
  return "";
}

/** `2*3*4` is a product. In other scripts marks do stand within what looks like one word. */
function isWithinWord({ markup }: Token, before: string, after: string): boolean {
  return markup.startsWith("*") && /[A-Za-z0-9)\]]/.test(before) && /[A-Za-z0-9(]/.test(after);
}

function imageOf(token: Token, url: string): readonly Inline[] {
  const content = inlinesUpTo({ tokens: token.children ?? [], at: 0 });
  if (url !== "") return [{ kind: "image", alt: textOf(content), url }];
  return [{ kind: "text", text: "![" }, ...content, { kind: "text", text: "]()" }];
}

/** A link without an address is none. */
function linkOf(content: readonly Inline[], url: string): readonly Inline[] {
  if (url !== "") return [{ kind: "link", url, content, isDeceptive: isDeceptive(textOf(content), url) }];
  return [{ kind: "text", text: "[" }, ...content, { kind: "text", text: "]()" }];
}

/** Before these a backslash is taken away; before others, as in `\\server` or `\"`, it is part of what is said. */
const escapable = /^[*_`~[\](){}<>#+.!|&-]$/;

function plainTextOf({ type, content, markup }: Token): string {
  if (type === "hardbreak") return "\n";
  return type === "text_special" && !escapable.test(content) ? markup : content;
}

/** `__init__` is a name of Python, not `init` in bold, and `*.ts` a pattern of file names. */
function isName({ markup }: Token, content: readonly Inline[]): boolean {
  const [first] = content;
  if (first?.kind !== "text") return false;
  if (markup === "__") return content.length === 1 && /^[A-Za-z0-9_]+$/.test(first.text);
  return markup.startsWith("*") && /^[./]/.test(first.text);
}

/** Texts in a row as one, so that what escapes them sees what stands together. */
export function merged(inlines: readonly Inline[]): Inline[] {
  const found: Inline[] = [];
  for (const inline of inlines) {
    const last = found.at(-1);
    if (inline.kind === "text" && inline.text === "") continue;
    if (inline.kind !== "text" || last?.kind !== "text") found.push(inline);
    else found[found.length - 1] = { kind: "text", text: last.text + inline.text };
  }
  return found;
}
