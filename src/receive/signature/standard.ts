import type { HeaderMap } from "../../core/types.ts";
import { digestDiffers, hmac, sameDigest } from "./compare.ts";
import type { Scheme } from "./scheme.ts";
import { differsFromNow } from "./timestamp.ts";

const families = ["webhook", "svix"] as const;

/**
 * Standard Webhooks, and Svix under its own names: `webhook-signature` is a list of `v1,<base64>` over `id.timestamp.body`
 * (standardwebhooks specification, "Signature scheme"; docs.svix.com, "Verifying webhooks manually").
 */
export const standard: Scheme = {
  name: "standard",
  order: 4,
  headers: families.map((family) => `${family}-signature`),
  verify({ headers, body, secret, nowMs }) {
    // The first family that brings a signature decides with all of its headers: they are never mixed.
    const family = families.find((name) => (headers.get(`${name}-signature`)?.[0] ?? "").trim() !== "") ?? "webhook";
    const id = single(headers, `${family}-id`);
    if (id.value === undefined) return id.problem;
    const timestamp = single(headers, `${family}-timestamp`);
    if (timestamp.value === undefined) return timestamp.problem;
    const late = differsFromNow(timestamp.value, nowMs);
    if (late !== undefined) return late;
    const key = keyOf(secret);
    if (key.length === 0) return 'the secret holds no key after "whsec_"';
    const expected = hmac(key, `${id.value}.${timestamp.value}.`, body);
    return differsFromList(headers.get(`${family}-signature`)?.[0] ?? "", expected);
  },
};

function single(headers: HeaderMap, name: string): { value: string } | { value: undefined; problem: string } {
  const [value = "", ...more] = headers.get(name) ?? [];
  if (value === "") return { value: undefined, problem: `the header "${name}" is missing` };
  return more.length === 0 ? { value } : { value: undefined, problem: `the header "${name}" is repeated` };
}

function keyOf(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/_-]*={0,2})$/.exec(secret)?.[1];
  return encoded === undefined ? Buffer.from(secret, "utf8") : Buffer.from(encoded, "base64");
}

/** Several signatures stand in the list while the sender changes its key: any one of them will do. */
function differsFromList(list: string, expected: Buffer): string | undefined {
  const signatures = list.split(" ").filter((entry) => entry.startsWith("v1,"));
  if (signatures.length === 0) return 'it holds no signature that starts with "v1,"';
  const digests = signatures.map((entry) => Buffer.from(entry.slice("v1,".length), "base64"));
  if (digests.some((digest) => sameDigest(digest, expected))) return undefined;
  return digests.some((digest) => digest.length === expected.length)
    ? digestDiffers
    : "it is not the Base64 of 32 bytes";
}
