import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** A lock that is held. The operating system frees it when its holder dies, whatever the death. */
export interface Lock {
  release(): void;
}

/**
 * Takes a lock between processes, waiting up to `waitMs` (blocking this thread), or answers `undefined` when another
 * process still holds it. The lock is SQLite's own on an empty database file: unlike a file that says "locked", it cannot
 * be left behind by a process that was killed.
 */
export function takeLock(path: string, waitMs: number): Lock | undefined {
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  const database = new DatabaseSync(path, { timeout: waitMs });
  try {
    database.exec("pragma journal_mode = off; begin exclusive");
  } catch (error) {
    database.close();
    if (error instanceof Error && "errcode" in error && error.errcode === 5) return undefined;
    throw error;
  }
  return { release: () => database.close() };
}
