import assert from "node:assert/strict";
import { test } from "node:test";
import { makeHome, previewConfig } from "../tools/home.ts";
import { run, runJson } from "./command.ts";

test("config check on a good home names the address, the routes and the agent", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const { code, out, err } = await run(home, ["config", "check"]);
  assert.equal(code, 0);
  assert.equal(err, "");
  assert.equal(
    out,
    `${home.config}: no problems\n  gateway  enabled, 127.0.0.1 port 0\n  routes   hello\n  agent    preview\n`,
  );
});

test("config check says what an empty home lacks, and shows warnings", async (t) => {
  const home = await makeHome(t);
  assert.match((await run(home, ["config", "check"])).out, /not enabled; set "platforms\.webhook\.enabled: true"/);
  await home.write("config.yaml", "webhooks: { routes: {} }");
  assert.match((await run(home, ["config", "check"])).out, /warning {2}\S+:1: "webhooks\.routes" is deprecated/);
});

test("config check --json is one document, good or bad", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const good = await runJson<object>(home, ["config", "check"]);
  assert.deepEqual(good, {
    code: 0,
    value: {
      ok: true,
      file: home.config,
      enabled: true,
      host: "127.0.0.1",
      port: 0,
      routes: ["hello"],
      agent: "preview",
      warnings: [],
    },
    err: "",
  });
  await home.write("config.yaml", "agent: { tool: [] }");
  const bad = await runJson<object>(home, ["config", "check"]);
  assert.equal(bad.code, 78);
  assert.deepEqual(bad.value, {
    ok: false,
    file: home.config,
    problems: [
      {
        file: home.config,
        line: 1,
        column: 10,
        key: "agent.tool",
        message: 'Unknown key "tool"; did you mean "tools"',
      },
    ],
  });
});

test("problems stand on a line each, as compilers write them, on standard error", async (t) => {
  const home = await makeHome(t, { "config.yaml": "agent: { tool: [] }\nlgo: 1\n" });
  const { code, out, err } = await run(home, ["config", "check"], {
    env: { POSTERN_HOME: home.folder, WEBHOOK_PORT: "x" },
  });
  assert.equal(code, 78);
  assert.equal(out, "");
  const lines = err.split("\n");
  assert.equal(lines[0], "The configuration has 3 problems:");
  assert.match(lines[1] ?? "", /^ {2}WEBHOOK_PORT: Expected a whole number/);
  assert.equal(lines[2], `  ${home.config}:1:10: agent.tool: Unknown key "tool"; did you mean "tools"`);
  assert.match(lines[3] ?? "", /:2:1: lgo: Unknown key "lgo"/);
});

for (const args of [
  ["gateway", "run"],
  ["webhook", "subscribe", "x"],
  ["webhook", "test", "x"],
]) {
  test(`${args.join(" ")} exits 78 on a bad configuration, before it does anything`, async (t) => {
    const home = await makeHome(t, { "config.yaml": "agnt: 1" });
    const { code, out, err } = await run(home, args);
    assert.equal(code, 78);
    assert.equal(out, "");
    assert.match(err, /^The configuration has a problem:\n {2}.*config\.yaml:1:1: agnt: Unknown key/);
  });
}

test("config schema prints the JSON Schema of the file, from an empty home and with --json alike", async (t) => {
  const home = await makeHome(t);
  const { code, out, err } = await run(home, ["config", "schema"]);
  assert.deepEqual([code, err], [0, ""]);
  const schema = JSON.parse(out) as { $schema: string; properties: object };
  assert.equal(schema.$schema, "https://json-schema.org/draft/2020-12/schema");
  assert.ok("platforms" in schema.properties);
  assert.equal((await run(home, ["config", "schema", "--json"])).out, out);
});

test("config schema works where the configuration is wrong, for that is where it is needed", async (t) => {
  const home = await makeHome(t, { "config.yaml": "agnt: 1" });
  assert.equal((await run(home, ["config", "schema"])).code, 0);
});
