import { type Dialect, renderMarkdown } from "./render.ts";
import { tableText } from "./table.ts";

const plain: Dialect = {
  escape: (text) => text,
  table: (header, rows) => tableText([header, ...rows]),
};

/**
 * Markdown as text for a reader who sees no markup: without marks, code as it is, tables in columns, links as
 * "text (url)". A text without any Markdown comes out as it is, byte for byte, and so does one whose marks read well as
 * they are: lists, quotations, rulers.
 */
export function markdownToPlain(text: string): string {
  const written = renderMarkdown(text, plain);
  return hasSameWords(written, text) ? text : written;
}

/** Whether two texts differ in nothing but blanks. */
export function hasSameWords(one: string, other: string): boolean {
  return one.replaceAll(/\s/g, "") === other.replaceAll(/\s/g, "");
}
