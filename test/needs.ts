import { spawnSync } from "node:child_process";

/** Debian package that brings each program from outside npm. */
const packages = {
  bwrap: "bubblewrap",
  gh: "gh",
  strace: "strace",
  python3: "python3",
  setpriv: "util-linux",
} as const;

/**
 * For a test's `skip` option: `false` when all programs are there, else the reason. Under CI=true a missing program is a
 * failure, because there `.ci/run` has installed it.
 */
export function missing(...programs: (keyof typeof packages)[]): string | false {
  const absent = programs.filter((program) => spawnSync(program, ["--version"]).error !== undefined);
  if (absent.length === 0) return false;
  const reason = `needs ${absent.join(", ")}: apt-get install ${absent.map((program) => packages[program]).join(" ")}`;
  if (process.env.CI === "true") throw new Error(reason);
  return reason;
}
