import { header, shortEventName } from "../core/names.ts";
import type { Event } from "../core/types.ts";

/**
 * Whether a route's `events` list names the event's type: exactly, in the same case. An empty list accepts everything. For
 * GitLab, the header text and its short form are the same event (`Merge Request Hook` = `merge_request`, contract section 5).
 */
export function acceptsType(events: readonly string[], event: Event): boolean {
  if (events.length === 0 || events.some((name) => event.typeNames.includes(name))) return true;
  return isGitlab(event) && events.some((name) => event.typeNames.includes(shortEventName(name) ?? name));
}

function isGitlab({ headers }: Event): boolean {
  return header(headers, "x-gitlab-event") !== undefined && header(headers, "x-github-event") === undefined;
}
