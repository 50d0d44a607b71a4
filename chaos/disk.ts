import { execFileSync, spawn, spawnSync } from "node:child_process";
import { closeSync, cpSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** A small file system of its own. */
export interface Disk {
  /** Takes all space that is left, and what becomes free until `free`. */
  fill(): void;
  free(): void;
  /** Its files are gone with it, unless they are to be kept in the folder that it was mounted on. */
  unmount(keepFiles: boolean): void;
}

const megabyte = Buffer.alloc(1_048_576);
const refillMs = 50;

export function mountDisk(folder: string, bytes: number): Disk {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=0700`, "postern-chaos", folder]);
  const ballast = join(folder, "ballast");
  let refill: NodeJS.Timeout | undefined;
  const free = () => {
    clearInterval(refill);
    rmSync(ballast, { force: true });
  };
  return {
    free,
    fill() {
      takeSpace(ballast);
      refill = setInterval(() => takeSpace(ballast), refillMs);
    },
    unmount(keepFiles) {
      free();
      if (keepFiles) cpSync(folder, `${folder}.kept`, { recursive: true });
      execFileSync("umount", [folder]);
      if (!keepFiles) return;
      rmSync(folder, { recursive: true });
      renameSync(`${folder}.kept`, folder);
    },
  };
}

function takeSpace(path: string): void {
  const file = openSync(path, "a");
  try {
    // A write takes what there is; the next one fails.
    for (;;) writeSync(file, megabyte);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(file);
  }
}

const mark = "POSTERN_CHAOS_MAY_MOUNT";

/**
 * Goes on in a process that may mount: in a mount namespace of its own, so that no mount is seen elsewhere or outlives the
 * harness. Answers whether this process is that one, or cannot be; else the exit code of the other.
 */
export async function inOwnNamespace(): Promise<"here" | "impossible" | number> {
  if (process.env[mark] === "1") {
    // Whoever started this process may be killed; then nobody waits for it any more.
    process.on("disconnect", () => process.exit(130));
    process.channel?.unref();
    return "here";
  }
  const flags = process.getuid?.() === 0 ? ["--mount"] : ["--mount", "--map-root-user"];
  const probe = "mount -t tmpfs -o size=65536 postern-chaos /mnt";
  if (spawnSync("unshare", [...flags, "sh", "-c", probe], { stdio: "ignore" }).status !== 0) return "impossible";
  const argv = [...flags, process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const stdio = ["inherit", "inherit", "inherit", "ipc"] as const;
  const child = spawn("unshare", argv, { stdio: [...stdio], env: { ...process.env, [mark]: "1" } });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.on("error", reject);
  child.on("exit", (code) => resolve(code ?? 1));
  return promise;
}
