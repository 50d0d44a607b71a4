import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { UserError } from "../core/errors.ts";

/** A lock that is held. The operating system frees it when its holder dies, whatever the death. */
export interface Lock {
  release(): void;
}

/**
 * Takes a lock between processes, waiting up to `waitMs` (blocking this thread), or answers `undefined` when another
 * process still holds it. The lock is SQLite's own on an empty database file: unlike a file that says "locked", it cannot
 * be left behind by a process that was killed.
 * @throws UserError when nobody could take it: a full disk, a folder that cannot be written.
 */
export function takeLock(path: string, waitMs: number): Lock | undefined {
  let database: DatabaseSync | undefined;
  try {
    makeFile(path);
    database = new DatabaseSync(path, { timeout: waitMs });
    database.exec("pragma journal_mode = off; begin exclusive");
    const held = database;
    return { release: () => held.close() };
  } catch (cause) {
    database?.close();
    if (cause instanceof Error && "errcode" in cause && cause.errcode === 5) return undefined;
    const why = cause instanceof Error ? cause.message : String(cause);
    const how = "see that the disk has space and that the folder can be written, then try again";
    throw new UserError(`Cannot lock "${path}": ${why}; ${how}`, { cause });
  }
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
