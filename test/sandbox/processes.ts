import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

/** Processes of this machine whose command line holds `text`. Zombies have none. */
export function processesWith(text: string): number[] {
  return pids().filter((pid) => attempt(() => readFileSync(`/proc/${pid}/cmdline`, "latin1"))?.includes(text));
}

/**
 * Processes of this machine in a pid namespace, named as `readlink /proc/self/ns/pid` prints it inside. Not zombies, which
 * some machines' init is slow to reap.
 */
export function processesIn(namespace: string): number[] {
  const inside = pids().filter((pid) => attempt(() => readlinkSync(`/proc/${pid}/ns/pid`)) === namespace);
  return inside.filter((pid) => attempt(() => /^State:\t[^ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))));
}

/** User id that a process runs under, as the host sees it. */
export function hostUid(pid: number): number {
  return Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Resolves once `condition` holds; throws when it does not within five seconds. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 5000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited too long for: ${what}`);
    await setTimeout(5);
  }
}

function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    // The process has ended since it was listed, or is not ours to look at.
    return undefined;
  }
}
