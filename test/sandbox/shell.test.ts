import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { afterEach, suite, test } from "node:test";
import { killGroup } from "../../src/lib/spawn.ts";
import type { Workspace } from "../../src/sandbox/sandbox.ts";
import { openShell, type ShellHost } from "../../src/sandbox/shell.ts";

/** The inside is hostile: these are supervisors that do not keep to the protocol. */
suite("a shell whose supervisor misbehaves", () => {
  // One that opened although it should not would keep this process alive.
  afterEach(async () => {
    for (const workspace of opened.splice(0)) await workspace.close().catch(() => {});
  });

  const beforeReady: [string, string, RegExp][] = [
    ["greets with something else", "echo hello; read", /no greeting/],
    // One write: Bash itself writes line by line, and what arrives after the greeting is output that belongs to nobody.
    ["says more than it should", "cat <<< $'ready\\nmore'; read", /no greeting/],
    ["ends at once", "exit 3", /ended unexpectedly: status 3/],
    ["says why it cannot start", "echo 'bwrap: no way' >&2; exit 1", /ended unexpectedly: bwrap: no way/],
    ["is killed", "kill -KILL $$", /ended unexpectedly: SIGKILL/],
  ];
  for (const [what, script, expected] of beforeReady) {
    test(`does not open when it ${what}`, async () => {
      const host = fake(script);
      await assert.rejects(open(host), expected);
      assert.equal(host.cleanedUp, 1);
    });
  }

  const afterReady: [string, string, RegExp][] = [
    ["answers with a status that is none", "read -r v l mark; echo $mark abc; read", /no exit status/],
    ["answers with a status above 255", "read -r v l mark; echo $mark 256; read", /no exit status/],
    ["ends instead of answering", "read -r v l mark; echo output; exit 0", /ended unexpectedly: status 0/],
  ];
  for (const [what, script, expected] of afterReady) {
    test(`breaks when it ${what}`, async () => {
      const host = fake(`echo ready; ${script}`);
      const workspace = await open(host);
      await assert.rejects(workspace.exec("x", { timeoutMs: 5000, maxOutputBytes: 100 }), expected);
      await assert.rejects(workspace.exec("x", { timeoutMs: 5000, maxOutputBytes: 100 }), expected);
      await workspace.close();
      assert.equal(host.cleanedUp, 1);
    });
  }

  test("gives the output so far when it answers neither the command nor the stop", async () => {
    const workspace = await open(fake("echo ready; read; echo some; exec sleep 600"));
    const result = await workspace.exec("x", { timeoutMs: 100, maxOutputBytes: 100 });
    assert.deepEqual(result, { exitCode: 137, output: "some\n", truncated: false, timedOut: true });
    await assert.rejects(workspace.exec("x", { timeoutMs: 100, maxOutputBytes: 100 }), /could not be stopped/);
    await workspace.close();
  });

  test("does not open when its program does not exist", async () => {
    const host = fake("", "/no/such/program");
    await assert.rejects(open(host), /could not be started: spawn \/no\/such\/program ENOENT/);
    assert.equal(host.cleanedUp, 1);
  });

  test("fails to close when cleaning up fails, and nowhere else", async () => {
    const host: ShellHost = { ...fake("echo ready; read"), cleanUp: () => Promise.reject(new Error("folder stays")) };
    const workspace = await open(host);
    await assert.rejects(workspace.close(), /folder stays/);
    await assert.rejects(workspace.exec("x", { timeoutMs: 100, maxOutputBytes: 100 }), /is closed/);
  });
});

const opened: Workspace[] = [];

async function open(host: ShellHost): Promise<Workspace> {
  const workspace = await openShell(host, { env: {}, signal: new AbortController().signal });
  opened.push(workspace);
  return workspace;
}

function fake(script: string, program = "bash") {
  const host = {
    cleanedUp: 0,
    start: () => spawn(program, ["--norc", "-c", script], { env: { PATH: process.env.PATH }, detached: true }),
    end: (child: { pid?: number }) => killGroup(child.pid, "SIGKILL"),
    cleanUp: async () => {
      host.cleanedUp += 1;
    },
  };
  return host;
}
