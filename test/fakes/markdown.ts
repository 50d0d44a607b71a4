import { createRequire } from "node:module";

interface Token {
  readonly type: string;
  readonly content: string;
  /** Of a code block: its language and what else stands behind its marks. */
  readonly info: string;
  attrGet(name: string): string | null;
  readonly children: readonly Token[] | null;
}

const MarkdownIt = createRequire(import.meta.url)("markdown-it") as new (
  preset: string,
  options: object,
) => { parse(text: string, env: object): Token[] };

const reader = new MarkdownIt("default", { html: true });

/** What readers see of a comment: without the HTML comment at its end. */
export function withoutEnd(body: string): string {
  return body.endsWith("-->") ? body.slice(0, body.lastIndexOf("<!--")).trimEnd() : body;
}

/**
 * Where anything of a comment could be alive on a code host: the text that is no code, entities decoded, what it loads, and
 * every line that might be a command, in code too, because bots read lines.
 */
export function powerOf(body: string): string {
  const commands = body.split("\n").filter((line) => /^\s*\/[a-z]|^\s*bors |@dependabot/i.test(line));
  return [...commands, "", proseOf(reader.parse(body, {}))].join("\n");
}

/** Languages of which GitHub or GitLab makes drawings or tables. */
const drawn = /^(?:mermaid|plantuml|vega|vegalite|geojson|topojson|json:table)\b/i;

/** For the adapters' `live`: what makes the service, or the browser of who reads it, ask another server. */
export const loading: readonly RegExp[] = [
  /an image is loaded/,
  /a drawing may load images/,
  /<\s*\/?(?:img|image|picture|video|audio|source|track|svg|iframe|object|embed|input)\b/i,
  /<(?:pre|code)\s/i,
];

function proseOf(tokens: readonly Token[]): string {
  const pieces = tokens.map((token) => {
    const { type, content, children, info } = token;
    if (type === "inline" && children !== null) return `${proseOf(children)}\n`;
    if (type === "image") return `an image is loaded from ${token.attrGet("src")}`;
    if (type === "fence" && drawn.test(info)) return `a drawing may load images: ${info}\n`;
    if (/^(?:fence|code_block|code_inline)$/.test(type)) return " ";
    return type === "softbreak" || type === "hardbreak" ? "\n" : content;
  });
  return pieces.join("");
}
