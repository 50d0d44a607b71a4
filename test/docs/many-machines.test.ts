import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { openPostgres } from "../../src/store/postgres.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { EventRecord } from "../../src/store/store.ts";
import { missing } from "../needs.ts";
import { type GatewayProcess, logLines, startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { type OwnPostgresServer, startPostgres } from "../tools/postgres.ts";
import { mainPath, type Program, startProgram } from "../tools/program.ts";
import { anAgentEvent, newEvent } from "../tools/rows.ts";
import { sendEvent } from "../tools/send.ts";
import { until } from "../tools/wait.ts";
import { blocksOf, pages } from "./blocks.ts";
import { replay, runCommand } from "./session.ts";

/*
 * The page from its beginning to its end: the database is set up as it says, a home is moved over with its commands, and
 * then one gateway receives and another works. The second one has no more rights than the page says are enough.
 */

const page = readFileSync(new URL(`../../${pages.machines}`, import.meta.url), "utf8");
const blocks = blocksOf(pages.machines);
const secret = "the-secret-of-all-routes";
const config = JSON.stringify({
  platforms: { webhook: { enabled: true, host: "127.0.0.1", port: 0, secret } },
  agent: { backend: "preview" },
});

test("docs/many-machines.md: a home moves into a database, and two machines share its work", {
  skip: missing("postgres"),
}, async (t) => {
  const server = await startPostgres();
  t.after(() => server.close());
  for (const statement of setUp()) await server.query(statement);
  const url = addressAt(server, ordinaryUser);
  const home = await homeOnFile(t);
  const type = async (command: string) => runCommand(t, command, home, { POSTERN_STORE_URL: url });
  for (const session of blocks.filter(({ kind }) => kind === "session")) {
    await replay({ home, ids: new Map(), type }, session);
  }

  const receiver = await startGatewayProcess(t, home, {
    args: ["--role", "ingest"],
    env: { POSTERN_STORE_URL: url },
  });
  const worker = startWorker(t, await makeHome(t, { "config.yaml": config }), await lesserUser(server));
  assert.equal((await sendEvent(receiver.url, "hello", secret, { name: "Ada" })).status, 202);
  const states = await until("the end of all events", async () => {
    const found = (await recordsIn(url)).map(({ route, state }) => `${route} ${state}`);
    return found.some((one) => /queued|running|delivering/.test(one)) ? undefined : found;
  });
  assert.deepEqual(states.sort(), ["hello done", "old done", "old ignored"]);
  assert.deepEqual([runsOf(receiver), runsOf(worker)], [0, 2]);
});

/** The test's server has a superuser of the name that the page shows. */
const ordinaryUser = "ordinary";

/** The statements of the page. */
function setUp(): string[] {
  const [block] = blocks.filter(({ language, kind }) => language === "sql" && kind === "setup");
  const statements = (block?.text ?? "").split(/;\n/).filter((statement) => statement.trim() !== "");
  assert.equal(statements.length, 2);
  return statements.map((statement) => statement.replace(/(role|owner) postern/, `$1 ${ordinaryUser}`));
}

/** The address on the page, but for where the server is and whom it believes. */
function addressAt({ port }: OwnPostgresServer, user: string): string {
  const [, shown = ""] = /^POSTERN_STORE_URL=(.*)$/m.exec(page) ?? [];
  const url = new URL(shown);
  assert.equal(url.password, /password '([^']+)'/.exec(page)?.[1]);
  url.host = `127.0.0.1:${port}`;
  url.username = user;
  return url.href;
}

/** A home with a ledger of two events, one of which is not finished, and a subscription. */
async function homeOnFile(t: TestContext): Promise<TestHome> {
  const home = await makeHome(t, { "config.yaml": config, "data/.keep": "" });
  const store = await openSqlite({ path: home.ledger, readOnly: false });
  const plan = JSON.stringify({ prompt: "Explain this", skills: [], tools: [] });
  await store.accept(anAgentEvent({ at: Date.now(), route: "old", targets: ["log"], plan }));
  await store.ignore({ ...newEvent({ at: Date.now(), route: "old" }), reason: "filters.0: action in [], found 1" });
  await store.close();
  await runCommand(t, `postern webhook subscribe hello --prompt "Say hello to {name}" --secret ${secret}`, home);
  return home;
}

/** A user who has the rights that the page calls enough once the tables are there. */
async function lesserUser(server: OwnPostgresServer): Promise<string> {
  const [, usage, tables] =
    /`(usage)` of the schema and `([^`]+)` on its tables are enough/.exec(page.replaceAll("\n", " ")) ?? [];
  const database = server.url.replace(/postgres$/, "postern");
  await server.query("create role lesser login", database);
  await server.query(`grant ${usage} on schema postern to lesser`, database);
  await server.query(`grant ${tables} on all tables in schema postern to lesser`, database);
  return addressAt(server, "lesser");
}

function startWorker(t: TestContext, home: TestHome, url: string): Program {
  const argv = [process.execPath, mainPath, "gateway", "run", "--role", "worker"];
  return startProgram(t, argv, { env: { POSTERN_HOME: home.folder, POSTERN_STORE_URL: url } });
}

async function recordsIn(url: string): Promise<EventRecord[]> {
  const store = await openPostgres({ url, schema: "postern", readOnly: true });
  try {
    const rows = await store.listEvents({ limit: 100 });
    const records = await Promise.all(rows.map(({ id }) => store.readEvent({ id })));
    return records.filter((record) => record !== undefined);
  } finally {
    await store.close();
  }
}

/** How many runs of the agent its log tells of. */
function runsOf(gateway: Program | GatewayProcess): number {
  return logLines(gateway.err).filter(({ msg }) => msg === "Run ended").length;
}
