// What a gateway keeps open with services: real processes, a real store, a service that holds its polls.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { describe, type TestContext, test } from "node:test";
import { type FakeUpdates, startFakeUpdates } from "../fakes/weixin.ts";
import { missing } from "../needs.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome } from "../tools/home.ts";
import { sharedPostgres } from "../tools/postgres.ts";
import { until } from "../tools/wait.ts";

const token = "good-token-of-the-account";
const server = sharedPostgres();

function config({ baseUrl }: FakeUpdates, account: string, more = ""): string {
  return `
platforms:
  webhook: { enabled: true, host: 127.0.0.1, port: 0, secret: the-secret-of-all-gateways }
  weixin:
    enabled: true
    token: ${token}
    account_id: ${account}
    extra: { base_url: "${baseUrl}" }
${more}`;
}

async function startUpdates(t: TestContext): Promise<FakeUpdates> {
  const updates = await startFakeUpdates(token);
  t.after(() => updates.close());
  return updates;
}

/** An answer to a poll, after which the next one comes at once and names this cursor. */
function news(cursor: string) {
  const msg = { from_user_id: "ana@im.wechat", context_token: "t", message_type: 1 };
  return { status: 200, body: { ret: 0, msgs: [msg], get_updates_buf: cursor } };
}

test("a gateway attends a target from its start to its end, and remembers for the next start", async (t) => {
  const updates = await startUpdates(t);
  const home = await makeHome(t, { "config.yaml": config(updates, "one") });
  const first = await startGatewayProcess(t, home);
  await until("the poll", () => updates.held() === 1);
  updates.answer(news("c1"));
  await until("the next poll", () => updates.held() === 1 && updates.cursors.at(-1) === "c1");
  const stoppedAt = performance.now();
  assert.equal((await first.stop()).code, 0);
  assert.ok(performance.now() - stoppedAt < 10_000, "a poll that is held does not hold up the end");
  await until("the end of the poll", () => updates.held() === 0);
  await startGatewayProcess(t, home);
  await until("the poll of the second start", () => updates.held() === 1);
  assert.deepEqual(updates.cursors, ["", "c1", "c1"]);
});

test("a gateway attends by other settings when they change while it runs", async (t) => {
  const updates = await startUpdates(t);
  const home = await makeHome(t, { "config.yaml": config(updates, "one") });
  await startGatewayProcess(t, home);
  await until("the poll", () => updates.held() === 1);
  updates.answer(news("c1"));
  await until("the next poll", () => updates.held() === 1 && updates.cursors.at(-1) === "c1");
  await writeFile(home.config, config(updates, "another"));
  await until("the other account's poll", () => updates.held() === 1 && updates.cursors.at(-1) === "");
});

describe("two gateways on one database", { skip: missing("postgres") }, () => {
  test("attend in one of them, and in the other within the lease when the first is killed", async (t) => {
    const url = await (await server()).database(t);
    const updates = await startUpdates(t);
    const text = config(updates, "one", `store: { url: "${url}", lease: 3s }\n`);
    const homes = await Promise.all([1, 2].map(() => makeHome(t, { "config.yaml": text })));
    const first = await startGatewayProcess(t, homes[0]!);
    await until("the poll", () => updates.held() === 1);
    await startGatewayProcess(t, homes[1]!);
    for (let round = 1; round <= 20; round += 1) {
      updates.answer(news(`c${round}`));
      await until("the next poll", () => updates.cursors.at(-1) === `c${round}`);
      assert.equal(updates.held(), 1);
    }
    first.kill("SIGKILL");
    await until("the end of the poll", () => updates.held() === 0);
    const killedAt = performance.now();
    await until("the other's poll", () => updates.held() === 1);
    const tookMs = performance.now() - killedAt;
    t.diagnostic(`taken over after ${Math.round(tookMs)} ms, with leases of 3000 ms`);
    assert.equal(updates.cursors.at(-1), "c20", "it goes on where the first one was");
  });
});
