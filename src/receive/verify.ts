import { Rejection } from "../core/errors.ts";
import { INSECURE_NO_AUTH } from "../core/names.ts";
import type { HeaderMap } from "../core/types.ts";
import * as registry from "./signature/registry.ts";
import type { Scheme } from "./signature/scheme.ts";

export { sign as signGithub } from "./signature/github.ts";

const schemes: readonly Scheme[] = Object.values(registry).sort((a, b) => a.order - b.order);

/** A request as it came in, and the secrets its route accepts. */
export interface Unverified {
  readonly headers: HeaderMap;
  /** The raw bytes, before any parsing. */
  readonly body: Buffer;
  /** Any one of them verifies: more than one while a secret is being changed. */
  readonly secrets: readonly string[];
  /** Unix time in milliseconds. */
  readonly nowMs: number;
}

/**
 * Returns when the request is genuine (specification section 5, contract section 4). The header that is present chooses the
 * scheme; the first one decides and no other rescues it. The single secret `INSECURE_NO_AUTH` lets everything through.
 * @throws Rejection `invalid_signature`, its reason says what failed and never what was expected.
 */
export function verify(request: Unverified): void {
  const { headers, secrets } = request;
  if (secrets.length === 1 && secrets[0] === INSECURE_NO_AUTH) return;
  const scheme = schemes.find(({ headers: names }) => names.some((name) => isPresent(headers, name)));
  if (scheme === undefined) throw new Rejection("invalid_signature", `No signature header (${allHeaders})`);
  const names = scheme.headers.filter((name) => isPresent(headers, name));
  const reason = repetition(scheme, names, headers) ?? failure(scheme, request);
  if (reason !== undefined)
    throw new Rejection("invalid_signature", `Header "${names[0]}" (${scheme.name}): ${reason}`);
}

const allHeaders = `none of ${schemes.flatMap(({ headers }) => headers).join(", ")} is there`;

function isPresent(headers: HeaderMap, name: string): boolean {
  return headers.get(name)?.some((value) => value.trim() !== "") ?? false;
}

/** Two values could be read one way by us and another way by a proxy in front of us. */
function repetition(scheme: Scheme, names: readonly string[], headers: HeaderMap): string | undefined {
  // Standard Webhooks and Svix are two families of headers: the first one that is there decides as a whole.
  const counted = scheme.name === "standard" ? names.slice(0, 1) : names;
  const count = counted.reduce((sum, name) => sum + (headers.get(name)?.length ?? 0), 0);
  return count > 1 ? `it is there ${count} times` : undefined;
}

function failure(scheme: Scheme, { headers, body, secrets, nowMs }: Unverified): string | undefined {
  // Everybody knows the word that switches verification off, so nothing can be signed with it.
  const usable = secrets.filter((secret) => secret.trim() !== "" && secret !== INSECURE_NO_AUTH);
  if (usable.length === 0) return "the route has no secret to check it with";
  let first: string | undefined;
  for (const secret of usable) {
    const reason = scheme.verify({ headers, body, secret, nowMs });
    if (reason === undefined) return undefined;
    first ??= reason;
  }
  return usable.length === 1 ? first : `${first}, with each of ${usable.length} secrets`;
}
