import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { startFakeTelegram } from "../fakes/telegram.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, previewConfig } from "../tools/home.ts";
import { sendEvent } from "../tools/send.ts";
import { until } from "../tools/wait.ts";
import { run, runJson } from "./command.ts";
import { twoRoutes } from "./events.ts";

interface Row {
  readonly id: string;
  readonly route: string;
  readonly type: string;
  readonly deliveryId: string;
  readonly receivedAt: string;
  readonly state: string;
  readonly reason: string | null;
}

interface Shown extends Row {
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly jobs: readonly {
    readonly plan: { readonly prompt: string };
    readonly runs: readonly { readonly answer: string; readonly transcript: readonly unknown[] }[];
    readonly messages: readonly { readonly target: string; readonly state: string; readonly extra: object }[];
  }[];
}

test("events on an empty home: a list without events, nothing to show, and no ledger is made", async (t) => {
  const home = await makeHome(t);
  assert.deepEqual(await run(home, ["events", "list"]), { code: 0, out: "No events\n", err: "" });
  assert.deepEqual((await runJson(home, ["events", "list"])).value, []);
  const { code, out, err } = await run(home, ["events", "show", "019a"]);
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(err, /^postern: No single event begins with "019a"; see "postern events list"/);
  assert.equal(existsSync(home.data), false);
});

test("an event can be listed and shown while the gateway runs and after it has ended", async (t) => {
  const filtered = `      picky:
        filters: [{ field: name, equals: Ada }]
`;
  const home = await makeHome(t, { "config.yaml": previewConfig.replace("agent:", `${filtered}agent:`) });
  const gateway = await startGatewayProcess(t, home);
  const secret = "the-global-secret";
  const sent = await sendEvent(gateway.url, "hello", secret, { name: "Ada \u001b[2J \u202e!" }, { type: "greeting" });
  assert.equal(sent.status, 202);
  assert.equal((await sendEvent(gateway.url, "picky", secret, { name: "Bob" })).reply.status, "ignored");

  const row = await until("the event to be done", async () => {
    const { value } = await runJson<Row[]>(home, ["events", "list", "--route", "hello"]);
    return value.find(({ state }) => state === "done");
  });
  assert.deepEqual([row.route, row.type, row.deliveryId], ["hello", "greeting", sent.deliveryId]);
  assert.match(row.receivedAt, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

  const all = await run(home, ["events", "list"]);
  const [head, newest, oldest, ...others] = all.out.trimEnd().split("\n");
  assert.match(head ?? "", /^ID +RECEIVED +ROUTE +EVENT +STATE +REASON$/);
  assert.match(newest ?? "", /picky +push +ignored +filter/);
  assert.match(oldest ?? "", new RegExp(`^${row.id} .* hello +greeting +done$`));
  assert.deepEqual(others, []);
  const states = async (...args: string[]) =>
    (await runJson<Row[]>(home, ["events", "list", ...args])).value.map(({ state }) => state);
  assert.deepEqual(await states("--limit", "1"), ["ignored"]);
  assert.deepEqual(await states("--state", "done"), ["done"]);
  assert.deepEqual(await states("--state", "dead"), []);

  const shown = await run(home, ["events", "show", row.id]);
  assert.equal(shown.code, 0);
  for (const words of [
    `Event ${row.id}`,
    `route hello, event greeting, delivery ${sent.deliveryId}`,
    "state done",
    "received and verified",
    "accepted, and on disk; the prompt:",
    "| Say hello to Ada [2J !",
    "run 1 started",
    "run 1 completed",
    "sent to log",
  ]) {
    assert.ok(shown.out.includes(words), `${words} is not in\n${shown.out}`);
  }
  assert.ok(!shown.out.includes("\u001b") && !shown.out.includes("\u202e"));

  assert.equal((await gateway.stop()).code, 0);
  const beginning = row.id.slice(0, -1);
  const { value } = await runJson<Shown>(home, ["events", "show", beginning]);
  assert.equal(value.id, row.id);
  assert.deepEqual(JSON.parse(value.body), { name: "Ada \u001b[2J \u202e!" });
  assert.doesNotMatch(JSON.stringify(value.headers), /x-hub-signature/);
  const [job] = value.jobs;
  assert.equal(job?.plan.prompt, "Say hello to Ada \u001b[2J \u202e!");
  assert.equal(job?.runs[0]?.answer, "Say hello to Ada \u001b[2J \u202e!");
  assert.deepEqual(
    job?.messages.map(({ target, state, extra }) => [target, state, extra]),
    [["log", "sent", {}]],
  );
});

test("a running gateway takes up what is replayed and lets go of what is cancelled", async (t) => {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const { reviews } = twoRoutes.platforms.webhook.routes;
  const routes = { reviews, slow: { prompt: "Wait", deliver: "log" } };
  const platform = { ...twoRoutes.platforms.telegram, token: telegram.token, extra: { base_url: telegram.baseUrl } };
  const platforms = { webhook: { ...twoRoutes.platforms.webhook, routes }, telegram: platform };
  const agent = {
    backend: "command",
    max_concurrent: 1,
    command: ["sh", "-c", 'read -r prompt; [ "$prompt" = Wait ] && sleep 60; echo "Did: $prompt"'],
  };
  const home = await makeHome(t, {
    "config.yaml": JSON.stringify({ platforms, agent, terminal: { backend: "local" } }),
  });
  const gateway = await startGatewayProcess(t, home);
  const send = async (route: string, payload: object) => {
    const type = "pull_request";
    const { deliveryId } = await sendEvent(gateway.url, route, "the-global-secret", payload, { type });
    return until("the event", async () =>
      (await runJson<Row[]>(home, ["events", "list"])).value.find((row) => row.deliveryId === deliveryId),
    );
  };
  const becomes = (id: string, state: string) =>
    until(state, async () => (await runJson<Row>(home, ["events", "show", id])).value.state === state);

  telegram.mode = "refused";
  const { id } = await send("reviews", { action: "opened", title: "a fix", chat: "7" });
  await becomes(id, "dead");
  telegram.mode = "ok";
  assert.equal((await run(home, ["events", "replay", id, "--from", "delivery"])).code, 0);
  await becomes(id, "done");
  assert.equal((await run(home, ["events", "replay", id])).code, 0);
  await becomes(id, "done");
  await until("both", () => telegram.messages.length === 2);
  assert.deepEqual(
    telegram.messages.map(({ chatId, text }) => [String(chatId), text.trim()]),
    [
      ["7", "Did: Review a fix"],
      ["7", "Did: Review a fix"],
    ],
  );
  const { value } = await runJson<Shown>(home, ["events", "show", id]);
  assert.equal(value.jobs.length, 3);

  const slow = await send("slow", {});
  await becomes(slow.id, "running");
  assert.equal((await run(home, ["events", "cancel", slow.id])).code, 0);
  // Its one agent is free again long before the minute is over.
  await run(home, ["events", "replay", id, "--from", "run"]);
  await until("the third", () => telegram.messages.length === 3);
  assert.equal((await runJson<Row>(home, ["events", "show", slow.id])).value.state, "cancelled");
  assert.equal((await gateway.stop()).code, 0);
});
