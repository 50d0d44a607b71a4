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
// Node's time limit is one of tests: a file whose tests are done and that holds a process or a socket open waits for ever.
// Told to end, the runner names that file as failed.
const timeLimitMs = 30 * 60_000;
const { status, error } = spawnSync(process.execPath, [...options, ...files], {
  stdio: "inherit",
  timeout: timeLimitMs,
  killSignal: "SIGTERM",
});
if (error)
  console.error(
    `The tests were ended: ${error.message}. A file under "Interrupted while running" did not end by itself.`,
  );
process.exit(status || (error ? 1 : 0));
