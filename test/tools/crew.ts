import type { TestContext } from "node:test";
import type { Agent, Outcome, RunContext, RunRequest } from "../../src/agent/agent.ts";
import { Worker } from "../../src/gateway/worker.ts";
import { fakeSandbox } from "../agent/surroundings.ts";
import { leaseMs, type Scene } from "./scene.ts";

/** A run that an agent was asked for. */
export interface Run {
  readonly request: RunRequest;
  readonly context: RunContext;
  end(outcome: Outcome): void;
  answer(text: string): void;
  fail(reason: string, transient: boolean): void;
}

/** An agent that does what the test says. */
export interface Puppet extends Agent {
  /** All runs so far. */
  readonly runs: readonly Run[];
  /** Runs that have not ended. */
  readonly atWork: () => number;
  /** Why it cannot run. */
  reason: string | undefined;
  /** Answers every run at once with this, when it is set. */
  always: Outcome | undefined;
}

export function puppet(always?: Outcome): Puppet {
  const runs: Run[] = [];
  let atWork = 0;
  const agent: Puppet = {
    name: "puppet",
    runs,
    atWork: () => atWork,
    reason: undefined,
    always,
    blocked: async () => agent.reason,
    async run(request, context) {
      const { promise, resolve } = Promise.withResolvers<Outcome>();
      const cancel = () =>
        resolve({ status: "cancelled", reason: "The run was stopped", transient: true, transcript: [] });
      context.signal.addEventListener("abort", cancel);
      if (context.signal.aborted) cancel();
      runs.push({
        request,
        context,
        end: resolve,
        answer: (answer) => resolve({ status: "completed", answer, transcript: [] }),
        fail: (reason, transient) => resolve({ status: "failed", reason, transient, transcript: [] }),
      });
      if (agent.always) resolve(agent.always);
      atWork += 1;
      const outcome = await promise;
      atWork -= 1;
      return outcome;
    },
  };
  return agent;
}

export function answering(answer: string): Puppet {
  return puppet({ status: "completed", answer, transcript: [] });
}

/** A worker of the scene. It is not started; it is stopped when the test ends. */
export function hire(t: TestContext, scene: Scene, agent: Agent, { lanes = true } = {}): Worker {
  const { config, routes, ledger, deliveries, log, clock, secrets, end } = scene;
  const worker = new Worker({
    ...{ config, routes, ledger, deliveries, agent, log, secrets, leaseMs, lanes },
    sandbox: fakeSandbox(),
    now: clock.now,
    signal: end.signal,
  });
  t.after(async () => {
    end.abort();
    await worker.drain(0);
  });
  return worker;
}

/** Lets time pass, on the scene's clock and for the timers of what is tested; the store and the network need real time. */
export function makeTimeTravel(t: TestContext, scene: Scene): (ms: number) => void {
  const real = { setInterval, clearInterval };
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  // A lane sets its timer some time after it was told something. Timers that fire early find that the clock has not moved.
  const pump = real.setInterval(() => t.mock.timers.tick(10), 5);
  t.after(() => real.clearInterval(pump));
  return (ms) => {
    scene.clock.advance(ms);
    t.mock.timers.tick(ms);
  };
}

/** No timer of what is tested ever fires: what happens then was not waited for. */
export function stopTime(t: TestContext): void {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
}

/** Waits until what was begun has asked the ledger and was answered. */
export async function settle(scene: Scene): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await scene.events();
}
