import assert from "node:assert/strict";
import { rename, rm, symlink, utimes } from "node:fs/promises";
import { describe, type TestContext, test } from "node:test";
import { handle } from "../../src/gateway/pipeline.ts";
import { request, type Scene, type SceneOptions, setScene } from "../tools/scene.ts";

function subscriptions(entries: Record<string, object>): Record<string, string> {
  return { "webhook_subscriptions.json": JSON.stringify(entries) };
}

async function write(scene: Scene, entries: Record<string, object> | string): Promise<void> {
  const text = typeof entries === "string" ? entries : JSON.stringify(entries);
  await scene.home.write("next.json", text);
  await rename(`${scene.home.folder}/next.json`, scene.home.subscriptions);
}

function setUp(t: TestContext, options: SceneOptions = {}): Promise<Scene> {
  return setScene(t, { routes: { ci: { prompt: "static" } }, ...options });
}

function errors(scene: Scene): string[] {
  return scene.lines.filter(({ level }) => level === "error").map(({ msg }) => msg);
}

const own = { secret: "the secret of one subscription" };

describe("subscriptions", () => {
  test("are there for the first request after they were written, and gone after they were removed", async (t) => {
    const scene = await setUp(t);
    assert.equal(await scene.routes.find("dynamic"), undefined);
    await write(scene, { dynamic: own });
    const incoming = request({ route: "dynamic", secret: own.secret });
    assert.equal((await handle(incoming, scene.gateway)).reply.status, "accepted");
    assert.deepEqual(scene.routes.names(), ["ci", "dynamic"]);
    await rm(scene.home.subscriptions);
    assert.equal(await scene.routes.find("dynamic"), undefined);
    assert.deepEqual(scene.routes.names(), ["ci"]);
  });

  test("never stand before a static route of the same name", async (t) => {
    const scene = await setUp(t, { files: subscriptions({ ci: own, dynamic: own }) });
    assert.equal((await scene.routes.find("ci"))?.origin, "config");
    assert.equal((await scene.routes.find("dynamic"))?.origin, "subscription");
    assert.deepEqual(scene.routes.names(), ["ci", "dynamic"]);
  });

  test("are found by their own names only", async (t) => {
    const scene = await setUp(t, { files: subscriptions({ dynamic: own }) });
    for (const name of ["constructor", "__proto__", "toString", "Dynamic", "dynamic ", ""]) {
      assert.equal(await scene.routes.find(name), undefined, name);
    }
  });

  test("are read once for many requests, and again when the file has changed", async (t) => {
    const scene = await setUp(t, { files: subscriptions({ dynamic: own }) });
    const loads = () => scene.lines.filter(({ msg }) => msg === "Subscriptions loaded").length;
    await Promise.all(Array.from({ length: 50 }, () => scene.routes.find("dynamic")));
    assert.equal(loads(), 1);
    await write(scene, { dynamic: { ...own, enabled: false } });
    assert.equal((await scene.routes.find("dynamic"))?.enabled, false);
    assert.equal(loads(), 2);
  });

  test("are read again when another file of the same size and time takes the place", async (t) => {
    const scene = await setUp(t, { files: subscriptions({ aa: own }) });
    const time = new Date(1_700_000_000_000);
    await utimes(scene.home.subscriptions, time, time);
    assert.ok(await scene.routes.find("aa"));
    await scene.home.write("next.json", JSON.stringify({ bb: own }));
    await utimes(`${scene.home.folder}/next.json`, time, time);
    await rename(`${scene.home.folder}/next.json`, scene.home.subscriptions);
    assert.ok(await scene.routes.find("bb"));
    assert.equal(await scene.routes.find("aa"), undefined);
  });

  test("that were written while another request looked are there for the request after that", async (t) => {
    const scene = await setUp(t);
    for (let turn = 0; turn < 20; turn += 1) {
      const early = scene.routes.find(`r${turn}`);
      await write(scene, { [`r${turn}`]: own });
      assert.ok(await scene.routes.find(`r${turn}`), `turn ${turn}`);
      await early;
    }
  });

  for (const [what, text] of [
    ["half a file", '{"dynamic": {"secret": "the sec'],
    ["a list", "[]"],
    ["text", "hello"],
  ] as const) {
    test(`stay as they were while the file is damaged (${what}), with an error in the log, and static routes too`, async (t) => {
      const scene = await setUp(t, { files: subscriptions({ dynamic: own }) });
      assert.ok(await scene.routes.find("dynamic"));
      await write(scene, text);
      assert.ok(await scene.routes.find("dynamic"));
      assert.ok(await scene.routes.find("dynamic"));
      assert.ok(await scene.routes.find("ci"));
      assert.equal(errors(scene).length, 1, "once, not with each request");
      assert.match(errors(scene)[0] ?? "", /last good ones stay in force/);
      await write(scene, { other: own });
      assert.ok(await scene.routes.find("other"));
      assert.equal(await scene.routes.find("dynamic"), undefined);
    });
  }

  test("that are bad are skipped with an error, and the others work", async (t) => {
    const scene = await setUp(t, {
      webhook: { host: "0.0.0.0" },
      files: subscriptions({
        good: own,
        open: { secret: "INSECURE_NO_AUTH" },
        blank: { secret: " " },
        unknown: { ...own, deliver: "nowhere" },
        "bad name": own,
        typo: { ...own, promt: "x" },
      }),
    });
    assert.ok(await scene.routes.find("good"));
    for (const name of ["open", "blank", "unknown", "bad name", "typo"]) {
      assert.equal(await scene.routes.find(name), undefined, name);
      assert.ok(
        errors(scene).some((message) => message.includes(`"${name}"`)),
        name,
      );
    }
  });

  test("have their secrets blotted out of the log", async (t) => {
    const scene = await setUp(t, { files: subscriptions({ dynamic: own }) });
    await scene.routes.find("dynamic");
    assert.deepEqual(scene.routes.secrets(), [own.secret]);
    scene.log.info({ note: own.secret }, "Look");
    assert.equal(scene.lines.at(-1)?.note, "[redacted]");
  });

  test("stay as they were when the file cannot be looked at", async (t) => {
    const scene = await setUp(t, { files: subscriptions({ dynamic: own }) });
    assert.ok(await scene.routes.find("dynamic"));
    await rm(scene.home.subscriptions);
    await symlink(scene.home.subscriptions, scene.home.subscriptions);
    assert.ok(await scene.routes.find("dynamic"));
    assert.match(errors(scene)[0] ?? "", /cannot be read/);
  });
});
