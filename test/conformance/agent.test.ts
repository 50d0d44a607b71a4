import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Agent, RunRequest } from "../../src/agent/agent.ts";
import * as agents from "../../src/agent/registry.ts";
import {
  aContext,
  aRequest,
  type ContextParts,
  fakeModelEnv,
  fakeSandbox,
  fakeFor as startFake,
} from "../agent/surroundings.ts";
import type { FakeOpenAI, FakeScript } from "../fakes/openai.ts";

/** Surroundings in which a run hangs, and a promise that it has got so far. */
interface Hanging {
  readonly parts: ContextParts;
  readonly reached: Promise<unknown>;
}

/** What the suite has to know about a backend. `undefined`: it cannot come into that situation. */
interface Case {
  /** Surroundings in which the answer holds the prompt or the word `answered`. */
  answering(t: TestContext): Promise<ContextParts>;
  hanging?(t: TestContext): Promise<Hanging>;
  /** Surroundings in which a run ends badly. */
  failing?(t: TestContext): Promise<ContextParts>;
  /** Everything that the backend gave to the outside in an answering run, besides its outcome. */
  leaked?(): string;
  /** Surroundings in which no run can start. */
  unready?: ContextParts;
}

let lastFake: FakeOpenAI | undefined;

async function fakeFor(t: TestContext, script: FakeScript): Promise<FakeOpenAI> {
  lastFake = await startFake(t, script);
  return lastFake;
}

/** A program that says through a FIFO that it runs, with a child in the background, and then waits. */
async function hangingProgram(t: TestContext): Promise<Hanging> {
  const folder = await mkdtemp(join(tmpdir(), "postern-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const fifo = join(folder, "fifo");
  assert.equal(spawnSync("mkfifo", [fifo]).status, 0);
  const command = ["/bin/sh", "-c", `sleep 60 & echo ready > "${fifo}"; sleep 60`];
  return { parts: { settings: { command } }, reached: readFile(fifo) };
}

const cases: Record<keyof typeof agents, Case> = {
  builtin: {
    async answering(t) {
      const call = { name: "terminal", arguments: { command: "env" } };
      const fake = await fakeFor(t, [{ toolCalls: [call] }, { text: "answered" }]);
      return { env: fakeModelEnv(fake.baseUrl) };
    },
    async hanging(t) {
      const fake = await fakeFor(t, [{ hang: true }]);
      return { parts: { env: fakeModelEnv(fake.baseUrl) }, reached: fake.received(1) };
    },
    async failing(t) {
      const fake = await fakeFor(t, [{ status: 401, message: "no" }]);
      return { env: fakeModelEnv(fake.baseUrl) };
    },
    leaked: () => JSON.stringify(lastFake?.requests),
    unready: { env: {} },
  },
  command: {
    async answering() {
      return { settings: { command: ["/bin/sh", "-c", "cat; env"] } };
    },
    hanging: hangingProgram,
    async failing() {
      return { settings: { command: ["/bin/sh", "-c", "exit 1"] } };
    },
    unready: { settings: { command: [] } },
  },
  preview: {
    async answering() {
      return {};
    },
  },
};

const secret = "hidden-process-secret";
for (const name of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "POSTERN_ADMIN_TOKEN"]) process.env[name] = secret;

/** Ids of processes whose environment says that they belong to a run. */
function processesOf(deliveryId: string): string[] {
  if (!existsSync("/proc/self/environ")) return [];
  return readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`WEBHOOK_DELIVERY_ID=${deliveryId}`)
      );
    } catch {
      return false;
    }
  });
}

for (const [name, agent] of Object.entries<Agent>(agents)) {
  const { answering, hanging, failing, leaked, unready } = cases[name as keyof typeof agents];
  const request = aRequest({ deliveryId: `conformance-${name}-${process.pid}` });
  checkAnswers(agent, name, request, answering, leaked);
  if (hanging) checkStops(agent, name, request, hanging);
  if (failing) checkFailure(agent, name, request, failing);
  if (unready) checkUnready(agent, name, request, unready);
}

function checkAnswers(
  agent: Agent,
  name: string,
  request: RunRequest,
  answering: Case["answering"],
  leaked: Case["leaked"],
): void {
  test(`${name}: is named as it is exported`, () => {
    assert.equal(agent.name, name);
  });

  test(`${name}: answers, is not blocked, and closes what it opened`, async (t) => {
    const sandbox = fakeSandbox();
    const context = aContext({ ...(await answering(t)), sandbox });
    assert.equal(await agent.blocked(context), undefined);
    const outcome = await agent.run(request, context);
    assert.equal(outcome.status, "completed", JSON.stringify(outcome));
    assert.match("answer" in outcome ? outcome.answer : "", /answered|Review pull request 7/);
    assert.ok(Array.isArray(outcome.transcript));
    const opened = sandbox.events.filter((event) => event === "open").length;
    assert.equal(sandbox.events.length, 2 * opened);
    assert.deepEqual(processesOf(request.deliveryId), []);
  });

  test(`${name}: takes an empty prompt`, async (t) => {
    const outcome = await agent.run({ ...request, prompt: "" }, aContext(await answering(t)));
    assert.equal(outcome.status, "completed", JSON.stringify(outcome));
  });

  test(`${name}: sees nothing of the gateway's own environment`, async (t) => {
    const outcome = await agent.run(request, aContext(await answering(t)));
    assert.equal(outcome.status, "completed");
    assert.doesNotMatch(JSON.stringify(outcome) + (leaked?.() ?? ""), new RegExp(secret));
  });

  test(`${name}: a run that is cancelled already ends as cancelled`, async (t) => {
    const outcome = await agent.run(request, aContext({ ...(await answering(t)), signal: AbortSignal.abort() }));
    assert.equal(outcome.status, "cancelled");
  });
}

function checkStops(agent: Agent, name: string, request: RunRequest, hanging: NonNullable<Case["hanging"]>): void {
  test(`${name}: an abort ends a hanging run in under 2 s and leaves no process`, async (t) => {
    const { parts, reached } = await hanging(t);
    const controller = new AbortController();
    const running = agent.run(request, aContext({ ...parts, signal: controller.signal }));
    await reached;
    const abortedAt = performance.now();
    controller.abort();
    assert.equal((await running).status, "cancelled");
    assert.ok(performance.now() - abortedAt < 2000);
    assert.deepEqual(processesOf(request.deliveryId), []);
  });

  test(`${name}: a hanging run ends when its time is up and leaves no process`, async (t) => {
    const { parts, reached } = await hanging(t);
    const settings = { ...parts.settings, timeoutMs: 1000 };
    const [outcome] = await Promise.all([agent.run(request, aContext({ ...parts, settings })), reached]);
    assert.equal(outcome.status, "timeout");
    assert.match("reason" in outcome ? outcome.reason : "", /within 1 s/);
    assert.deepEqual(processesOf(request.deliveryId), []);
  });
}

function checkFailure(agent: Agent, name: string, request: RunRequest, failing: NonNullable<Case["failing"]>): void {
  test(`${name}: what goes wrong is an outcome with a reason, never a throw`, async (t) => {
    const outcome = await agent.run(request, aContext(await failing(t)));
    assert.equal(outcome.status, "failed");
    assert.ok("reason" in outcome && outcome.reason.length > 0 && !outcome.reason.endsWith("."));
  });
}

function checkUnready(agent: Agent, name: string, request: RunRequest, unready: ContextParts): void {
  test(`${name}: says why it cannot start, and does not throw when it is started all the same`, async () => {
    assert.ok(await agent.blocked(aContext(unready)));
    assert.equal((await agent.run(request, aContext(unready))).status, "failed");
  });
}
