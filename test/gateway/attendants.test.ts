import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { Platform } from "../../src/config/platforms.ts";
import { DeliveryError, StoreUnavailable } from "../../src/core/errors.ts";
import { Attendants, type AttendantsOptions } from "../../src/gateway/attendants.ts";
import { silentLog } from "../../src/lib/log.ts";
import { slack } from "../../src/target/slack.ts";
import type { Memory, SettingValues, Target } from "../../src/target/target.ts";
import { makeMemory } from "../conformance/target/memory.ts";
import { makeSleeper, type Sleeper } from "../tools/sleeper.ts";
import { until } from "../tools/wait.ts";

const leaseMs = 30_000;
const longestPauseMs = 300_000;

/** A call of `attend` that is under way until it is ended from outside or from here. */
interface Call {
  readonly values: SettingValues;
  readonly signal: AbortSignal;
  fail(error: Error): void;
  end(): void;
}

/** A target with an `attend` that notes its calls. With `ignores` it goes on when it is told to end. */
function attended(calls: Call[], options: { ignores?: boolean } = {}): Target {
  return {
    ...slack,
    repeats: "doubled",
    find: undefined as never,
    attend: (values, { signal }) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      calls.push({ values, signal, fail: reject, end: resolve });
      if (!options.ignores) signal.addEventListener("abort", () => resolve());
      return promise;
    },
  };
}

interface Scene extends AttendantsOptions {
  readonly attendants: Attendants;
  readonly clock: Sleeper;
  readonly calls: Call[];
  readonly warnings: Record<string, unknown>[];
  readonly platforms: Map<string, Platform>;
}

function setUp(
  t: TestContext,
  options: Partial<AttendantsOptions> & { clock?: Sleeper; ignores?: boolean } = {},
): Scene {
  const clock = options.clock ?? makeSleeper();
  const calls: Call[] = [];
  const warnings: Record<string, unknown>[] = [];
  const platforms = new Map<string, Platform>([["slack", { values: { token: "one" } }]]);
  const target = attended(calls, options);
  const given: AttendantsOptions = {
    settings: () => ({ platforms, env: {} }),
    memory: makeMemory(),
    log: { ...silentLog, warn: (fields) => void warnings.push({ ...fields }) },
    ...{ owner: "first", isShared: false, leaseMs, now: clock.now, random: () => 1, sleep: clock.sleep },
    find: (name) => (name === "slack" ? target : undefined),
    ...options,
  };
  const attendants = new Attendants(given);
  t.after(() => attendants.stop());
  return { ...given, attendants, clock, calls, warnings, platforms };
}

const down = () => new DeliveryError("The service is down", { sent: "no" });

/** Lets everything go on that waits for nothing but its turn. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
}

describe("what attends targets", () => {
  test("attends a target that can be used, with its settings, and no other", async (t) => {
    const { attendants, calls, platforms } = setUp(t);
    platforms.set("telegram", { values: {} });
    platforms.set("log", { unusable: "it is not enabled" });
    attendants.reconsider();
    await until("the call", () => calls.length === 1);
    assert.deepEqual(calls[0]!.values, { token: "one" });
    attendants.reconsider();
    await settle();
    assert.equal(calls.length, 1);
  });

  test("begins again after it failed or ended, later each time up to five minutes, and says so once", async (t) => {
    const { attendants, calls, clock, warnings } = setUp(t);
    attendants.reconsider();
    const pauses: number[] = [];
    for (let round = 1; round <= 12; round += 1) {
      await until(`call ${round}`, () => calls.length === round);
      calls.at(-1)!.fail(down());
      await until("the pause", () => clock.waits().length === 1);
      pauses.push(clock.waits()[0]!);
      clock.advance(clock.waits()[0]!);
    }
    assert.deepEqual(pauses.slice(0, 3), [1_000, 2_000, 4_000]);
    assert.equal(pauses.at(-1), longestPauseMs);
    assert.deepEqual(warnings, [{ target: "slack", reason: "The service is down", retryInMs: 1_000 }]);
    await until("the next call", () => calls.length === 13);
    calls.at(-1)!.end();
    await until("the news", () => warnings.length === 2);
    assert.equal(warnings[1]!.reason, "It ended by itself");
  });

  test("takes for a new trouble what comes after it had held for five minutes", async (t) => {
    const { attendants, calls, clock, warnings } = setUp(t);
    attendants.reconsider();
    for (const [round, heldMs] of [0, 0, longestPauseMs].entries()) {
      await until("the call", () => calls.length === round + 1);
      clock.advance(heldMs);
      calls.at(-1)!.fail(down());
      await until("the pause", () => clock.waits().length === 1);
      if (round < 2) clock.advance(clock.waits()[0]!);
    }
    assert.deepEqual(clock.waits(), [1_000]);
    assert.equal(warnings.length, 2);
  });

  test("shows the stack of what should not happen", async (t) => {
    const { attendants, calls, warnings } = setUp(t);
    attendants.reconsider();
    await until("the call", () => calls.length === 1);
    const bug = new TypeError("x is not a function");
    calls[0]!.fail(bug);
    await until("the warning", () => warnings.length === 1);
    assert.equal(warnings[0]!.err, bug);
  });

  test("ends what is under way when it stops, waits for its end, and begins nothing more", async (t) => {
    const { attendants, calls } = setUp(t, { ignores: true });
    attendants.reconsider();
    await until("the call", () => calls.length === 1);
    let hasStopped = false;
    const stopping = attendants.stop().then(() => {
      hasStopped = true;
    });
    await settle();
    assert.deepEqual([calls[0]!.signal.aborted, hasStopped], [true, false]);
    calls[0]!.end();
    await stopping;
    attendants.reconsider();
    await settle();
    assert.equal(calls.length, 1);
  });

  test("stops at once in the middle of a pause", async (t) => {
    const { attendants, calls, clock } = setUp(t);
    attendants.reconsider();
    await until("the call", () => calls.length === 1);
    calls[0]!.fail(down());
    await until("the pause", () => clock.waits().length === 1);
    await attendants.stop();
    assert.deepEqual(clock.waits(), []);
  });

  test("begins anew with other settings when the old call has ended, and ends with the platform", async (t) => {
    const { attendants, calls, platforms } = setUp(t, { ignores: true });
    attendants.reconsider();
    await until("the call", () => calls.length === 1);
    platforms.set("slack", { values: { token: "two" } });
    attendants.reconsider();
    await settle();
    assert.deepEqual([calls.length, calls[0]!.signal.aborted], [1, true]);
    calls[0]!.end();
    await until("the new call", () => calls.length === 2);
    assert.deepEqual(calls[1]!.values, { token: "two" });
    platforms.set("slack", { unusable: "it is not enabled" });
    attendants.reconsider();
    assert.equal(calls[1]!.signal.aborted, true);
    platforms.set("slack", { values: { token: "two" } });
    attendants.reconsider();
    calls[1]!.end();
    await until("the call after it was switched on again", () => calls.length === 3);
    calls[2]!.end();
  });
});

describe("what attends targets on a store that gateways share", () => {
  function pair(t: TestContext, memory: Memory = makeMemory()): [Scene, Scene] {
    const clock = makeSleeper();
    const first = setUp(t, { clock, memory, isShared: true, owner: "first" });
    return [first, setUp(t, { clock, memory, isShared: true, owner: "second" })];
  }

  /** Passes time in steps in which a lease can be renewed. */
  async function pass(clock: Sleeper, ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += leaseMs / 6) {
      clock.advance(leaseMs / 6);
      await settle();
    }
  }

  test("attends in one gateway only, as long as that one renews", async (t) => {
    const [first, second] = pair(t);
    first.attendants.reconsider();
    await until("the first's call", () => first.calls.length === 1);
    second.attendants.reconsider();
    await pass(first.clock, 20 * leaseMs);
    assert.deepEqual([first.calls.length, second.calls.length], [1, 0]);
    assert.equal(first.calls[0]!.signal.aborted, false);
    assert.deepEqual([...first.warnings, ...second.warnings], []);
  });

  test("attends in one only when both begin at once", async (t) => {
    const [first, second] = pair(t);
    first.attendants.reconsider();
    second.attendants.reconsider();
    await pass(first.clock, leaseMs);
    assert.equal(first.calls.length + second.calls.length, 1);
  });

  test("goes over to the other at its next look when one stops", async (t) => {
    const [first, second] = pair(t);
    first.attendants.reconsider();
    await until("the first's call", () => first.calls.length === 1);
    second.attendants.reconsider();
    await settle();
    await first.attendants.stop();
    await pass(first.clock, leaseMs / 3);
    assert.equal(second.calls.length, 1);
  });

  test("goes over to the other when the lease of one that died has run out, not before", async (t) => {
    const memory = makeMemory();
    const [first, second] = pair(t, memory);
    const { now } = first.clock;
    const name = "slack attended";
    await memory.write(name, JSON.stringify({ owner: "dead", until: now() + leaseMs, leaseMs }), 0);
    second.attendants.reconsider();
    await pass(first.clock, leaseMs - leaseMs / 6);
    assert.equal(second.calls.length, 0);
    await pass(first.clock, leaseMs / 2);
    assert.equal(second.calls.length, 1);
  });

  test("does not wait for a lease from before the clock was set back", async (t) => {
    const memory = makeMemory();
    const [first] = pair(t, memory);
    const year = 365 * 86_400_000;
    const lease = { owner: "dead", until: first.clock.now() + year, leaseMs };
    await memory.write("slack attended", JSON.stringify(lease), 0);
    first.attendants.reconsider();
    await settle();
    assert.equal(first.calls.length, 1);
  });

  test("ends when another gateway has the lease, and says nothing of it", async (t) => {
    const memory = makeMemory();
    const [first] = pair(t, memory);
    first.attendants.reconsider();
    await until("the call", () => first.calls.length === 1);
    const { version } = await memory.read("slack attended");
    const lease = { owner: "other", until: first.clock.now() + leaseMs, leaseMs };
    assert.equal(await memory.write("slack attended", JSON.stringify(lease), version), true);
    await pass(first.clock, leaseMs / 3);
    assert.equal(first.calls[0]!.signal.aborted, true);
    assert.match((await memory.read("slack attended")).text, /other/, "the other's lease is left alone");
    assert.deepEqual(first.warnings, []);
  });

  test("gives the lease back when attending fails, so that another gateway may try", async (t) => {
    const [first, second] = pair(t);
    first.attendants.reconsider();
    await until("the first's call", () => first.calls.length === 1);
    second.attendants.reconsider();
    await settle();
    for (let round = 0; round < 20 && second.calls.length === 0; round += 1) {
      first.calls.at(-1)!.fail(down());
      await pass(first.clock, leaseMs / 6);
    }
    assert.equal(second.calls.length, 1);
    const { length } = first.calls;
    await pass(first.clock, 2 * longestPauseMs);
    assert.deepEqual([first.calls.length, second.calls[0]!.signal.aborted], [length, false]);
  });

  test("goes on while the store is away for a moment, and ends when the lease may have run out", async (t) => {
    const kept = makeMemory();
    const away = { is: false };
    const guard = <Value>(answer: () => Promise<Value>) =>
      away.is ? Promise.reject(new StoreUnavailable("The database is away")) : answer();
    const memory: Memory = {
      read: (name) => guard(() => kept.read(name)),
      write: (name, text, seen) => guard(() => kept.write(name, text, seen)),
    };
    const [first] = pair(t, memory);
    first.attendants.reconsider();
    await until("the call", () => first.calls.length === 1);
    away.is = true;
    await pass(first.clock, leaseMs - leaseMs / 3);
    assert.equal(first.calls[0]!.signal.aborted, false);
    away.is = false;
    await pass(first.clock, leaseMs);
    assert.equal(first.calls[0]!.signal.aborted, false);
    away.is = true;
    await pass(first.clock, leaseMs + leaseMs / 3);
    assert.equal(first.calls[0]!.signal.aborted, true);
    away.is = false;
    await pass(first.clock, 10 * leaseMs);
    assert.equal(first.calls.length, 2);
  });
});
