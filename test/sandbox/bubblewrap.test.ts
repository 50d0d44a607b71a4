import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { createBubblewrap, explain } from "../../src/sandbox/bubblewrap.ts";
import { local } from "../../src/sandbox/local.ts";
import { missing } from "../needs.ts";
import { hostUid, processesIn, processesWith, until } from "./processes.ts";
import { exec, mebibyte, sandbox, within } from "./workspaces.ts";

const skip = missing("bwrap", "setpriv");
const root = process.getuid?.() === 0;
const secret = `secret-${randomUUID()}`;
process.env.POSTERN_TEST_SECRET = secret;
const folder = mkdtempSync(join(tmpdir(), "postern-test-"));
after(() => rmSync(folder, { recursive: true }));

suite("what a command in bubblewrap can read", { skip }, () => {
  test("no file of the host, which a local command can", async () => {
    const file = join(folder, "host-file");
    writeFileSync(file, secret, { mode: 0o644 });
    const attack = `cat ${file} ${import.meta.filename} /proc/1/root${file} /proc/1/cwd${file} 2>&1`;
    assert.ok((await exec(local, attack)).output.includes(secret));
    const { output } = await exec(sandbox, attack);
    assert.ok(!output.includes(secret), output);
  });

  test("no folder of the host but /usr", async () => {
    const { output } = await exec(
      sandbox,
      "ls -A /; ls -A /etc; ls -d /root /home /var /sys /run /boot /mnt /opt 2>&1",
    );
    const usual = /^(bin|sbin|lib|lib32|lib64|libx32|dev|etc|proc|tmp|usr|workspace)$/;
    const config = /^(alternatives|group|ld\.so\.cache|passwd)$/;
    const absent = /^ls: cannot access '.*': No such file or directory$/;
    for (const line of output.trim().split("\n"))
      assert.ok(
        [usual, config, absent].some((known) => known.test(line)),
        line,
      );
    assert.equal(output.match(/cannot access/g)?.length, 8);
  });

  test("no password hash", async () => {
    assert.notEqual((await exec(sandbox, "cat /etc/shadow")).exitCode, 0);
    assert.equal((await exec(sandbox, "cut -d: -f1 /etc/passwd")).output, "agent\nnobody\n");
  });

  test("no variable of the gateway in any process it sees, which a process that inherits has", async () => {
    const inherits = spawn("cat", ["/proc/self/environ"], { stdio: ["ignore", "pipe", "inherit"] });
    assert.ok((await inherits.stdout.toArray()).join("").includes(secret));
    const { output } = await exec(
      sandbox,
      "for p in /proc/[0-9]*; do echo $p; tr '\\0' '\\n' <$p/environ; done; cat /proc/1/cmdline",
    );
    assert.ok(output.includes("/proc/1\nPATH=/usr/bin:/bin\n"), output);
    assert.ok(!output.includes(secret), output);
  });

  test("its own variables, which are on no command line that the host's users can list", async () => {
    const command = "sleep 600 & echo $!; echo $GIVEN";
    const workspace = await sandbox.open({ env: { GIVEN: secret }, signal: new AbortController().signal });
    const { output } = await workspace.exec(command, { timeoutMs: 5000, maxOutputBytes: 1000 });
    const visible = processesWith(secret);
    await workspace.close();
    assert.ok(output.includes(secret));
    assert.deepEqual(visible, []);
  });
});

suite("what a command in bubblewrap can write", { skip }, () => {
  test("nothing but its workspace and temporary folders", async () => {
    const name = `postern-${randomUUID()}`;
    const places = [
      "/",
      "/usr",
      "/usr/bin",
      "/bin",
      "/etc",
      "/dev",
      "/proc",
      "/proc/sys/kernel",
      "/workspace",
      "/tmp",
      "/dev/shm",
    ];
    const attack = places.map((place) => `( : >${join(place, name)} ) 2>/dev/null && echo ${place}`).join("; ");
    assert.equal((await exec(sandbox, attack)).output, "/workspace\n/tmp\n/dev/shm\n");
    for (const place of places) assert.ok(!existsSync(join(place, name)));
  });

  test("no setting of the kernel", async () => {
    const settings = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"];
    for (const file of settings) {
      const { exitCode } = await exec(sandbox, `exec 3<>${file}`);
      assert.notEqual(exitCode, 0, file);
    }
  });

  test("no more than the size of its file systems and of one file, which a local command can", async () => {
    const fill = "for f in 1 2 3; do head -c 12M /dev/zero >$f; done 2>/dev/null; cat [123] | wc -c";
    assert.equal(Number((await exec(local, fill)).output), 36 * mebibyte);
    assert.equal(Number((await exec(sandbox, fill)).output), 24 * mebibyte);
    assert.equal(Number((await exec(sandbox, `cd /tmp; ${fill}`)).output), 8 * mebibyte);
    assert.equal(Number((await exec(sandbox, `cd /dev/shm; ${fill}`)).output), 8 * mebibyte);
    const { output } = await exec(sandbox, "head -c 20M /dev/zero >big; wc -c <big");
    assert.match(output, /^bash.*File size limit exceeded|16777216$/m);
    assert.ok(Number(output.trim().split("\n").at(-1)) <= 16 * mebibyte);
  });

  test("still runs commands when everything is full", async () => {
    const full = "head -c 20M /dev/zero >/tmp/a; head -c 16M /dev/zero >a; head -c 16M /dev/zero >b; echo full";
    await within(sandbox, async (run) => {
      assert.match((await run(full)).output, /full/);
      assert.equal((await run("echo next")).output, "next\n");
      assert.equal((await run("rm -f /tmp/a a b; echo freed >c; cat c")).output, "freed\n");
    });
  });
});

suite("what a command in bubblewrap can reach", { skip }, () => {
  test("no server on this machine, which a local command can", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.destroy();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const attack = `exec 3<>/dev/tcp/127.0.0.1/${port}`;
    assert.equal((await exec(local, attack)).exitCode, 0);
    await until(() => connections === 1, "the local command's connection");
    assert.notEqual((await exec(sandbox, attack)).exitCode, 0);
    assert.equal((await exec(sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")).output, "lo\n");
    assert.equal(connections, 1);
    server.close();
  });

  test("no process outside", async () => {
    assert.equal((await exec(local, `kill -0 ${process.pid}`)).exitCode, 0);
    assert.notEqual((await exec(sandbox, `kill -0 ${process.pid}`)).exitCode, 0);
    const count = Number((await exec(sandbox, "ls -d /proc/[0-9]* | wc -l")).output);
    assert.ok(count < 10, `${count} processes`);
  });

  test("no new user namespace and no mount", async () => {
    assert.equal((await exec(local, "unshare --user true")).exitCode, 0);
    for (const attack of [
      "unshare --user true",
      "unshare --user --map-root-user --mount true",
      "bwrap --ro-bind / / true",
    ]) {
      const { exitCode, output } = await exec(sandbox, attack);
      assert.notEqual(exitCode, 0, attack);
      assert.match(output, /not permitted|No permissions/, attack);
    }
    assert.match((await exec(sandbox, "mount -t tmpfs none /tmp")).output, /permi|superuser/);
  });

  test("no privilege: no capability, no way to gain one, user 1000 inside and never root outside", async () => {
    await within(sandbox, async (run) => {
      const { output } = await run(
        "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):' /proc/self/status; readlink /proc/self/ns/pid",
      );
      const lines = output
        .trim()
        .split("\n")
        .map((line) => line.replaceAll("\t", " ").trim());
      const namespace = lines.pop() ?? "";
      const none = "0000000000000000";
      const ids = "1000 1000 1000 1000";
      const capabilities = ["Inh", "Prm", "Eff", "Bnd", "Amb"].map((set) => `Cap${set}: ${none}`);
      const groups = lines.find((line) => line.startsWith("Groups")) ?? "";
      assert.deepEqual(lines, [`Uid: ${ids}`, `Gid: ${ids}`, groups, ...capabilities, "NoNewPrivs: 1", "Seccomp: 2"]);
      const uids = new Set(processesIn(namespace).map(hostUid));
      assert.equal(uids.size, 1);
      assert.ok(root ? [...uids].every((uid) => uid >= 59_000 && uid < 59_500) : uids.has(process.getuid?.() ?? 0));
    });
  });
});

suite("why bubblewrap is blocked", () => {
  const hint = "(or set terminal.backend: local to run without isolation)";

  test("it is not installed", async () => {
    const absent = createBubblewrap({ path: "" });
    const sentence = `bubblewrap is not installed; install it with "apt-get install bubblewrap" ${hint}`;
    assert.equal(await absent.blocked(), sentence);
    await assert.rejects(absent.open({ env: {}, signal: new AbortController().signal }), { message: sentence });
  });

  test("a program it needs is not installed", { skip }, async () => {
    const only = (...names: string[]) => {
      const bin = mkdtempSync(join(folder, "bin-"));
      for (const name of names) symlinkSync(`/usr/bin/${name}`, join(bin, name));
      return createBubblewrap({ path: bin }).blocked();
    };
    const sentence = (name: string) =>
      `the program ${name} is not installed; install it with "apt-get install util-linux" ${hint}`;
    assert.equal(await only("bwrap"), sentence("prlimit"));
    assert.equal(await only("bwrap", "prlimit"), root ? sentence("setpriv") : undefined);
  });

  test("it says so itself, and a kernel setting explains it", () => {
    const settings = mkdtempSync(join(folder, "sys-"));
    const words = "the workspace ended unexpectedly: bwrap: No permissions to create new namespace";
    const container = "in a container, allow user namespaces (Docker: --security-opt seccomp=unconfined)";
    assert.equal(explain(words, settings), `${words}; ${container} ${hint}`);
    for (const name of ["kernel", "user"]) mkdirSync(join(settings, name));
    writeFileSync(join(settings, "kernel/apparmor_restrict_unprivileged_userns"), "1\n");
    const mend = 'allow user namespaces with "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"';
    assert.equal(explain(words, settings), `${words}; ${mend} ${hint}`);
    writeFileSync(join(settings, "user/max_user_namespaces"), "0\n");
    assert.match(explain(words, settings), /"sysctl -w user.max_user_namespaces=15000"/);
    assert.equal(explain("the run was aborted", settings), "the run was aborted");
  });
});
