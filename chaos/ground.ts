import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of a run of the harness. It goes with what runs in it when this process ends, even by SIGKILL. */
export interface Ground {
  readonly folder: string;
  /** The folder stays, for somebody to look into. */
  keep(): void;
  /** Ends what runs in the folder, and removes it unless it is to stay. */
  clear(): Promise<void>;
}

export function takeGround(): Ground {
  // Paths of socket files, which are in it, may have 107 characters.
  const parent = tmpdir().length > 40 ? "/tmp" : tmpdir();
  const folder = realpathSync(mkdtempSync(join(parent, "postern-chaos-")));
  const script = fileURLToPath(new URL("guard.sh", import.meta.url));
  // In a session of its own, else Ctrl-C in a terminal ends it together with this process.
  const guard = spawn("sh", [script, folder], { cwd: "/", detached: true, stdio: ["pipe", "ignore", "ignore"] });
  guard.unref();
  return {
    folder,
    keep: () => writeFileSync(join(folder, "kept"), ""),
    async clear() {
      guard.ref();
      guard.stdin.end();
      if (guard.exitCode === null) await once(guard, "exit");
    },
  };
}
