import { createHash, randomFillSync } from "node:crypto";

// Random bytes are fetched for many ids at once: the call costs more than the bytes.
const pool = Buffer.alloc(4096);
let used = pool.length;

function randomPiece(size: number): Buffer {
  if (used + size > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += size;
  return Buffer.from(pool.subarray(used - size, used));
}

/** A UUIDv7 (RFC 9562 section 5.7): unique, and sorts by its time. */
export function newId(nowMs: number): string {
  const bytes = randomPiece(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** 32 hex digits that are the same for the same words and differ for any others. */
export function keyOf(...words: readonly (string | number)[]): string {
  return createHash("sha256").update(JSON.stringify(words)).digest("hex").slice(0, 32);
}
