import { markdownToPlain } from "./markup/plain.ts";
import { markdownToRanges, type Range, type RangedText, type RangeKind } from "./markup/ranges.ts";
import type { Part } from "./target.ts";
import { longerWording, type Wording, worded } from "./wording.ts";

/** https://open.feishu.cn/document/server-docs/im-v1/message-content-description/create_json */
export interface Post {
  readonly title: string;
  readonly content: readonly (readonly Node[])[];
}

type Style = "bold" | "italic" | "lineThrough";

type Node =
  | { readonly tag: "text"; readonly text: string; readonly style?: readonly Style[] }
  | { readonly tag: "a"; readonly text: string; readonly href: string; readonly style?: readonly Style[] }
  | { readonly tag: "code_block"; readonly text: string; readonly language?: string };

const kinds: readonly RangeKind[] = ["bold", "italic", "strike", "pre", "link", "heading"];
const styles: Readonly<Partial<Record<RangeKind, Style>>> = {
  bold: "bold",
  heading: "bold",
  italic: "italic",
  strike: "lineThrough",
};

/** Pieces of text with their styles beside them: nothing has to be escaped but what is read within text all the same. */
const wording: Wording = {
  markdown: (text) => JSON.stringify(posted(markdownToRanges(text, kinds))),
  plain: (text) => JSON.stringify(posted({ text, ranges: [] })),
};

/** For `limit.rendered`: what of the two is longer, as an app's request holds it, a text of JSON within JSON. */
const longer = longerWording(wording, "bytes");
export function longestPost(text: string): string {
  return JSON.stringify(longer(text));
}

/** A part as a post. */
export function postOf(part: Part): Post {
  return JSON.parse(worded(part, wording)) as Post;
}

/** A part as plain text, for a service that does not like its post. */
export function wordsOf(part: Part): string {
  const words: Wording = { markdown: markdownToPlain, plain: (text) => text };
  // The service makes links of this form of its own accord.
  return silenced(worded(part, words)).replaceAll("](", "]\u200b(");
}

/** Mentions (`<at user_id="all">`) and marks (`<b>`) are read within text, too. */
function silenced(text: string): string {
  return text.replaceAll(/<(?=[a-z/])/gi, "<\u200b");
}

/** A block of code is a paragraph of its own; everything between two of them is one, with its newlines. */
function posted({ text, ranges }: RangedText): Post {
  const content: Node[][] = [[]];
  for (const { from, to, around } of stretchesOf(text, ranges)) {
    const block = around.find(({ kind }) => kind === "pre");
    if (block !== undefined) content.push([codeBlock(text.slice(from, to), block)], []);
    else content.at(-1)?.push(nodeOf(text.slice(from, to), around));
  }
  return { title: "", content: withoutBreaks(content).filter((paragraph) => paragraph.length > 0) };
}

interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly around: readonly Range[];
}

/** The text cut where a range begins or ends. Ranges come in the order of their beginnings, and hold one another as a whole. */
function stretchesOf(text: string, ranges: readonly Range[]): Stretch[] {
  const ends = ranges.flatMap(({ offset, length }) => [offset, offset + length]);
  const cuts = [...new Set([0, ...ends, text.length])].sort((one, other) => one - other);
  const found: Stretch[] = [];
  let around: Range[] = [];
  let next = 0;
  for (const [index, to] of cuts.slice(1).entries()) {
    const from = cuts[index] ?? 0;
    around = around.filter(({ offset, length }) => offset + length > from);
    for (let range = ranges[next]; range !== undefined && range.offset <= from; range = ranges[next]) {
      around.push(range);
      next += 1;
    }
    found.push({ from, to, around: [...around] });
  }
  return found;
}

/** The newlines beside a block of code are in the ends of its paragraph already. */
function withoutBreaks(paragraphs: readonly (readonly Node[])[]): (readonly Node[])[] {
  return paragraphs.map((nodes, index) => {
    if (nodes[0]?.tag === "code_block") return nodes;
    return nodes
      .map((node, at) => {
        const isFirst = at === 0 && index > 0;
        const isLast = at === nodes.length - 1 && index < paragraphs.length - 1;
        const text = isFirst ? node.text.replace(/^\n/, "") : node.text;
        return { ...node, text: isLast ? text.replace(/\n$/, "") : text };
      })
      .filter(({ text }) => text !== "");
  });
}

function codeBlock(code: string, { lang }: Range): Node {
  const language = lang === undefined ? {} : { language: lang.toUpperCase() };
  return { tag: "code_block", text: code.replaceAll(/<(?=\/?at\b)/gi, "<\u200b"), ...language };
}

function nodeOf(piece: string, around: readonly Range[]): Node {
  const style = [...new Set(around.flatMap(({ kind }) => styles[kind] ?? []))];
  const shown = { text: silenced(piece), ...(style.length > 0 ? { style } : {}) };
  const href = around.find(({ kind }) => kind === "link")?.url;
  return href === undefined ? { tag: "text", ...shown } : { tag: "a", href, ...shown };
}
