import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { loadConfig } from "../../src/config/load.ts";
import { loadStoreSettings } from "../../src/config/store.ts";
import { ConfigError, describeProblem } from "../../src/core/errors.ts";
import { redact } from "../../src/core/text.ts";
import type { Environment } from "../../src/core/types.ts";
import { makeHome } from "../tools/home.ts";
import { complaints, load } from "./loading.ts";

const url = "postgres://ada:hunter2-8675309@db.example.com:5433/hooks?sslmode=require";

interface Said {
  readonly yaml?: string;
  readonly dotenv?: string;
  readonly env?: Environment;
}

/** A home in which this is said, and what both readers of it make of the store. */
async function storeOf(t: TestContext, { yaml = "", dotenv = "", env = {} }: Said) {
  const home = await makeHome(t, { "config.yaml": yaml, ".env": dotenv });
  const config = await loadConfig({ home, env });
  assert.deepEqual(await loadStoreSettings({ home, env }), config.store);
  return { home, store: config.store, secrets: config.secrets };
}

test("the ledger is the home's SQLite file unless something else is said", async (t) => {
  for (const said of [
    {},
    { yaml: "store: {}" },
    { yaml: "store: { schema: x }" },
    { env: { POSTERN_STORE_URL: " " } },
  ]) {
    const { home, store } = await storeOf(t, said);
    assert.deepEqual(store, { kind: "sqlite", path: home.ledger });
  }
});

test("a home without any file has its store in SQLite", async (t) => {
  const home = await makeHome(t);
  assert.deepEqual(await loadStoreSettings({ home, env: {} }), { kind: "sqlite", path: home.ledger });
});

test("store.url names a PostgreSQL database, with a schema of its own or the usual one", async (t) => {
  const usual = await storeOf(t, { yaml: `store: { url: "${url}" }` });
  assert.deepEqual(usual.store, { kind: "postgres", url, schema: "postern" });
  const own = await storeOf(t, { yaml: "store: { url: postgresql:///hooks, schema: hooks_2 }" });
  assert.deepEqual(own.store, { kind: "postgres", url: "postgresql:///hooks", schema: "hooks_2" });
});

test("POSTERN_STORE_URL wins over .env, that over the file, whose schema counts for each of them", async (t) => {
  const yaml = "store: { url: postgres://file/a, schema: own }";
  const dotenv = "POSTERN_STORE_URL=postgres://dotenv/a";
  const env = { POSTERN_STORE_URL: " postgres://env/a " };
  const settings = (host: string) => ({ kind: "postgres", url: `postgres://${host}/a`, schema: "own" });
  assert.deepEqual((await storeOf(t, { yaml })).store, settings("file"));
  assert.deepEqual((await storeOf(t, { yaml, dotenv })).store, settings("dotenv"));
  assert.deepEqual((await storeOf(t, { yaml, dotenv, env })).store, settings("env"));
});

const address = 'Expected the address of a PostgreSQL database such as "postgres://user:password@host:5432/database"';

/** What cannot be the address of a store; each holds the same password. */
const wrong: readonly (readonly [what: string, url: string, complaint: string])[] = [
  ["another database", "mysql://ada:hunter2-8675309@host/db", `${address}; for the SQLite file in the home, remove it`],
  ["a file", "sqlite:hunter2-8675309.db", address],
  ["a path", "/var/lib/hunter2-8675309.db", address],
  ["no scheme", "ada:hunter2-8675309@host/db", address],
  ["another case", "Postgres://ada:hunter2-8675309@host/db", address],
  ["words of libpq", "host=db user=ada password=hunter2-8675309", address],
  ["# in the password", "postgres://ada:hunter2-8675309#1@host/db", "This is no address that can be read"],
  ["# and a number in the password", "postgres://ada:8#hunter2-8675309@host/db", "This is no address that can be read"],
  ["/ in the password", "postgres://ada:hunter2-8675309/1@host/db", "This is no address that can be read"],
  [
    "/ behind a number in the password",
    "postgres://ada:8/hunter2-8675309@host/db",
    "This is no address that can be read",
  ],
  ["a lone % in the password", "postgres://ada:hunter2-8675309%zz@host/db", "This is no address that can be read"],
  ["a port in words", "postgres://ada:hunter2-8675309@host:many/db", "This is no address that can be read"],
];

for (const [what, text, complaint] of wrong) {
  test(`a store's address with ${what} is refused, and its password is not repeated`, async (t) => {
    const home = await makeHome(t, { "config.yaml": `store:\n  url: "${text}"\n` });
    const inFile = await bothProblems(home, {});
    assert.ok(inFile.startsWith(`${home.config}:2:3: store.url: ${complaint}`), inFile);
    const inEnv = await bothProblems(await makeHome(t), { POSTERN_STORE_URL: text });
    assert.ok(inEnv.startsWith(`POSTERN_STORE_URL: ${complaint}`), inEnv);
  });
}

/** What is wrong, as the gateway and as commands that need the store only say it. */
async function bothProblems(home: Parameters<typeof loadConfig>[0]["home"], env: Environment): Promise<string> {
  const [all, store] = await Promise.all([loadConfig, loadStoreSettings].map((read) => problemOf(read({ home, env }))));
  assert.equal(all, store);
  assert.doesNotMatch(all ?? "", /hunter2|8675309/);
  return all ?? "";
}

async function problemOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading;
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    assert.doesNotMatch(error.message, /hunter2|8675309/);
    return error.problems.map(describeProblem).join("\n");
  }
  return assert.fail("The store was accepted");
}

for (const [what, yaml, complaint] of [
  ["an unknown key", "store: { ulr: x }", '1:10: store.ulr: Unknown key "ulr"; did you mean "url"'],
  ["text", `store: ${url}`, "1:1: store: Expected a mapping of keys to values"],
  ["a number as the address", "store: { url: 8675309 }", "1:10: store.url: Expected text"],
  ["nothing as the address", "store:\n  url:\n", "2:3: store.url: Expected text"],
  ["an empty address", 'store: { url: "" }', `1:10: store.url: ${address}`],
  [
    "the address as its schema",
    `store: { schema: "${url}" }`,
    "1:10: store.schema: Expected a name of lower-case letters",
  ],
  ["a schema of the server", "store: { schema: pg_own }", "1:10: store.schema: Expected a name of lower-case letters"],
  ["a schema with a quote", "store: { schema: 'a\"b' }", "1:10: store.schema: Expected a name of lower-case letters"],
  [
    "the address as a key",
    `store: { "${url}": }`,
    "1:10: store.postgres://…@db.example.com:5433/hooks?sslmode=require: ",
  ],
] as const) {
  test(`a store that is ${what} is refused at its line, and nothing of it repeated`, async (t) => {
    const home = await makeHome(t, { "config.yaml": yaml });
    const problems = await bothProblems(home, {});
    assert.ok(problems.startsWith(`${home.config}:${complaint}`), problems);
  });
}

test("whatever else is wrong in config.yaml, the store is found", async (t) => {
  const yaml = `agents: 1
platforms: { webhook: { port: many, routes: { one: { deliver: nowhere } } } }
log: { level: 5 }
log: { level: 6 }
store: { url: postgres://db/hooks }
`;
  const home = await makeHome(t, { "config.yaml": yaml });
  await assert.rejects(loadConfig({ home, env: {} }), ConfigError);
  const store = await loadStoreSettings({ home, env: {} });
  assert.deepEqual(store, { kind: "postgres", url: "postgres://db/hooks", schema: "postern" });
});

test("a file that is a list, or no YAML without the word, leaves the SQLite file", async (t) => {
  for (const yaml of ["- a\n- b\n", "agent: { tools: [a }\n", "platforms:\n\twebhook: {}\n"]) {
    const home = await makeHome(t, { "config.yaml": yaml });
    assert.equal((await loadStoreSettings({ home, env: {} })).kind, "sqlite");
  }
});

test("a file that is no YAML and may name a store is refused: another ledger would be taken for its own", async (t) => {
  const home = await makeHome(t, { "config.yaml": `store: { url: "${url}" }\nagent: { tools: [a }\n` });
  assert.match(await problemOf(loadStoreSettings({ home, env: {} })), /config\.yaml:2:\d+: \(file\): YAML: /);
});

test("a config.yaml that cannot be read is a problem, since it may name a store", async (t) => {
  const home = await makeHome(t);
  await mkdir(home.config);
  assert.match(await problemOf(loadStoreSettings({ home, env: {} })), /\(file\): Cannot be read \(EISDIR\)/);
});

test("nothing of a store's address gets into the log: not the whole, not the password in any of its forms", async (t) => {
  const inFile = "postgres://ada:p%40ss-word@db/hooks";
  const inEnv = "postgres://ada@db/hooks?sslpassword=key%20pass&password=query-pass";
  const { secrets } = await storeOf(t, { yaml: `store: { url: "${inFile}" }`, env: { POSTERN_STORE_URL: inEnv } });
  for (const secret of [inFile, "p%40ss-word", "p@ss-word", inEnv, "key pass", "query-pass"]) {
    assert.equal(redact(`It says: ${secret}.`, secrets), "It says: [redacted].");
  }
  assert.equal(secrets.includes(""), false);
});

test("an address with a password that stands elsewhere is not repeated either", async (t) => {
  const yaml = `"${url}": 1\nplatforms: { webhook: { public_url: "${url}" } }\n`;
  const found = (await complaints(t, yaml)).join("\n");
  assert.doesNotMatch(found, /hunter2|8675309/);
  assert.match(found, /found "postgres:\/\/…@db\.example\.com/);
});

test("the store of a configuration in force is the one it was read with", async (t) => {
  const { store, home } = await load(t, "log: { level: debug }");
  assert.deepEqual(store, { kind: "sqlite", path: home.ledger });
});
