// Runs the test files: all of them, or those under the folders and files given as arguments.
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";

const wanted = process.argv.slice(2);
const files = globSync("test/**/*.test.ts")
  .filter((file) => wanted.length === 0 || wanted.some((prefix) => file.startsWith(prefix.replace(/^\.\//, ""))))
  .sort();
// `node --test` with nothing to run succeeds, which would hide a mistake here.
if (files.length === 0) {
  console.error(`No test file matches ${wanted.join(", ") || "test/**/*.test.ts"}`);
  process.exit(1);
}
// Many tests wait for processes and servers of theirs: two files at once are done sooner even on two cores, where one is
// what Node would choose.
const atOnce = Math.max(2, availableParallelism() - 1);
const options = ["--test", "--test-timeout=300000", `--test-concurrency=${atOnce}`];
const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: "inherit" });
process.exit(status ?? 1);
