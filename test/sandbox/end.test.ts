import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { suite, test } from "node:test";
import { missing } from "../needs.ts";
import { processesIn, until } from "./processes.ts";
import { openFor, sandbox } from "./workspaces.ts";

const skip = missing("bwrap", "setpriv");

suite("how a bubblewrap workspace ends", { skip }, () => {
  for (const attack of [
    "bomb() { bomb | bomb & }; bomb; sleep 600",
    "kill -KILL -1; sleep 600",
    "setsid -f sleep 600; (trap '' TERM HUP INT; setsid sleep 600 & disown); kill -KILL $PPID; sleep 600",
    "exec 1>&- 2>&-; sleep 600",
  ]) {
    test(`leaves nothing after: ${attack}`, async (t) => {
      const workspace = await openFor(t, sandbox);
      const options = { timeoutMs: 300, maxOutputBytes: 1000 };
      const namespace = (await workspace.exec("readlink /proc/self/ns/pid", options)).output.trim();
      assert.ok(processesIn(namespace).length > 1);
      const end = await workspace.exec(attack, options).catch((error: Error) => error);
      assert.ok(end instanceof Error ? /ended unexpectedly/.test(end.message) : end.timedOut);
      await workspace.close();
      await until(() => processesIn(namespace).length === 0, "the end of every process");
    });
  }

  test("with nothing left the moment that close returns", async (t) => {
    for (let round = 0; round < 10; round += 1) {
      const workspace = await openFor(t, sandbox);
      const look = "setsid -f sleep 600; readlink /proc/self/ns/pid";
      const { output } = await workspace.exec(look, { timeoutMs: 5000, maxOutputBytes: 1000 });
      assert.ok(processesIn(output.trim()).length > 1);
      await workspace.close();
      assert.deepEqual(processesIn(output.trim()), []);
    }
  });

  test("when the gateway is killed, whose open files it never had", async () => {
    const inherited = openSync(import.meta.filename, "r");
    const highest = 20;
    const gateway = spawn(process.execPath, [join(import.meta.dirname, "gateway.ts")], {
      stdio: ["ignore", "pipe", "inherit", ...new Array(highest - 3).fill("ignore"), inherited],
    });
    closeSync(inherited);
    const [line] = await once(createInterface(gateway.stdout!), "line");
    const [namespace = "", descriptors] = JSON.parse(line);
    assert.equal(descriptors, "3 [1-9][0-9]*");
    assert.ok(processesIn(namespace).length > 1);
    gateway.kill("SIGKILL");
    await until(() => processesIn(namespace).length === 0, "the end of every process");
  });

  test("while others of the same gateway go on, each with its own limit on processes", async () => {
    const opened = Array.from({ length: 8 }, () => sandbox.open({ env: {}, signal: new AbortController().signal }));
    const workspaces = await Promise.all(opened);
    try {
      const options = { timeoutMs: 5000, maxOutputBytes: 1000 };
      const start = "for i in {1..40}; do sleep 600 & done; echo done";
      const results = await Promise.all(workspaces.map((workspace) => workspace.exec(start, options)));
      assert.deepEqual(new Set(results.map((result) => result.output)), new Set(["done\n"]));
      await workspaces[0]?.close();
      assert.equal((await workspaces[1]?.exec("echo alive", options))?.output, "alive\n");
    } finally {
      await Promise.all(workspaces.map((workspace) => workspace.close()));
    }
  });
});
