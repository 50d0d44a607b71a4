import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Platform } from "../../src/config/platforms.ts";
import type { Route } from "../../src/config/route.ts";
import { DeliveryError } from "../../src/core/errors.ts";
import { type CheckupTools, checkTargets, checkTargetsInUse, targetsToAsk } from "../../src/gateway/checkup.ts";
import type { Log } from "../../src/lib/log.ts";
import { silentLog } from "../../src/lib/log.ts";
import { email } from "../../src/target/email.ts";
import { log as logTarget } from "../../src/target/log.ts";
import type { Target } from "../../src/target/target.ts";
import { telegram } from "../../src/target/telegram.ts";
import { makeMemory } from "../conformance/target/memory.ts";

/** `check` of the registry's Telegram does this for as long as the test runs. */
function telegramThat(check: Target["check"]): Disposable {
  const real = telegram.check;
  (telegram as { check: Target["check"] }).check = check;
  return {
    [Symbol.dispose]() {
      (telegram as { check: Target["check"] }).check = real;
    },
  };
}

const usable: Platform = { values: {} };

function toolsWith(changes: Partial<CheckupTools> = {}, platforms: Record<string, Platform> = {}): CheckupTools {
  const all = new Map(Object.entries({ telegram: usable, log: usable, ...platforms }));
  const signal = new AbortController().signal;
  const config = { platforms: all, env: {} };
  return { config, memory: makeMemory(), log: silentLog, secrets: () => ["hunter2"], signal, ...changes };
}

const refuses: Target["check"] = async () => {
  throw new DeliveryError("Cannot use it: the token hunter2 is not known", { sent: "no", retryAfterMs: "never" });
};
/** Never answers, and does not even stop when it is told to. */
const hangs: Target["check"] = () => new Promise(() => {});

describe("checkTargets", () => {
  test("passes on what is fine and what is not, without secrets", async () => {
    using _ = telegramThat(refuses);
    assert.deepEqual(await checkTargets(["log", "telegram"], toolsWith()), [
      { target: "log", said: ["What it gets is written to the gateway's own log"] },
      { target: "telegram", failure: "Cannot use it: the token [redacted] is not known" },
    ]);
  });

  test("says of a target that cannot be asked why", async () => {
    const tools = toolsWith({}, { telegram: { unusable: "token: Missing" } });
    assert.deepEqual(await checkTargets(["telegram", "pigeon"], tools), [
      { target: "telegram", failure: "It cannot be used: token: Missing" },
      { target: "pigeon", failure: "This version has no such target" },
    ]);
  });

  test("waits only so long for one that hangs", async () => {
    using _ = telegramThat(hangs);
    assert.deepEqual(await checkTargets(["telegram"], toolsWith({ timeoutMs: 50 })), [
      { target: "telegram", failure: "No answer within 0.05 seconds" },
    ]);
  });

  test("tells the target to stop when its time is up", async () => {
    const told = Promise.withResolvers<void>();
    using _ = telegramThat((_settings, { signal }) => {
      signal.addEventListener("abort", () => told.resolve());
      return new Promise(() => {});
    });
    await checkTargets(["telegram"], toolsWith({ timeoutMs: 50 }));
    await told.promise;
  });

  test("stops at once when nobody waits any more, also when that was so before", async () => {
    using _ = telegramThat(hangs);
    const end = new AbortController();
    const asking = checkTargets(["telegram"], toolsWith({ signal: end.signal }));
    end.abort();
    const failure = "Not waited for: it was stopped";
    assert.deepEqual(await asking, [{ target: "telegram", failure }]);
    assert.deepEqual(await checkTargets(["telegram"], toolsWith({ signal: end.signal })), [
      { target: "telegram", failure },
    ]);
  });

  test("takes a fault of the program for a failure, and goes on", async () => {
    using _ = telegramThat(() => {
      throw new TypeError("x is not a function");
    });
    assert.deepEqual(await checkTargets(["telegram"], toolsWith()), [
      { target: "telegram", failure: "The check failed: x is not a function" },
    ]);
  });
});

function routeTo(target: Target, fallback: readonly Target[] = []): Route {
  const instead = fallback.map((one) => ({ target: one, extra: {} }));
  return { name: "ci", outlets: [{ target, extra: {}, fallback: instead }] } as unknown as Route;
}

describe("checkTargetsInUse", () => {
  /** What is said about the targets of a gateway that starts. */
  async function said(routes: readonly Route[], changes: Partial<CheckupTools> = {}) {
    const lines: unknown[] = [];
    const note = (level: string) => (fields: object) => void lines.push([level, fields]);
    const log: Log = { ...silentLog, warn: note("warn"), debug: note("debug") };
    await checkTargetsInUse({
      ...toolsWith({ log, ...changes }, { email: usable }),
      routes: { all: () => [...routes] },
    });
    return lines;
  }

  test("warns once for each target that does not work, and is silent about the others", async () => {
    using _ = telegramThat(refuses);
    const routes = [routeTo(telegram), routeTo(logTarget, [telegram])];
    const lines = await said(routes);
    assert.deepEqual(lines, [
      ["debug", { target: "log", said: ["What it gets is written to the gateway's own log"] }],
      ["warn", { target: "telegram", reason: "Cannot use it: the token [redacted] is not known" }],
    ]);
  });

  test("asks nobody that no route uses", async () => {
    using _ = telegramThat(refuses);
    assert.deepEqual(await said([]), []);
  });

  test("says nothing about what was cut off by the gateway's end", async () => {
    using _ = telegramThat(hangs);
    const end = new AbortController();
    const asking = said([routeTo(telegram)], { signal: end.signal });
    end.abort();
    assert.deepEqual(await asking, []);
  });
});

test("the targets to ask are those that routes use and those that somebody began to set up", () => {
  const platforms = new Map<string, Platform>([
    ["telegram", { ...usable, isSetUp: true }],
    ["slack", { unusable: "x", isSetUp: true }],
    ["email", usable],
    ["log", usable],
  ]);
  assert.deepEqual(targetsToAsk({ platforms }, []), ["slack", "telegram"]);
  assert.deepEqual(targetsToAsk({ platforms }, [routeTo(logTarget, [email])]), ["email", "log", "slack", "telegram"]);
});
