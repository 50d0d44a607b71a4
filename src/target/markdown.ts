/** A stretch of Markdown. `fence` is a whole fenced block with its marks, `span` inline code with its backticks. */
export interface Stretch {
  readonly kind: "prose" | "fence" | "span";
  readonly text: string;
}

/**
 * Cuts Markdown into code and prose; the texts of all stretches in a row are the text again. Takes for code only what is
 * code in every reading of the document, also a hostile one: a fence that is not indented (so in no list and no
 * quotation) and not after HTML that could swallow it; a span that is closed on its line. Takes time in proportion to
 * the text. Newlines must be LF.
 */
export function stretches(text: string): Stretch[] {
  const found: Stretch[] = [];
  const pending: string[] = [];
  let fence: string | undefined;
  // Once true, the rest of the document is prose: HTML before it could make anything of it.
  let doubtful = false;
  let inHtml = false;
  let wasBlank = true;
  const flush = () => {
    const paragraph = pending.splice(0).join("");
    if (fence !== undefined) found.push({ kind: "fence", text: paragraph });
    else if (paragraph !== "") doubtful = cutParagraph(paragraph, doubtful, found);
    fence = undefined;
  };
  for (const line of text.split(/(?<=\n)/)) {
    if (fence !== undefined) {
      pending.push(line);
      if (closes(line, fence)) flush();
      continue;
    }
    const isBlank = /^[ \t]*\n?$/.test(line);
    const marks = inHtml ? undefined : opensFence(line);
    if (marks !== undefined || (isBlank && !wasBlank)) flush();
    if (marks !== undefined && !doubtful) fence = marks;
    pending.push(line);
    wasBlank = isBlank;
    if (isBlank) inHtml = false;
    else if (startsHtmlBlock.test(line)) inHtml = true;
    else if (!inHtml && /^ {0,3}(?:<|\$\$)/.test(line)) doubtful = true;
  }
  flush();
  return found;
}

/** Starts an HTML block for certain (CommonMark section 4.6, kind 6), which lasts until a blank line. */
const startsHtmlBlock = /^<\/?(?:details|summary|div|p|hr)[ />]/i;

/** Tags that cannot hide or change what follows them, and links; any other tag makes the rest of the document doubtful. */
const foreignTag =
  /<(?!\/?(?:details|summary|div|p|br|hr|b|i|em|strong|sub|sup|kbd)(?: open)? ?\/?>|https?:\/\/[^\s<>]*>)[A-Za-z/!?]/i;

/** The marks of the fence that this line opens (CommonMark section 4.5), or `undefined` when it opens none. */
function opensFence(line: string): string | undefined {
  const marks = /^(`{3,}|~{3,})/.exec(line)?.[1];
  if (marks === undefined) return undefined;
  return marks.startsWith("`") && line.includes("`", marks.length) ? undefined : marks;
}

function closes(line: string, marks: string): boolean {
  const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*\n?$/.exec(line)?.[1];
  return closing !== undefined && closing[0] === marks[0] && closing.length >= marks.length;
}

/**
 * The marks of the fence that is still open at the end of the text, or `undefined`. Fences that are indented count for
 * none: those of a list end with it. Newlines must be LF.
 */
export function openFence(text: string): string | undefined {
  let marks: string | undefined;
  for (const line of text.split("\n")) {
    if (marks === undefined) marks = opensFence(line);
    else if (closes(line, marks)) marks = undefined;
  }
  return marks;
}

/** Adds a paragraph's stretches to `found` and answers whether what follows is doubtful. */
function cutParagraph(paragraph: string, wasDoubtful: boolean, found: Stretch[]): boolean {
  const spans = wasDoubtful ? [] : codeSpans(paragraph);
  let prose = "";
  let from = 0;
  for (const [start, end] of [...spans, [paragraph.length, paragraph.length] as const]) {
    const before = paragraph.slice(from, start);
    prose += before;
    if (before !== "") found.push({ kind: "prose", text: before });
    if (end > start) found.push({ kind: "span", text: paragraph.slice(start, end) });
    from = end;
  }
  return wasDoubtful || foreignTag.test(prose);
}

/**
 * Start and end of each code span. None at all unless every line closes what it opens, no span holds a table's `|`, and
 * outside of them the paragraph has neither tags nor escapes nor mathematics that could pair the backticks otherwise.
 */
function codeSpans(paragraph: string): [number, number][] {
  if (!paragraph.includes("`") || /[\\$]`|`\$/.test(paragraph)) return [];
  const spans: [number, number][] = [];
  let lineStart = 0;
  for (const line of paragraph.split("\n")) {
    if (!addSpans(line, lineStart, spans)) return [];
    lineStart += line.length + 1;
  }
  let from = 0;
  for (const [start, end] of [...spans, [paragraph.length, 0] as const]) {
    if (/<[A-Za-z/!?]/.test(paragraph.slice(from, start))) return [];
    from = end;
  }
  return spans;
}

/** Adds the spans of one line, moved by `offset`; false when it leaves a backtick open or a span holds a `|`. */
function addSpans(line: string, offset: number, spans: [number, number][]): boolean {
  let opener: RegExpExecArray | undefined;
  for (const run of line.matchAll(/`+/g)) {
    if (opener === undefined) {
      opener = run;
    } else if (run[0].length === opener[0].length) {
      const end = run.index + run[0].length;
      if (line.slice(opener.index, end).includes("|")) return false;
      spans.push([offset + opener.index, offset + end]);
      opener = undefined;
    }
  }
  return opener === undefined;
}
