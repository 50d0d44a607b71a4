import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { AgentSettings, Outcome, RunContext, RunRequest } from "../../src/agent/agent.ts";
import { builtin } from "../../src/agent/builtin.ts";
import type { Environment } from "../../src/core/types.ts";
import type { ExecResult, Sandbox } from "../../src/sandbox/sandbox.ts";
import { type FakeOpenAI, type FakeReply, type FakeScript, startFakeOpenAI } from "../fakes/openai.ts";

/** A run as the worker would ask for it. */
export function aRequest(changes: Partial<RunRequest> = {}): RunRequest {
  return {
    route: "reviews",
    eventType: "pull_request",
    deliveryId: "delivery-1",
    prompt: "Review pull request 7",
    skill: undefined,
    tools: ["terminal"],
    ...changes,
  };
}

export function someSettings(changes: Partial<AgentSettings> = {}): AgentSettings {
  return {
    timeoutMs: 30_000,
    maxSteps: 5,
    command: [],
    env: [],
    model: { provider: undefined, name: undefined, baseUrl: undefined },
    terminal: { timeoutMs: 5000, maxOutputBytes: 10_000 },
    ...changes,
  };
}

export const apiKey = "sk-fake-0123456789";

/** What makes `builtin` speak to a fake at `baseUrl`. */
export function fakeModelEnv(baseUrl: string): Environment {
  return { OPENAI_BASE_URL: baseUrl, OPENAI_MODEL: "fake-model", OPENAI_API_KEY: apiKey };
}

export interface ContextParts {
  readonly settings?: Partial<AgentSettings>;
  readonly env?: Environment;
  readonly sandbox?: Sandbox;
  readonly signal?: AbortSignal;
}

export function aContext({ settings, env, sandbox, signal }: ContextParts = {}): RunContext {
  return {
    settings: someSettings(settings),
    env: { PATH: process.env.PATH, ...env },
    sandbox: sandbox ?? fakeSandbox(),
    signal: signal ?? new AbortController().signal,
  };
}

/** What a fake workspace does for a command: a result, or what it throws. */
export type FakeExec = (command: string) => Promise<Partial<ExecResult>>;

export interface FakeSandbox extends Sandbox {
  /** Commands of all workspaces, in order. */
  readonly commands: string[];
  /** `open` and `close`, in order. */
  readonly events: string[];
}

/** A sandbox that runs nothing: `exec` says what each command gives. */
export function fakeSandbox(exec: FakeExec = async () => ({}), open: () => void = () => {}): FakeSandbox {
  const commands: string[] = [];
  const events: string[] = [];
  return {
    name: "fake",
    commands,
    events,
    async blocked() {
      return undefined;
    },
    async open() {
      open();
      events.push("open");
      return {
        async exec(command) {
          commands.push(command);
          return { exitCode: 0, output: "", truncated: false, timedOut: false, ...(await exec(command)) };
        },
        async close() {
          events.push("close");
        },
      };
    },
  };
}

/** A fake that is closed when the test ends. */
export async function fakeFor(t: TestContext, script: FakeScript): Promise<FakeOpenAI> {
  const fake = await startFakeOpenAI(script);
  t.after(() => fake.close());
  return fake;
}

/** Runs `builtin` against a fake. */
export function runWith(
  fake: FakeOpenAI,
  parts: ContextParts = {},
  request: Partial<RunRequest> = {},
): Promise<Outcome> {
  return builtin.run(aRequest(request), aContext({ env: fakeModelEnv(fake.baseUrl), ...parts }));
}

/** The model calls the terminal. */
export function commandCall(command: string): FakeReply {
  return { toolCalls: [{ name: "terminal", arguments: { command } }] };
}

/** How a run ended that gave no answer. */
export function endOf(outcome: Outcome): [status: string, reason: string, transient: boolean] {
  assert.notEqual(outcome.status, "completed", JSON.stringify(outcome));
  return outcome.status === "completed" ? ["", "", false] : [outcome.status, outcome.reason, outcome.transient];
}
