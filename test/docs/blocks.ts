import { readFileSync } from "node:fs";

/** The pages whose examples are run, and the README. */
export const pages = {
  readme: "README.md",
  configuration: "docs/configuration.md",
  routes: "docs/routes-and-filters.md",
  templates: "docs/templates.md",
  scripts: "docs/scripts.md",
  subscriptions: "docs/subscriptions.md",
  events: "docs/events.md",
  promises: "docs/promises.md",
  machines: "docs/many-machines.md",
  targets: "docs/targets.md",
} as const;

/** A fenced block of a page. */
export interface Block {
  readonly page: string;
  /** Of the opening fence, counting from 1. */
  readonly line: number;
  /** First word behind the fence, for example `yaml`. */
  readonly language: string;
  /** Second word: what the test does with it, for example `route`. Empty for blocks that are only shown. */
  readonly kind: string;
  /** The words after it; a word with blanks stands in quotes. */
  readonly words: readonly string[];
  readonly text: string;
}

const fence = /^```(\S+)?[ \t]*(.*)\n([\s\S]*?)^```$/gm;

/** The fenced blocks of a page, by its path in the project. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), "utf8");
  return [...text.matchAll(fence)].map(({ index, 1: language = "", 2: info = "", 3: content = "" }) => {
    const [kind = "", ...words] = (info.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
    return { page, line: text.slice(0, index).split("\n").length, language, kind, words, text: content };
  });
}
