import assert from "node:assert/strict";
import { rename, rm, symlink, utimes } from "node:fs/promises";
import { describe, type TestContext, test } from "node:test";
import { loadConfig } from "../../src/config/load.ts";
import type { SubscriptionsPlace } from "../../src/config/subscriptions.ts";
import { Rejection, StoreUnavailable } from "../../src/core/errors.ts";
import { handle } from "../../src/gateway/pipeline.ts";
import { Routes } from "../../src/gateway/routes.ts";
import { createLog } from "../../src/lib/log.ts";
import { makeHome } from "../tools/home.ts";
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

/** A database with subscriptions, as one gateway sees it, and time that is told. */
async function setShared(t: TestContext) {
  const yaml = JSON.stringify({ platforms: { webhook: { secret: "the-global-secret", routes: { ci: {} } } } });
  const home = await makeHome(t, { "config.yaml": yaml });
  const config = await loadConfig({ home, env: {} });
  const scene = {
    entries: {} as Record<string, object>,
    version: 0,
    /** Looks that were begun. */
    looks: 0,
    failure: undefined as Error | undefined,
    /** While set, looks wait for it. */
    hold: undefined as Promise<void> | undefined,
    nowMs: 1_000_000,
    lines: [] as { level: string; msg: string }[],
    change(entries: Record<string, object>) {
      scene.entries = entries;
      scene.version += 1;
    },
  };
  const place: SubscriptionsPlace = {
    name: "The list",
    isShared: true,
    async version() {
      scene.looks += 1;
      await scene.hold;
      if (scene.failure) throw scene.failure;
      return String(scene.version);
    },
    read: async () => ({ text: JSON.stringify(scene.entries), version: String(scene.version) }),
    change: async () => {},
  };
  const timers: { at: number; then: () => void }[] = [];
  const after = (ms: number, then: () => void) => {
    const timer = { at: scene.nowMs + ms, then };
    timers.push(timer);
    return () => void timers.splice(timers.indexOf(timer), timers.includes(timer) ? 1 : 0);
  };
  const write = (line: string) => void scene.lines.push(JSON.parse(line) as (typeof scene.lines)[number]);
  const log = createLog({ level: "debug", pretty: false, secrets: () => [], write });
  const parts = { home, place, log, after, fixed: config.routes, context: config.routeContext };
  const routes = new Routes({ ...parts, monotonicMs: () => scene.nowMs });
  /** Lets time go on, and what waited for it. */
  const advance = async (ms: number) => {
    scene.nowMs += ms;
    for (const timer of timers.filter(({ at }) => at <= scene.nowMs)) {
      timers.splice(timers.indexOf(timer), 1);
      timer.then();
    }
    await turn();
  };
  await routes.refresh();
  await advance(250);
  return Object.assign(scene, { routes, advance, waiting: () => timers.length });
}

/** Lets everything go on that waits for nothing from outside. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("subscriptions that gateways share", () => {
  test("are there for the first request after they were made", async (t) => {
    const scene = await setShared(t);
    scene.change({ dynamic: own });
    assert.equal((await scene.routes.find("dynamic"))?.name, "dynamic");
    assert.deepEqual(scene.routes.names(), ["ci", "dynamic"]);
  });

  test("are looked at for a known name once a second at most", async (t) => {
    const scene = await setShared(t);
    scene.change({ dynamic: own });
    await scene.routes.find("dynamic");
    const before = scene.looks;
    for (let request = 0; request < 100; request += 1) {
      await scene.advance(9);
      assert.ok(await scene.routes.find("dynamic"));
    }
    assert.equal(scene.looks, before);
    scene.change({});
    await scene.advance(100);
    assert.equal(await scene.routes.find("dynamic"), undefined, "a second later the removal counts");
    assert.equal(scene.looks, before + 1);
  });

  test("cost nothing for static routes", async (t) => {
    const scene = await setShared(t);
    const before = scene.looks;
    await scene.advance(60_000);
    assert.ok(await scene.routes.find("ci"));
    assert.equal(scene.looks, before);
  });

  test("are looked at at once after news of them", async (t) => {
    const scene = await setShared(t);
    scene.change({ dynamic: own });
    await scene.routes.find("dynamic");
    await scene.advance(300);
    scene.change({ dynamic: { ...own, enabled: false } });
    scene.routes.heard();
    assert.equal((await scene.routes.find("dynamic"))?.enabled, false);
  });

  test("are read again when the configuration was replaced", async (t) => {
    const scene = await setShared(t);
    scene.change({ dynamic: own });
    await scene.routes.find("dynamic");
    await scene.advance(300);
    const loads = () => scene.lines.filter(({ msg }) => msg === "Subscriptions loaded").length;
    const before = loads();
    scene.routes.rebuild();
    await scene.routes.find("dynamic");
    assert.equal(loads(), before + 1);
  });

  test("are looked at four times a second at most for unknown names, which share the looks", async (t) => {
    const scene = await setShared(t);
    const before = scene.looks;
    const asked: Promise<unknown>[] = [];
    for (let ms = 0; ms < 1_000; ms += 10) {
      asked.push(scene.routes.find(`stranger-${ms}`));
      await scene.advance(10);
    }
    await scene.advance(250);
    assert.deepEqual(
      (await Promise.all(asked)).filter((route) => route !== undefined),
      [],
    );
    assert.ok(scene.looks - before <= 6, `${scene.looks - before} looks`);
  });

  test("that were made before a request are there for it even when a look was under way", async (t) => {
    const scene = await setShared(t);
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.hold = promise;
    const early = scene.routes.find("other");
    await turn();
    // The look under way has asked for the version already.
    scene.change({ dynamic: own });
    const late = scene.routes.find("dynamic");
    scene.hold = undefined;
    resolve();
    await early;
    await scene.advance(250);
    assert.equal((await late)?.name, "dynamic");
  });

  test("that are known stay in force while the database is away, and the log is told once", async (t) => {
    const scene = await setShared(t);
    scene.change({ dynamic: own });
    await scene.routes.find("dynamic");
    scene.failure = new StoreUnavailable("Cannot reach it");
    for (let request = 0; request < 5; request += 1) {
      await scene.advance(2_000);
      assert.ok(await scene.routes.find("dynamic"));
    }
    const errors = scene.lines.filter(({ level }) => level === "error");
    assert.equal(errors.length, 1);
    assert.match(errors[0]?.msg ?? "", /last good ones stay in force/);
  });

  test("that nobody can look up are no reason to say that there are none", async (t) => {
    const scene = await setShared(t);
    scene.failure = new StoreUnavailable("Cannot reach it");
    await assert.rejects(scene.routes.find("unknown"), (error: unknown) => {
      assert.ok(error instanceof Rejection);
      assert.equal(error.code, "unavailable");
      assert.equal(error.retryAfterSeconds, 10);
      return true;
    });
    scene.failure = undefined;
    await scene.advance(250);
    assert.equal(await scene.routes.find("unknown"), undefined);
  });

  test("do not keep requests waiting for a database that does not answer", async (t) => {
    const scene = await setShared(t);
    scene.change({ dynamic: own });
    await scene.routes.find("dynamic");
    await scene.advance(1_000);
    scene.hold = new Promise(() => {});
    const known = scene.routes.find("dynamic");
    const unknown = scene.routes.find("unknown");
    const refused = assert.rejects(unknown, { name: "Rejection", code: "unavailable" });
    await scene.advance(2_000);
    assert.ok(await known);
    await scene.advance(8_000);
    await refused;
    assert.equal(scene.waiting(), 0, "no timer is left");
  });
});
