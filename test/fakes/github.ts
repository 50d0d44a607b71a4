import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bodyServer, listen, objectIn, stop } from "./http.ts";
import { answerAs, answerJson, type Fake, type JsonAnswer, type Mode, takes } from "./mode.ts";

export interface GithubComment {
  readonly repo: string;
  readonly number: number;
  readonly text: string;
  /** `api.github.com`, or the name of an Enterprise Server. */
  readonly host: string;
  readonly url: string;
}

export interface FakeGithub extends Fake<GithubComment> {
  /** Environment with which the real `gh` talks to this fake: GH_CONFIG_DIR and GH_TOKEN. */
  readonly env: Readonly<Record<string, string>>;
  readonly token: string;
  /** Set, this is the answer in the modes `refused` and `limited`. */
  answer: JsonAnswer | undefined;
}

/**
 * GitHub's "Create an issue comment" behind a socket file, for the real `gh` program: its configuration can name such a
 * file, and then it speaks plain HTTP there instead of TLS to the host.
 */
export async function startFakeGithub(token = "ghp_fakeTokenOfTheFake"): Promise<FakeGithub> {
  const folder = await mkdtemp(join(tmpdir(), "gh-"));
  const messages: GithubComment[] = [];
  const upcoming: Mode[] = [];
  const server = bodyServer((request, body, response) => {
    fake.tries += 1;
    const read = readRequest(request, body, token, messages.length + 1);
    if ("status" in read) return answerJson(response, read);
    const mode = upcoming.shift() ?? fake.mode;
    if (takes(mode)) messages.push(read);
    const answers = answersFor(read);
    answerAs(mode, response, fake.answer ? { ...answers, refused: fake.answer, limited: fake.answer } : answers);
  });
  await listen(server, join(folder, "s"));
  await writeFile(join(folder, "config.yml"), `http_unix_socket: ${join(folder, "s")}\n`);
  const fake = {
    env: { GH_CONFIG_DIR: folder, GH_TOKEN: token },
    token,
    messages,
    upcoming,
    mode: "ok" as Mode,
    tries: 0,
    answer: undefined as JsonAnswer | undefined,
    async close() {
      await stop(server);
      await rm(folder, { recursive: true });
    },
  };
  return fake;
}

function fault(status: number, message: string, errors?: readonly unknown[]): JsonAnswer {
  return { status, body: { message, errors, documentation_url: "https://docs.github.com/rest" } };
}

function readRequest(request: IncomingMessage, body: string, token: string, id: number): GithubComment | JsonAnswer {
  const { host = "", authorization, accept } = request.headers;
  const isEnterprise = host !== "api.github.com";
  const path = isEnterprise ? request.url?.replace(/^\/api\/v3(?=\/)/, "") : request.url;
  const [, repo, number] = /^\/repos\/([\w.-]+\/[\w.-]+)\/issues\/(\d+)\/comments$/.exec(path ?? "") ?? [];
  if (repo === undefined || request.method !== "POST") return fault(404, "Not Found");
  if (authorization !== `token ${token}`) return fault(401, "Bad credentials");
  if (accept !== "application/vnd.github+json") return fault(415, "Unsupported 'Accept' header");
  if (!request.headers["content-type"]?.startsWith("application/json")) return fault(400, "Problems parsing JSON");
  const text = textOf(body);
  if (typeof text !== "string") return text;
  const web = isEnterprise ? host : "github.com";
  return {
    repo,
    number: Number(number),
    text,
    host,
    url: `https://${web}/${repo}/issues/${number}#issuecomment-${id}`,
  };
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

function answersFor(comment: GithubComment) {
  return {
    ok: { status: 201, body: { id: 1, html_url: comment.url, body: comment.text, user: { login: "bot" } } },
    refused: fault(404, "Not Found"),
    limited: {
      ...fault(403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."),
      headers: { "retry-after": "7" },
    },
  };
}
