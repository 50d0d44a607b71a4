import { DeliveryError } from "../core/errors.ts";
import { isList, isObject } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { unsent } from "./conversation.ts";
import { breakEmbeds } from "./embeds.ts";
import { permanent } from "./failure.ts";
import { askGithub, refusal } from "./gh.ts";
import { type GhAnswer, rateWaitMs } from "./gh_answer.ts";
import { isMarked, markedBody, roomBeforeMarker } from "./marker.ts";
import { neutraliseMarkdown, plainText } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

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
  base_url: {
    kind: "url",
    help: "Address of the REST API, which is asked with the token where there is no gh; found by the hostname when not set",
    env: ["GITHUB_COMMENT_BASE_URL"],
  },
  allow_mentions: {
    kind: "boolean",
    help: "Let @names in the text reach people, and lines for bots command them",
    default: false,
  },
  allow_images: {
    kind: "boolean",
    help: "Show images and drawings in the text, whose addresses can carry off what the agent knew; they are links else",
    default: false,
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
const limit = roomBeforeMarker(65_536);

/**
 * Requests that create content. There may also be no more than 500 of them an hour, which GitHub's answers enforce
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 */
const pace: Target["pace"] = { overall: { count: 80, everyMs: 60_000 } };

/**
 * A comment on a GitHub issue or pull request, written by the `gh` program and so with its login, or with a token where
 * there is no `gh` (REST: "Create an issue comment", which works for both). The text goes through standard input, never
 * through an argument. GitHub has no idempotency key: after a lost answer the comment is found by the hidden marker at
 * its end.
 */
export function createGithubComment(options: TargetOptions = {}): Target {
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
    markup: "GitHub Flavored Markdown, as it is but for images",
    retried: "403 and 429 of a rate limit, after the time it names",
    repeats: "findable",
    send: (part, settings, tools) => send(part, settings, tools, clock),
    find: (part, settings, tools) => find(part, settings, tools, clock),
    check: (settings, tools) => check(settings, tools, clock),
  };
}

/** The target of the registry. */
export const github_comment: Target = createGithubComment();

/** `timeoutMs` is for each call. */
type Clock = Required<TargetOptions>;

async function send(part: Part, settings: SettingValues, tools: TargetTools, clock: Clock): Promise<Receipt> {
  const { repo, pr_number: number } = part.address;
  const action = `Cannot comment on "${repo}#${number}"`;
  const body = { body: markedBody(part.text, part.key, limit, neutraliseFor(settings)) };
  const call = { action, method: "POST", path: commentsOf(part), body, timeoutMs: clock.timeoutMs } as const;
  const answer = await askGithub(call, settings, tools);
  if (answer.status !== 201) throw refusal(action, answer, clock.now());
  return isObject(answer.body) ? receipt(answer.body.html_url) : {};
}

function commentsOf({ address }: Part): string {
  return `repos/${address.repo}/issues/${address.pr_number}/comments`;
}

function receipt(url: Json | undefined): Receipt {
  return typeof url === "string" ? { reference: url } : {};
}

/** What is done to the text, when nothing or all of it may be taken for code. */
function neutraliseFor({ allow_mentions: mentions, allow_images: images }: SettingValues) {
  return (text: string, how: { readonly spareCode: boolean }): string => {
    const quiet = mentions === true ? plainText(text) : neutraliseMarkdown(text, how);
    return images === true ? quiet : breakEmbeds(quiet, how);
  };
}

const perPage = 100;
const mostPages = 10;
/** How far GitHub's clock may be behind the gateway's. */
const clockDifferenceMs = 120_000;
/** Of each comment no more than is looked at: a page of long ones has many megabytes. */
const excerpt = "[.[] | {html_url, end: .body[-100:]}]";

/** Looking sends nothing, whatever becomes of it. */
function find(part: Part, settings: SettingValues, tools: TargetTools, clock: Clock) {
  return unsentIfFailed(search(part, settings, tools, clock));
}

async function unsentIfFailed<Value>(looking: Promise<Value>): Promise<Value> {
  try {
    return await looking;
  } catch (error) {
    throw unsent(error);
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
    const path = `${commentsOf(part)}?${pageQuery(part, page)}`;
    const call = { action, method: "GET", path, excerpt, timeoutMs: clock.timeoutMs } as const;
    const answer = await askGithub(call, settings, tools);
    const comments = commentsIn(action, answer, clock.now());
    const found = comments.find(({ end, body }) => isMarked(end ?? body, part.key));
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

async function check(settings: SettingValues, tools: TargetTools, clock: Clock): Promise<readonly string[]> {
  const action = "Cannot use GitHub";
  const call = { action, method: "GET", path: "user", timeoutMs: clock.timeoutMs } as const;
  const answer = await unsentIfFailed(askGithub(call, settings, tools));
  const where = "Whether it may comment in a repository cannot be told without a comment";
  // Tokens of apps and of workflows are nobody's, and may write comments all the same.
  if (answer.status === 403 && rateWaitMs(answer, clock.now()) === undefined) {
    return ["GitHub knows the token; whose it is cannot be told", where];
  }
  if (answer.status !== 200) throw unsent(refusal(action, answer, clock.now()));
  const name = isObject(answer.body) ? answer.body.login : undefined;
  if (typeof name !== "string") throw new DeliveryError(`${action}: the answer names no account`, { sent: "no" });
  return [`The account is "${name}"`, where];
}
