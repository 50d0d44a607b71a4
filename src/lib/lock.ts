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
  makeFile(path);
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

/** Makes the file if it is not there. One that is there must not be opened: closing it again would free this process's lock. */
function makeFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    chmodSync(path, 0o600);
  }
}
