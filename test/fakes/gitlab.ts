import { powerOf, withoutEnd } from "./markdown.ts";
import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface GitlabNote extends Taken {
  readonly id: number;
  /** As it came. */
  readonly body: string;
  /** Under `/projects`: the merge request or issue it stands at. */
  readonly place: string;
  readonly discussion: string | undefined;
  readonly isInternal: boolean;
  /** Unix time in milliseconds. */
  readonly createdAt: number;
}

export interface FakeGitlab extends FakeService<GitlabNote> {
  readonly token: string;
  /** A note of somebody else, at the merge request 5 of the project "group/name", written now unless told otherwise. */
  write(body: string, createdAt?: number): void;
  /** What the owner of the token may not see: taken out of each page. */
  hide(isHidden: (note: GitlabNote) => boolean): void;
}

const notes = ownSchema("gitlab-notes");
const discussion = "6a9c1750b37d513a43987b574953fceb50b03ce7";
const placePattern =
  /^\/api\/v4\/projects\/(group%2Fname\/(?:merge_requests|issues)\/[56])(?:\/discussions\/(\w+))?\/notes$/;

/** GitLab with the project "group/name", in which merge requests and issues have the numbers 5 and 6. */
export async function startFakeGitlab(token = "glpat-fakeTokenOfTheFake"): Promise<FakeGitlab> {
  const view = { hidden: (_note: GitlabNote) => false };
  const service = await startService<GitlabNote>({
    schemas: [[notes]],
    aside: (heard) => (heard.url.pathname === "/api/v4/user" ? whoami(heard, token) : undefined),
    looks: (heard, messages) => {
      if (heard.method !== "GET") return undefined;
      const wrong = fault(heard, token);
      const ok = wrong ?? listed(heard, messages, (note) => view.hidden(note));
      return { ok, refused, limited };
    },
    read: (heard, id) => {
      const wrong = fault(heard, token);
      return wrong === undefined ? noteIn(heard, id) : { wrong };
    },
    answers: (note) => ({ ok: { status: 201, body: shown(note) }, refused, limited }),
    misunderstood: (problems) => ({ status: 400, body: { error: problems.join("; ") } }),
  });
  return Object.assign(service, {
    token,
    hide(isHidden: (note: GitlabNote) => boolean) {
      view.hidden = isHidden;
    },
    write(body: string, createdAt = Date.now()) {
      const place = "group%2Fname/merge_requests/5";
      const id = service.messages.length + 1;
      const all = service.messages as GitlabNote[];
      all.push({ id, place, discussion: undefined, isInternal: false, createdAt, ...readings(body) });
    },
  });
}

const refused: JsonAnswer = { status: 403, body: { message: "403 Forbidden" } };
const limited: JsonAnswer = { status: 429, headers: { "retry-after": "7" }, text: "Retry later\n" };

function whoami(heard: Heard, token: string): JsonAnswer {
  if (heard.headers["private-token"] !== token) return { status: 401, body: { message: "401 Unauthorized" } };
  return { status: 200, body: { id: 7, username: "postern-bot" } };
}

function fault({ headers, url, method, json }: Heard, token: string): JsonAnswer | undefined {
  if (headers["private-token"] !== token) return { status: 401, body: { message: "401 Unauthorized" } };
  const [, place, thread] = placePattern.exec(url.pathname) ?? [];
  if (place === undefined) return { status: 404, body: { message: "404 Project Not Found" } };
  if (thread !== undefined && thread !== discussion)
    return { status: 404, body: { message: "404 Discussion Not Found" } };
  if (method !== "POST") return undefined;
  const isBlank = String(json?.body).trim() === "";
  return isBlank ? { status: 400, body: { message: { note: ["can't be blank"] } } } : undefined;
}

function noteIn({ url, json = {} }: Heard, id: number): GitlabNote {
  const [, place = "", thread] = placePattern.exec(url.pathname) ?? [];
  const body = String(json.body);
  const isInternal = json.internal === true;
  return { id, place, discussion: thread, isInternal, createdAt: Date.now(), ...readings(body) };
}

function readings(body: string) {
  return { body, text: withoutEnd(body), raw: powerOf(body) };
}

function shown({ id, body, isInternal, createdAt }: GitlabNote) {
  const created_at = new Date(createdAt).toISOString();
  return { id, body, author: { username: "postern-bot" }, created_at, system: false, internal: isInternal };
}

function listed({ url }: Heard, messages: readonly GitlabNote[], isHidden: (note: GitlabNote) => boolean): JsonAnswer {
  const [, place] = placePattern.exec(url.pathname) ?? [];
  const perPage = Number(url.searchParams.get("per_page") ?? 20);
  const page = Number(url.searchParams.get("page") ?? 1);
  const all = messages.filter((note) => note.place === place).sort((a, b) => b.createdAt - a.createdAt || b.id - a.id);
  const next = page * perPage < all.length ? String(page + 1) : "";
  const body = all.slice((page - 1) * perPage, page * perPage).filter((note) => !isHidden(note));
  return { status: 200, headers: { "x-next-page": next }, body: body.map(shown) };
}
