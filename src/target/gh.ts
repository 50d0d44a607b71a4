import { DeliveryError } from "../core/errors.ts";
import { redact } from "../core/text.ts";
import type { Environment } from "../core/types.ts";
import { retryAfterMs } from "../lib/http.ts";
import { type Finished, plainEnvironment, run } from "../lib/spawn.ts";
import { permanent, quote } from "./failure.ts";
import { type GhAnswer, type GithubCall, parseGhAnswer, rateWaitMs } from "./gh_answer.ts";
import { askByRest, restLogin } from "./gh_rest.ts";
import type { SettingValues, TargetTools } from "./target.ts";

const maxOutputBytes = 1_048_576;
const headers = ["-H", "Accept: application/vnd.github+json", "-H", "X-GitHub-Api-Version: 2022-11-28"];
const tokenNames = ["GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"] as const;
/** Where `gh` finds its login, and the way out of a network that has only a proxy. */
const passedOn = [
  ...tokenNames,
  ...["GH_HOST", "GH_CONFIG_DIR", "XDG_CONFIG_HOME"],
  ...["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"],
];

/**
 * Asks GitHub through `gh api`, and so with the login of `gh`; where there is no `gh`, with a token, if one is set. Any
 * answer is one, also a failure; its words hold no token.
 * @throws DeliveryError when there is none.
 */
export async function askGithub(call: GithubCall, settings: SettingValues, tools: TargetTools): Promise<GhAnswer> {
  const env = childEnvironment(settings, tools.env);
  const { body, timeoutMs } = call;
  const argv = ["gh", "api", "-i", ...headers, ...argumentsOf(call)];
  const stdin = body === undefined ? "" : JSON.stringify(body);
  const finished = await run({ argv, env, stdin, timeoutMs, maxOutputBytes, signal: tools.signal });
  const isAbsent = finished.end === "missing" && /^(?:ENOENT|EACCES)$/.test(finished.errorCode ?? "");
  const login = isAbsent ? restLogin(settings, tools.env) : undefined;
  if (login !== undefined) return askByRest(call, login, tools);
  const secrets = tokenNames.flatMap((name) => env[name] ?? []);
  const answer = parseGhAnswer(finished.stdout.toString("utf8"));
  if (answer === undefined) throw withoutAnswer(call, finished, secrets);
  return { ...answer, words: redact(answer.words, secrets) };
}

function argumentsOf({ method, path, excerpt }: GithubCall): string[] {
  if (method === "POST") return ["-X", "POST", path, "--input", "-"];
  return [...(excerpt === undefined ? [] : ["--jq", excerpt]), path];
}

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

/** What an answer that is not the success of `action` means for a message that the request held. */
export function refusal(action: string, answer: GhAnswer, nowMs: number): DeliveryError {
  const { status } = answer;
  const said = `${action}: GitHub answered ${status} ${quote(answer.words)}`;
  // 408 may come from behind the door: GitHub ends what takes it too long.
  if (status >= 500 || status < 300 || status === 408) {
    const waitMs = retryAfterMs(answer.headers.get("retry-after"), nowMs);
    return new DeliveryError(said, { sent: "maybe", retryAfterMs: waitMs });
  }
  const waitMs = rateWaitMs(answer, nowMs);
  if (waitMs !== undefined) return new DeliveryError(said, { sent: "no", retryAfterMs: waitMs });
  if (status === 429) return new DeliveryError(said, { sent: "no" });
  return permanent(`${said}${advice(status)}`);
}

function advice(status: number): string {
  if (status === 401) return "; run gh auth login or set GH_TOKEN";
  if (status === 403 || status === 404) return "; check that the account may write to the repository";
  if (status < 400) return "; the repository has moved: correct its name";
  return "";
}

/** `gh` ended without an answer of the server. */
function withoutAnswer(
  { action, timeoutMs }: GithubCall,
  finished: Finished,
  secrets: readonly string[],
): DeliveryError {
  if (finished.end === "missing") {
    const how =
      "install it from https://cli.github.com or by apt-get install gh, then run gh auth login, or set GH_TOKEN";
    return new DeliveryError(`${action}: the program "gh" is not on PATH; ${how}`, { sent: "no" });
  }
  if (finished.end === "timeout") {
    return new DeliveryError(`${action}: no answer within ${timeoutMs} ms`, { sent: "maybe" });
  }
  if (finished.exitCode === 4) return permanent(`${action}: gh is not logged in; run gh auth login or set GH_TOKEN`);
  const words = finished.stderr.toString("utf8");
  // Go's words for a connection that never came to be; `gh` itself says "error connecting" when a name is unknown.
  const neverConnected = /\b(?:dial (?:tcp|unix)|proxyconnect|error connecting to|x509:|tls: )/.test(words);
  const said = `${action}: gh ended without an answer: ${quote(redact(words, secrets))}`;
  return new DeliveryError(said, { sent: neverConnected ? "no" : "maybe" });
}
