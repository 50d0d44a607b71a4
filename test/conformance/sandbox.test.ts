import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { suite, type TestContext, test } from "node:test";
import * as sandboxes from "../../src/sandbox/registry.ts";
import type { ExecOptions, ExecResult, Sandbox, Workspace } from "../../src/sandbox/sandbox.ts";
import { missing } from "../needs.ts";
import { processesWith, until } from "../sandbox/processes.ts";

const secret = `secret-${randomUUID()}`;
process.env.POSTERN_TEST_SECRET = secret;

const skip: Record<string, string | false> = { sandbox: missing("bwrap", "setpriv") };

for (const [name, sandbox] of Object.entries(sandboxes)) {
  suite(`sandbox backend "${name}"`, { skip: skip[name] ?? false }, () => {
    keepsItsName(name, sandbox);
    runsCommands(sandbox);
    sharesItsFolder(sandbox);
    passesOnlyGivenVariables(sandbox);
    limitsCommands(sandbox);
    handlesBackgroundProcesses(sandbox);
    closes(sandbox);
    surviveItsOwnEnd(sandbox);
  });
}

function keepsItsName(name: string, sandbox: Sandbox) {
  test("is registered under its name and can be used here", async () => {
    assert.equal(sandbox.name, name);
    assert.equal(await sandbox.blocked(), undefined);
  });
}

function runsCommands(sandbox: Sandbox) {
  const table: [string, string, Pick<ExecResult, "exitCode" | "output">][] = [
    ["output and status", "echo hello; exit 7", { exitCode: 7, output: "hello\n" }],
    ["no output", ":", { exitCode: 0, output: "" }],
    ["no command", "", { exitCode: 0, output: "" }],
    ["no last line feed", "printf x", { exitCode: 0, output: "x" }],
    ["both streams in order", "echo 1; echo 2 >&2; echo 3; echo 4 >&2", { exitCode: 0, output: "1\n2\n3\n4\n" }],
    ["streams opened by name", "echo 1 >/dev/stderr; echo 2 >/dev/stdout", { exitCode: 0, output: "1\n2\n" }],
    ["quotes", `echo 'a"b' "c'd" \\$HOME \\\`x\\\``, { exitCode: 0, output: "a\"b c'd $HOME `x`\n" }],
    ["several lines", "cat <<'X'\na $b\nX\necho c # d", { exitCode: 0, output: "a $b\nc\n" }],
    ["unicode", "echo 'žluťoučký 🐎'", { exitCode: 0, output: "žluťoučký 🐎\n" }],
    ["invalid UTF-8", "printf 'a\\xffb'", { exitCode: 0, output: "a\ufffdb" }],
    ["NUL in the output", "printf 'a\\0b'", { exitCode: 0, output: "a\0b" }],
    ["control characters", "printf %s '\u0001\u001b\r\t'", { exitCode: 0, output: "\u0001\u001b\r\t" }],
    ["empty standard input", "cat; read -r x; echo $?", { exitCode: 0, output: "1\n" }],
    ["no arguments", "echo $# $0", { exitCode: 0, output: "0 bash\n" }],
    ["a signal", "kill -TERM $$", { exitCode: 143, output: "" }],
    ["its own SIGKILL", "kill -KILL $$", { exitCode: 137, output: "" }],
    ["SIGINT, not ignored", "kill -INT $$; echo no", { exitCode: 130, output: "" }],
    [
      "only the standard streams",
      "cd /proc/self/fd; echo [3-9]* [1-9][0-9]*",
      { exitCode: 0, output: "3 [1-9][0-9]*\n" },
    ],
  ];
  for (const [what, command, expected] of table) {
    test(`runs a command: ${what}`, () =>
      withWorkspace(sandbox, async (run) => {
        assert.deepEqual(await run(command), { ...expected, truncated: false, timedOut: false });
      }));
  }

  test("reports a command that does not parse as the shell does", () =>
    withWorkspace(sandbox, async (run) => {
      const { exitCode, output } = await run("if (");
      assert.equal(exitCode, 2);
      assert.match(output, /syntax error/);
      assert.equal((await run("echo still here")).output, "still here\n");
    }));

  test("takes a command line of one megabyte", () =>
    withWorkspace(sandbox, async (run) => {
      const { output } = await run(`wc -c <<'X'\n${"é".repeat(512 * 1024)}\nX`);
      assert.equal(output, `${1024 * 1024 + 1}\n`);
    }));

  test("refuses a NUL character in a command and goes on", () =>
    withWorkspace(sandbox, async (run) => {
      assert.equal((await run("echo a\0b")).exitCode, 126);
      assert.equal((await run("echo a")).output, "a\n");
    }));

  test("runs commands that are asked for at once one after the other", () =>
    withWorkspace(sandbox, async (run) => {
      const results = await Promise.all([1, 2, 3].map((n) => run(`echo ${n} >>log; cat log`)));
      assert.deepEqual(
        results.map((result) => result.output),
        ["1\n", "1\n2\n", "1\n2\n3\n"],
      );
    }));
}

function sharesItsFolder(sandbox: Sandbox) {
  test("keeps files between commands and starts each in the workspace folder, which is HOME", () =>
    withWorkspace(sandbox, async (run) => {
      await run("echo content >file; mkdir sub; cd sub");
      assert.equal((await run('cat file; [ "$PWD" = "$HOME" ] && echo home')).output, "content\nhome\n");
      assert.equal((await run("mktemp >/dev/null && echo temporary")).output, "temporary\n");
    }));

  test("gives every workspace an empty folder of its own", () =>
    withWorkspace(sandbox, async (run) => {
      await run("echo mine >file");
      await withWorkspace(sandbox, async (other) => assert.equal((await other("ls -A")).output, ""));
    }));
}

function passesOnlyGivenVariables(sandbox: Sandbox) {
  test("passes the variables it is given, and none of the gateway's", () =>
    withWorkspace(
      sandbox,
      async (run) => {
        assert.equal((await run('printf %s "$GIVEN"')).output, "two\nlines 'and' \"quotes\" ž");
        const names = (await run("env | grep -o '^[A-Z_]*=' | sort")).output.replaceAll("=", "").trim().split("\n");
        const allowed = ["GIVEN", "HOME", "LANG", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "TZ", "_"];
        assert.deepEqual(
          names.filter((variable) => !allowed.includes(variable)),
          [],
        );
        assert.ok(!(await run("env; cat /proc/self/environ /proc/$PPID/environ")).output.includes(secret));
      },
      { GIVEN: "two\nlines 'and' \"quotes\" ž" },
    ));

  test("refuses a variable that no shell can carry", async () => {
    const { signal } = new AbortController();
    await assert.rejects(sandbox.open({ env: { "A B": "x" }, signal }), /"A B" cannot be the name of a variable/);
    await assert.rejects(sandbox.open({ env: { A: "x\0" }, signal }), /NUL/);
  });
}

function limitsCommands(sandbox: Sandbox) {
  test("ends a command at its time limit, with what it started, and takes the next one", () =>
    withWorkspace(sandbox, async (run) => {
      const mark = uniqueSeconds();
      const started = performance.now();
      const result = await run(`echo before; sleep ${mark} & sleep ${mark}; echo after`, { timeoutMs: 300 });
      assert.deepEqual(result, { exitCode: 137, output: "before\n", truncated: false, timedOut: true });
      assert.ok(performance.now() - started < 1300);
      assert.equal((await run("echo next")).output, "next\n");
      await until(() => processesWith(mark).length === 0, "the end of what the command started");
    }));

  test("does not take a command that is stopped for one that has ended", () =>
    withWorkspace(sandbox, async (run) => {
      const result = await run("echo before; kill -STOP $$; echo after", { timeoutMs: 300 });
      assert.deepEqual(result, { exitCode: 137, output: "before\n", truncated: false, timedOut: true });
      assert.equal((await run("echo next")).output, "next\n");
    }));

  test("cuts long output in the middle", () =>
    withWorkspace(sandbox, async (run) => {
      const { output, truncated, exitCode } = await run("seq 1 100000", { maxOutputBytes: 1000 });
      assert.equal(exitCode, 0);
      assert.ok(truncated);
      assert.ok(output.startsWith("1\n2\n3\n"));
      assert.ok(output.endsWith("99999\n100000\n"));
      assert.ok(output.length < 1100);
      assert.equal((await run("printf 0123456789", { maxOutputBytes: 10 })).truncated, false);
    }));

  test("bounds output that never ends", () =>
    withWorkspace(sandbox, async (run) => {
      const before = process.memoryUsage().rss;
      const result = await run("yes", { timeoutMs: 500, maxOutputBytes: 10_000 });
      assert.ok(result.timedOut && result.truncated && result.output.length < 10_100);
      assert.ok(process.memoryUsage().rss - before < 100 * 1024 ** 2);
      assert.equal((await run("echo next")).exitCode, 0);
    }));
}

function handlesBackgroundProcesses(sandbox: Sandbox) {
  test("returns when the command ends, keeps what it left behind running, and ends that at close", async () => {
    const mark = uniqueSeconds();
    await withWorkspace(sandbox, async (run) => {
      const started = performance.now();
      assert.equal((await run(`sleep ${mark} & echo started`)).output, "started\n");
      assert.ok(performance.now() - started < 2000);
      assert.equal((await run("echo next")).output, "next\n");
      assert.equal(processesWith(mark).length, 1);
    });
    assert.deepEqual(processesWith(mark), []);
  });

  test("goes on while something in the background writes without end", () =>
    withWorkspace(sandbox, async (run) => {
      await run("yes & echo started");
      assert.equal((await run("echo next; exit 3")).exitCode, 3);
    }));
}

function closes(sandbox: Sandbox) {
  test("closes twice and takes no command afterwards", async (t) => {
    const workspace = await openFor(t, sandbox);
    await workspace.close();
    await workspace.close();
    await assert.rejects(workspace.exec("true", usual), /the workspace is closed/);
  });

  test("rejects a command that runs when it is closed", async (t) => {
    const workspace = await openFor(t, sandbox);
    const rejected = assert.rejects(workspace.exec("sleep 600", usual), /the workspace is closed/);
    await workspace.close();
    await rejected;
  });

  test("ends everything within two seconds when its signal is aborted", async (t) => {
    const mark = uniqueSeconds();
    const controller = new AbortController();
    const workspace = await sandbox.open({ env: {}, signal: controller.signal });
    t.after(() => workspace.close());
    const rejected = assert.rejects(workspace.exec(`sleep ${mark}`, usual), /aborted/);
    await until(() => processesWith(mark).length > 0, "the command's start");
    const started = performance.now();
    controller.abort();
    await rejected;
    await until(() => processesWith(mark).length === 0, "the command's end");
    await workspace.close();
    assert.ok(performance.now() - started < 2000);
    await assert.rejects(workspace.exec("true", usual), /aborted/);
  });

  test("does not open when its signal is aborted already, or while it opens", async () => {
    await assert.rejects(sandbox.open({ env: {}, signal: AbortSignal.abort() }), /aborted/);
    const controller = new AbortController();
    const opening = assert.rejects(sandbox.open({ env: {}, signal: controller.signal }), /aborted/);
    setImmediate(() => controller.abort());
    await opening;
  });
}

function surviveItsOwnEnd(sandbox: Sandbox) {
  for (const attack of ["kill -KILL $PPID; sleep 600", "kill $PPID; sleep 600"]) {
    test(`answers with an error, not with silence, when a command ends its own supervisor: ${attack}`, async (t) => {
      const workspace = await openFor(t, sandbox);
      const started = performance.now();
      await assert.rejects(workspace.exec(attack, usual), /the workspace ended unexpectedly/);
      await assert.rejects(workspace.exec("true", usual), /the workspace ended unexpectedly/);
      await workspace.close();
      assert.ok(performance.now() - started < 2000);
    });
  }

  test("gives up a workspace in which a command cannot be stopped", async (t) => {
    const workspace = await openFor(t, sandbox);
    const mark = uniqueSeconds();
    const result = await workspace.exec(`echo caught; kill -STOP $PPID; sleep ${mark}`, { ...usual, timeoutMs: 200 });
    assert.deepEqual(result, { exitCode: 137, output: "caught\n", truncated: false, timedOut: true });
    await assert.rejects(workspace.exec("true", usual), /could not be stopped/);
    await workspace.close();
    assert.deepEqual(processesWith(mark), []);
  });
}

const usual: ExecOptions = { timeoutMs: 20_000, maxOutputBytes: 100_000 };

type Run = (command: string, options?: Partial<ExecOptions>) => Promise<ExecResult>;

async function withWorkspace(sandbox: Sandbox, use: (run: Run) => Promise<void>, env: Record<string, string> = {}) {
  const workspace = await sandbox.open({ env, signal: new AbortController().signal });
  try {
    await use((command, options) => workspace.exec(command, { ...usual, ...options }));
  } finally {
    await workspace.close();
  }
}

/** An argument for `sleep` that no other process of this machine has. */
function uniqueSeconds(): string {
  return `600.${BigInt(`0x${randomUUID().replaceAll("-", "")}`)}`;
}

/** Closed at the test's end whatever happens: an open workspace would keep the test process alive. */
async function openFor(t: TestContext, sandbox: Sandbox): Promise<Workspace> {
  const workspace = await sandbox.open({ env: {}, signal: new AbortController().signal });
  t.after(() => workspace.close());
  return workspace;
}
