import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cp, mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, previewConfig } from "../tools/home.ts";
import { binPath, postern, startProgram } from "../tools/program.ts";

/** A Node on PATH that cannot run Postern itself, or why there is none. */
function findOldNode(): { path: string } | { reason: string } {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
  for (const folder of folders) {
    const { stdout } = spawnSync(join(folder, "node"), ["--version"], { encoding: "utf8" });
    const [, major, minor] = /^v(\d+)\.(\d+)/.exec(stdout ?? "")?.map(Number) ?? [];
    if (major !== undefined && minor !== undefined && (major < 24 || (major === 24 && minor < 15))) {
      return { path: join(folder, "node") };
    }
  }
  return { reason: "needs a Node older than 24.15 on PATH" };
}

const found = findOldNode();
const oldNode = "path" in found ? found.path : "";
const skip = "reason" in found ? found.reason : false;

test("an old Node hands over to the one in node_modules, with arguments, output and exit code", { skip }, async (t) => {
  const good = await makeHome(t, { "config.yaml": previewConfig });
  const bad = await makeHome(t, { "config.yaml": "nothing: 1" });
  for (const [home, args, code] of [
    [good, ["--version"], 0],
    [good, ["config", "check", "--json"], 0],
    [good, ["webhook", "remove", "a name with spaces"], 1],
    [good, ["no-such-command"], 2],
    [bad, ["config", "check"], 78],
  ] as const) {
    const env = { POSTERN_HOME: home.folder };
    const launched = await startProgram(t, [oldNode, binPath, ...args], { env }).ended;
    assert.equal(launched.code, code, launched.err);
    assert.deepEqual(launched, await postern(t, args, { env }));
  }
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`the launcher passes ${signal} on, and the gateway ends in good order`, { skip }, async (t) => {
    const home = await makeHome(t, { "config.yaml": previewConfig });
    const gateway = await startGatewayProcess(t, home, { program: [oldNode, binPath] });
    assert.equal((await fetch(`${gateway.url}/health`)).status, 200);
    gateway.kill(signal);
    const { code, err } = await gateway.ended;
    assert.equal(code, 0);
    assert.match(err, /"msg":"Stopped"/);
  });
}

test("a launcher that is killed takes the gateway with it at once", { skip }, async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const gateway = await startGatewayProcess(t, home, { program: [oldNode, binPath] });
  const killedAt = performance.now();
  gateway.kill("SIGKILL");
  // The gateway holds the same pipes: they close, and this fulfils, when it is gone too.
  await gateway.ended;
  assert.ok(performance.now() - killedAt < 1000);
  await assert.rejects(fetch(`${gateway.url}/health`));
  const next = await startGatewayProcess(t, home);
  assert.equal((await next.stop()).code, 0);
});

test("without a Node that fits, the launcher says in one line what is needed and exits 1", { skip }, async (t) => {
  const { folder } = await makeHome(t);
  const root = new URL("../../", import.meta.url).pathname;
  await cp(join(root, "bin"), join(folder, "bin"), { recursive: true });
  await cp(join(root, "package.json"), join(folder, "package.json"));
  const { code, out, err } = await startProgram(t, [oldNode, join(folder, "bin", "postern")]).ended;
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(
    err,
    /^postern: needs Node >= 24\.15, but this is Node [\d.]+; install a newer Node, or run npm ci in .*\n$/,
  );
});

test("a Node in node_modules that cannot be started is one line too", { skip }, async (t) => {
  const { folder } = await makeHome(t);
  const root = new URL("../../", import.meta.url).pathname;
  await cp(join(root, "bin"), join(folder, "bin"), { recursive: true });
  const bundled = join(folder, "node_modules", `node-${process.platform}-${process.arch}`, "bin", "node");
  await mkdir(bundled, { recursive: true });
  const { code, err } = await startProgram(t, [oldNode, join(folder, "bin", "postern")]).ended;
  assert.equal(code, 1);
  assert.match(err, /^postern: needs Node >= 24\.15, but cannot start the Node in node_modules \(.*\); install.*\n$/);
});

test("a Node that is new enough runs Postern in its own process, also through a link", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const { symlink } = await import("node:fs/promises");
  const link = join(home.folder, "postern");
  await symlink(binPath, link);
  const gateway = await startGatewayProcess(t, home, { program: [process.execPath, link] });
  assert.equal((await gateway.stop()).code, 0);
});
