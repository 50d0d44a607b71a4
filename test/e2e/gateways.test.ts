// Several gateways on one PostgreSQL database: real processes, real agents, a real server.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { openPostgres } from "../../src/store/postgres.ts";
import type { EventRecord } from "../../src/store/store.ts";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";
import { missing } from "../needs.ts";
import { type GatewayProcess, startGatewayProcess } from "../tools/gateway-process.ts";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { sharedPostgres } from "../tools/postgres.ts";
import { postern } from "../tools/program.ts";
import { until } from "../tools/wait.ts";

const secret = "the-secret-of-all-gateways";
const server = sharedPostgres();

/** Writes a line when it begins and one when it ends, with its number, so that overlaps can be counted afterwards. */
const noisyAgent = `read -r prompt
echo "begin $prompt" >> "$RUNS"
sleep "\${prompt#* }"
echo "end $prompt" >> "$RUNS"
echo "$prompt"`;

interface Setting {
  readonly url: string;
  readonly telegram: FakeTelegram;
  readonly runs: string;
  readonly homes: readonly TestHome[];
}

const config = ({ url, telegram }: Pick<Setting, "url" | "telegram">) => `
platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    rate_limit: 100000
    secret: ${secret}
    routes:
      limited: { prompt: "{n} {seconds}", max_concurrent: 2, deliver: telegram, deliver_extra: { chat_id: "1{n}" } }
      once: { prompt: "{n} 0", deliver: telegram, deliver_extra: { chat_id: "2" } }
      fragile: { prompt: "{n} {seconds}", on_crash: fail, deliver: telegram, deliver_extra: { chat_id: "3" } }
  telegram:
    enabled: true
    token: ${telegram.token}
    extra: { base_url: "${telegram.baseUrl}" }
agent:
  backend: command
  command: [bash, -c, ${JSON.stringify(noisyAgent)}]
  env: [RUNS]
  max_concurrent: 8
store:
  url: ${url}
  lease: 3s
`;

async function setUp(t: TestContext, count: number): Promise<Setting> {
  const url = await (await server()).database(t);
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const homes = await Promise.all(
    Array.from({ length: count }, () => makeHome(t, { "config.yaml": config({ url, telegram }) })),
  );
  return { url, telegram, homes, runs: join(homes[0]!.folder, "runs.txt") };
}

function start(t: TestContext, { homes, runs }: Setting, index: number, role = "all"): Promise<GatewayProcess> {
  return startGatewayProcess(t, homes[index]!, { args: ["--role", role], env: { RUNS: runs } });
}

function startAll(t: TestContext, setting: Setting): Promise<GatewayProcess[]> {
  return Promise.all(setting.homes.map((_, index) => start(t, setting, index)));
}

async function post(gateway: GatewayProcess, route: string, payload: object, id: string): Promise<number> {
  const body = JSON.stringify(payload);
  const response = await postGithubEvent(`${gateway.url}/webhooks/${route}`, { secret, body, id });
  await response.arrayBuffer();
  return response.status;
}

async function recordsOf(t: TestContext, url: string): Promise<() => Promise<EventRecord[]>> {
  const store = await openPostgres({ url, schema: "postern", readOnly: true });
  t.after(() => store.close());
  return async () => {
    const rows = await store.listEvents({ limit: 1000 });
    const records = await Promise.all(rows.map(({ id }) => store.readEvent({ id })));
    return records.filter((record) => record !== undefined);
  };
}

async function linesOf(path: string): Promise<string[]> {
  return (await readFile(path, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
}

describe("three gateways on one database", { skip: missing("postgres") }, () => {
  test("run no more agents of a route at once than it may have, all together", async (t) => {
    const setting = await setUp(t, 3);
    const gateways = await startAll(t, setting);
    const posts = Array.from({ length: 18 }, (_, n) =>
      post(gateways[n % 3]!, "limited", { n, seconds: "0.1" }, `d-${n}`),
    );
    assert.deepEqual([...new Set(await Promise.all(posts))], [202]);
    await until(
      "all runs",
      async () => (await linesOf(setting.runs)).filter((line) => line.startsWith("end")).length === 18,
    );
    let atOnce = 0;
    let most = 0;
    for (const line of await linesOf(setting.runs)) {
      atOnce += line.startsWith("begin") ? 1 : -1;
      most = Math.max(most, atOnce);
    }
    assert.equal(most, 2);
    await until("all messages", () => setting.telegram.messages.length === 18);
  });

  test("make one job of fifty copies of one delivery that come at once", async (t) => {
    const setting = await setUp(t, 3);
    const gateways = await startAll(t, setting);
    const copies = Array.from({ length: 50 }, (_, index) => post(gateways[index % 3]!, "once", { n: 1 }, "the same"));
    const statuses = await Promise.all(copies);
    assert.equal(statuses.filter((status) => status === 202).length, 1);
    assert.equal(statuses.filter((status) => status === 200).length, 49);
    const records = await recordsOf(t, setting.url);
    await until("the message", () => setting.telegram.messages.length > 0);
    await until("the end", async () => (await records()).every(({ state }) => state === "done"));
    assert.equal((await records()).length, 1);
    assert.equal((await linesOf(setting.runs)).length, 2);
    assert.equal(setting.telegram.messages.length, 1);
  });

  test("take over the jobs of one that dies, within its lease; a route may have them fail instead", async (t) => {
    const setting = await setUp(t, 2);
    const dying = await start(t, setting, 0);
    assert.equal(await post(dying, "limited", { n: 7, seconds: "30" }, "d-7"), 202);
    assert.equal(await post(dying, "fragile", { n: 8, seconds: "30" }, "d-8"), 202);
    await until("both runs", async () => (await linesOf(setting.runs)).length === 2);
    const other = await start(t, setting, 1);
    dying.kill("SIGKILL");
    const killedAt = performance.now();
    await until(
      "the run's second begin",
      async () => (await linesOf(setting.runs)).filter((line) => line.startsWith("begin 7")).length === 2,
    );
    const tookMs = performance.now() - killedAt;
    t.diagnostic(`taken over after ${Math.round(tookMs)} ms, with leases of 3000 ms`);
    assert.ok(tookMs < 3_000 + 2_500, `${tookMs} ms`);
    const records = await recordsOf(t, setting.url);
    await until("the other's end", async () => (await records()).some(({ state }) => state === "dead"));
    const dead = (await records()).find(({ state }) => state === "dead");
    assert.match(dead?.reason ?? "", /on_crash: fail/);
    assert.equal(dead?.deliveryId, "d-8");
    other.kill("SIGKILL");
  });

  test("may be parts: one receives, another works", async (t) => {
    const setting = await setUp(t, 2);
    const ingest = await start(t, setting, 0, "ingest");
    assert.equal(await post(ingest, "once", { n: 5 }, "d-5"), 202);
    const worker = postern(t, ["gateway", "run", "--role", "worker"], {
      env: { POSTERN_HOME: setting.homes[1]!.folder, RUNS: setting.runs },
    });
    await until("the message", () => setting.telegram.messages.length === 1);
    void worker;
    assert.equal((await ingest.stop()).code, 0);
    assert.ok(!ingest.err.includes("Run ended"), "the one that receives runs nothing");
  });

  test("share their subscriptions: what is subscribed on one machine is there on the others", async (t) => {
    const setting = await setUp(t, 2);
    const [, second] = await startAll(t, setting);
    const env = { POSTERN_HOME: setting.homes[0]!.folder };
    const made = await postern(t, ["webhook", "subscribe", "dynamic", "--secret", secret, "--prompt", "{n} 0"], {
      env,
    });
    assert.equal(made.code, 0, made.err);
    assert.equal(await post(second!, "dynamic", { n: 1 }, "d-1"), 202);
    const listed = await postern(t, ["webhook", "list", "--json"], { env: { POSTERN_HOME: setting.homes[1]!.folder } });
    assert.equal((JSON.parse(listed.out) as { name: string }[])[0]?.name, "dynamic");
    assert.equal((await postern(t, ["webhook", "remove", "dynamic"], { env })).code, 0);
    await until("its end", async () => (await post(second!, "dynamic", { n: 2 }, "d-2")) === 404);
  });

  test("a gateway whose database is away answers 503, and goes on by itself when it is back", async (t) => {
    const setting = await setUp(t, 1);
    const gateway = await start(t, setting, 0);
    const postgres = await server();
    assert.equal(await post(gateway, "once", { n: 1 }, "d-1"), 202);
    await postgres.stop("immediate");
    const refused = await postGithubEvent(`${gateway.url}/webhooks/once`, { secret, body: '{"n":2}', id: "d-2" });
    assert.equal(refused.status, 503);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.equal((await fetch(`${gateway.url}/health`)).status, 200);
    await postgres.start();
    await until("the next", async () => (await post(gateway, "once", { n: 2 }, "d-2")) === 202);
    await until("both messages", () => setting.telegram.messages.length === 2);
  });
});
