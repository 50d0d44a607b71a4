import { DeliveryError } from "../core/errors.ts";
import { isList, isObject } from "../core/json.ts";
import { splitText } from "../core/text.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { permanent } from "./failure.ts";
import { askGithub, refusal } from "./gh.ts";
import type { GhAnswer } from "./gh_answer.ts";
import { openFence } from "./markdown.ts";
import { neutraliseMarkdown } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetTools } from "./target.ts";

/** Options for tests. */
export interface GithubCommentOptions {
  /** Each run of `gh`; 30 seconds when not set. */
  readonly timeoutMs?: number;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

const settings: Target["settings"] = {
  hostname: { kind: "string", help: "Host of a GitHub Enterprise Server, without https://", env: ["GH_HOST"] },
  token: {
    kind: "secret",
    help: "Token for github.com; without it gh uses its own login",
    env: ["GH_TOKEN", "GITHUB_TOKEN"],
  },
  enterprise_token: {
    kind: "secret",
    help: "Token for a GitHub Enterprise Server",
    env: ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"],
  },
};

const address: Target["address"] = {
  repo: {
    help: 'a repository such as "owner/name"',
    pattern: /(?!\.{1,2}\/)[A-Za-z0-9_.-]{1,100}\/(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}/,
    required: true,
  },
  pr_number: {
    help: "the number of a pull request or an issue",
    pattern: /[1-9]\d{0,9}/,
    required: true,
    alternatives: ["issue_number", "number"],
  },
};

/** What GitHub takes, in code points. */
const longestBody = 65_536;
/** Of a code block that the text leaves open: one with longer marks stays open, and its reader sees the marker. */
const longestMarks = 20;
const limit = {
  unit: "codepoints",
  max: longestBody - ending("`".repeat(longestMarks), "0".repeat(32)).length,
  parts: 1,
} as const;

/**
 * Requests that create content. There may also be no more than 500 of them an hour, which GitHub's answers enforce
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 */
const pace: Target["pace"] = { overall: { count: 80, everyMs: 60_000 } };

/**
 * A comment on a GitHub issue or pull request, written by the `gh` program and so with its login (REST: "Create an issue
 * comment", which works for both). The text goes through standard input, never through an argument. GitHub has no
 * idempotency key: after a lost answer the comment is found by the hidden marker at its end.
 */
export function createGithubComment(options: GithubCommentOptions = {}): Target {
  const clock: Clock = { timeoutMs: options.timeoutMs ?? 30_000, now: options.now ?? Date.now };
  return {
    name: "github_comment",
    neutralName: "host_a_comment",
    isPlatform: false,
    settings,
    address,
    limit,
    pace,
    ownServer: "hostname",
    repeats: "findable",
    send: (part, settings, tools) => send(part, settings, tools, clock),
    find: (part, settings, tools) => find(part, settings, tools, clock),
  };
}

/** The target of the registry. */
export const github_comment: Target = createGithubComment();

type Clock = Required<GithubCommentOptions>;

async function send(part: Part, settings: SettingValues, tools: TargetTools, clock: Clock): Promise<Receipt> {
  const { repo, pr_number: number } = part.address;
  const action = `Cannot comment on "${repo}#${number}"`;
  const args = ["-X", "POST", commentsOf(part), "--input", "-"];
  const stdin = JSON.stringify({ body: commentBody(part) });
  const answer = await askGithub({ action, args, stdin, timeoutMs: clock.timeoutMs }, settings, tools);
  if (answer.status !== 201) throw refusal(action, answer, clock.now());
  return isObject(answer.body) ? receipt(answer.body.html_url) : {};
}

function commentsOf({ address }: Part): string {
  return `repos/${address.repo}/issues/${address.pr_number}/comments`;
}

function receipt(url: Json | undefined): Receipt {
  return typeof url === "string" ? { reference: url } : {};
}

function commentBody({ text, key }: Part): string {
  const shown = harmless(text);
  const marks = openFence(shown) ?? "";
  return shown + ending(marks.length > longestMarks ? "" : marks, key);
}

/** What is added can make the text too long; then nothing is taken for code, so that the cut brings nothing to life. */
function harmless(text: string): string {
  const body = neutraliseMarkdown(text);
  if (splitText(body, limit)[0] === body) return body;
  return splitText(neutraliseMarkdown(text, { spareCode: false }), limit)[0] ?? "";
}

/**
 * What stands behind the text: the end of a code block that it left open, and the marker. The blank line ends every other
 * block but open HTML, where a comment does not show either; what the text hides in an open `<!--` ends with the marker.
 */
function ending(marks: string, key: string): string {
  return `${marks === "" ? "" : `\n${marks}`}\n\n${marker(key)}`;
}

function marker(key: string): string {
  return `<!-- postern:${key} -->`;
}

const perPage = 100;
const mostPages = 10;
/** How far GitHub's clock may be behind the gateway's. */
const clockDifferenceMs = 120_000;
/** Of each comment no more than is looked at: a page of long ones has many megabytes. */
const excerpt = "[.[] | {html_url, end: .body[-100:]}]";

/** Looking sends nothing, whatever becomes of it. */
async function find(part: Part, settings: SettingValues, tools: TargetTools, clock: Clock) {
  try {
    return await search(part, settings, tools, clock);
  } catch (error) {
    if (!(error instanceof DeliveryError)) throw error;
    const { message, retryAfterMs, cause } = error;
    throw new DeliveryError(message, { sent: "no", retryAfterMs, cause });
  }
}

/** Oldest first, so the comment is found before whatever others write after it ("List issue comments" of REST). */
async function search(
  part: Part,
  settings: SettingValues,
  tools: TargetTools,
  clock: Clock,
): Promise<Receipt | undefined> {
  const { repo, pr_number: number } = part.address;
  const action = `Cannot look whether the comment is on "${repo}#${number}"`;
  for (let page = 1; page <= mostPages; page += 1) {
    const args = ["--jq", excerpt, `${commentsOf(part)}?${pageQuery(part, page)}`];
    const answer = await askGithub({ action, args, timeoutMs: clock.timeoutMs }, settings, tools);
    const comments = commentsIn(action, answer, clock.now());
    const found = comments.find((comment) => isMarked(comment, part.key));
    if (found !== undefined) return receipt(found.html_url);
    if (!/;\s*rel="?next\b/.test(answer.headers.get("link") ?? "")) return undefined;
  }
  throw permanent(`${action}: more than ${perPage * mostPages} are new since the first try; look for it there`);
}

/** `since` is compared with a comment's last change, which is never before it was written. */
function pageQuery(part: Part, page: number): string {
  const since = new Date(Math.max(0, part.firstTriedAt - clockDifferenceMs)).toISOString().replace(/\.\d+/, "");
  return new URLSearchParams({ since, per_page: String(perPage), page: String(page) }).toString();
}

function commentsIn(action: string, answer: GhAnswer, nowMs: number): readonly JsonObject[] {
  const { status, body = null } = answer;
  if (status !== 200) throw refusal(action, answer, nowMs);
  if (isList(body)) return body.filter(isObject);
  throw new DeliveryError(`${action}: the answer is no list of comments`, { sent: "no" });
}

/** Only a marker at the very end is the gateway's: one within the text may be a stranger's copy of another. */
function isMarked(comment: JsonObject, key: string): boolean {
  return typeof comment.end === "string" && comment.end.trimEnd().endsWith(`\n${marker(key)}`);
}
