import { stretches } from "./markdown.ts";

// Takes the power out of text that strangers had a hand in. Words stay as they read: what is added is invisible.

const zeroWidthSpace = "\u200b";

/**
 * Control characters but tab and newline, the marks that make text show in another order than it is written in, and the
 * mark of a file's start, which shows nowhere and means nothing within a text. U+200B and what joins or parts letters
 * (U+200C to U+200F, U+2060) stay: scripts and emoji need them, and the first of them keeps a mention from being one.
 */
const unseen = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/**
 * Tag characters, with which a whole text can hide in another one, outside of the flags that they were made for: England's
 * is the black flag, "gbeng" in such characters, and the one that ends it (Unicode Technical Standard 51, section 2.6).
 */
const tagCharacters = /(\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{3,6}\u{e007f})|[\u{e0000}-\u{e007f}]/gu;

/** Text any service can take: whole characters, newlines as LF, and none of `unseen` or of hidden `tagCharacters`. */
export function plainText(text: string): string {
  return text.toWellFormed().replaceAll(/\r\n?/g, "\n").replaceAll(unseen, "").replaceAll(tagCharacters, "$1");
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

/** What else GitLab reads as other than code: front matter, and quotations between lines of `>>>` that end fences. */
const gitlabBlocks = /^(?:-{3}|\+{3}|;{3})|(?:^|\n)[^\S\n\u2028\u2029]*>>>/;

/** Whether GitLab may read the text in another way than CommonMark does, so that nothing in it is code for certain. */
export function hasGitlabBlocks(text: string): boolean {
  return gitlabBlocks.test(text);
}

/**
 * Markdown for GitLab in which no `@name` reaches anybody and no line is a quick action, which GitLab would carry out
 * with the rights of the token (`/merge`, `/assign`); what else has power on GitHub has none here either. Code is treated
 * as `neutraliseMarkdown` treats it, `spareCode` too.
 */
export function neutraliseGitlab(text: string, options: { readonly spareCode?: boolean } = {}): string {
  const clean = plainText(text);
  if (options.spareCode === false || hasGitlabBlocks(clean)) return silenceGitlabProse(clean);
  return stretches(clean)
    .map(({ kind, text }) => (kind === "prose" ? silenceGitlabProse(text) : silence[kind](text)))
    .join("");
}

/** GitLab's names, those of groups above all, may start with a dot or an underscore. */
const gitlabMention = /(?<![A-Za-z0-9])@(?=[_.])/g;

function silenceGitlabProse(text: string): string {
  return silenceProse(text).replaceAll(gitlabMention, `@${zeroWidthSpace}`);
}

/** An `@` in any of its forms: as a character, wide or small, and written as an entity of HTML. */
const at = "(?:[@\uff20\ufe6b]|&#0{0,5}64;|&#[xX]0{0,4}40;|&commat;)";
/** Whom chat services take for everybody, in English and Chinese. */
const everybody =
  "(?:all|everyone|everybody|channel|here|room|team|online|\u6240\u6709\u4eba|\u5168\u4f53\u6210\u5458|\u5168\u9ad4\u6210\u54e1)";
/** An e-mail address at `all.example` calls nobody. */
const massMention = new RegExp(`${at}(?=${everybody})(?!(?<=[\\w.+-]@)[A-Za-z-]+\\.[A-Za-z])`, "gi");
const anyMention = new RegExp(`(?<![A-Za-z0-9])${at}(?=[\\p{L}\\p{N}_.&])`, "gu");

/**
 * Parts every `@` from the name it would call, by an invisible character: `mass` for names that call everybody, such as
 * `@all` and `@here`, `all` for every name. An e-mail address stays as it is. For chat services that have no switch for
 * this; give it what is sent, because `@` written as an entity is only one where the service decodes it.
 */
export function breakMentions(text: string, kinds: "mass" | "all"): string {
  const quiet = text.replaceAll(massMention, `$&${zeroWidthSpace}`);
  return kinds === "mass" ? quiet : quiet.replaceAll(anyMention, `$&${zeroWidthSpace}`);
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
const slashCommand =
  /^([^\S\n\u2028\u2029>*+-]*(?:[>*+-][^\S\n\u2028\u2029>*+-]*){0,8})\/(?=[A-Za-z][\w-]*(?![\w/-]))/gm;
const slashLine = /^([^\S\n\u2028\u2029]*)\/(?=[A-Za-z][\w-]*(?:[^\S\n]|$))/gm;
/** `bors r+` needs no slash, and GitHub itself acts on a comment that says `Duplicate of #1`. */
const wordCommand = /^([^\S\n\u2028\u2029]*)(bors|duplicate of)(?=[^\S\n])/gim;

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
