/** Cuts to at most `max` UTF-16 code units and never inside a surrogate pair. */
export function truncate(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? max - 1 : max);
}

/** Shorter values are words, not secrets: blotting them out would garble every line. */
const shortestSecret = 6;

/** Replaces every known secret in `text`, also in the form that JSON gives it, by `[redacted]`. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue;
    const escaped = JSON.stringify(secret).slice(1, -1);
    clean = clean.replaceAll(secret, "[redacted]");
    if (escaped !== secret) clean = clean.replaceAll(escaped, "[redacted]");
  }
  return clean;
}

export interface SplitLimit {
  readonly unit: "utf16" | "codepoints" | "bytes";
  /** Size of one part, in `unit`. */
  readonly max: number;
  /** Most parts; the last one ends in a notice when more was left. */
  readonly parts: number;
}

/** Cuts a long text into parts that fit: after a paragraph, else a line, else a word, else between two characters. */
export function splitText(text: string, limit: SplitLimit): string[] {
  const parts: string[] = [];
  let rest = text;
  while (measure(rest, limit.unit) > limit.max) {
    if (parts.length === limit.parts - 1) return [...parts, withNotice(rest, limit)];
    const head = fittingHead(rest, limit);
    const isBlank = head.trim() === "";
    if (!isBlank) parts.push(head.trimEnd());
    rest = isBlank ? rest.trimStart() : rest.slice(head.length).replace(/^\s*\n/, "");
  }
  // A service refuses a part without a word, and the whole message would count as refused.
  return rest.trim() === "" && parts.length > 0 ? parts : [...parts, rest];
}

function withNotice(rest: string, limit: SplitLimit): string {
  const notice = "\n[cut: the answer was longer]";
  return fittingHead(rest, { ...limit, max: limit.max - measure(notice, limit.unit) }).trimEnd() + notice;
}

function measure(text: string, unit: SplitLimit["unit"]): number {
  if (unit === "utf16") return text.length;
  if (unit === "bytes") return Buffer.byteLength(text);
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The longest head that fits and ends at a good place; at least one grapheme, so that cutting always gets on. */
function fittingHead(text: string, limit: Pick<SplitLimit, "unit" | "max">): string {
  // One UTF-16 unit is never less than one of the other units' share, so the window holds every head that fits.
  const window = text.slice(0, limit.max * 2);
  let end = 0;
  let used = 0;
  for (const { segment } of graphemes.segment(window)) {
    const size = measure(segment, limit.unit);
    if (used + size > limit.max) break;
    used += size;
    end += segment.length;
  }
  if (end === 0) return fittingCharacters(window, limit);
  const head = text.slice(0, end);
  for (const mark of ["\n\n", "\n", " "]) {
    const at = head.lastIndexOf(mark);
    // A cut in the first half would waste more than it reads better.
    if (at >= head.length / 2) return head.slice(0, at + mark.length);
  }
  return head;
}

/** One grapheme may be longer than a part (hundreds of accents on a letter): then it is cut between its characters. */
function fittingCharacters(window: string, limit: Pick<SplitLimit, "unit" | "max">): string {
  let head = "";
  let used = 0;
  for (const character of window) {
    used += measure(character, limit.unit);
    if (used > limit.max && head !== "") break;
    head += character;
  }
  return head;
}
