import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** HMAC-SHA256 over the parts as if they stood in one buffer. Text counts as one byte per character, as headers come in. */
export function hmac(key: string | Buffer, ...parts: readonly (string | Buffer)[]): Buffer {
  const digest = createHmac("sha256", key);
  for (const part of parts) {
    if (typeof part === "string") digest.update(part, "latin1");
    else digest.update(part);
  }
  return digest.digest();
}

/** Compares two digests of equal length in constant time. */
export function sameDigest(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Compares values of any length in constant time, by their digests. */
export function sameBytes(a: Buffer, b: Buffer): boolean {
  return timingSafeEqual(sha256(a), sha256(b));
}

function sha256(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** Compares a hex digest in either case with the expected bytes; `undefined` when they agree, else the reason. */
export function differsFromHex(hex: string, expected: Buffer): string | undefined {
  const length = expected.length * 2;
  if (hex.length !== length) return `it has ${hex.length} characters where ${length} hex digits belong`;
  if (!/^[0-9a-fA-F]+$/.test(hex)) return "it holds characters that are not hex digits";
  return sameDigest(Buffer.from(hex, "hex"), expected) ? undefined : digestDiffers;
}

/** The reason that most often means a wrong secret. */
export const digestDiffers = "the digest differs (another secret, or the body was changed on its way)";
