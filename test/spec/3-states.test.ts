import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { until } from "../tools/wait.ts";
import { openGateway, useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({
  routes: {
    agent: { prompt: "Hello {x}" },
    picky: { filters: [{ field: "a", equals: 1 }] },
    direct: { prompt: "Hi", deliver: "telegram", deliver_only: true },
    bad: { prompt: "Hi", deliver: "telegram", deliver_extra: { chat_id: "{nope}" } },
  },
}));

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly reason: string | null;
  readonly jobs: readonly { readonly state: string; readonly messages: readonly { readonly state: string }[] }[];
}

/** The event as \`postern events show --json\` tells it, once it has this state. */
async function shown(t: TestContext, deliveryId: string, state: string): Promise<Shown> {
  const { id } = await gateway.fate(deliveryId);
  const { code, out, err } = await gateway.command(t, "events", "show", id, "--json");
  assert.equal(code, 0, err);
  const event = JSON.parse(out) as Shown;
  assert.equal(event.state, state);
  return event;
}

const silence = '3 "No state machine is described for routes, subscriptions or deliveries": ours';

test(`${silence} ends in done when the answer was delivered`, async (t) => {
  const { id } = await gateway.post("agent", { body: { x: 1 } });
  const { jobs } = await shown(t, id, "done");
  assert.deepEqual(
    jobs.map(({ messages }) => messages.map(({ state }) => state)),
    [["sent"]],
  );
});

test(`${silence} ends in ignored, with the clause, when a filter declined`, async (t) => {
  const { id } = await gateway.post("picky");
  const { reason, jobs } = await shown(t, id, "ignored");
  assert.equal(reason, "filters.0: a equals 1, found absent");
  assert.deepEqual(jobs, []);
});

test(`${silence} ends in refused when a direct delivery failed`, async (t) => {
  gateway.telegram.upcoming.push("refused");
  const { status, id } = await gateway.post("direct");
  assert.equal(status, 502);
  const { reason } = await shown(t, id, "refused");
  assert.match(reason ?? "", /bot was blocked/);
});

test(`${silence} ends in dead when an address can never be right`, async (t) => {
  const { id } = await gateway.post("bad");
  const { jobs } = await shown(t, id, "dead");
  assert.equal(jobs[0]?.messages[0]?.state, "dead");
});

test(`${silence} has a place for jobs that wait for a model, and takes them up again when there is one`, async (t) => {
  const other = await openGateway(t, () => ({
    routes: { agent: { prompt: "Go" } },
    sections: { agent: { backend: "builtin" } },
  }));
  const { status, id } = await other.post("agent");
  assert.equal(status, 202);
  const { state, reason } = await other.fate(id);
  assert.equal(state, "waiting");
  assert.match(reason ?? "", /no model configured/);
  const text = await other.home.read("config.yaml");
  await other.home.write("config.yaml", text.replace('"builtin"', '"preview"'));
  await until("the end of the job", async () => (await other.fate(id)).state === "done");
});

test(`${silence} outlives the gateway: the fate is told after it has stopped`, async (t) => {
  const other = await openGateway(t, () => ({ routes: { agent: { prompt: "Go" } } }));
  const { id } = await other.post("agent");
  await other.fate(id);
  assert.equal((await other.process.stop()).code, 0);
  const { out } = await other.command(t, "events", "list", "--json");
  const rows = JSON.parse(out) as { deliveryId: string; state: string }[];
  assert.deepEqual(
    rows.map(({ deliveryId, state }) => [deliveryId, state]),
    [[id, "done"]],
  );
});
