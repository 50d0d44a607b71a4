import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { targetsPagePath, withTable } from "../../scripts/targets-table.ts";
import * as targets from "../../src/target/registry.ts";
import type { Target } from "../../src/target/target.ts";

const page = readFileSync(targetsPagePath, "utf8");
const all: readonly Target[] = Object.values(targets);

/** Rows of the table by the name of their target, as cells. */
const rows = new Map(
  page
    .split("\n")
    .filter((line) => line.startsWith("| [`"))
    .map((line) => [/`(\w+)`/.exec(line)?.[1] ?? "", line.split(" | ")] as const),
);

describe("docs/targets.md", () => {
  test("has the table that the targets' own data makes", () => {
    assert.equal(page, withTable(page), "docs/targets.md is out of date; run: npm run docs");
  });

  test("has a row and a section for each target, in the same order, and no others", () => {
    const names = all.map(({ name }) => name);
    assert.deepEqual([...rows.keys()], names);
    const sections = [...page.matchAll(/^## ([a-z_0-9]+)$/gm)].map(([, name]) => name);
    assert.deepEqual(sections, names);
  });

  test("has as many targets as the README says", () => {
    const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
    assert.equal(/\[(\d+) targets\]/.exec(readme)?.[1], String(all.length));
  });

  test("names every switch with its default, and every address field", () => {
    for (const { name, settings, address } of all) {
      const row = rows.get(name)?.join(" | ") ?? "";
      for (const key of Object.keys(address)) assert.ok(row.includes(`\`${key}\``), `${name}: ${key}`);
      for (const [key, { kind, default: preset }] of Object.entries(settings)) {
        if (kind === "boolean") assert.ok(row.includes(`\`${key}: ${preset}\``), `${name}: ${key}`);
      }
    }
  });

  test("says how long a part is when nobody changes it, and how long it may be", () => {
    assert.match(rows.get("sms")?.[4] ?? "", /^4 SMS segments \(`max_segments`, at most 10\), 1 part/);
    for (const { name, boundedBy, settings, limit } of all.filter((target) => target.boundedBy !== undefined)) {
      const { kind, default: preset } = settings[boundedBy ?? ""] ?? {};
      assert.equal(kind, "integer", name);
      assert.ok(Number(preset) >= 1 && Number(preset) <= limit.max, name);
    }
  });

  test("names what must be set by the variables that are read first", () => {
    for (const { name, settings, ways = [] } of all) {
      const needed = Object.keys(settings).filter((key) => settings[key]?.required);
      const cell = rows.get(name)?.[1] ?? "";
      for (const key of [...needed, ...ways.flat()]) {
        assert.ok(cell.includes(`\`${settings[key]?.env?.[0] ?? key}\``), `${name}: ${key} in ${cell}`);
      }
    }
  });

  test("says of each target in words what its Markdown becomes", () => {
    for (const { name, markup } of all) assert.match(markup, /^[\p{L}][^|\n]{3,80}[^.]$/u, name);
  });
});
