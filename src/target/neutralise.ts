import { stretches } from "./markdown.ts";

// Takes the power out of text that strangers had a hand in. Words stay as they read: what is added is invisible.

const zeroWidthSpace = "\u200b";

/** Control characters but tab and newline, and the marks that make text show in another order than it is written in. */
const unseen = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu;

/** Text any service can take: whole characters, newlines as LF, no control characters, no bidirectional overrides. */
export function plainText(text: string): string {
  return text.toWellFormed().replaceAll(/\r\n?/g, "\n").replaceAll(unseen, "");
}

/** One line of `plainText`: runs of blanks and line ends become one space. For headers and titles. */
export function oneLine(text: string): string {
  const breaks = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
  return plainText(text.replaceAll(breaks, " ")).replaceAll(/\s+/g, " ").trim();
}

/**
 * Markdown for GitHub in which no `@name` reaches anybody and no line commands a bot. Code keeps its `@` where it is code
 * beyond doubt (a fence at the start of a line, a span that is closed on its line); commands and the names of bots are
 * broken there too, because bots read the raw text. With `spareCode: false` nothing is taken for code: such text stays
 * harmless wherever it is cut.
 */
export function neutraliseMarkdown(text: string, options: { readonly spareCode?: boolean } = {}): string {
  const clean = plainText(text);
  if (options.spareCode === false) return silenceProse(clean);
  return stretches(clean)
    .map(({ kind, text }) => silence[kind](text))
    .join("");
}

const silence = { prose: silenceProse, fence: silenceFence, span: silenceBots } as const;

/** GitHub takes an `@` for a mention where no letter or digit stands before it; `_@name_` is one, `a@b.c` is not. */
const mention = /(?<![A-Za-z0-9])@(?=[A-Za-z0-9&])/g;
/** Markdown turns these into `@` before mentions are looked for (CommonMark section 2.5). */
const mentionEntity = /&(?:#0{0,5}64|#[xX]0{0,4}40|commat);(?=[A-Za-z0-9&])/g;
/** Accounts that act on what they are told, in whatever text surrounds their name. */
const bots =
  /@(?=(?:dependabot|renovate|mergify|bors|homu|rustbot|pytorchbot|k8s-ci-robot|codecov|claude|codex|copilot|cursor|gemini|coderabbit|greptile|sourcery|devin|github-actions))/gi;
/** Prow, slash-command actions and the like; a path such as `/usr/bin` is none. */
const slashCommand = /^([^\S\n>*+-]*(?:[>*+-][^\S\n>*+-]*){0,8})\/(?=[A-Za-z][\w-]*(?![\w/-]))/gm;
const slashLine = /^([^\S\n]*)\/(?=[A-Za-z][\w-]*(?:[^\S\n]|$))/gm;
/** `bors r+` needs no slash, and GitHub itself acts on a comment that says `Duplicate of #1`. */
const wordCommand = /^([^\S\n]*)(bors|duplicate of)(?=[^\S\n])/gim;

function silenceProse(text: string): string {
  return silenceBots(text)
    .replaceAll(mention, `@${zeroWidthSpace}`)
    .replaceAll(mentionEntity, `$&${zeroWidthSpace}`)
    .replaceAll(slashCommand, `$1/${zeroWidthSpace}`)
    .replaceAll(wordCommand, `$1$2${zeroWidthSpace}`);
}

function silenceFence(text: string): string {
  return silenceBots(text)
    .replaceAll(slashLine, `$1/${zeroWidthSpace}`)
    .replaceAll(wordCommand, `$1$2${zeroWidthSpace}`);
}

function silenceBots(text: string): string {
  return text.replaceAll(bots, `@${zeroWidthSpace}`);
}
