import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { local } from "../../src/sandbox/local.ts";
import { refusedCalls } from "../../src/sandbox/seccomp.ts";
import { missing } from "../needs.ts";
import { exec, mebibyte, sandbox } from "./workspaces.ts";

suite("what the kernel refuses a command in bubblewrap", {
  skip: missing("bwrap", "setpriv", "strace", "python3"),
}, () => {
  const refusals = `import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in sys.argv[1:]:
    result = libc.syscall(int(number), -1, -1, -1, -1, -1, -1)
    print(number, result, ctypes.get_errno())`;
  const python = (code: string, ...args: (number | string)[]) => `/usr/bin/python3 -c '${code}' ${args.join(" ")}`;

  test("every call of the filter's table", async () => {
    const calls = refusedCalls(process.arch === "arm64" ? "arm64" : "x64");
    const { output } = await exec(sandbox, python(refusals, ...calls));
    assert.deepEqual(
      output.trim().split("\n"),
      calls.map((call) => `${call} -1 1`),
    );
  });

  test("clone3, so that libraries fall back to a call that can be judged", async () => {
    assert.equal((await exec(sandbox, python(refusals, 435))).output, "435 -1 38\n");
    assert.notEqual((await exec(local, python(refusals, 435))).output, "435 -1 38\n");
  });

  test("to trace a process, which a local command can", async () => {
    const attack = "strace -o /dev/null true";
    assert.equal((await exec(local, attack)).exitCode, 0);
    assert.match((await exec(sandbox, attack)).output, /Operation not permitted/);
  });

  test("the x32 ABI, by ending the process", { skip: process.arch !== "x64" }, async () => {
    const badCall = 128 + 31;
    assert.equal((await exec(sandbox, python(refusals, 0x4000_0027))).exitCode, badCall);
    assert.equal((await exec(local, python(refusals, 0x4000_0027))).exitCode, 0);
  });

  test("more memory than its address space, which a local command gets", async () => {
    const attack = python("x = bytearray(700 * 1024 * 1024); print(len(x))");
    assert.equal((await exec(local, attack)).output, `${700 * mebibyte}\n`);
    assert.match((await exec(sandbox, attack)).output, /MemoryError/);
  });

  test("more processes than its limit, which a local command gets", async () => {
    const attack = python(
      `import os, signal
children = []
try:
    for _ in range(200):
        child = os.fork()
        if child == 0: signal.pause()
        children.append(child)
except OSError: pass
print(len(children))
for child in children: os.kill(child, signal.SIGKILL)`.replaceAll("'", ""),
    );
    assert.equal((await exec(local, attack)).output, "200\n");
    const { output } = await exec(sandbox, attack);
    assert.ok(Number(output) > 10 && Number(output) < 64, output);
  });
});
