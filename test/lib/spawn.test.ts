import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { type Finished, type Program, plainEnvironment, run } from "../../src/lib/spawn.ts";
import { missing } from "../needs.ts";
import { until } from "../tools/wait.ts";

const env = { PATH: process.env.PATH ?? "" };

function shell(script: string, options: Partial<Program> = {}): Promise<Finished> {
  return run({ argv: ["bash", "--norc", "-c", script], env, timeoutMs: 20_000, maxOutputBytes: 1_000_000, ...options });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The process ids that a script printed, one a line. */
function pidsIn({ stdout }: Finished): number[] {
  return stdout.toString().trim().split("\n").map(Number);
}

async function assertGone(finished: Finished): Promise<void> {
  const pids = pidsIn(finished);
  assert.ok(pids.length > 0 && pids.every((pid) => pid > 1), `${finished.stdout}`);
  // A killed orphan stays in the table until whoever adopts it has looked.
  await until("the end of the processes", () => pids.every((pid) => !isAlive(pid) || isZombie(pid)));
}

function isZombie(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

describe("a program", () => {
  test("gets its input, and its outputs and exit code come back", async () => {
    const finished = await shell("cat; echo trouble >&2; exit 3", { stdin: "Zürich\n" });
    const { end, exitCode, stdout, stderr } = finished;
    assert.deepEqual([end, exitCode, stdout.toString(), stderr.toString()], ["exited", 3, "Zürich\n", "trouble\n"]);
  });

  test("inherits nothing of the environment", async () => {
    process.env.SPAWN_TEST_MARKER = "hush";
    const { stdout } = await run({
      argv: ["env"],
      env: { ...env, ONE: "1" },
      timeoutMs: 20_000,
      maxOutputBytes: 10_000,
    });
    delete process.env.SPAWN_TEST_MARKER;
    assert.deepEqual(stdout.toString().trim().split("\n").sort(), ["ONE=1", `PATH=${env.PATH}`]);
  });

  test("gets its arguments as they are: no shell is between", async () => {
    const words = ["a b", "$HOME", "`id`", '"', "'", ";ls", "*", ""];
    const { stdout } = await run({ argv: ["printf", "%s|", ...words], env, timeoutMs: 20_000, maxOutputBytes: 10_000 });
    assert.equal(stdout.toString(), words.map((word) => `${word}|`).join(""));
  });

  test("works in its folder", async () => {
    assert.equal((await shell("pwd", { cwd: "/" })).stdout.toString(), "/\n");
  });

  test("that a signal ended has no exit code", async () => {
    const { end, exitCode } = await shell("kill -9 $$");
    assert.deepEqual([end, exitCode], ["exited", null]);
  });

  const unstartable: [what: string, program: Partial<Program>, code: string][] = [
    ["is not there", { argv: ["no-such-program-anywhere"] }, "ENOENT"],
    ["is no program", { argv: ["/etc/passwd"] }, "EACCES"],
    ["has a folder that is not there", { cwd: "/no/such/folder" }, "ENOENT"],
    ["gets more than fits", { argv: ["true", "x".repeat(4_000_000)] }, "E2BIG"],
    ["gets a NUL", { argv: ["true", "a\0b"] }, "ERR_INVALID_ARG_VALUE"],
  ];
  for (const [what, program, code] of unstartable) {
    test(`that ${what} is missing, with the reason (${code})`, async () => {
      const { end, errorCode, exitCode } = await shell("true", program);
      assert.deepEqual([end, errorCode, exitCode], ["missing", code, null]);
    });
  }

  test("that does not read its input is no error", async () => {
    const { end, exitCode } = await shell("exec 0<&-; exit 0", { stdin: Buffer.alloc(10_000_000) });
    assert.deepEqual([end, exitCode], ["exited", 0]);
  });

  test("gets a long input whole while it prints a long output", async () => {
    const { stdout } = await shell("cat", { stdin: Buffer.alloc(5_000_000, "x"), maxOutputBytes: 6_000_000 });
    assert.equal(stdout.length, 5_000_000);
  });

  for (const [name, redirect] of [
    ["stdout", ""],
    ["stderr", " >&2"],
  ] as const) {
    test(`that prints too much on ${name} is ended, and what it printed is cut`, async () => {
      const finished = await shell(`yes${redirect}`, { maxOutputBytes: 10_000 });
      assert.deepEqual([finished.end, finished[name].length], ["overflow", 10_000]);
    });
  }

  test("that prints exactly as much as it may is not ended", async () => {
    const { end, stdout } = await shell("head -c 10000 /dev/zero", { maxOutputBytes: 10_000 });
    assert.deepEqual([end, stdout.length], ["exited", 10_000]);
  });
});

describe("a program that takes too long", () => {
  test("is killed with all that it has started, and what it printed until then is there", async () => {
    const finished = await shell("sleep 1000 & echo $!; (sleep 1001 & echo $!; wait) & echo $!; wait", {
      timeoutMs: 300,
    });
    assert.equal(finished.end, "timeout");
    assert.equal(finished.exitCode, null);
    await assertGone(finished);
  });

  test("is asked to end first, where it has time for that", async () => {
    const script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    const { end, exitCode, stdout } = await shell(script, { timeoutMs: 300, graceMs: 10_000 });
    assert.deepEqual([end, exitCode, stdout.toString()], ["timeout", 7, "ready\nbye\n"]);
  });

  test("and does not want to end is killed after its time of grace", async () => {
    const startedAt = performance.now();
    const finished = await shell("trap '' TERM; echo $$; while :; do sleep 0.01; done", {
      timeoutMs: 300,
      graceMs: 200,
    });
    assert.equal(finished.end, "timeout");
    assert.ok(performance.now() - startedAt < 5_000);
    await assertGone(finished);
  });
});

describe("a program that is stopped", () => {
  test("is killed with all that it has started", async () => {
    const controller = new AbortController();
    const running = shell("sleep 1000 & echo $!; echo $$; wait", { signal: controller.signal });
    setTimeout(() => controller.abort(), 200);
    const finished = await running;
    assert.equal(finished.end, "aborted");
    await assertGone(finished);
  });

  test("before it was started ends at once", async () => {
    const { end } = await shell("sleep 1000", { signal: AbortSignal.abort() });
    assert.equal(end, "aborted");
  });

  test("after its end counts as ended by itself, and listens no more", async () => {
    const controller = new AbortController();
    const { end } = await shell("true", { signal: controller.signal });
    controller.abort();
    assert.equal(end, "exited");
  });
});

describe("what a program leaves behind", () => {
  test("in its group is killed when the program ends, even if it holds the outputs open", async () => {
    const startedAt = performance.now();
    const finished = await shell("sleep 1000 & echo $!");
    assert.equal(finished.end, "exited");
    assert.ok(performance.now() - startedAt < 10_000);
    await assertGone(finished);
  });

  test("in a session of its own does not keep the caller waiting", { skip: missing("setpriv") }, async (t) => {
    const startedAt = performance.now();
    const finished = await shell("setsid bash --norc -c 'echo $$; exec sleep 30' & sleep 0.3; exit 5");
    const [survivor] = pidsIn(finished);
    assert.ok(survivor && isAlive(survivor), `${finished.stdout}`);
    t.after(() => {
      if (isAlive(survivor)) process.kill(survivor, "SIGKILL");
    });
    assert.deepEqual([finished.end, finished.exitCode], ["exited", 5]);
    assert.ok(performance.now() - startedAt < 10_000);
  });
});

test("a run without a program is a mistake of the caller", () => {
  assert.throws(() => run({ argv: [], env, timeoutMs: 1, maxOutputBytes: 1 }), TypeError);
});

test("the plain environment is PATH without the package manager's folders, HOME, LANG and TZ", () => {
  const PATH = "/a/node_modules/.bin:/usr/bin:/x/node-gyp-bin:/bin:/b/node_modules/.bin";
  const full = { PATH, HOME: "/h", LANG: "C", TZ: "UTC", TOKEN: "hush", LD_PRELOAD: "x", NODE_OPTIONS: "y" };
  assert.deepEqual(plainEnvironment(full), { PATH: "/usr/bin:/bin", HOME: "/h", LANG: "C", TZ: "UTC" });
  assert.deepEqual(plainEnvironment({}), { PATH: "/usr/local/bin:/usr/bin:/bin" });
});
