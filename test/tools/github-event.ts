import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { signGithub } from "../../src/receive/verify.ts";

/** A pull request was opened, as GitHub says it: about 24 KB. */
export const pullRequestOpened = readFileSync(
  new URL("../../samples/github/pull_request.opened.json", import.meta.url),
  "utf8",
);

export interface GithubDelivery {
  readonly secret: string;
  readonly body?: string;
  readonly event?: string;
  readonly id?: string;
}

/** Posts an event with the headers and the signature that GitHub sends. */
export function postGithubEvent(url: string, { secret, body, event, id }: GithubDelivery): Promise<Response> {
  const text = body ?? pullRequestOpened;
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-event": event ?? "pull_request",
      "x-github-delivery": id ?? randomUUID(),
      "x-hub-signature-256": signGithub(secret, text),
    },
    body: text,
  });
}
