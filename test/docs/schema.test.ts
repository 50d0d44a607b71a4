import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import * as agents from "../../src/agent/registry.ts";
import * as tools from "../../src/agent/tools/registry.ts";
import { configJsonSchema, type JsonSchema } from "../../src/config/json-schema.ts";
import { badRouteName } from "../../src/config/route.ts";
import * as sandboxes from "../../src/sandbox/registry.ts";
import { operators } from "../../src/select/operators.ts";
import * as targets from "../../src/target/registry.ts";
import type { Target } from "../../src/target/target.ts";
import { load, problemsOf } from "../config/loading.ts";
import { blocksOf, pages } from "./blocks.ts";
import { examplesIn } from "./examples.ts";

const schema = configJsonSchema();
const definitions = schema.$defs ?? {};
/** The JSON Schema as a validator: what an editor would say. */
const editor = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);

function editorAccepts(value: unknown): boolean {
  return editor.safeParse(value).success;
}

/** Every schema inside, with the path to it. */
function* inside(one: JsonSchema, path = "#"): Generator<[path: string, one: JsonSchema]> {
  yield [path, one];
  const maps = { properties: one.properties, $defs: one.$defs };
  for (const [keyword, map] of Object.entries(maps)) {
    for (const [name, child] of Object.entries(map ?? {})) yield* inside(child, `${path}/${keyword}/${name}`);
  }
  for (const [index, child] of (one.anyOf ?? []).entries()) yield* inside(child, `${path}/anyOf/${index}`);
  for (const keyword of ["items", "propertyNames", "additionalProperties"] as const) {
    const child = one[keyword];
    if (typeof child === "object") yield* inside(child, `${path}/${keyword}`);
  }
}

const everything = [...inside(schema)];

test("it is JSON Schema 2020-12 with the keywords that it says it uses", () => {
  assert.equal(schema.$schema, "https://json-schema.org/draft/2020-12/schema");
  const keywords =
    `$schema $ref $defs title description deprecated examples default type enum const pattern format minLength
    minimum maximum minItems items properties propertyNames additionalProperties required anyOf x-env`.split(/\s+/);
  const types = ["string", "number", "integer", "boolean", "object", "array", "null"];
  for (const [path, one] of everything) {
    assert.deepEqual(
      Object.keys(one).filter((key) => !keywords.includes(key)),
      [],
      path,
    );
    for (const type of [one.type ?? []].flat()) assert.ok(types.includes(type), path);
    for (const name of one.required ?? []) assert.ok(one.properties?.[name], `${path}: "${name}" is no property`);
    if (one.pattern !== undefined) new RegExp(one.pattern, "u");
  }
  assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema);
});

test("every reference leads to a definition, and every definition is used", () => {
  const named = everything.flatMap(([, { $ref }]) => ($ref === undefined ? [] : [$ref.replace("#/$defs/", "")]));
  assert.deepEqual([...new Set(named)].sort(), Object.keys(definitions).sort());
});

test("every key says what it is", () => {
  const keys = everything.filter(([path]) => /\/properties\/[^/]+$/.test(path));
  assert.ok(keys.length > 100);
  assert.deepEqual(
    keys.filter(([, { description }]) => !description).map(([path]) => path),
    [],
  );
});

test("every default is a value that its key takes", () => {
  const withDefault = everything.filter(([, one]) => one.default !== undefined);
  assert.ok(withDefault.length > 20);
  for (const [path, one] of withDefault) {
    const { default: preset, ...rest } = one;
    const own = z.fromJSONSchema({ ...rest, $defs: definitions } as Parameters<typeof z.fromJSONSchema>[0]);
    assert.ok(own.safeParse(preset).success, path);
  }
});

test("the names are those of the registries", () => {
  assert.deepEqual(definitions.agentBackend?.enum, Object.keys(agents));
  assert.deepEqual(definitions.terminalBackend?.enum, Object.keys(sandboxes));
  assert.deepEqual(definitions.tool?.enum, Object.keys(tools));
  const names = (Object.values(targets) as Target[]).flatMap(({ name, neutralName }) => [name, neutralName ?? name]);
  assert.deepEqual(new Set(definitions.delivery?.anyOf?.[0]?.enum), new Set(names));
});

test("every operator of filters is described, and stands on its page", () => {
  const leaves = definitions.filter?.anyOf ?? [];
  const page = readFileSync(new URL(`../../${pages.routes}`, import.meta.url), "utf8");
  for (const name of Object.keys(operators)) {
    const leaf = leaves.find(({ properties }) => properties?.[name] !== undefined);
    assert.ok(leaf?.properties?.[name]?.description, name);
    assert.ok(page.includes(`| \`${name}: `), `"${name}" is not on the page`);
  }
});

test("route names follow the program's pattern", () => {
  for (const name of ["a", "A.b_c-9", "x".repeat(128), "", ".a", "a b", "a/b", "x".repeat(129), "é"]) {
    const config = { platforms: { webhook: { routes: { [name]: {} } } } };
    assert.equal(editorAccepts(config), badRouteName(name) === undefined, name);
  }
});

for (const block of Object.values(pages).flatMap(blocksOf)) {
  if (block.language !== "yaml" || block.kind === "route") continue;
  test(`the configuration at ${block.page}:${block.line} is accepted by the program and by the schema`, async (t) => {
    await load(t, block.text);
    assert.deepEqual(editor.safeParse(parse(block.text)).error?.issues ?? [], []);
  });
}

for (const { name, route, steps } of Object.values(pages).flatMap((page) => examplesIn(blocksOf(page)))) {
  const isWrong = steps.some(({ kind }) => kind === "problems");
  test(`the route at ${name} is ${isWrong ? "refused" : "accepted"} by the schema`, () => {
    const config = { platforms: { webhook: { extra: { routes: parse(route.text) as object } } } };
    const issues = editor.safeParse(config).error?.issues ?? [];
    assert.equal(issues.length > 0, isWrong, JSON.stringify(issues));
  });
}

const everyKey = `
platforms:
  webhook:
    enabled: yes
    host: "::1"
    port: 0
    secret: [one-secret, two-secret]
    extra:
      rate_limit: 5
      max_body_bytes: 2048
      script_timeout_seconds: 500ms
      public_url: https://hooks.example.com/in
      routes:
        a:
          description: All keys
          enabled: Off
          secret: own-secret
          events: push
          filters:
            - { field: a, exists: true }
            - { field: a, missing: true }
            - { field: a, not_equals: null }
            - { field: a, contains: 7 }
            - { field: a, in_file: lists/a.txt }
            - all: [{ any: [{ not: { field: a, equals: 1.5 } }, { not: [{ field: a, regex: b }] }] }]
          script: a.py
          script_env: NAME
          prompt: "{a}"
          skills: [one]
          tools: [terminal]
          deliver: [log, { to: chat_target_01, chat_id: -100123, thread_id: "5" }, host_a_comment]
          deliver_extra: { repo: me/app, number: 7 }
          retry: { tries: 1, max_age: 2d, first_delay: 1.5, longest_delay: 1m, keep_order_for: 0, when_unknown: at_most_once, run_tries: 1 }
          max_concurrent: 2
          on_crash: fail
        b: { filters: }
  chat_target_01: { enabled: true, extra: { token: "1:a", home_channel: { chat_id: 5, thread_id: 6, name: Ops } } }
  email: { enabled: on, smtp_host: localhost, smtp_port: "25", address: a@example.com, password: , retry: { tries: 3 } }
  github_comment:
  log: { retry: { max_age: 10d } }
webhooks: { routes: {} }
agent: { backend: command, command: [cat], env: NAME, tools: [], max_concurrent: 1, max_steps: 1, timeout: 2h }
model: { provider: ollama, name: m, base_url: http://127.0.0.1:11434/v1 }
terminal: { backend: local, timeout: 1.5m, max_output_bytes: 1000 }
scripts: { python: python3.13 }
store: { url: postgresql://u:p@h/d, schema: _own }
retry: { tries: 100, when_unknown: at_least_once }
retention: { max_age: off, max_size: 1.5 GiB, states: { done: 7200, dead: off, refused: 90d, cancelled: 1h, ignored: 1d } }
log: { level: debug }
shutdown_timeout: 0.5
admin: { port: 8645 }
`;

test("every key in its rarer forms is accepted by the program and by the schema", async (t) => {
  await load(t, everyKey);
  assert.deepEqual(editor.safeParse(parse(everyKey)).error?.issues ?? [], []);
});

const withRoute = (inner: string) => `{ platforms: { webhook: { secret: a-secret, routes: { one: ${inner} } } } }`;

for (const yaml of [
  "{ agnt: {} }",
  "{ agent: { tool: [] } }",
  "{ agent: { backend: bultin } }",
  "{ agent: { tools: [terminl] } }",
  "{ terminal: { backend: docke } }",
  "{ model: { provider: opnai } }",
  "{ log: { level: verbose } }",
  "{ shutdown_timeout: soon }",
  "{ platforms: { webhok: {} } }",
  "{ platforms: { telegram: { tokn: x } } }",
  "{ platforms: { telegram: { enabled: true, extra: { enabled: true } } } }",
  "{ platforms: { telegram: { enabled: true, home_channel: { chat: 5 } } } }",
  "{ platforms: { telegram: { enabled: true, base_url: telegram.org } } }",
  "{ platforms: { email: { enabled: true, smtp_port: many } } }",
  "{ platforms: { webhook: { enabled: maybe } } }",
  "{ platforms: { webhook: { port: 70000 } } }",
  "{ platforms: { webhook: { public_url: hooks.example.com } } }",
  "{ platforms: { webhook: { extra: { hots: a } } } }",
  "{ platforms: { telegram: { retry: { run_tries: 1 } } } }",
  "{ platforms: { log: { retry: { tries: many } } } }",
  "{ platforms: { log: { extra: { retry: {} } } } }",
  "{ store: { url: mysql://host/db } }",
  "{ store: { schema: Postern } }",
  "{ retry: { max_age: 2w } }",
  "{ retry: { tries: 101 } }",
  "{ retention: { max_age: never } }",
  "{ retention: { max_size: 2G } }",
  "{ retention: { states: { failed: 5d } } }",
  withRoute("{ max_concurrent: 0 }"),
  withRoute("{ on_crash: restart }"),
  withRoute("{ retry: { when_unknown: twice } }"),
  withRoute("{ event: push }"),
  withRoute("{ deliver: telegrm }"),
  withRoute("{ deliver: [] }"),
  withRoute("{ deliver: [log, { chat_id: 5 }] }"),
  withRoute("{ deliver: [log, { to: log, chat_id: 5 }] }"),
  withRoute("{ deliver: github_comment, deliver_extra: { repo: a/b, numbr: 7 } }"),
  withRoute("{ deliver: github_comment, deliver_extra: { repo: [a/b], number: 7 } }"),
  withRoute("{ filters: { field: a, exists: true } }"),
  withRoute("{ filters: [{ field: a }] }"),
  withRoute("{ filters: [{ exists: true }] }"),
  withRoute("{ filters: [{ field: a, equal: b }] }"),
  withRoute("{ filters: [{ field: a, equals: b, exists: true }] }"),
  withRoute("{ filters: [{ field: a, missing: false }] }"),
  withRoute("{ filters: [{ field: a, equals: [b] }] }"),
  withRoute("{ filters: [{ field: a, in: b }] }"),
  withRoute("{ filters: [{ any: [] }] }"),
  withRoute("{ filters: [{ any: [{ field: a, exists: true }], field: a }] }"),
]) {
  test(`the mistake in ${yaml} is found by the program and by the schema`, async (t) => {
    assert.ok((await problemsOf(t, yaml)).length > 0);
    assert.ok(!editorAccepts(parse(yaml)));
  });
}
