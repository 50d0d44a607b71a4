import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Debian package that brings each program from outside npm. */
const packages = {
  bwrap: "bubblewrap",
  gh: "gh",
  strace: "strace",
  python3: "python3",
  setpriv: "util-linux",
  postgres: "postgresql",
} as const;

const debianFolder = "/usr/lib/postgresql";

type Program = keyof typeof packages;

/**
 * For a test's `skip` option: `false` when all programs are there, else the reason. Under CI=true a missing program is a
 * failure, because there `.ci/run` has installed it.
 */
export function missing(...programs: Program[]): string | false {
  const absent = programs.filter((program) => !isThere(program));
  if (absent.length === 0) return false;
  const reason = `needs ${absent.join(", ")}: apt-get install ${absent.map((program) => packages[program]).join(" ")}`;
  if (process.env.CI === "true") throw new Error(reason);
  return reason;
}

function isThere(program: Program): boolean {
  // The tests watch its processes in /proc.
  if (program === "postgres") return process.platform === "linux" && postgresFolder() !== undefined;
  return spawnSync(program, ["--version"]).error === undefined;
}

/** Folder of PostgreSQL's server programs: Debian keeps them out of PATH, one folder for each version. The newest wins. */
export function postgresFolder(): string | undefined {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : [];
  const newestFirst = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(debianFolder, version, "bin"));
  const folders = [...newestFirst, ...(process.env.PATH ?? "").split(delimiter)];
  // The folder of a version may hold the client's programs alone.
  return folders.find((folder) => ["initdb", "postgres"].every((program) => existsSync(join(folder, program))));
}
