import { accessSync, constants, lstatSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Limits } from "./limits.ts";
import { supervisor } from "./supervisor.ts";

/** Where the programs of the sandbox are on this machine. */
export interface Programs {
  readonly bwrap: string;
  readonly prlimit: string;
  /** Needed only to give up being root. */
  readonly setpriv: string | undefined;
}

/** Debian package of each program. */
const packages = { bwrap: "bubblewrap", prlimit: "util-linux", setpriv: "util-linux" } as const;

/** Finds the programs on a PATH. Throws, with the way to mend it, when one is not there. */
export function findPrograms(path: string, root: boolean): Programs {
  return {
    bwrap: find("bwrap", path),
    prlimit: find("prlimit", path),
    setpriv: root ? find("setpriv", path) : undefined,
  };
}

function find(name: keyof typeof packages, path: string): string {
  for (const folder of path.split(":").filter((entry) => entry.startsWith("/"))) {
    const file = join(folder, name);
    if (isExecutable(file)) return file;
  }
  const program = name === "bwrap" ? packages.bwrap : `the program ${name}`;
  const local = "set terminal.backend: local to run without isolation";
  throw new Error(`${program} is not installed; install it with "apt-get install ${packages[name]}" (or ${local})`);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * Descriptors of the outermost program. bubblewrap reads the filter and two files for `/etc` to their end before it starts
 * anything, and writes about its first process to `info`.
 */
export const descriptor = { stdin: 0, stdout: 1, stderr: 2, seccomp: 3, passwd: 4, group: 5, info: 6 } as const;

/** What is written to `descriptor.passwd` and `descriptor.group`, so that `id` and `ls -l` have names to print. */
export const accounts = {
  passwd: "agent:x:1000:1000:agent:/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
  group: "agent:x:1000:\nnogroup:x:65534:\n",
} as const;

export interface Launch {
  readonly programs: Programs;
  /** User of the host to run as; `undefined` when we are an ordinary user already. */
  readonly uid: number | undefined;
  /** Arguments of the outer prlimit. */
  readonly prlimit: readonly string[];
  readonly limits: Limits;
  /** Limit on processes to be set once more inside, see `processLimits`. */
  readonly processesInside: number | undefined;
}

/**
 * The whole command line, outermost program first. The order is part of the profile: as root, bubblewrap alone is no
 * sandbox (`/proc/sys/kernel/core_pattern` stays writable), so root is given up first; limits must be set before
 * bubblewrap takes the right to do so away.
 */
export function commandLine({ programs, uid, prlimit, limits, processesInside }: Launch): string[] {
  const user = ["--reuid", String(uid), "--regid", String(uid), "--clear-groups", "--no-new-privs"];
  return [
    ...(programs.setpriv && uid !== undefined ? [programs.setpriv, ...user] : []),
    ...[programs.prlimit, ...prlimit],
    ...[programs.bwrap, ...isolation, ...fileSystem(limits), ...environment],
    ...(processesInside === undefined ? [] : ["prlimit", `--nproc=${processesInside}`]),
    ...["bash", "--norc", "--noprofile", "-c", supervisor],
  ];
}

const isolation = [
  ...["--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"],
  ...["--cap-drop", "ALL", "--disable-userns", "--die-with-parent", "--new-session"],
  ...["--seccomp", String(descriptor.seccomp), "--info-fd", String(descriptor.info)],
];

/** Variables of the run are not here, because argv is public: they go to the supervisor through its standard input. */
const environment = [
  "--clearenv",
  ...["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"],
  ...["--setenv", "HOME", "/workspace"],
  ...["--setenv", "LANG", "C.UTF-8"],
  ...["--setenv", "TERM", "dumb"],
];

/**
 * `/` and `/dev` are memory without a limit of their own, so they become read-only at the end; what may be written to are
 * file systems with a size. `/etc/alternatives` is where Debian's awk and others lead, `ld.so.cache` where libraries are.
 */
function fileSystem(limits: Limits): string[] {
  return [
    ...["--ro-bind", "/usr", "/usr", ...["bin", "sbin", "lib", "lib32", "lib64", "libx32"].flatMap(besideUsr)],
    ...[
      "--perms",
      "0755",
      "--dir",
      "/etc",
      "--ro-bind-try",
      "/etc/alternatives",
      "/etc/alternatives",
      "--ro-bind-try",
      "/etc/ld.so.cache",
      "/etc/ld.so.cache",
    ],
    ...["--perms", "0644", "--file", String(descriptor.passwd), "/etc/passwd"],
    ...["--perms", "0644", "--file", String(descriptor.group), "/etc/group"],
    ...["--proc", "/proc", "--dev", "/dev"],
    ...["--size", String(limits.tmpBytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ...["--perms", "1777", "--size", String(limits.tmpBytes), "--tmpfs", "/tmp"],
    ...["--size", String(limits.workspaceBytes), "--tmpfs", "/workspace"],
    ...["--remount-ro", "/", "--chdir", "/workspace"],
  ];
}

/** `/bin` and the like as they are on this machine: a link into `/usr`, a folder of its own, or absent. */
function besideUsr(name: string): string[] {
  const path = `/${name}`;
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) return ["--symlink", readlinkSync(path), path];
  return found?.isDirectory() ? ["--ro-bind", path, path] : [];
}
