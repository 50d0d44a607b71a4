import { stretches } from "./markdown.ts";
import { hasGitlabBlocks } from "./neutralise.ts";

// What a code host shows of another server's: a picture is fetched when a comment is written or read, so its address can
// carry off what the agent knew.

const zeroWidthSpace = "\u200b";

/** An image, which is a link without its `!`, also by reference; GitLab plays videos and sound so. */
const image = /!(?=\[)/g;
/**
 * Elements that load something, and `pre` and `code` with attributes, which can name a language that is drawn. Code hosts
 * take away all styles, scripts and backgrounds by themselves.
 */
const element =
  /<(?=\/?(?:img|image|picture|video|audio|source|track|svg|iframe|frame|object|embed|input)\b|(?:pre|code)[\s/])/gi;
/**
 * Code blocks in languages that are drawn, or tables with Markdown in them: all can have images. Such a name can hide in
 * entities.
 */
const drawing =
  /(?<=`{3}|~{3})([ \t]*)(?=[^\s`~\u200b]{0,12}&|\{?\.?(?:mermaid|c4plantuml|plantuml|puml|vega|vegalite|geojson|topojson|json:table)\b)/gi;

/**
 * Markdown of a code host in which nothing is shown that another server has: images become links, elements that load
 * something become text, and so do drawings. Code is as in `neutraliseMarkdown`, `spareCode` too; with `isGitlab` as in
 * `neutraliseGitlab`. Newlines must be LF.
 */
export function breakEmbeds(
  text: string,
  { spareCode = true, isGitlab = false }: { readonly spareCode?: boolean; readonly isGitlab?: boolean } = {},
): string {
  if (!spareCode || (isGitlab && hasGitlabBlocks(text))) return breakAll(text);
  return stretches(text)
    .map(({ kind, text }) => (kind === "prose" ? breakAll(text) : kind === "fence" ? breakDrawing(text) : text))
    .join("");
}

function breakAll(text: string): string {
  return breakDrawing(text).replaceAll(image, `!${zeroWidthSpace}`).replaceAll(element, `<${zeroWidthSpace}`);
}

function breakDrawing(text: string): string {
  return text.replaceAll(drawing, `$1${zeroWidthSpace}`);
}
