/** A fenced code block as it stands in a text, by positions in UTF-16 units (CommonMark section 4.5). */
export interface Fence {
  /** Where the opening line starts. */
  readonly start: number;
  /** Where the line after the opening one starts. */
  readonly body: number;
  /** Where the closing line starts, and where it ends with its newline. Both infinite when the fence is never closed. */
  readonly close: number;
  readonly end: number;
  /** The opening line without its indentation. */
  readonly opening: string;
  /** The backticks or tildes that close it. */
  readonly marks: string;
  /** Blanks before the opening marks, as they are written. */
  readonly indent: string;
}

const longestOpening = 200;

/**
 * The fenced code blocks of a text whose newlines are LF, in their order. A fence may be indented by anything, because it
 * may stand in a list. An opening line of more than 200 units opens none.
 */
export function findFences(text: string): Fence[] {
  const found: Fence[] = [];
  let open: Omit<Fence, "close" | "end"> | undefined;
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const next = newline < 0 ? text.length : newline + 1;
    const line = fenceLine(text, start, next);
    if (open === undefined) {
      if (line !== undefined && opens(line)) open = { ...line, start, body: next };
    } else if (line !== undefined && closes(line, open.marks)) {
      found.push({ ...open, close: start, end: next });
      open = undefined;
    }
    start = next;
  }
  if (open !== undefined) found.push({ ...open, close: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY });
  return found;
}

type Line = Pick<Fence, "opening" | "marks" | "indent">;

const fencePattern = /([ \t]*)(`{3,}|~{3,})/y;

function fenceLine(text: string, start: number, next: number): Line | undefined {
  if (next - start > longestOpening) return undefined;
  fencePattern.lastIndex = start;
  const match = fencePattern.exec(text);
  if (match === null) return undefined;
  const [, indent = "", marks = ""] = match;
  return { indent, marks, opening: text.slice(start + indent.length, next).trimEnd() };
}

function opens({ opening, marks }: Line): boolean {
  return marks.startsWith("~") || !opening.includes("`", marks.length);
}

function closes({ opening, marks }: Line, openMarks: string): boolean {
  return opening === marks && marks[0] === openMarks[0] && marks.length >= openMarks.length;
}

/** The fence of which a position is neither the very start nor behind the end. `fences` must be in their order. */
export function fenceAround(fences: readonly Fence[], position: number): Fence | undefined {
  let low = 0;
  let high = fences.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((fences[middle]?.start ?? 0) < position) low = middle + 1;
    else high = middle;
  }
  const fence = fences[low - 1];
  return fence !== undefined && position < fence.end ? fence : undefined;
}
