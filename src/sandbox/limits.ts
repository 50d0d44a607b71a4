import { readdir, readFile } from "node:fs/promises";
import { release } from "node:os";

/** What one sandboxed workspace may use. Memory is per process: total memory has no bound but the number of processes. */
export interface Limits {
  /** Processes and threads of the whole workspace. */
  readonly processes: number;
  readonly addressSpaceBytes: number;
  /** Of processor time, per process. */
  readonly cpuSeconds: number;
  readonly openFiles: number;
  /** Size of one file. */
  readonly fileBytes: number;
  /** Size of `/workspace`. It is memory. */
  readonly workspaceBytes: number;
  /** Size of `/tmp` and of `/dev/shm`, each. It is memory. */
  readonly tmpBytes: number;
}

const mebibyte = 1024 ** 2;

/** Enough for git, jq, Python or Node on a checkout of ordinary size. */
export const defaultLimits: Limits = {
  processes: 64,
  addressSpaceBytes: 4096 * mebibyte,
  cpuSeconds: 600,
  openFiles: 1024,
  fileBytes: 256 * mebibyte,
  workspaceBytes: 512 * mebibyte,
  tmpBytes: 256 * mebibyte,
};

/** `prlimit` options: the name that prlimit(1) has for a limit and the one in `/proc/self/limits`. */
const resources = [
  { option: "nproc", label: "Max processes", value: (limits: Limits) => limits.processes },
  { option: "fsize", label: "Max file size", value: (limits: Limits) => limits.fileBytes },
  { option: "as", label: "Max address space", value: (limits: Limits) => limits.addressSpaceBytes },
  { option: "cpu", label: "Max cpu time", value: (limits: Limits) => limits.cpuSeconds },
  { option: "nofile", label: "Max open files", value: (limits: Limits) => limits.openFiles },
  { option: "core", label: "Max core file size", value: () => 0 },
] as const;

/** Where the limit on processes is set: on the whole, and again inside, where the kernel counts anew. */
export interface ProcessLimits {
  readonly outside: number;
  readonly inside: number | undefined;
}

/** How many full workspaces of one user there is room for when the kernel also counts inside. */
const workspacesOfOneUser = 16;

/**
 * The kernel counts processes per user, so what `uid` runs already comes on top, and workspaces of one user share what is
 * left. Since Linux 5.14 it counts per user namespace as well: there each workspace has its own limit inside. A slot's
 * user (`uid` is `undefined`) runs nothing else and needs neither.
 */
export async function processLimits(processes: number, uid: number | undefined): Promise<ProcessLimits> {
  if (uid === undefined) return { outside: processes, inside: undefined };
  const threads = await countThreads(uid);
  if (!countsPerNamespace(release())) return { outside: threads + processes, inside: undefined };
  return { outside: threads + processes * workspacesOfOneUser, inside: processes };
}

function countsPerNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split(/[.-]/).map(Number);
  return major > 5 || (major === 5 && minor >= 14);
}

/** Arguments for `prlimit`. None is above the gateway's own hard limit, because only root may raise that. */
export async function prlimitOptions(limits: Limits): Promise<string[]> {
  const own = await readFile("/proc/self/limits", "utf8");
  return resources.map(({ option, label, value }) => `--${option}=${Math.min(value(limits), hardLimit(own, label))}`);
}

/** The third column of `/proc/self/limits`; `unlimited` is infinity. */
function hardLimit(table: string, label: string): number {
  const row = table.split("\n").find((line) => line.startsWith(`${label} `)) ?? "";
  const hard = row.slice(label.length).trim().split(/\s+/)[1];
  return hard === undefined || hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard);
}

async function countThreads(uid: number): Promise<number> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const counts = await Promise.all(pids.map((pid) => threadsOf(pid, uid)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function threadsOf(pid: string, uid: number): Promise<number> {
  // A process that has ended since it was listed has no threads.
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const owner = /^Uid:\t(\d+)/m.exec(status)?.[1];
  return Number(owner) === uid ? Number(/^Threads:\t(\d+)/m.exec(status)?.[1] ?? 0) : 0;
}
