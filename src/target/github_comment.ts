import { DeliveryError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { redact, splitText } from "../core/text.ts";
import type { Environment } from "../core/types.ts";
import { type Finished, plainEnvironment, run } from "../lib/spawn.ts";
import { permanent, quote } from "./failure.ts";
import { type GhAnswer, parseGhAnswer, rateWaitMs } from "./gh_answer.ts";
import { neutraliseMarkdown } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetTools } from "./target.ts";

/** Options for tests. */
export interface GithubCommentOptions {
  /** The whole run of `gh`; 30 seconds when not set. */
  readonly timeoutMs?: number;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

const maxOutputBytes = 1_048_576;
const limit = { unit: "codepoints", max: 65_536, parts: 1 } as const;

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

/**
 * A comment on a GitHub issue or pull request, written by the `gh` program and so with its login (REST: "Create an issue
 * comment", which works for both). The text goes through standard input, never through an argument. GitHub has no
 * idempotency key: after a lost answer nobody can tell whether the comment is there.
 */
export function createGithubComment(options: GithubCommentOptions = {}): Target {
  const timeoutMs = options.timeoutMs ?? 30_000;
  const now = options.now ?? Date.now;
  return {
    name: "github_comment",
    neutralName: "host_a_comment",
    isPlatform: false,
    settings,
    address,
    limit,
    send: (part, settings, tools) => send(part, settings, tools, timeoutMs, now),
  };
}

/** The target of the registry. */
export const github_comment: Target = createGithubComment();

async function send(
  part: Part,
  settings: SettingValues,
  tools: TargetTools,
  timeoutMs: number,
  now: () => number,
): Promise<Receipt> {
  const env = childEnvironment(settings, tools.env);
  const { repo, pr_number: number } = part.address;
  const finished = await run({
    argv: ["gh", "api", "-i", "-X", "POST", ...headers, `repos/${repo}/issues/${number}/comments`, "--input", "-"],
    env,
    stdin: JSON.stringify({ body: commentBody(part.text) }),
    timeoutMs,
    maxOutputBytes,
    signal: tools.signal,
  });
  const secrets = tokenNames.flatMap((name) => env[name] ?? []);
  const action = `Cannot comment on "${repo}#${number}"`;
  const answer = parseGhAnswer(finished.stdout.toString("utf8"));
  if (answer === undefined) throw withoutAnswer(action, finished, secrets, timeoutMs);
  return receipt(action, answer, secrets, now());
}

const headers = ["-H", "Accept: application/vnd.github+json", "-H", "X-GitHub-Api-Version: 2022-11-28"];
const tokenNames = ["GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"] as const;
/** Where `gh` finds its login, and the way out of a network that has only a proxy. */
const passedOn = [
  ...tokenNames,
  ...["GH_HOST", "GH_CONFIG_DIR", "XDG_CONFIG_HOME"],
  ...["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"],
];

function childEnvironment(settings: SettingValues, env: Environment): Record<string, string> {
  const chosen = {
    GH_HOST: settings.hostname,
    GH_TOKEN: settings.token,
    GH_ENTERPRISE_TOKEN: settings.enterprise_token,
  };
  const child = plainEnvironment(env);
  for (const name of passedOn) {
    const value = env[name];
    if (value) child[name] = value;
  }
  for (const [name, value] of Object.entries(chosen)) if (value) child[name] = String(value);
  return { ...child, GH_PROMPT_DISABLED: "1", GH_NO_UPDATE_NOTIFIER: "1", NO_COLOR: "1" };
}

/** What is added can make the text too long; then nothing is taken for code, so that the cut brings nothing to life. */
function commentBody(text: string): string {
  const body = neutraliseMarkdown(text);
  if (splitText(body, limit)[0] === body) return body;
  return splitText(neutraliseMarkdown(text, { spareCode: false }), limit)[0] ?? "";
}

function receipt(action: string, answer: GhAnswer, secrets: readonly string[], nowMs: number): Receipt {
  const { status } = answer;
  if (status === 201) {
    const url = isObject(answer.body) ? answer.body.html_url : undefined;
    return typeof url === "string" ? { reference: url } : {};
  }
  const said = `${action}: GitHub answered ${status} ${redact(quote(answer.words), secrets)}`;
  if (status >= 500 || status < 300) throw new DeliveryError(said, { sent: "maybe" });
  const waitMs = rateWaitMs(answer, nowMs);
  if (waitMs !== undefined) throw new DeliveryError(said, { sent: "no", retryAfterMs: waitMs });
  if (status === 429 || status === 408) throw new DeliveryError(said, { sent: "no" });
  throw permanent(`${said}${advice(status)}`);
}

function advice(status: number): string {
  if (status === 401) return "; run gh auth login or set GH_TOKEN";
  if (status === 403 || status === 404) return "; check that the account of gh may write to the repository";
  return "";
}

/** `gh` ended without an answer of the server. */
function withoutAnswer(
  action: string,
  finished: Finished,
  secrets: readonly string[],
  timeoutMs: number,
): DeliveryError {
  if (finished.end === "missing") {
    const how = "install it from https://cli.github.com or by apt-get install gh, then run gh auth login";
    return new DeliveryError(`${action}: the program "gh" is not on PATH; ${how}`, { sent: "no" });
  }
  if (finished.end === "timeout") {
    return new DeliveryError(`${action}: no answer within ${timeoutMs} ms`, { sent: "maybe" });
  }
  if (finished.exitCode === 4) return permanent(`${action}: gh is not logged in; run gh auth login or set GH_TOKEN`);
  const words = finished.stderr.toString("utf8");
  // Go's words for a connection that never came to be; `gh` itself says "error connecting" when a name is unknown.
  const neverConnected = /\b(?:dial (?:tcp|unix)|proxyconnect|error connecting to|x509:|tls: )/.test(words);
  const said = `${action}: gh ended without an answer: ${redact(quote(words), secrets)}`;
  return new DeliveryError(said, { sent: neverConnected ? "no" : "maybe" });
}
