/** A piece of running text. Line ends are newlines within `text`, those that Markdown calls soft as well. */
export type Inline =
  | { readonly kind: "text" | "code"; readonly text: string }
  | { readonly kind: "bold" | "italic" | "strike"; readonly content: readonly Inline[] }
  | Link
  | { readonly kind: "image"; readonly alt: string; readonly url: string };

export interface Link {
  readonly kind: "link";
  /** Always http, https or mailto, and whole: never relative. */
  readonly url: string;
  readonly content: readonly Inline[];
  /** The text reads like another address than the one it leads to: show both. */
  readonly isDeceptive: boolean;
}

/** Blank lines before a block or an item, as many as the source has. */
interface Placed {
  readonly gap: number;
}

/** What stands on lines of its own. */
export type Block = Placed &
  (
    | { readonly kind: "paragraph"; readonly content: readonly Inline[] }
    | { readonly kind: "heading"; readonly level: number; readonly content: readonly Inline[] }
    /** Without the newline at its end. `lang` is a word or empty. */
    | { readonly kind: "code"; readonly text: string; readonly lang: string }
    | { readonly kind: "quote"; readonly blocks: readonly Block[] }
    | { readonly kind: "list"; readonly isOrdered: boolean; readonly items: readonly Item[] }
    /** Each row has as many cells as `header`. */
    | { readonly kind: "table"; readonly header: Row; readonly rows: readonly Row[] }
    /** `marks` as the source has them, for example "---". */
    | { readonly kind: "rule"; readonly marks: string }
  );

export interface Item extends Placed {
  /** As in the source: "-", "*", "+", "3." or "3)". */
  readonly marker: string;
  /** Of a task list. */
  readonly isChecked?: boolean;
  readonly blocks: readonly Block[];
}

export type Row = readonly (readonly Inline[])[];

/** The text of a run without any markup; a link's and an image's address in brackets where the text does not say it. */
export function textOf(content: readonly Inline[]): string {
  return content.map(textOfOne).join("");
}

function textOfOne(inline: Inline): string {
  if ("text" in inline) return inline.text;
  if (inline.kind === "image") return withUrl(inline.alt, inline.url);
  const text = textOf(inline.content);
  return inline.kind === "link" ? withUrl(text, inline.url) : text;
}

function withUrl(text: string, url: string): string {
  if (text.trim() === "") return shownUrl(url);
  return isSameAddress(text, url) ? text : `${text} (${shownUrl(url)})`;
}

/** An address as people write it: an e-mail address has no scheme. */
export function shownUrl(url: string): string {
  return url.replace(/^mailto:/i, "");
}

/** Whether a link's text says its whole address already, perhaps without "https://" or "mailto:". */
export function isSameAddress(text: string, url: string): boolean {
  const bare = (address: string) =>
    address
      .trim()
      .replace(/^(?:https?:\/\/|mailto:)/i, "")
      .replace(/\/$/, "");
  return bare(text) === bare(url) || bare(text) === bare(decoded(url));
}

function decoded(url: string): string {
  try {
    return decodeURI(url);
  } catch {
    return url;
  }
}
