import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, type TestContext, test } from "node:test";
import type { RetentionSettings } from "../../src/config/retention.ts";
import { StoreUnavailable } from "../../src/core/errors.ts";
import { newId } from "../../src/core/id.ts";
import { Retention, type RetentionOptions } from "../../src/gateway/retention.ts";
import { createLog } from "../../src/lib/log.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { FinalEventState } from "../../src/store/states.ts";
import type { PruneArgs, Store } from "../../src/store/store.ts";
import { missing } from "../needs.ts";
import { makeHome } from "../tools/home.ts";
import { sharedPostgres } from "../tools/postgres.ts";
import { aRecord, type RecordParts } from "../tools/records.ts";
import { anAgentEvent, noon } from "../tools/rows.ts";
import { until } from "../tools/wait.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const MiB = 1024 * 1024;

const allDays = (days: number) => ({ done: days * day, dead: days * day, refused: days * day, cancelled: days * day });

interface Scene {
  readonly retention: Retention;
  /** Milliseconds of the clock that nobody sets; it has run for a day. */
  monotonicMs: number;
  now: number;
  settings: RetentionSettings;
  readonly lines: { readonly level: string; readonly msg: string }[];
  /** Steps until the retention rests. Answers the pauses between them and the rest. */
  round(): Promise<number[]>;
}

function makeScene(store: RetentionOptions["store"], settings: RetentionSettings): Scene {
  const lines: Scene["lines"] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Scene["lines"][number]);
  const log = createLog({ level: "debug", pretty: false, secrets: () => [], write });
  const scene = { monotonicMs: 0, now: noon, settings, lines };
  const retention = new Retention({
    ...{ store, log, settings: () => scene.settings, now: () => scene.now, monotonicMs: () => scene.monotonicMs },
  });
  scene.monotonicMs = day;
  return Object.assign(scene, {
    retention,
    async round() {
      const pauses: number[] = [];
      for (let last = 0; last < minute; ) {
        last = await retention.step();
        pauses.push(last);
        if (pauses.length > 10_000) throw new Error("It never rests");
      }
      return pauses;
    },
  });
}

async function openStore(t: TestContext): Promise<Store> {
  const { folder } = await makeHome(t);
  const store = await openSqlite({ path: `${folder}/ledger.db`, readOnly: false });
  t.after(() => store.close());
  return store;
}

async function keep(store: Store, parts: RecordParts): Promise<string> {
  const record = aRecord(parts);
  await store.importEvent({ record, now: noon, claimUntil: null, unfinished: "resume" });
  return record.id;
}

async function idsIn(store: Store): Promise<string[]> {
  return (await store.listEvents({ limit: 100_000 })).map(({ id }) => id).reverse();
}

describe("by age", () => {
  test("forgets what is older than its state is kept, and nothing that is not finished", async (t) => {
    const store = await openStore(t);
    const old = noon - 10 * day;
    const kept: string[] = [];
    await keep(store, { at: old, state: "done" });
    kept.push(await keep(store, { at: old, state: "dead" }));
    await keep(store, { at: old, state: "refused" });
    kept.push(await keep(store, { at: old, state: "cancelled" }));
    await keep(store, { at: old, state: "ignored" });
    kept.push(await keep(store, { at: old, state: "queued" }));
    kept.push(await keep(store, { at: old, state: "delivering" }));
    kept.push(await keep(store, { at: old, state: "done", newsAt: noon - day }));
    kept.push(await keep(store, { at: noon - day, state: "done" }));
    kept.push(await keep(store, { at: noon - hour, state: "ignored" }));
    const maxAgeMs = { done: 9 * day, dead: 11 * day, refused: 9 * day, ignored: 2 * hour };
    const scene = makeScene(store, { maxAgeMs, maxBytes: undefined });
    await scene.round();
    assert.deepEqual((await idsIn(store)).sort(), kept.sort());
    assert.match(JSON.stringify(scene.lines), /"events":3,"msg":"Old events were forgotten"/);
  });

  test("obeys a configuration that was replaced", async (t) => {
    const store = await openStore(t);
    await keep(store, { at: noon - 3 * day });
    const scene = makeScene(store, { maxAgeMs: {}, maxBytes: undefined });
    await scene.round();
    assert.equal((await idsIn(store)).length, 1);
    scene.settings = { maxAgeMs: { done: 2 * day }, maxBytes: undefined };
    await scene.round();
    assert.deepEqual(await idsIn(store), []);
  });

  test("believes no age for an hour after the clock jumped", async (t) => {
    const store = await openStore(t);
    await keep(store, { at: noon });
    const scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: undefined });
    scene.now = noon + 3650 * day;
    scene.retention.clockJumped();
    await scene.round();
    scene.monotonicMs += hour - 1;
    await scene.round();
    assert.equal((await idsIn(store)).length, 1);
    scene.now = noon;
    scene.monotonicMs += minute;
    await scene.round();
    assert.equal((await idsIn(store)).length, 1, "the clock was set right again");
    scene.now = noon + 31 * day;
    await scene.round();
    assert.deepEqual(await idsIn(store), []);
  });

  test("stops in the middle of a round when the clock jumps", async () => {
    const asked: PruneArgs[] = [];
    const store = endless((args) => void asked.push(args));
    const scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: undefined });
    while (asked.length < 3) await scene.retention.step();
    scene.retention.clockJumped();
    await scene.round();
    assert.equal(asked.length, 3);
  });

  test("believes no age in the first five minutes, when a machine may not know the time yet", async (t) => {
    const store = await openStore(t);
    await keep(store, { at: noon - 40 * day });
    const scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: undefined });
    scene.monotonicMs = 5 * minute - 1;
    await scene.round();
    assert.equal((await idsIn(store)).length, 1);
    scene.monotonicMs = 5 * minute;
    await scene.round();
    assert.deepEqual(await idsIn(store), []);
  });

  test("does not look at events that cannot be old enough", async () => {
    const asked: PruneArgs[] = [];
    // Each step ends at an event that is a day younger.
    const prune = async (args: PruneArgs) => {
      asked.push(args);
      return { forgotten: 0, next: newId(noon - 40 * day + asked.length * day) };
    };
    const scene = makeScene({ ...endless(() => {}), prune }, { maxAgeMs: allDays(30), maxBytes: undefined });
    await scene.round();
    assert.equal(asked.length, 11, "ten days, and one because clocks differ");
  });
});

describe("claims", () => {
  test("that have run out are forgotten, and the others still make a copy a duplicate", async (t) => {
    const store = await openStore(t);
    for (let index = 0; index < 250; index += 1) {
      await store.accept(anAgentEvent({ at: noon - 2 * hour + index, deliveryId: `old ${index}` }));
    }
    await store.accept(anAgentEvent({ at: noon - minute, deliveryId: "fresh" }));
    const scene = makeScene(store, { maxAgeMs: {}, maxBytes: undefined });
    await scene.round();
    assert.equal(await store.pruneClaims({ now: noon, limit: 1_000 }), 0, "none is left that has run out");
    assert.equal((await store.accept(anAgentEvent({ at: noon, deliveryId: "fresh" }))).duplicate, true);
  });
});

describe("by size", () => {
  /** An event of about 10 KiB. */
  const large = (parts: RecordParts) => ({ body: randomBytes(10_240), ...parts });

  test("forgets the oldest finished events, whatever their age, until there is room, and a little more", async (t) => {
    const store = await openStore(t);
    const ids: string[] = [];
    const unfinished: string[] = [];
    for (let index = 0; index < 400; index += 1) {
      const at = noon - hour + index;
      if (index % 40 === 0) unfinished.push(await keep(store, large({ at, state: "queued" })));
      else ids.push(await keep(store, large({ at, state: index % 2 === 0 ? "done" : "ignored" })));
    }
    const scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: 2 * MiB });
    await scene.round();
    const { bytes } = await store.measure({});
    assert.ok(bytes <= 1.9 * MiB, `${bytes} bytes`);
    assert.ok(bytes > MiB, `${bytes} bytes: no more than needed`);
    const left = await idsIn(store);
    for (const id of unfinished) assert.ok(left.includes(id));
    const finished = left.filter((id) => !unfinished.includes(id));
    assert.deepEqual(finished, ids.slice(-finished.length), "the newest are left");
    assert.match(JSON.stringify(scene.lines), /The oldest events were forgotten for room/);
  });

  test("works while the clock is not believed", async (t) => {
    const store = await openStore(t);
    for (let index = 0; index < 50; index += 1) await keep(store, large({ at: noon + index }));
    const scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: 1 });
    scene.retention.clockJumped();
    await scene.round();
    assert.deepEqual(await idsIn(store), []);
  });

  test("keeps what is not finished however large it is, and says so once an hour", async (t) => {
    const store = await openStore(t);
    for (let index = 0; index < 150; index += 1) await keep(store, large({ at: noon + index, state: "queued" }));
    const scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: MiB });
    const warnings = () => scene.lines.filter(({ level }) => level === "warn").map(({ msg }) => msg);
    await scene.round();
    await scene.round();
    assert.equal((await idsIn(store)).length, 150);
    assert.equal(warnings().length, 1);
    assert.match(warnings()[0] ?? "", /only events that are not finished are left/);
    scene.monotonicMs += hour;
    await scene.round();
    assert.equal(warnings().length, 2);
  });

  test("measures no longer than it forgets, where measuring is slow", async () => {
    let measured = 0;
    let pruned = 0;
    const store = {
      ...endless(() => {}),
      async measure() {
        measured += 1;
        scene.monotonicMs += 1_000;
        return { bytes: pruned < 450 ? 2 * MiB : 0 };
      },
      async prune() {
        pruned += 1;
        scene.monotonicMs += 10;
        return { forgotten: 100, next: newId(noon) };
      },
    };
    const scene: Scene = makeScene(store, { maxAgeMs: {}, maxBytes: MiB });
    await scene.round();
    assert.equal(pruned, 500);
    assert.equal(measured, 6);
  });

  test("hurries when it is far too large, and not when it is nearly right", async () => {
    const pausesAt = async (bytes: number) => {
      const store = {
        ...endless(() => {}),
        measure: async () => ({ bytes }),
        async prune() {
          scene.monotonicMs += 10;
          return { forgotten: 100, next: newId(noon) };
        },
      };
      const scene: Scene = makeScene(store, { maxAgeMs: {}, maxBytes: MiB });
      const pauses: number[] = [];
      for (let step = 0; step < 10; step += 1) pauses.push(await scene.retention.step());
      return pauses.at(-1);
    };
    assert.equal(await pausesAt(1.05 * MiB), 490);
    assert.equal(await pausesAt(1.5 * MiB), 90);
  });
});

describe("the way it works", () => {
  test("looks at a hundred events in a step, and works no more than a fiftieth of the time", async () => {
    const asked: PruneArgs[] = [];
    const store = endless((args) => {
      asked.push(args);
      scene.monotonicMs += 20;
    });
    const scene: Scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: undefined });
    const pauses: number[] = [];
    while (asked.length < 5) pauses.push(await scene.retention.step());
    assert.deepEqual(pauses.slice(-4), [980, 980, 980, 980]);
    assert.ok(asked.every(({ limit }) => limit === 100));
    assert.equal(new Set(asked.map(({ after }) => after)).size, 5, "each step goes on where the last one ended");
  });

  test("rests a minute when it is through, and longer when the last look took long", async () => {
    const store = { ...endless(() => {}), prune: async () => ({ forgotten: 0, next: undefined }) };
    let tookMs = 0;
    const measure = async () => {
      scene.monotonicMs += tookMs;
      return { bytes: 0 };
    };
    const scene: Scene = makeScene({ ...store, measure }, { maxAgeMs: allDays(30), maxBytes: MiB });
    assert.equal((await scene.round()).at(-1), minute);
    tookMs = 10_000;
    assert.equal((await scene.round()).at(-1), 490_000);
  });

  test("goes on after the store was away", async (t) => {
    const store = await openStore(t);
    await keep(store, { at: noon - 40 * day });
    let isAway = true;
    const failing = {
      measure: store.measure,
      pruneClaims: store.pruneClaims,
      async prune(args: PruneArgs) {
        if (isAway) throw new StoreUnavailable("database or disk is full");
        return store.prune(args);
      },
    };
    const scene = makeScene(failing, { maxAgeMs: allDays(30), maxBytes: undefined });
    await scene.round();
    assert.deepEqual(
      scene.lines.map(({ level }) => level),
      ["warn"],
    );
    isAway = false;
    await scene.round();
    assert.deepEqual(await idsIn(store), []);
  });

  test("two at once on one store forget the same and nothing else", async (t) => {
    const store = await openStore(t);
    const kept: string[] = [];
    for (let index = 0; index < 300; index += 1) {
      const state: FinalEventState = index % 3 === 0 ? "dead" : "done";
      const id = await keep(store, { at: noon - 40 * day + index, state });
      if (state === "dead") kept.push(id);
    }
    const settings = { maxAgeMs: { done: 30 * day }, maxBytes: undefined };
    await Promise.all([makeScene(store, settings).round(), makeScene(store, settings).round()]);
    assert.deepEqual(await idsIn(store), kept);
  });

  test("works by itself once it is started, and not any more when it is stopped", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let asked = 0;
    const store = endless(() => {
      asked += 1;
    });
    const scene = makeScene(store, { maxAgeMs: allDays(30), maxBytes: undefined });
    scene.retention.start();
    await until("some steps", () => {
      t.mock.timers.tick(50);
      return asked >= 3;
    });
    await scene.retention.stop();
    const before = asked;
    t.mock.timers.tick(hour);
    await new Promise(setImmediate);
    assert.equal(asked, before);
  });

  test("stopping waits for the step that is under way", async () => {
    const under = Promise.withResolvers<void>();
    const held = Promise.withResolvers<number>();
    let isOver = false;
    const store = {
      ...endless(() => {}),
      pruneClaims() {
        under.resolve();
        return held.promise;
      },
    };
    const scene = makeScene(store, { maxAgeMs: {}, maxBytes: undefined });
    scene.retention.start();
    await under.promise;
    const stopped = scene.retention.stop().then(() => {
      isOver = true;
    });
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    held.resolve(0);
    await stopped;
  });
});

describe("on PostgreSQL", { skip: missing("postgres") }, () => {
  const postgres = sharedPostgres();

  async function openShared(t: TestContext, url: string): Promise<Store> {
    const store = await openPostgres({ url, schema: "postern", readOnly: false });
    t.after(() => store.close());
    return store;
  }

  test("several gateways that forget at once do not get in each other's way", async (t) => {
    const url = await (await postgres()).database(t);
    const stores = [await openShared(t, url), await openShared(t, url), await openShared(t, url)];
    const [store] = stores;
    const kept: string[] = [];
    for (let index = 0; index < 400; index += 1) {
      const state = (["done", "dead", "ignored", "queued"] as const)[index % 4]!;
      const id = await keep(store!, { at: noon - 40 * day + index, state });
      if (state === "dead" || state === "queued") kept.push(id);
    }
    const settings = { maxAgeMs: { done: 30 * day, ignored: 30 * day }, maxBytes: undefined };
    const scenes = stores.map((one) => makeScene(one, settings));
    await Promise.all(scenes.map((scene) => scene.round()));
    // What one of them left out because another held it, the next round finds.
    await scenes[0]?.round();
    assert.deepEqual(await idsIn(store!), kept);
    assert.deepEqual(
      scenes.flatMap(({ lines }) => lines.filter(({ level }) => level !== "info")),
      [],
    );
  });

  test("what is forgotten for room is no more than is needed", async (t) => {
    const store = await openShared(t, await (await postgres()).database(t));
    for (let index = 0; index < 300; index += 1) {
      const state = index % 30 === 0 ? "queued" : "done";
      await keep(store, { at: noon - hour + index, state, body: randomBytes(10_240) });
    }
    const before = (await store.measure({})).bytes;
    await makeScene(store, { maxAgeMs: {}, maxBytes: before / 2 }).round();
    const { bytes } = await store.measure({});
    assert.ok(bytes < before / 2, `${bytes} of ${before} bytes`);
    assert.ok(bytes > before / 8, `${bytes} of ${before} bytes`);
    const left = await store.listEvents({ limit: 1_000, state: "queued" });
    assert.equal(left.length, 10);
  });
});

/** A store with old events without end. */
function endless(prune: (args: PruneArgs) => void): RetentionOptions["store"] {
  let at = noon - 400 * day;
  return {
    async prune(args) {
      prune(args);
      at += 1;
      return { forgotten: 0, next: newId(at) };
    },
    pruneClaims: async () => 0,
    measure: async () => ({ bytes: 0 }),
  };
}
