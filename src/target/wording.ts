import { measure, type SplitLimit } from "../core/split.ts";
import { plainText } from "./neutralise.ts";
import type { Part } from "./target.ts";

/** The two ways in which a service's messages are written. Both get well-formed text with LF newlines. */
export interface Wording {
  /** From Markdown, in the service's own markup. */
  markdown(text: string): string;
  /** From text that is no Markdown: it is to be read just as it stands there. */
  plain(text: string): string;
}

/** What is sent of a part: in the way that `format` of its address asks for. */
export function worded({ text, address }: Pick<Part, "text" | "address">, wording: Wording): string {
  return wording[isPlain(address) ? "plain" : "markdown"](plainText(text));
}

/** Whether the text is no Markdown and is to be shown as it is. */
export function isPlain(address: Part["address"]): boolean {
  return address.format === "plain";
}

/** For `limit.rendered`, which does not know the address: what is longer of the two ways. */
export function longerWording(wording: Wording, unit: SplitLimit["unit"]): (text: string) => string {
  return (text) => {
    const clean = plainText(text);
    const [one, other] = [wording.markdown(clean), wording.plain(clean)];
    return measure(one, unit) >= measure(other, unit) ? one : other;
  };
}
