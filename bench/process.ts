import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const main = fileURLToPath(new URL("../bin/postern", import.meta.url));

const running = new Set<ChildProcess>();
// However this program ends, nothing of it goes on.
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/**
 * Starts a Node program and fulfils with the first match of `pattern` in what it prints. `watch` is called before it has
 * printed anything.
 */
export async function start(
  args: readonly string[],
  pattern: RegExp,
  env: Record<string, string> = {},
  watch: (child: ChildProcess) => void = () => {},
): Promise<{ readonly child: ChildProcess; readonly match: string }> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  watch(child);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  const look = (chunk: Buffer) => {
    if (text.length > 100_000) return;
    text += chunk.toString();
    const found = pattern.exec(text)?.[1];
    if (found) resolve(found);
  };
  child.stdout.on("data", look);
  child.stderr.on("data", look);
  child.once("exit", (code) => reject(new Error(`ended with ${code}: ${text}`)));
  return { child, match: await promise };
}

export async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

/** Resident memory of a process in MiB, as the kernel counts it. */
export function residentMiB(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kib) / 102.4) / 10;
}

/** Processor time that a process has used so far, all its threads together. */
export function cpuSeconds(pid: number): number {
  // Behind the program's name, which may hold blanks; the clock ticks a hundred times a second (proc_pid_stat(5)).
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
