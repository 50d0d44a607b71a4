import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { killGroup, plainEnvironment } from "../lib/spawn.ts";
import { defaultLimits, type Limits, prlimitOptions, processLimits } from "./limits.ts";
import { probe } from "./probe.ts";
import { accounts, commandLine, descriptor, findPrograms } from "./profile.ts";
import type { Sandbox, Workspace, WorkspaceOptions } from "./sandbox.ts";
import { isKnownArchitecture, seccompFilter } from "./seccomp.ts";
import { openShell, type ShellHost } from "./shell.ts";
import { claimSlot } from "./slot.ts";

export interface BubblewrapOptions {
  /** Where bwrap, prlimit and setpriv are looked for; the gateway's own PATH when absent. */
  readonly path?: string;
  /** What differs from `defaultLimits`. */
  readonly limits?: Partial<Limits>;
}

/**
 * Runs commands in bubblewrap (Linux): no network, no file of the host but `/usr` read-only, no privilege, memory and
 * processes limited. One bubblewrap per workspace; its files are in memory and go with it.
 */
export function createBubblewrap(options: BubblewrapOptions = {}): Sandbox {
  const open = (workspace: WorkspaceOptions) => openSandbox(options, workspace);
  return { name: "sandbox", open, blocked: () => whyBlocked(open) };
}

/** `terminal.backend: sandbox`. */
export const sandbox: Sandbox = createBubblewrap();

async function openSandbox(options: BubblewrapOptions, workspace: WorkspaceOptions): Promise<Workspace> {
  const filter = compileFilter();
  const path = options.path ?? plainEnvironment(process.env).PATH ?? "";
  const limits = { ...defaultLimits, ...options.limits };
  const uid = process.getuid?.();
  const programs = findPrograms(path, uid === 0);
  const slot = uid === 0 ? await claimSlot() : undefined;
  const release = () => slot?.release();
  try {
    const { outside, inside: processesInside } = await processLimits(limits.processes, slot ? undefined : uid);
    const prlimit = await prlimitOptions({ ...limits, processes: outside });
    const argv = commandLine({ programs, uid: slot?.uid, prlimit, limits, processesInside });
    return await openShell(host(argv, filter, release), workspace);
  } catch (error) {
    release();
    throw error;
  }
}

function compileFilter(): Buffer {
  if (process.platform === "linux" && isKnownArchitecture(process.arch)) return seccompFilter(process.arch);
  const machine = `${process.platform} ${process.arch}`;
  throw new Error(`the sandbox needs Linux on x64 or arm64, not ${machine}; set terminal.backend to another one`);
}

function host([file = "", ...args]: string[], filter: Buffer, release: () => void): ShellHost {
  let info = "";
  const start = () => {
    const child = spawn(file, args, {
      // bwrap's own environment can be read inside, in /proc/1/environ.
      env: { PATH: "/usr/bin:/bin" },
      cwd: "/",
      detached: true,
      stdio: Array.from(Object.values(descriptor), () => "pipe"),
    });
    if (child.pid === undefined) return child;
    // bwrap waits for the filter before it forks, so everything in the sandbox inherits this.
    preferOutOfMemory(child.pid);
    const stream = (index: number) => child.stdio[index as 3] as Duplex;
    stream(descriptor.passwd).end(accounts.passwd);
    stream(descriptor.group).end(accounts.group);
    stream(descriptor.seccomp).end(filter);
    stream(descriptor.info).on("data", (chunk) => {
      info += chunk;
    });
    return child;
  };
  return { start, end: (child) => endNamespace(child, info), cleanUp: async () => release() };
}

/**
 * Kills the first process of the sandbox. The kernel then ends all others and bwrap, its parent, reaps it and exits: so
 * bwrap's exit means that nothing is left, not even a zombie for an init that may not reap. When the process is not known
 * yet, bwrap itself is killed, which takes the sandbox with it.
 */
function endNamespace(child: ChildProcess, info: string): void {
  const first = Number(/"child-pid": (\d+)/.exec(info)?.[1]);
  if (first > 1 && parentOf(first) === child.pid) process.kill(first, "SIGKILL");
  else killGroup(child.pid, "SIGKILL");
}

/** `undefined` when there is no such process. As long as we have not seen bwrap exit, its id cannot be somebody else's. */
function parentOf(pid: number): number | undefined {
  const status = readText(`/proc/${pid}/status`);
  return status === undefined ? undefined : Number(/^PPid:\t(\d+)/m.exec(status)?.[1]);
}

/** When memory runs out the kernel ends the sandbox first, not the gateway. */
function preferOutOfMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, "1000");
  } catch {
    // It has ended already (its exit says why), or this kernel does not let us: the limits hold without it.
  }
}

async function whyBlocked(open: Sandbox["open"]): Promise<string | undefined> {
  const problem = await probe(open);
  return problem === undefined ? undefined : explain(problem);
}

/** Settings that keep user namespaces, on which everything here rests, from unprivileged users. */
const switches = [
  { file: "user/max_user_namespaces", off: "0", mend: "user.max_user_namespaces=15000" },
  { file: "kernel/unprivileged_userns_clone", off: "0", mend: "kernel.unprivileged_userns_clone=1" },
  {
    file: "kernel/apparmor_restrict_unprivileged_userns",
    off: "1",
    mend: "kernel.apparmor_restrict_unprivileged_userns=0",
  },
] as const;

/** Adds to what went wrong how to mend it, when it looks as if user namespaces are not allowed. For `blocked` and its test. */
export function explain(problem: string, settings = "/proc/sys"): string {
  if (!/bwrap: .*(namespace|uid map|loopback|not permitted|permission|denied|no space)/i.test(problem)) return problem;
  const found = switches.find(({ file, off }) => readText(join(settings, file))?.trim() === off);
  const mend = found
    ? `allow user namespaces with "sysctl -w ${found.mend}"`
    : "in a container, allow user namespaces (Docker: --security-opt seccomp=unconfined)";
  return `${problem}; ${mend} (or set terminal.backend: local to run without isolation)`;
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
