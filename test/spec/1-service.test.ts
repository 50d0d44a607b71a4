import assert from "node:assert/strict";
import { test } from "node:test";
import { startFakeGithub } from "../fakes/github.ts";
import { startFakeOpenAI } from "../fakes/openai.ts";
import { missing } from "../needs.ts";
import { makeHome } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { postern } from "../tools/program.ts";
import { until } from "../tools/wait.ts";
import { openGateway, post, useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({
  routes: {
    pulls: { events: ["pull_request"], filters: [{ field: "action", equals: "opened" }], prompt: "Review #{number}" },
    chat: { prompt: "Tell {who}", deliver: "telegram" },
    direct: { prompt: "Deploy of {app} done", deliver: "telegram", deliver_only: true },
  },
}));

test('1.1 "The service runs an HTTP server. It listens on a configurable host and port"', async (t) => {
  const port = await freePort();
  const other = await openGateway(t, () => ({ extra: { host: "127.0.0.1", port } }));
  assert.deepEqual([other.process.host, other.process.port], ["127.0.0.1", port]);
  assert.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200);
});

test('1.1 "(defaults: host `0.0.0.0`, port `8644`)"', async (t) => {
  const home = await makeHome(t, { "config.yaml": "platforms: { webhook: { enabled: true, secret: a-secret } }" });
  const { out } = await postern(t, ["config", "check", "--json"], { env: { POSTERN_HOME: home.folder } });
  const { host, port } = JSON.parse(out) as { host: string; port: number };
  assert.deepEqual([host, port], ["0.0.0.0", 8644]);
  const everywhere = await openGateway(t, () => ({ extra: { host: undefined } }));
  assert.equal(everywhere.process.host, "0.0.0.0");
});

test('1.2 "The server accepts POST requests on `/webhooks/<route-name>`"', async () => {
  const { status, reply } = await gateway.post("chat", { body: { who: "all" } });
  assert.deepEqual([status, reply.status, reply.route], [202, "accepted", "chat"]);
});

test('1.2 "It verifies a signature or token, parses the body, filters by event type and by payload conditions"', async () => {
  const body = { action: "opened", number: 7 };
  const event = "pull_request";
  assert.equal((await gateway.post("pulls", { body, event, secret: "another" })).status, 401);
  assert.equal((await gateway.post("pulls", { body: "{", event })).status, 400);
  assert.equal(await gateway.verdict("pulls", { body, event: "push" }), "ignored");
  assert.equal(await gateway.verdict("pulls", { body: { action: "closed" }, event }), "ignored");
  assert.equal(await gateway.verdict("pulls", { body, event }), "accepted");
});

test('1.2 "and renders a prompt template from the payload"', async () => {
  const body = { action: "opened", number: 7 };
  assert.equal(await gateway.promptOf("pulls", { body, event: "pull_request" }), "Review #7");
});

test('1.3 "In the default mode, an agent is run with the rendered prompt"', async () => {
  const { id } = await gateway.post("chat", { body: { who: "Ada" } });
  const { jobs } = await gateway.fate(id);
  assert.deepEqual([jobs[0]?.kind, jobs[0]?.runs.length, jobs[0]?.runs[0]?.answer], ["agent", 1, "Tell Ada"]);
});

test(`1.3 "The agent's response is delivered to a target: the gateway log"`, async () => {
  await gateway.post("pulls", { body: { action: "opened", number: 8 }, event: "pull_request" });
  const line = await gateway.logged({ text: "Review #8" });
  assert.deepEqual([line.target, line.route, line.level], ["log", "pulls", "info"]);
});

test(`1.3 "The agent's response is delivered to a target: a code-host comment"`, { skip: missing("gh") }, async (t) => {
  const github = await startFakeGithub();
  t.after(() => github.close());
  const address = { repo: "{repo}", pr_number: "{number}" };
  const other = await openGateway(t, () => ({
    routes: { pulls: { prompt: "Looks good, {author}", deliver: "github_comment", deliver_extra: address } },
    env: github.env,
  }));
  await other.post("pulls", { body: { repo: "acme/boat", number: 12, author: "Ada" } });
  const comment = await until("the comment", () => github.messages[0]);
  assert.deepEqual([comment.repo, comment.number], ["acme/boat", 12]);
  assert.match(comment.text, /^Looks good, Ada/);
});

test(`1.3 "The agent's response is delivered to a target: a messaging platform"`, async () => {
  await gateway.post("chat", { body: { who: "Grace" } });
  await until("the message", () => gateway.telegram.messages.find(({ text }) => text === "Tell Grace"));
});

test('1.4 "In direct-delivery mode (`deliver_only: true`) no agent runs. The rendered template is the message"', async () => {
  const { status, reply, id } = await gateway.post("direct", { body: { app: "harbor" } });
  assert.deepEqual([status, reply.status], [200, "delivered"]);
  assert.equal(gateway.telegram.messages.at(-1)?.text, "Deploy of harbor done");
  const { jobs } = await gateway.fate(id);
  assert.deepEqual([jobs[0]?.kind, jobs[0]?.runs], ["direct", []]);
});

test('1.5 "Routes are defined statically in the configuration file. They can also be created at runtime"', async (t) => {
  const { out } = await gateway.command(t, "webhook", "subscribe", "later", "--prompt", "Now {x}", "--json");
  const { secret } = JSON.parse(out) as { secret: string };
  assert.equal(await gateway.promptOf("later", { body: { x: 1 }, secret }), "Now 1");
  assert.equal(await gateway.verdict("chat", { body: { who: "all" } }), "accepted");
});

test('1.6 "The agent can run a terminal tool. This tool is in the default webhook toolset"', async (t) => {
  const command = "printf '%s' \"over $((6 * 7))\"";
  const model = await startFakeOpenAI([
    { toolCalls: [{ name: "terminal", arguments: { command } }] },
    { text: "The diff is small." },
  ]);
  t.after(() => model.close());
  const other = await openGateway(t, () => ({
    routes: { pulls: { prompt: "Look at the diff" } },
    sections: {
      agent: { backend: "builtin" },
      model: { provider: "openai-compatible", name: "scripted", base_url: model.baseUrl },
      terminal: { backend: "local" },
    },
    env: { OPENAI_API_KEY: "sk-of-the-spec-test" },
  }));
  const { id } = await other.post("pulls");
  const { jobs } = await other.fate(id);
  assert.equal(jobs[0]?.runs[0]?.answer, "The diff is small.", JSON.stringify(jobs[0]?.runs));
  assert.deepEqual(model.requests[0]?.tools, ["terminal"]);
  assert.match(JSON.stringify(model.requests[1]?.messages.at(-1)), /over 42/);
});

test('1.7 "The payload is attacker-controlled": nothing in it becomes a template, an address or an option', async (t) => {
  const other = await openGateway(t, () => ({
    routes: { chat: { prompt: "{title}", deliver: "telegram", deliver_extra: { chat_id: "{chat}" } } },
  }));
  const hostile = "{secret} {__raw__} $(id) `id` --exec {constructor}";
  assert.equal(await other.promptOf("chat", { body: { title: hostile, chat: "7" } }), hostile);
  const { id } = await post(`${other.url}/webhooks/chat`, { body: { title: "x", chat: "7\n--all" } });
  const { state, jobs } = await other.fate(id);
  assert.equal(state, "dead");
  assert.match(jobs[0]?.messages[0]?.reason ?? "", /chat_id/);
  assert.equal(other.telegram.messages.length, 1);
});

test('1.7 "the gateway should run in a sandbox": without one, runs wait and nothing runs outside', async (t) => {
  const model = await startFakeOpenAI([{ text: "never" }]);
  t.after(() => model.close());
  const other = await openGateway(t, () => ({
    routes: { pulls: { prompt: "Look at the diff" } },
    sections: {
      agent: { backend: "builtin" },
      model: { provider: "openai-compatible", name: "scripted", base_url: model.baseUrl },
    },
    env: { OPENAI_API_KEY: "sk-of-the-spec-test", PATH: "/nonexistent" },
  }));
  const { id } = await other.post("pulls");
  const { state, reason } = await other.fate(id);
  assert.equal(state, "waiting");
  assert.match(reason ?? "", /bwrap|bubblewrap/);
  assert.equal(model.requests.length, 0);
});
