import assert from "node:assert/strict";
import { test } from "node:test";
import { startFakeTelegram } from "../fakes/telegram.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome } from "../tools/home.ts";
import { readLedger } from "../tools/ledger.ts";
import { until } from "../tools/wait.ts";

test("a direct delivery that a SIGKILL cut off may be sent again under its id, by the first request after the restart", async (t) => {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const secret = "the-secret-of-alerts";
  const home = await makeHome(t, {
    "config.yaml": `
platforms:
  webhook:
    { enabled: true, host: 127.0.0.1, port: 0, secret: ${secret}, routes: { alerts: { prompt: "{n}", deliver: telegram, deliver_only: true } } }
  telegram: { enabled: true, token: "${telegram.token}", home_channel: "42", extra: { base_url: "${telegram.baseUrl}" } }
`,
  });
  telegram.upcoming.push("hang");
  const first = await startGatewayProcess(t, home);
  const delivery = { secret, body: '{"n":1}', id: "cut-off" };
  const cut = postGithubEvent(`${first.url}/webhooks/alerts`, delivery);
  cut.catch(() => {});
  await until("the try", () => telegram.tries === 1);
  first.kill("SIGKILL");
  await assert.rejects(cut);

  const second = await startGatewayProcess(t, home);
  const response = await postGithubEvent(`${second.url}/webhooks/alerts`, delivery);
  assert.deepEqual([response.status, ((await response.json()) as { status: string }).status], [200, "delivered"]);
  assert.equal(telegram.messages.length, 1);
  assert.deepEqual(
    (await readLedger(home.ledger)).map(({ state }) => state),
    ["done", "refused"],
  );
});
