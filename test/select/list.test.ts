import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseJson } from "../../src/core/json.ts";
import type { JsonObject } from "../../src/core/types.ts";
import { compileFilters, matches } from "../../src/select/filter.ts";
import { eventOf } from "../core/event.ts";

const top = await mkdtemp(join(tmpdir(), "postern-list-"));
after(() => rm(top, { recursive: true }));
const home = join(top, "home");
await mkdir(join(home, "lists"), { recursive: true });

/** Judges one value against a list; each call goes through the same compiled filter. */
function listFilter(path: string) {
  const warnings: string[] = [];
  const result = compileFilters([{ field: "value", in_file: path }], home, {
    warn: (message) => warnings.push(message),
  });
  assert.ok("filter" in result, JSON.stringify(result));
  const { filter } = result;
  const holds = async (json: string) => {
    const payload = parseJson(`{"value":${json}}`) as JsonObject;
    return (await matches(filter, eventOf({ payload }))) === undefined;
  };
  return { holds, warnings };
}

const files: [what: string, content: string, inside: string[], outside: string[]][] = [
  [
    "a JSON list",
    '["a", 7, true, null, 12345678901234567890]',
    ['"a"', "7", "7.0", "true", "null", "12345678901234567890"],
    ['"7"', '"true"', "12345678901234567891", '"b"', "[7]"],
  ],
  ["the keys of a JSON object", '{"a": false, "7": {}}', ['"a"', '"7"', "7"], ['"b"', "false", '"constructor"']],
  ["lines", "a\r\n\n  b c  \n# d\n7", ['"a"', '"b c"', '"# d"', '"7"', "7"], ['""', '"b"', '"c"', "null", '"a\\r"']],
  ["lines that look like JSON", '[SILENT]\n{"x"', ['"[SILENT]"', '"{\\"x\\""'], ['"x"']],
  ["lines after a byte order mark", "\ufeffa\nb", ['"a"', '"b"'], []],
  ["nothing", "", [], ['""', "null"]],
];
for (const [index, [what, content, inside, outside]] of files.entries()) {
  test(`a file of ${what} holds what stands in it`, async () => {
    await writeFile(join(home, "lists", `${index}`), content);
    const { holds, warnings } = listFilter(`lists/${index}`);
    for (const value of inside) assert.ok(await holds(value), `${value} is missing`);
    for (const value of outside) assert.ok(!(await holds(value)), `${value} is found`);
    assert.deepEqual(warnings, []);
  });
}

test("a file is read again when it changes, and only then", async () => {
  const path = join(home, "lists", "changing");
  await writeFile(path, "one");
  const { holds } = listFilter(path);
  assert.deepEqual([await holds('"one"'), await holds('"two"')], [true, false]);
  await writeFile(path, "two");
  assert.deepEqual([await holds('"one"'), await holds('"two"')], [false, true]);
});

test("a missing file matches nothing and is warned about once, until it was there again", async () => {
  const { holds, warnings } = listFilter("lists/late");
  assert.deepEqual([await holds('"x"'), await holds('"x"'), warnings.length], [false, false, 1]);
  assert.match(warnings[0]!, /lists\/late" of a filter is missing/);
  await writeFile(join(home, "lists", "late"), "x");
  assert.equal(await holds('"x"'), true);
  await rm(join(home, "lists", "late"));
  assert.deepEqual([await holds('"x"'), warnings.length], [false, 2]);
});

test("a link that leads out of the home is refused, and one inside is followed", async () => {
  await writeFile(join(top, "outside"), "x");
  await writeFile(join(home, "lists", "real"), "x");
  await symlink(join(top, "outside"), join(home, "lists", "link-out"));
  await symlink(join(home, "lists", "real"), join(home, "lists", "link-in"));
  const out = listFilter("lists/link-out");
  assert.equal(await out.holds('"x"'), false);
  assert.match(out.warnings[0]!, /leads outside the home/);
  assert.equal(await listFilter("lists/link-in").holds('"x"'), true);
});

test("a home that is itself a link works", async () => {
  await writeFile(join(home, "lists", "plain"), "x");
  const link = join(top, "link-home");
  await symlink(home, link);
  const result = compileFilters([{ field: "value", in_file: "lists/plain" }], link);
  assert.ok("filter" in result);
  assert.equal(await matches(result.filter, eventOf({ payload: { value: "x" } })), undefined);
});

test("a folder is not a list", async () => {
  const { holds, warnings } = listFilter("lists");
  assert.equal(await holds('"x"'), false);
  assert.match(warnings[0]!, /is not a file/);
});

test("a filter with a list tells which clause failed", async () => {
  await writeFile(join(home, "lists", "few"), "x");
  const result = compileFilters([{ field: "value", in_file: "lists/few" }], home);
  assert.ok("filter" in result);
  assert.deepEqual(await matches(result.filter, eventOf({ payload: { value: "y" } })), {
    clause: 'filters.0: value in_file "lists/few"',
    value: '"y"',
  });
});
