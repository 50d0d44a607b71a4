import { linkTo } from "./layout.ts";
import { parseMarkdown } from "./parse.ts";
import { type Block, type Inline, type Item, type Link, type Row, shownUrl } from "./tree.ts";

/**
 * Markdown as HTML that is safe wherever it is shown, for the body of an e-mail and for Matrix
 * (`org.matrix.custom.html`). Its tags: p, br, h1 to h6, pre, code, blockquote, ul, ol, li, table, thead, tbody, tr, th,
 * td, hr, strong, em, del, a. Its attributes: `href` to http, https or mailto, `class="language-…"` of code, `start` of a
 * list. HTML in the text is shown as text, an image as a link.
 */
export function markdownToHtml(text: string): string {
  return htmlOf(parseMarkdown(text));
}

/** Text within HTML, in an attribute too. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function htmlOf(blocks: readonly Block[]): string {
  return blocks.map(blockHtml).join("\n");
}

function blockHtml(block: Block): string {
  switch (block.kind) {
    case "paragraph":
      return `<p>${inlineHtml(block.content)}</p>`;
    case "heading":
      return `<h${block.level}>${inlineHtml(block.content)}</h${block.level}>`;
    case "code":
      return `<pre><code${languageOf(block.lang)}>${escapeHtml(block.text)}\n</code></pre>`;
    case "quote":
      return `<blockquote>\n${htmlOf(block.blocks)}\n</blockquote>`;
    case "list":
      return block.isOrdered
        ? `<ol${startOf(block.items)}>\n${itemsHtml(block.items)}</ol>`
        : `<ul>\n${itemsHtml(block.items)}</ul>`;
    case "table":
      return tableHtml(block.header, block.rows);
    case "rule":
      return "<hr>";
  }
}

function languageOf(lang: string): string {
  return lang === "" ? "" : ` class="language-${escapeHtml(lang)}"`;
}

function startOf([first]: readonly Item[]): string {
  const start = Number.parseInt(first?.marker ?? "1", 10);
  return start === 1 ? "" : ` start="${start}"`;
}

function itemsHtml(items: readonly Item[]): string {
  return items.map((item) => `<li>${boxOf(item)}${itemHtml(item)}</li>\n`).join("");
}

function boxOf({ isChecked }: Item): string {
  return isChecked === undefined ? "" : isChecked ? "☑ " : "☐ ";
}

/** The first paragraph stands on the item's own line. */
function itemHtml({ blocks: [first, ...others] }: Item): string {
  if (first?.kind !== "paragraph") return htmlOf(first === undefined ? [] : [first, ...others]);
  return inlineHtml(first.content) + (others.length > 0 ? `\n${htmlOf(others)}` : "");
}

function tableHtml(header: Row, rows: readonly Row[]): string {
  const body = rows.map((row) => rowHtml(row, "td")).join("");
  return `<table>\n<thead>\n${rowHtml(header, "th")}</thead>\n<tbody>\n${body}</tbody>\n</table>`;
}

function rowHtml(row: Row, tag: "th" | "td"): string {
  return `<tr>${row.map((cell) => `<${tag}>${inlineHtml(cell)}</${tag}>`).join("")}</tr>\n`;
}

const tags = { bold: "strong", italic: "em", strike: "del" } as const;

function inlineHtml(content: readonly Inline[]): string {
  return content.map(oneInlineHtml).join("");
}

function oneInlineHtml(inline: Inline): string {
  switch (inline.kind) {
    case "text":
      return escapeHtml(inline.text).replaceAll("\n", "<br>\n");
    case "code":
      return `<code>${escapeHtml(inline.text)}</code>`;
    case "image":
      return linkHtml(linkTo(inline));
    case "link":
      return linkHtml(inline);
    default:
      return `<${tags[inline.kind]}>${inlineHtml(inline.content)}</${tags[inline.kind]}>`;
  }
}

function linkHtml({ url, content, isDeceptive }: Link): string {
  const href = escapeHtml(url);
  const label = inlineHtml(content) || escapeHtml(shownUrl(url));
  return `<a href="${href}">${label}</a>${isDeceptive ? ` (${escapeHtml(shownUrl(url))})` : ""}`;
}
