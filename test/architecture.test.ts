import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { faultsOf } from "./tools/floors.ts";
import { makeHome } from "./tools/home.ts";

const src = fileURLToPath(new URL("../src", import.meta.url));

test("every import obeys the floors, none of them makes a cycle, and registries list every adapter and nothing else", () => {
  assert.deepEqual(faultsOf(src), []);
});

test("the test looks at the real sources", () => {
  const main = readFileSync(`${src}/main.ts`, "utf8");
  assert.match(main, /import\("\.\/cli\/cli\.ts"\)/);
});

/** A small house in good order. */
const house: Readonly<Record<string, string>> = {
  "main.ts": 'const { go } = await import("./start.ts");\n',
  "start.ts": 'import { serve } from "./server/server.ts";\nimport * as targets from "./target/registry.ts";\n',
  "server/server.ts": 'import { handle } from "../gateway/pipeline.ts";\n',
  "gateway/pipeline.ts":
    'import { parse } from "../receive/parse.ts";\nimport type { Ledger } from "../ledger/ledger.ts";\n',
  "ledger/ledger.ts": 'import type { Outcome } from "../agent/agent.ts";\nimport { newId } from "../core/id.ts";\n',
  "receive/parse.ts": 'import {\n  a,\n  b,\n} from "../core/id.ts";\n',
  "agent/agent.ts": 'import type { Sandbox } from "../sandbox/sandbox.ts";\n',
  "sandbox/sandbox.ts": 'import { run } from "../lib/spawn.ts";\n',
  "lib/spawn.ts": 'import { spawn } from "node:child_process";\nimport { id } from "../core/id.ts";\n',
  "core/id.ts": 'import { randomFillSync } from "node:crypto";\n// import { x } from "../lib/spawn.ts";\n',
  "target/target.ts": "export interface Target {}\n",
  "target/log.ts": 'import type { Target } from "./target.ts";\nexport const log: Target = {};\n',
  "target/registry.ts": 'export { log } from "./log.ts";\n',
};

async function faultsWith(t: TestContext, changes: Readonly<Record<string, string>>): Promise<string[]> {
  const { folder } = await makeHome(t, { ...house, ...changes });
  return faultsOf(folder);
}

describe("the test of the house", () => {
  test("finds nothing wrong with a house in good order", async (t) => {
    assert.deepEqual(await faultsWith(t, {}), []);
  });

  const plants: [what: string, changes: Record<string, string>, fault: RegExp][] = [
    [
      "an import upward",
      {
        "core/text.ts": "",
        "receive/body.ts": 'import { handle } from "../gateway/rates.ts";\n',
        "gateway/rates.ts": "",
      },
      /^receive\/body\.ts imports "\.\.\/gateway\/rates\.ts": nothing imports upward$/,
    ],
    [
      "an import upward of a type only",
      { "ledger/retry.ts": 'import type { Rates } from "../gateway/rates.ts";\n', "gateway/rates.ts": "" },
      /^ledger\/retry\.ts .*upward$/,
    ],
    [
      "an import of the doorstep",
      { "cli/run.ts": 'import { go } from "../process.ts";\n', "process.ts": "" },
      /^cli\/run\.ts .*upward$/,
    ],
    [
      "a dynamic import upward",
      { "store/open.ts": '  const x = await import("../cli/cli.ts");\n', "cli/cli.ts": "" },
      /^store\/open\.ts .*upward$/,
    ],
    [
      "an import between rooms of one floor",
      { "select/filter.ts": 'import { parse } from "../receive/parse.ts";\n' },
      /^select\/filter\.ts .*do not import each other$/,
    ],
    [
      "an import of a port by a step",
      { "compose/prompt.ts": 'import type { Target } from "../target/target.ts";\n' },
      /^compose\/prompt\.ts .*do not import each other$/,
    ],
    [
      "an export from another room of the floor",
      { "config/route.ts": 'export { newId } from "../ledger/ledger.ts";\n' },
      /^config\/route\.ts .*do not import each other$/,
    ],
    [
      "an import that spans lines",
      { "cli/x.ts": 'import {\n  serve,\n  other,\n} from "../server/server.ts";\n' },
      /^cli\/x\.ts .*do not import each other$/,
    ],
    [
      "an agent that imports more of a sandbox than its type",
      { "agent/run.ts": 'import { open } from "../sandbox/sandbox.ts";\n' },
      /^agent\/run\.ts .*do not import each other$/,
    ],
    [
      "an agent that imports the type of one sandbox",
      { "agent/run.ts": 'import type { X } from "../sandbox/local.ts";\n', "sandbox/local.ts": "" },
      /^agent\/run\.ts .*do not import each other$/,
    ],
    [
      "a core that imports lib",
      { "core/text.ts": 'import type { Finished } from "../lib/spawn.ts";\n' },
      /^core\/text\.ts .*nothing but core$/,
    ],
    [
      "a core that does I/O",
      { "core/text.ts": 'import { readFileSync } from "node:fs";\n' },
      /^core\/text\.ts imports "node:fs": core does no I\/O/,
    ],
    ["a core that needs a package", { "core/text.ts": 'import { z } from "zod";\n' }, /^core\/text\.ts imports "zod"/],
    ["a built-in module without its prefix", { "lib/x.ts": 'import "fs";\n' }, /^lib\/x\.ts imports "fs": .*"node:"$/],
    [
      "an import of nothing",
      { "lib/x.ts": 'import "./y.ts";\n' },
      /^lib\/x\.ts imports "\.\/y\.ts": there is no such file$/,
    ],
    [
      "a cycle in one room",
      { "lib/a.ts": 'import { b } from "./b.ts";\n', "lib/b.ts": 'import type { A } from "./a.ts";\n' },
      /^a cycle of imports: lib\/a\.ts > lib\/b\.ts > lib\/a\.ts$/,
    ],
    [
      "a file that imports itself",
      { "lib/a.ts": 'import "./a.ts";\n' },
      /^a cycle of imports: lib\/a\.ts > lib\/a\.ts$/,
    ],
    ["an unknown room", { "helpers/x.ts": "" }, /^helpers\/x\.ts: the house has no room "helpers"$/],
    ["an unknown room of other files", { "assets/x.sql": "" }, /^assets\/x\.sql: the house has no room "assets"$/],
    ["a file on the doorstep", { "util.ts": "" }, /^util\.ts: it must stand in a room$/],
    ["an index.ts", { "lib/http/index.ts": "" }, /^lib\/http\/index\.ts: no file is named index\.ts$/],
    [
      "an adapter that is not listed",
      { "target/slack.ts": "export const slack: Target = {};\n" },
      /^target\/registry\.ts: "slack\.ts" is not listed$/,
    ],
    [
      "a registry that does more than list",
      { "target/registry.ts": 'export { log } from "./log.ts";\nexport const all = [];\n' },
      /^target\/registry\.ts: "export const all = \[\];" is no line of a registry$/,
    ],
    [
      "a registry that lists what is no adapter",
      { "target/registry.ts": 'export { log } from "./log.ts";\nexport { Target } from "./target.ts";\n' },
      /^target\/registry\.ts: "target\.ts" exports no adapter$/,
    ],
    [
      "a registry that nobody knows",
      { "select/registry.ts": "" },
      /^select\/registry\.ts: what this registry lists is not known/,
    ],
  ];
  for (const [what, changes, fault] of plants) {
    test(`finds ${what}`, async (t) => {
      const faults = await faultsWith(t, changes);
      assert.equal(faults.length, 1, faults.join("\n"));
      assert.match(faults[0] ?? "", fault);
    });
  }
});
