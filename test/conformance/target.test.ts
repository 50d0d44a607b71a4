import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { cut } from "../../src/gateway/transmit.ts";
import { createLog, silentLog } from "../../src/lib/log.ts";
import { checkAddress } from "../../src/target/address.ts";
import * as targets from "../../src/target/registry.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { Target } from "../../src/target/target.ts";
import { fakeSecret, hostileTexts } from "../vectors/hostile-texts.ts";
import { partOf, toolsFor } from "./target/suite.ts";

describe("the registry of targets", () => {
  const all: [string, Target][] = Object.entries(targets);

  test("names each target as it exports it", () => {
    for (const [name, target] of all) assert.equal(target.name, name);
  });

  test("finds nothing under a name that is no target", () => {
    for (const name of ["constructor", "__proto__", "toString", "default", "Telegram"]) {
      assert.equal(name in targets, false, name);
    }
  });

  test("has a test of the port's suite for each target", () => {
    for (const [name] of all.filter(([name]) => name !== "log")) {
      const file = new URL(`../target/${name}.test.ts`, import.meta.url);
      assert.ok(existsSync(file), `test/target/${name}.test.ts is missing`);
      assert.match(readFileSync(file, "utf8"), /\btestTarget\(/, name);
    }
  });

  test("says of each target what becomes of a repeated part, and has `find` where it says so", () => {
    for (const [name, target] of all) {
      assert.ok(["recognised", "findable", "doubled"].includes(target.repeats), name);
      assert.equal("find" in target, target.repeats === "findable", name);
    }
  });

  test("gives paces that can be kept, in places that an address names", () => {
    for (const [name, { pace, address }] of all) {
      for (const one of [pace?.overall, pace?.perPlace]) {
        if (one === undefined) continue;
        assert.ok(Number.isInteger(one.count) && one.count > 0, name);
        assert.ok(Number.isInteger(one.everyMs) && one.everyMs > 0, name);
      }
      if (pace?.perPlace) assert.ok(pace.perPlace.field in address, name);
    }
  });

  test("describes settings and address fields in words, and reads environment names in capitals", () => {
    for (const [name, target] of all) {
      for (const [key, field] of [...Object.entries(target.settings), ...Object.entries(target.address)]) {
        assert.match(field.help, /^\S.*[^.\s]$/, `${name}.${key}`);
        assert.match(key, /^[a-z][a-z0-9_]*$/, `${name}.${key}`);
      }
      for (const setting of Object.values(target.settings)) {
        for (const variable of setting.env ?? []) assert.match(variable, /^[A-Z][A-Z0-9_]+$/);
      }
    }
  });

  test("says of each target without settings what is missing, and of each address too", () => {
    for (const [name, target] of all) {
      const required = Object.values(target.settings).filter((setting) => setting.required);
      const read = readSettings(target, undefined, {});
      const expected = required.length + (target.ways === undefined ? 0 : 1);
      assert.equal("problems" in read ? read.problems.length : 0, expected, name);
      const needed = Object.values(target.address).filter((field) => field.required || field.homeChannel);
      assert.equal(checkAddress(target, {}, {}).length, needed.length, name);
    }
  });

  test("names settings and ways that there are", () => {
    for (const [name, { settings, ways = [], address }] of all) {
      for (const key of ways.flat()) assert.ok(key in settings, `${name}: ${key}`);
      for (const { unlessSet } of Object.values(address))
        assert.ok(unlessSet === undefined || unlessSet in settings, name);
      for (const [key, { kind, choices }] of Object.entries(settings)) {
        assert.equal(kind === "choice", choices !== undefined, `${name}.${key}`);
      }
    }
  });

  test("has no pattern that takes long on a hostile value", () => {
    for (const [name, target] of all) {
      for (const [key, field] of Object.entries(target.address)) {
        for (const value of ["a".repeat(100_000), "a@".repeat(50_000), "a@a.".repeat(25_000), "-1,".repeat(30_000)]) {
          const started = performance.now();
          field.pattern.test(`${value}!`);
          assert.ok(performance.now() - started < 1000, `${name}.${key}`);
        }
      }
    }
  });
});

test("log writes the whole message with its route and event at level info", async () => {
  const lines: unknown[] = [];
  const log = { ...silentLog, info: (fields: unknown, message: string) => lines.push([fields, message]) };
  const text = "x".repeat(1_000_000);
  const part = partOf(targets.log, { settings: {} }, {}, text);
  assert.deepEqual(await targets.log.send(part, {}, { ...toolsFor({}), log }), {});
  assert.deepEqual(lines, [[{ target: "log", route: "ci", event: "push", text }, "Delivered to the log"]]);
});

test("log lets nothing of a hostile text do anything in a terminal", async () => {
  for (const { name, text } of hostileTexts) {
    const lines: string[] = [];
    const log = createLog({
      level: "info",
      pretty: true,
      secrets: () => [fakeSecret],
      write: (line) => lines.push(line),
    });
    for (const one of cut(text, targets.log, [fakeSecret])) {
      await targets.log.send(partOf(targets.log, { settings: {} }, {}, one), {}, { ...toolsFor({}), log });
    }
    const shown = lines.join("");
    assert.ok(shown.isWellFormed(), name);
    assert.doesNotMatch(shown, /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]|sk-fake\/9f8e/u, name);
    // One line of the log's own, and everything of the text's behind it.
    assert.equal(shown.split("\n").filter((line) => line !== "" && !/^ {15}\| /.test(line)).length, 1, name);
  }
});
