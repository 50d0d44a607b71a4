import { readFileSync } from "node:fs";

/** Whether a process is gone (Linux). One that only waits to be reaped by its parent has ended too. */
export function hasEnded(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return true;
  }
}

/** Whether a process is stopped by a signal (Linux). */
export function isStopped(pid: number): boolean {
  try {
    return /\) T /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
