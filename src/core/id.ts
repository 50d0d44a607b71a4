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

/** A clock that goes back further was set, and the ids follow it. */
const setBackMs = 1_000;

let lastMs = 0;
let counter = 0;

/**
 * A UUIDv7 (RFC 9562 section 5.7): unique, and sorts by its time. Those of one process also sort in the order they were
 * made: within a millisecond, and while the clock is a little behind, the first 12 random bits count up (section 6.2, method 1).
 */
export function newId(nowMs: number): string {
  const bytes = randomPiece(16);
  if (nowMs > lastMs || nowMs < lastMs - setBackMs) {
    lastMs = nowMs;
    // The upper half is left free for counting.
    counter = bytes.readUInt16BE(6) & 0x7ff;
  } else if (counter < 0xfff) {
    counter += 1;
  } else {
    lastMs += 1;
    counter = 0;
  }
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | counter, 6);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** 32 hex digits that are the same for the same words and differ for any others. */
export function keyOf(...words: readonly (string | number)[]): string {
  return createHash("sha256").update(JSON.stringify(words)).digest("hex").slice(0, 32);
}
