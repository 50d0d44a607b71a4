import { createBubblewrap } from "../../src/sandbox/bubblewrap.ts";

/**
 * A gateway to kill: opens a workspace with a process in the background, prints what it found inside, and then waits.
 * Started by `end.test.ts`.
 */
const workspace = await createBubblewrap().open({ env: {}, signal: new AbortController().signal });
const look = "sleep 600 & readlink /proc/self/ns/pid; cd /proc/self/fd; echo [3-9]* [1-9][0-9]*";
const { output } = await workspace.exec(look, { timeoutMs: 5000, maxOutputBytes: 1000 });
process.stdout.write(`${JSON.stringify(output.trim().split("\n"))}\n`);
await workspace.exec("sleep 600", { timeoutMs: 60_000, maxOutputBytes: 1000 });
