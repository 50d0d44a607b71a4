import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bodyServer, type Handler, listen, objectIn, stop } from "./http.ts";
import { powerOf, withoutEnd } from "./markdown.ts";
import { answerAs, answerJson, type Fake, type JsonAnswer, type Mode, takes } from "./mode.ts";
import { officialSchema, ownSchema } from "./schema.ts";

export interface GithubComment {
  readonly repo: string;
  readonly number: number;
  /** What readers see: the body without the HTML comment at its end. */
  readonly text: string;
  /** What could reach somebody or command something. */
  readonly raw: string;
  /** As it came. */
  readonly body: string;
  /** `api.github.com`, or the name of an Enterprise Server. */
  readonly host: string;
  readonly url: string;
  /** Unix time in milliseconds. */
  readonly updatedAt: number;
}

export interface FakeGithub extends Fake<GithubComment> {
  /** Environment with which the real `gh` talks to this fake: GH_CONFIG_DIR and GH_TOKEN. */
  readonly env: Readonly<Record<string, string>>;
  readonly token: string;
  /** Address of the REST API for whoever asks without `gh`. */
  readonly baseUrl: string;
  /** What was wrong with requests, by the descriptions of GitHub's API. */
  readonly mismatches: readonly string[];
  /** Set, this is the answer in the modes `refused` and `limited`. */
  answer: JsonAnswer | undefined;
  /** The answer to who a known token is. */
  account: JsonAnswer;
  /** Queries of the requests that listed comments; `tries` does not count those, but `mode` and `upcoming` are for them too. */
  readonly listings: readonly URLSearchParams[];
  /** A comment of somebody else, on issue 5 of `owner/name`, changed now unless told otherwise. */
  write(body: string, updatedAt?: number): void;
}

const own = ownSchema("github-comments");
/** It has no question who one is. */
const official = officialSchema("github");

/**
 * GitHub's "Create an issue comment" and "List issue comments" behind a socket file, for the real `gh` program: its
 * configuration can name such a file, and then it speaks plain HTTP there instead of TLS to the host. The same on a port
 * of 127.0.0.1, for whoever has a token and no `gh`.
 */
export async function startFakeGithub(token = "ghp_fakeTokenOfTheFake"): Promise<FakeGithub> {
  const folder = await mkdtemp(join(tmpdir(), "gh-"));
  const messages: GithubComment[] = [];
  const listings: URLSearchParams[] = [];
  const upcoming: Mode[] = [];
  const mismatches: string[] = [];
  const answer: Handler = (request, body, response) => {
    if (request.method !== "GET") fake.tries += 1;
    mismatches.push(...problemsOf(request, body));
    const read = readRequest(request, body, token, fake.account);
    if ("status" in read) return answerJson(response, read);
    const mode = upcoming.shift() ?? fake.mode;
    const { refused, limited } = fake.answer ? { refused: fake.answer, limited: fake.answer } : failures;
    if ("query" in read) {
      listings.push(read.query);
      return answerAs(mode, response, { ok: listed(read, messages), refused, limited });
    }
    const comment = commentOf(read, messages.length + 1);
    if (takes(mode)) messages.push(comment);
    answerAs(mode, response, { ok: { status: 201, body: shown(comment) }, refused, limited });
  };
  const [server, overTcp] = [bodyServer(answer), bodyServer(answer)];
  await listen(server, join(folder, "s"));
  const port = await listen(overTcp);
  await writeFile(join(folder, "config.yml"), `http_unix_socket: ${join(folder, "s")}\n`);
  const fake = {
    env: { GH_CONFIG_DIR: folder, GH_TOKEN: token },
    token,
    account: { status: 200, body: { login: "postern-bot" } } as JsonAnswer,
    baseUrl: `http://127.0.0.1:${port}`,
    mismatches,
    messages,
    listings,
    upcoming,
    mode: "ok" as Mode,
    tries: 0,
    answer: undefined as JsonAnswer | undefined,
    write(body: string, updatedAt = Date.now()) {
      const draft = { repo: "owner/name", number: 5, host: "api.github.com", body };
      messages.push({ ...commentOf(draft, messages.length + 1), updatedAt });
    },
    async close() {
      await Promise.all([stop(server), stop(overTcp)]);
      await rm(folder, { recursive: true });
    },
  };
  return fake;
}

function fault(status: number, message: string, errors?: readonly unknown[]): JsonAnswer {
  return { status, body: { message, errors, documentation_url: "https://docs.github.com/rest" } };
}

/** The comments of an issue or pull request. */
type Thread = Pick<GithubComment, "repo" | "number" | "host">;
type Draft = Thread & Pick<GithubComment, "body">;
type Listing = Thread & { readonly query: URLSearchParams };

/** An Enterprise Server has the API under a path of its own. */
function urlOf({ url = "", headers: { host } }: IncomingMessage): URL {
  return new URL(host === "api.github.com" ? url : url.replace(/^\/api\/v3(?=\/)/, ""), "http://fake");
}

function problemsOf(request: IncomingMessage, body: string): string[] {
  const url = urlOf(request);
  const headers = request.headers as Record<string, string | undefined>;
  // `gh` follows redirects, and whatever host they name, the socket file leads here.
  if (url.pathname === "/internal") return [];
  const schemas = url.pathname === "/user" ? [own] : [own, ...official];
  return schemas.flatMap((schema) => schema.problems({ method: request.method ?? "", url, headers, body }));
}

function readRequest(
  request: IncomingMessage,
  body: string,
  token: string,
  account: JsonAnswer,
): Draft | Listing | JsonAnswer {
  const { host = "", authorization = "", accept } = request.headers;
  const { pathname: path, searchParams: query } = urlOf(request);
  const isKnown = authorization === `token ${token}` || authorization === `Bearer ${token}`;
  if (path === "/user") return isKnown ? account : fault(401, "Bad credentials");
  const [, repo, number] = /^\/repos\/([\w.-]+\/[\w.-]+)\/issues\/(\d+)\/comments$/.exec(path) ?? [];
  if (repo === undefined || !/^(GET|POST)$/.test(request.method ?? "")) return fault(404, "Not Found");
  if (!isKnown) return fault(401, "Bad credentials");
  if (accept !== "application/vnd.github+json") return fault(415, "Unsupported 'Accept' header");
  const thread = { repo, number: Number(number), host };
  if (request.method === "GET") return faultOfQuery(query) ?? { ...thread, query };
  if (!request.headers["content-type"]?.startsWith("application/json")) return fault(400, "Problems parsing JSON");
  const text = textOf(body);
  return typeof text === "string" ? { ...thread, body: text } : text;
}

function faultOfQuery(query: URLSearchParams): JsonAnswer | undefined {
  const patterns = { since: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, per_page: /^([1-9]\d?|100)$/, page: /^[1-9]\d*$/ };
  const bad = [...query].find(([name, value]) => !patterns[name as keyof typeof patterns]?.test(value));
  return bad && fault(422, "Validation Failed", [`bad parameter: ${bad.join("=")}`]);
}

function textOf(body: string): string | JsonAnswer {
  const fields = objectIn(body);
  if (fields === undefined) return fault(400, "Problems parsing JSON");
  const { body: text, ...others } = fields;
  if (Object.keys(others).length > 0) return fault(422, "Invalid request", [`unknown: ${Object.keys(others)}`]);
  if (typeof text !== "string" || text.trim() === "") return fault(422, "Validation Failed", ["body can't be blank"]);
  if ([...text].length > 65_536) {
    return fault(422, "Validation Failed", [{ message: "body is too long (maximum is 65536 characters)" }]);
  }
  return /\p{Cs}/u.test(text) ? fault(400, "Problems parsing JSON") : text;
}

function commentOf(draft: Draft, id: number): GithubComment {
  const web = draft.host === "api.github.com" ? "github.com" : draft.host;
  return {
    ...draft,
    text: withoutEnd(draft.body),
    raw: powerOf(draft.body),
    url: `https://${web}/${draft.repo}/issues/${draft.number}#issuecomment-${id}`,
    updatedAt: Date.now(),
  };
}

/** As GitHub shows it. */
function shown({ url, body, updatedAt }: GithubComment) {
  const id = Number(url.split("-").at(-1));
  return { id, html_url: url, body, updated_at: new Date(updatedAt).toISOString(), user: { login: "bot" } };
}

/** One page, oldest first, with links to the others. */
function listed({ query, ...thread }: Listing, messages: readonly GithubComment[]): JsonAnswer {
  const since = Date.parse(query.get("since") ?? "1970-01-01");
  const perPage = Number(query.get("per_page") ?? 30);
  const page = Number(query.get("page") ?? 1);
  const all = messages.filter(
    ({ repo, number, host, updatedAt }) =>
      repo === thread.repo && number === thread.number && host === thread.host && updatedAt >= since,
  );
  const last = Math.max(1, Math.ceil(all.length / perPage));
  const link = (to: number, rel: string) => {
    const address = `https://${thread.host}/repositories/1/issues/${thread.number}/comments`;
    return `<${address}?${new URLSearchParams([...query].filter(([name]) => name !== "page"))}&page=${to}>; rel="${rel}"`;
  };
  const links = [
    ...(page > 1 ? [link(page - 1, "prev")] : []),
    ...(page < last ? [link(page + 1, "next"), link(last, "last")] : []),
    ...(page > 1 ? [link(1, "first")] : []),
  ];
  return {
    status: 200,
    headers: links.length > 0 ? { link: links.join(", ") } : {},
    body: all.slice((page - 1) * perPage, page * perPage).map(shown),
  };
}

const failures = {
  refused: fault(404, "Not Found"),
  limited: {
    ...fault(403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."),
    headers: { "retry-after": "7" },
  },
};
