import { parseJson } from "../core/json.ts";
import { redact } from "../core/text.ts";
import type { Environment, Json } from "../core/types.ts";
import { Conversation } from "./conversation.ts";
import { type GhAnswer, type GithubCall, wordsOf } from "./gh_answer.ts";
import type { SettingValues, TargetTools } from "./target.ts";

/** Where and as whom the REST API is asked. */
export interface RestLogin {
  readonly baseUrl: string;
  readonly token: string;
}

/** A comment of 65,536 characters, each of which may have become an escape of six bytes, and what is said about it. */
const maxBytes = 1_048_576;
/** A hundred of them. */
const maxListBytes = 41_943_040;

/**
 * The login that settings and environment give without `gh`, chosen as `gh` chooses: an Enterprise Server gets its own
 * token only. `undefined` when there is no token.
 */
export function restLogin(settings: SettingValues, env: Environment): RestLogin | undefined {
  const host = String(settings.hostname || env.GH_HOST || "github.com").toLowerCase();
  const isOurs = /(?:^|\.)(?:github\.com|ghe\.com)$/.test(host);
  const token = isOurs
    ? settings.token || env.GH_TOKEN || env.GITHUB_TOKEN
    : settings.enterprise_token || env.GH_ENTERPRISE_TOKEN || env.GITHUB_ENTERPRISE_TOKEN;
  if (!token) return undefined;
  return { baseUrl: String(settings.base_url ?? apiOf(host, isOurs)), token: String(token) };
}

/** https://docs.github.com/enterprise-server/rest/quickstart: an Enterprise Server has the API under its own host. */
function apiOf(host: string, isOurs: boolean): string {
  return isOurs ? `https://api.${host}` : `https://${host}/api/v3`;
}

/**
 * Asks the REST API itself. Redirects are not followed: one means that the repository has another name by now.
 * @throws DeliveryError when there is no answer.
 */
export async function askByRest(
  call: GithubCall,
  { baseUrl, token }: RestLogin,
  tools: TargetTools,
): Promise<GhAnswer> {
  const { action, method, path, body, timeoutMs } = call;
  const talk = new Conversation({ service: "GitHub", action, secrets: [token], timeoutMs, signal: tools.signal });
  const headers = {
    accept: "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
    "user-agent": "postern",
    authorization: `Bearer ${token}`,
  };
  const question = { method, url: `${baseUrl}/${path}`, headers };
  const answer = await talk.ask(
    method === "POST"
      ? { ...question, json: body, sends: true, maxBytes }
      : { ...question, sends: false, maxBytes: maxListBytes },
  );
  const parsed = parsedOf(answer.text);
  const words = redact(wordsOf(parsed) ?? "an answer that is not GitHub's", [token]);
  return { status: answer.status, headers: answer.headers, body: parsed, words };
}

function parsedOf(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
