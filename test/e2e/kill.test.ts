import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";
import { type GatewayProcess, startGatewayProcess } from "../tools/gateway-process.ts";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { readLedger } from "../tools/ledger.ts";
import { until } from "../tools/wait.ts";

const rounds = 10;
const events = 300;
const connections = 24;
/** Each run is a program of its own, and all messages go to one chat, one after the other: that takes its time. */
const patienceMs = 60_000;
const secret = "the-secret-of-the-killed";

const config = (telegram: FakeTelegram) => `
platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    rate_limit: 1000000
    secret: ${secret}
    routes:
      numbers:
        prompt: "event {n}"
        deliver: telegram
        deliver_extra: { chat_id: "42" }
  telegram:
    enabled: true
    token: ${telegram.token}
    extra: { base_url: "${telegram.baseUrl}" }
agent:
  # A real program for each run: there are runs to be cut off.
  backend: command
  command: [cat]
`;

/** Posts the events over several connections until all are answered or the gateway is gone; calls back on each 202. */
async function load(gateway: GatewayProcess, onAccepted: (n: number) => void): Promise<void> {
  let next = 0;
  const connection = async () => {
    while (next < events) {
      const n = next++;
      const body = JSON.stringify({ n });
      try {
        const response = await postGithubEvent(`${gateway.url}/webhooks/numbers`, {
          secret,
          body,
          id: `delivery-${n}`,
        });
        if (response.status === 202) onAccepted(n);
        await response.arrayBuffer();
      } catch {
        // Killed: this one was not answered, so nothing was promised.
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

function countOf(telegram: FakeTelegram, n: number): number {
  return telegram.messages.filter(({ text }) => text === `event ${n}`).length;
}

/** What the ledger says after the kill: the numbers that were sent, and those whose run had ended. */
async function settled(home: TestHome): Promise<{ sent: number[]; ran: number[] }> {
  const sent: number[] = [];
  const ran: number[] = [];
  for (const { body, jobs } of await readLedger(home.ledger)) {
    const { n } = JSON.parse(Buffer.from(body).toString()) as { n: number };
    if (jobs[0]?.messages[0]?.state === "sent") sent.push(n);
    if (jobs[0]?.runs.some(({ outcome }) => outcome === "completed")) ran.push(n);
  }
  return { sent, ran };
}

async function round(t: TestContext, killAfter: number): Promise<string> {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const home = await makeHome(t, { "config.yaml": config(telegram) });
  const first = await startGatewayProcess(t, home);
  const accepted: number[] = [];
  await load(first, (n) => {
    accepted.push(n);
    if (accepted.length === killAfter) first.kill("SIGKILL");
  });
  assert.equal((await first.ended).signal, "SIGKILL");
  const before = await settled(home);

  const second = await startGatewayProcess(t, home);
  await until("all that was accepted", () => accepted.every((n) => countOf(telegram, n) > 0), patienceMs);
  await until("rest", async () => (await readLedger(home.ledger)).every(({ state }) => state === "done"), patienceMs);
  for (const n of before.sent)
    assert.equal(countOf(telegram, n), 1, `event ${n} was sent before the kill and again after`);
  const records = await readLedger(home.ledger);
  for (const { body, jobs } of records) {
    const { n } = JSON.parse(Buffer.from(body).toString()) as { n: number };
    const completed = jobs[0]?.runs.filter(({ outcome }) => outcome === "completed").length;
    assert.equal(completed, 1, `the run of event ${n} is recorded as completed ${completed} times`);
    if (before.ran.includes(n)) assert.ok(jobs[0]?.runs.at(-1)?.outcome === "completed" && jobs[0].state === "done");
  }
  const twice = accepted.filter((n) => countOf(telegram, n) > 1).length;
  const interrupted = records.filter(({ jobs }) =>
    jobs[0]?.runs.some(({ outcome }) => outcome === "interrupted"),
  ).length;
  assert.equal((await second.stop()).code, 0);
  return `killed after ${killAfter} answers: ${before.sent.length} sent before, ${accepted.length} in all, ${interrupted} runs cut off, ${twice} messages in flight arrived twice`;
}

for (let number = 1; number <= rounds; number += 1) {
  test(`every event answered 202 before a SIGKILL is run and delivered after it (${number} of ${rounds})`, async (t) => {
    // Somewhere in the middle of the load; the moment is told, so that a failure can be looked into.
    t.diagnostic(await round(t, 10 + Math.floor(Math.random() * (events - 60))));
  });
}
