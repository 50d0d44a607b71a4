import { isObject, parseJson } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { retryAfterMs } from "../lib/http.ts";

/** One question to GitHub's REST API. */
export interface GithubCall {
  /** Opens the sentence of an error, for example `Cannot comment on "owner/name#5"`. */
  readonly action: string;
  readonly method: "GET" | "POST";
  /** With its query, without a slash at its start. Other processes can read it: nothing secret, and no text of the message. */
  readonly path: string;
  /** Of a `POST`. */
  readonly body?: JsonObject;
  /** What is kept of a list's items, as `jq` says it; through REST the whole items come. */
  readonly excerpt?: string;
  /** The whole call. */
  readonly timeoutMs: number;
}

/** GitHub's answer, as `gh api -i` printed it or as it came. */
export interface GhAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** `undefined` when it is not JSON, or not all of it. */
  readonly body: Json | undefined;
  /** What the service says is wrong, in its own words. */
  readonly words: string;
}

/**
 * Reads a status line, headers and body as `gh api -i` prints them, also when the body broke off; `undefined` when there
 * is no whole status line, that is, no answer.
 */
export function parseGhAnswer(printed: string): GhAnswer | undefined {
  const statusLine = /^HTTP\/[\d.]+ (\d{3})([^\r\n]*)\r?\n/.exec(printed);
  if (statusLine === null) return undefined;
  const [head = "", ...rest] = printed.slice(statusLine[0].length).split("\r\n\r\n");
  const body = parsed(rest.join("\r\n\r\n"));
  const phrase = statusLine[2]?.trim() ?? "";
  return { status: Number(statusLine[1]), headers: headersOf(head), body, words: wordsOf(body) ?? phrase };
}

function headersOf(head: string): Headers {
  const headers = new Headers();
  for (const line of head.split("\r\n")) {
    const [, name, value] = /^([\w-]+): ([\t\x20-\x7e]*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) headers.append(name, value);
  }
  return headers;
}

function parsed(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** GitHub says `message`, and for a refused field `errors[].message` or `errors[]` as text. */
export function wordsOf(body: Json | undefined): string | undefined {
  if (!isObject(body) || typeof body.message !== "string") return undefined;
  const details = Array.isArray(body.errors) ? body.errors : [];
  const more = details.map((detail: Json) => (isObject(detail) ? detail.message : detail));
  return [body.message, ...more.filter((detail) => typeof detail === "string")].join("; ");
}

/**
 * How long GitHub asks to wait, or `undefined` when the answer is no rate limit. A secondary limit ("abuse detection" on
 * older Enterprise Servers) that names no time means a minute
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 */
export function rateWaitMs(answer: GhAnswer, nowMs: number): number | undefined {
  if (answer.status !== 403 && answer.status !== 429) return undefined;
  const named = retryAfterMs(answer.headers.get("retry-after"), nowMs);
  if (named !== undefined) return named;
  if (answer.headers.get("x-ratelimit-remaining") === "0") {
    const resetMs = Number(answer.headers.get("x-ratelimit-reset") ?? Number.NaN) * 1000;
    return Number.isFinite(resetMs) ? Math.max(0, resetMs - nowMs) : 60_000;
  }
  return /secondary rate limit|abuse detection/i.test(answer.words) ? 60_000 : undefined;
}
