import type { HeaderMap } from "./types.ts";

/** The secret that switches verification off; the gateway accepts it on loopback addresses only (specification section 5). */
export const INSECURE_NO_AUTH = "INSECURE_NO_AUTH";

/** Keys that make a script's answer mean "ignore this event" when they are `true` (specification section 2.6). */
export const ignoreMarkers = ["__postern_ignore__", "__svc_ignore__"] as const;

/** Real header names and the specification's brand-neutral ones. Both work everywhere a header is read. */
const headerDialects = [
  ["x-github-event", "x-hosta-event"],
  ["x-github-delivery", "x-hosta-delivery"],
  ["x-gitlab-event", "x-hostb-event"],
  ["x-gitlab-token", "x-hostb-token"],
] as const;

const aliasOf = new Map<string, string>(
  headerDialects.flatMap(([real, neutral]) => [
    [real, neutral],
    [neutral, real],
  ]),
);

/** A header's lower-case name, then its name in the other dialect where it has one. Takes the name in any case. */
export function headerNames(name: string): readonly string[] {
  const lower = name.toLowerCase();
  const alias = aliasOf.get(lower);
  return alias === undefined ? [lower] : [lower, alias];
}

/** The first value that is not blank under a header's name or its name in the other dialect, as text. */
export function header(headers: HeaderMap, name: string): string | undefined {
  for (const candidate of headerNames(name)) {
    for (const value of headers.get(candidate) ?? []) {
      if (value.trim() !== "") return wireText(value);
    }
  }
  return undefined;
}

/** The bytes of a header value. Node hands them over as one character per byte. */
export function wireBytes(value: string): Buffer {
  // A character beyond one byte cannot have come from the wire: the value was put in as text.
  return Buffer.from(value, /[^\0-\xff]/.test(value) ? "utf8" : "latin1");
}

/** A header value as text: UTF-8 where its bytes are UTF-8, else one character per byte. */
export function wireText(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value;
  const text = wireBytes(value).toString("utf8");
  return text.includes("\ufffd") ? value : text;
}

/** GitLab's short form of its event header: `Merge Request Hook` is `merge_request`. Other texts have none. */
export function shortEventName(type: string): string | undefined {
  const long = /^(.*\S)\s+Hook$/.exec(type)?.[1];
  return long?.toLowerCase().replaceAll(/\s+/g, "_");
}
