import { spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Environment } from "../core/types.ts";
import { plainEnvironment } from "../lib/spawn.ts";
import { probe } from "./probe.ts";
import type { Sandbox, Workspace, WorkspaceOptions } from "./sandbox.ts";
import { openShell } from "./shell.ts";
import { supervisor } from "./supervisor.ts";

export interface LocalOptions {
  /** Where PATH, LANG and TZ of the commands come from; the gateway's own when absent. */
  readonly env?: Environment;
}

/**
 * Runs commands on the host as the gateway's own user, in a temporary folder. No isolation: a command reads and changes
 * whatever the gateway could. Needs bash 4.1 or newer. What a command starts in a session of its own (`setsid`) outlives
 * the workspace.
 */
export function createLocal(options: LocalOptions = {}): Sandbox {
  const open = (workspace: WorkspaceOptions) => openFolder(options.env ?? process.env, workspace);
  return { name: "local", open, blocked: () => whyBlocked(open) };
}

/** `terminal.backend: local`. */
export const local: Sandbox = createLocal();

async function openFolder(env: Environment, options: WorkspaceOptions): Promise<Workspace> {
  const folder = await mkdtemp(join(tmpdir(), "postern-local-"));
  const home = join(folder, "workspace");
  const temporary = join(folder, "tmp");
  await mkdir(home);
  await mkdir(temporary);
  const variables = { LANG: "C.UTF-8", ...plainEnvironment(env), HOME: home, TMPDIR: temporary, TERM: "dumb" };
  const start = () =>
    spawn("bash", ["--norc", "--noprofile", "-c", supervisor], { cwd: home, env: variables, detached: true });
  const cleanUp = async (pid: number | undefined) => {
    if (pid !== undefined) await endSession(pid);
    await removeFolder(folder);
  };
  return openShell({ start, end: () => {}, cleanUp }, options);
}

async function whyBlocked(open: Sandbox["open"]): Promise<string | undefined> {
  const problem = await probe(open);
  return problem === undefined ? undefined : `cannot run commands here (${problem}); install bash 4.1 or newer`;
}

/**
 * Ends every process of the session that `leader` opened. By session, because each command has a process group of its own;
 * in rounds, because a process can fork while its neighbours are being ended.
 */
async function endSession(leader: number): Promise<void> {
  for (let pids = await membersOf(leader); pids.length > 0; pids = await membersOf(leader)) {
    for (const pid of pids) kill(pid);
    await setImmediate();
  }
}

async function membersOf(session: number): Promise<number[]> {
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const living = await Promise.all(pids.map(async (pid) => (await sessionOf(pid)) === session));
  return pids.filter((_, index) => living[index]).map(Number);
}

/** From `/proc/<pid>/stat` (proc(5)); `undefined` for a process that has ended. */
async function sessionOf(pid: string): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The program's name comes before, in parentheses, and may hold anything.
  const [state, , , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return state === "Z" || state === "X" ? undefined : Number(session);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself since it was listed.
  }
}

/** A command may have taken the permission to list or change a folder away, which stops only unprivileged users. */
async function removeFolder(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await unlock(folder);
    await rm(folder, { recursive: true, force: true });
  }
}

async function unlock(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await unlock(join(folder, entry.name));
  }
}
