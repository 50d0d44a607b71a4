import { isList, isObject, parseJson } from "../core/json.ts";
import type { JsonObject } from "../core/types.ts";
import { type Answer, Conversation, textOf } from "./conversation.ts";
import { breakEmbeds } from "./embeds.ts";
import { permanent } from "./failure.ts";
import { isMarked, markedBody, roomBeforeMarker } from "./marker.ts";
import { neutraliseGitlab, plainText } from "./neutralise.ts";
import type { Address, Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

const gitlabCom = "https://gitlab.com";

const settings: Target["settings"] = {
  token: {
    kind: "secret",
    help: "Access token of a person, a project or a group, with the scope api",
    env: ["GITLAB_TOKEN"],
    required: true,
  },
  base_url: {
    kind: "url",
    help: `Address of the GitLab server; ${gitlabCom} when neither it nor "host" is set`,
    env: ["GITLAB_NOTE_BASE_URL", "GITLAB_URL"],
    alternatives: ["url"],
  },
  host: {
    kind: "string",
    help: 'The server by its name alone, such as "gitlab.example.com", in place of "base_url", which goes before it',
    env: ["GITLAB_HOST"],
    pattern: /(?:https?:\/\/)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?(?::\d{1,5})?(?:\/[\w.-]+)*\/?/,
  },
  allow_mentions: {
    kind: "boolean",
    help: "Let @names in the text reach people; quick actions never work",
    default: false,
  },
  allow_images: {
    kind: "boolean",
    help: "Show images, videos and drawings in the text, whose addresses can carry off what the agent knew; they are links else",
    default: false,
  },
};

const segment = "(?!\\.{1,2}(?:/|$))[A-Za-z0-9_.-]{1,255}";

const address: Target["address"] = {
  project: {
    help: 'a project\'s number, or its path such as "group/name"',
    pattern: new RegExp(`^(?:[1-9]\\d{0,14}|${segment}(?:/${segment}){1,20})`),
    required: true,
    alternatives: ["project_id", "repo"],
  },
  iid: {
    help: "the number of a merge request or an issue within its project",
    pattern: /[1-9]\d{0,9}/,
    required: true,
    alternatives: ["merge_request_iid", "mr_iid", "number"],
  },
  noteable_type: {
    help: '"issue" when the number is of an issue; "merge_request" when not set',
    pattern: /issue|Issue|merge_request|MergeRequest/,
    alternatives: ["noteable"],
  },
  discussion_id: {
    help: "the id of a discussion to answer in, 40 hex digits",
    pattern: /[0-9a-f]{40}/,
  },
  internal: {
    help: '"true" for a note that only members of the project see',
    pattern: /true|false/,
  },
};

const limit = roomBeforeMarker(1_000_000);
/** GitLab answers with the note, in which each character may have become an escape of six bytes. */
const maxNoteBytes = 7_340_032;
const failed = "Cannot write the note";

/**
 * A note on a GitLab merge request or issue (https://docs.gitlab.com/api/notes/). GitLab has no idempotency key: after a
 * lost answer the note is found by the hidden marker at its end.
 */
export function createGitlabNote({ timeoutMs = 30_000 }: TargetOptions = {}): Target {
  const converse = (action: string, { token }: SettingValues, { signal }: TargetTools) =>
    new Conversation({ service: "GitLab", action, secrets: [String(token)], timeoutMs, signal });
  return {
    name: "gitlab_note",
    isPlatform: true,
    settings,
    address,
    limit,
    // https://docs.gitlab.com/administration/settings/rate_limit_on_notes_creation/
    pace: { overall: { count: 300, everyMs: 60_000 } },
    ownServer: "base_url",
    markup: "GitLab Flavored Markdown, as it is but for images",
    retried: "429 after its `Retry-After`",
    repeats: "findable",
    send: (part, values, tools) => send(converse(failed, values, tools), part, values),
    find: (part, values, tools) => find(converse("Cannot look for the note", values, tools), part, values),
    check: (values, tools) => check(converse("Cannot use GitLab", values, tools), values),
  };
}

/** The target of the registry. */
export const gitlab_note: Target = createGitlabNote();

async function send(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const { discussion_id: discussion, internal } = part.address;
  const isInternal = internal === "true";
  if (isInternal && discussion !== undefined) {
    throw permanent(`${failed}: an answer in a discussion is as internal as the discussion; leave "internal" out`);
  }
  const place = discussion === undefined ? "notes" : `discussions/${discussion}/notes`;
  const url = `${noteableOf(part.address, values)}/${place}`;
  const json = { body: bodyOf(part, values), ...(isInternal ? { internal: true } : {}) };
  const headers = headersOf(values);
  const answer = await talk.ask({ method: "POST", url, headers, json, sends: true, maxBytes: maxNoteBytes });
  expectSuccess(talk, answer);
  if (answer.status === 202) throw talk.refused(answer, wordsOf(answer), "GitLab ran quick actions and wrote no note");
  const id = textOf(answer.json?.id);
  if (id === undefined) throw talk.notAnAnswer(answer);
  return receipt(part.address, values, id);
}

function headersOf({ token }: SettingValues): Record<string, string> {
  return { "private-token": String(token) };
}

/** The API's address of the merge request or issue. A project's path is one segment there. */
function noteableOf({ project = "", iid, noteable_type: type }: Address, values: SettingValues): string {
  return `${serverOf(values)}/api/v4/projects/${encodeURIComponent(project)}/${isIssue(type) ? "issues" : "merge_requests"}/${iid}`;
}

/** The server's address, without a slash at its end. */
function serverOf({ base_url: base, host }: SettingValues): string {
  if (base !== undefined || host === undefined) return String(base ?? gitlabCom);
  const name = String(host).replace(/\/+$/, "");
  return /^https?:/.test(name) ? name : `https://${name}`;
}

function isIssue(type: string | undefined): boolean {
  return type?.toLowerCase() === "issue";
}

/** A link where the project's path is known. */
function receipt({ project = "", iid, noteable_type: type }: Address, values: SettingValues, id: string) {
  if (!project.includes("/")) return { reference: `note ${id}` };
  return {
    reference: `${serverOf(values)}/${project}/-/${isIssue(type) ? "issues" : "merge_requests"}/${iid}#note_${id}`,
  };
}

/** A line that GitLab would carry out with the rights of the token. */
const quickAction = /^(\s*)\/(?=[a-z])/gim;

function bodyOf({ text, key }: Part, { allow_mentions: mentions, allow_images: images }: SettingValues): string {
  return markedBody(text, key, limit, (text, how) => {
    const quiet =
      mentions === true ? plainText(text).replaceAll(quickAction, "$1/\u200b") : neutraliseGitlab(text, how);
    return images === true ? quiet : breakEmbeds(quiet, { ...how, isGitlab: true });
  });
}

const advice: Readonly<Record<number, string>> = {
  401: 'check the "token"',
  403: "check that the token has the scope api, and that its owner may write there",
  404: "check the project and the number, and that the token's owner may see them",
};

/** GitLab's own answer to too many requests is plain text, "Retry later". */
function expectSuccess(talk: Conversation, answer: Answer): void {
  talk.expectSuccess(answer, wordsOf(answer), advice);
}

/** https://docs.gitlab.com/api/rest/troubleshooting/: `message` is text, or says of each field what is wrong. */
function wordsOf({ json, text, status }: Answer): string | undefined {
  const words = json?.message ?? json?.error;
  if (words !== undefined) return typeof words === "string" ? words : JSON.stringify(words);
  return status === 429 && /^[\w .]{1,60}$/.test(text.trim()) ? text.trim() : undefined;
}

/** Notes may have a million characters. */
const perPage = 20;
const mostPages = 50;
const maxPageBytes = 33_554_432;
/** How far GitLab's clock may be behind the gateway's. */
const clockDifferenceMs = 120_000;

/** Newest first, back to the time before which no try can have begun. */
async function find(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt | undefined> {
  const query = { sort: "desc", order_by: "created_at", per_page: String(perPage) };
  for (let page = 1; page <= mostPages; page += 1) {
    const url = `${noteableOf(part.address, values)}/notes?${new URLSearchParams({ ...query, page: String(page) })}`;
    const headers = headersOf(values);
    const answer = await talk.ask({ method: "GET", url, headers, sends: false, maxBytes: maxPageBytes });
    expectSuccess(talk, answer);
    const notes = notesIn(answer);
    if (notes === undefined) throw talk.notAnAnswer(answer);
    const found = notes.find(({ body }) => isMarked(body, part.key));
    if (found !== undefined) return receipt(part.address, values, textOf(found.id) ?? "");
    if (isLastPage(answer, notes) || notes.some((note) => isBefore(note, part.firstTriedAt))) return undefined;
  }
  throw permanent(`Cannot look for the note: more than ${perPage * mostPages} are new since the first try`);
}

function notesIn({ text }: Answer): readonly JsonObject[] | undefined {
  try {
    const notes = parseJson(text);
    return isList(notes) ? notes.filter(isObject) : undefined;
  } catch {
    return undefined;
  }
}

/** A page lacks the notes that the token's owner may not see, so a short one need not be the last. */
function isLastPage({ headers }: Answer, notes: readonly JsonObject[]): boolean {
  const next = headers.get("x-next-page");
  return next === null ? notes.length < perPage : next === "";
}

function isBefore({ created_at: at }: JsonObject, firstTriedAt: number): boolean {
  return typeof at === "string" && Date.parse(at) < firstTriedAt - clockDifferenceMs;
}

async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const url = `${serverOf(values)}/api/v4/user`;
  const answer = await talk.ask({ method: "GET", url, headers: headersOf(values), sends: false });
  expectSuccess(talk, answer);
  const name = textOf(answer.json?.username);
  if (name === undefined) throw talk.notAnAnswer(answer);
  return [`The token is of "${name}"`, "Whether it may write in a project cannot be told without writing there"];
}
