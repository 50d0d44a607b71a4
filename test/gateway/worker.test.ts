import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { handle } from "../../src/gateway/pipeline.ts";
import type { Worker } from "../../src/gateway/worker.ts";
import type { EventRecord, JobRecord } from "../../src/store/store.ts";
import { answering, hire, makeTimeTravel, type Puppet, puppet, type Run, settle, stopTime } from "../tools/crew.ts";
import { overlayTelegram } from "../tools/overlay.ts";
import { globalSecret, type RequestParts, request, type Scene, type SceneOptions, setScene } from "../tools/scene.ts";
import { aTake } from "../tools/terms.ts";
import { until } from "../tools/wait.ts";

async function accept(scene: Scene, parts: RequestParts = {}): Promise<void> {
  const { reply } = await handle(request(parts), scene.gateway);
  assert.equal(reply.status, "accepted");
}

async function onlyJob(scene: Scene): Promise<JobRecord> {
  const [event, ...others] = await scene.events();
  assert.equal(others.length, 0);
  return (event as EventRecord).jobs[0]!;
}

/** Waits until the only job is in a state. */
function jobIn(scene: Scene, state: JobRecord["state"]): Promise<JobRecord> {
  return until(`a job that is ${state}`, async () => {
    const job = await onlyJob(scene);
    return job.state === state ? job : undefined;
  });
}

function outcomes(job: JobRecord): (string | null)[] {
  return job.runs.map(({ outcome }) => outcome);
}

/** A scene with one accepted event and a worker that has started. */
async function atWork(t: TestContext, agent: Puppet, options: SceneOptions = {}) {
  const scene = await setScene(t, options);
  await accept(scene);
  const worker = hire(t, scene, agent);
  worker.start();
  return { scene, worker };
}

const logRoute = { routes: { ci: { prompt: "Look" } } };

describe("a job", () => {
  test("is run with what was fixed when its event came, and its answer goes out", async (t) => {
    const agent = puppet();
    const { scene } = await atWork(t, agent);
    await until("the run", () => agent.runs.length === 1);
    const { request: asked, context } = agent.runs[0]!;
    const [event] = await scene.events();
    assert.deepEqual(asked, {
      route: "ci",
      eventType: "unknown",
      deliveryId: event?.deliveryId,
      prompt: "Look at this",
      skill: undefined,
      tools: ["terminal"],
    });
    assert.equal(context.settings, scene.config.agent);
    assert.deepEqual([(await onlyJob(scene)).state, outcomes(await onlyJob(scene))], ["running", [null]]);
    agent.runs[0]?.answer("All is well");
    const job = await jobIn(scene, "done");
    assert.deepEqual(outcomes(job), ["completed"]);
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text),
      ["All is well"],
    );
    assert.equal(job.messages[0]?.reference, "1");
  });

  test("has its answer on disk before anything is sent", async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const agent = puppet();
    const { scene } = await atWork(t, agent);
    scene.outage.delays.set("finishRun", promise);
    await until("the run", () => agent.runs.length === 1);
    agent.runs[0]?.answer("All is well");
    await until("the record", () => scene.outage.asked.get("finishRun") === 1);
    await scene.events();
    assert.equal(scene.telegram.tries, 0);
    resolve();
    await jobIn(scene, "done");
    assert.equal(scene.telegram.tries, 1);
  });

  for (const [answer, text = answer] of [
    ["", "(empty answer)"],
    ["\u200b \u0007\ufeff", "(empty answer)"],
    ["SKIP"],
    ["[silent]"],
    ["[SILENT] but"],
    ["`[SILENT]`"],
  ]) {
    test(`is answered with ${JSON.stringify(answer)}, which goes out`, async (t) => {
      const { scene } = await atWork(t, answering(answer!), logRoute);
      const job = await jobIn(scene, "done");
      assert.deepEqual([job.messages[0]?.state, job.runs[0]?.answer], ["sent", answer]);
      const delivered = scene.lines.find(({ msg }) => msg === "Delivered to the log");
      assert.equal(delivered?.text, text);
    });
  }

  test("is answered with exactly [SILENT], which is kept back, and the record says so", async (t) => {
    const { scene } = await atWork(t, answering("\n[SILENT] \n"));
    const job = await jobIn(scene, "done");
    assert.deepEqual(
      job.messages.map(({ state }) => state),
      ["kept"],
    );
    assert.match(job.messages[0]?.reason ?? "", /SILENT/);
    assert.equal(scene.telegram.tries, 0);
  });

  test("gets the first of its skills that is there, and the log names those that are not", async (t) => {
    const agent = answering("[SILENT]");
    const routes = { ci: { prompt: "Look", skills: ["absent", "review"] } };
    const files = { "skills/review/SKILL.md": "---\nname: review\n---\nBe kind.\n" };
    const { scene } = await atWork(t, agent, { routes, files });
    await jobIn(scene, "done");
    assert.equal(agent.runs[0]?.request.skill?.text, "Be kind.");
    const warned = scene.lines.filter(({ level, msg }) => level === "warn" && /Skill not found/.test(msg));
    assert.deepEqual(
      warned.map(({ skill }) => skill),
      ["absent"],
    );
  });

  test("never runs beside more others than are allowed", async (t) => {
    const agent = puppet();
    const sections = { agent: { backend: "preview", max_concurrent: 2 } };
    const scene = await setScene(t, { ...logRoute, sections, webhook: { rate_limit: 100 } });
    for (let count = 0; count < 7; count += 1) await accept(scene);
    const worker = hire(t, scene, agent);
    worker.start();
    for (let ended = 0; ended < 7; ended += 1) {
      await until("the next run", () => agent.runs.length >= Math.min(ended + 2, 7));
      for (let wake = 0; wake < 5; wake += 1) worker.wake();
      await scene.events();
      assert.ok(agent.atWork() <= 2, `${agent.atWork()} at the same time`);
      agent.runs[ended]?.answer("Done");
    }
    await until("all jobs", async () => (await scene.events()).every(({ state }) => state === "done"));
  });
});

describe("a route that says how many runs it may have at the same time", () => {
  const routes = { ci: { prompt: "Look", max_concurrent: 1 }, other: { prompt: "Look" } };
  const many = { routes, webhook: { rate_limit: 100 }, isShared: true };

  test("never has more, on all gateways together, and holds up no other route", async (t) => {
    const one = await setScene(t, many);
    const other = await setScene(t, { ...many, after: one });
    const agents = [puppet(), puppet()];
    for (let count = 0; count < 4; count += 1) await accept(one);
    for (let count = 0; count < 4; count += 1) await accept(one, { route: "other" });
    const workers = [hire(t, one, agents[0]!), hire(t, other, agents[1]!)];
    for (const worker of workers) worker.start();
    const running = () => agents.flatMap(({ runs }) => runs.filter((run) => !ended.has(run)));
    const ended = new Set<Run>();
    const of = (route: string) => running().filter(({ request: { route: name } }) => name === route);
    await until("the other route's runs", () => of("other").length === 4);
    for (let count = 0; count < 4; count += 1) {
      const [run] = await until("the next run", () => (of("ci").length > 0 ? of("ci") : undefined));
      for (const worker of workers) worker.wake();
      await settle(one);
      assert.equal(of("ci").length, 1);
      ended.add(run!);
      run?.answer("Done");
    }
    for (const run of of("other")) run.answer("Done");
    await until("all jobs", async () => (await one.events()).every(({ state }) => state === "done"));
  });
});

describe("a run that fails", () => {
  test("for a passing reason is made three times in all, at the right times, and is then given up", async (t) => {
    const agent = puppet({ status: "failed", reason: "The model is down", transient: true, transcript: [] });
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    await accept(scene);
    hire(t, scene, agent).start();
    await until("the first failure", () => scene.outage.asked.get("finishRun") === 1);
    const job = await jobIn(scene, "queued");
    assert.deepEqual([job.reason, job.runAt], ["The model is down", scene.clock.now() + 5_000]);
    travel(4_999);
    await settle(scene);
    assert.equal(agent.runs.length, 1);
    travel(10);
    await until("the second failure", () => scene.outage.asked.get("finishRun") === 2);
    travel(29_980);
    await settle(scene);
    assert.equal(agent.runs.length, 2);
    travel(5_000);
    const dead = await jobIn(scene, "dead");
    assert.equal(agent.runs.length, 3);
    assert.deepEqual(outcomes(dead), ["failed", "failed", "failed"]);
    assert.deepEqual([dead.reason, dead.messages[0]?.state], ["The model is down", "dead"]);
    assert.equal(scene.telegram.tries, 0);
  });

  test("is made as often as its route says, over the global rule", async (t) => {
    const agent = puppet({ status: "failed", reason: "The model is down", transient: true, transcript: [] });
    const routes = { ci: { prompt: "Look", retry: { run_tries: 1 } } };
    const { scene } = await atWork(t, agent, { routes, sections: { retry: { run_tries: 2 } } });
    await jobIn(scene, "dead");
    assert.equal(agent.runs.length, 1);
  });

  for (const status of ["failed", "timeout", "budget", "cancelled"] as const) {
    test(`for good ("${status}") is not made again, and its messages are given up`, async (t) => {
      const agent = puppet({ status, reason: "It will not work", transient: false, transcript: [] });
      const { scene } = await atWork(t, agent);
      const job = await jobIn(scene, "dead");
      assert.deepEqual(outcomes(job), [status]);
      assert.deepEqual([job.reason, job.messages[0]?.state], ["It will not work", "dead"]);
    });
  }

  test("because the agent has a bug is recorded, and the worker goes on", async (t) => {
    const agent = puppet();
    agent.run = () => Promise.reject(new Error(`a bug with ${globalSecret}`));
    const { scene } = await atWork(t, agent);
    const job = await jobIn(scene, "dead");
    assert.match(job.reason ?? "", /a bug with \[redacted\]/);
    assert.ok(scene.lines.some(({ level, msg }) => level === "error" && /should not/.test(msg)));
  });
});

describe("a gateway that is killed", () => {
  test("after the answer was recorded does not run the agent again: the next one sends it", async (t) => {
    const { scene } = await atWork(t, answering("All is well"));
    scene.telegram.upcoming.push("hang");
    await until("the try to send", () => scene.telegram.tries === 1);
    scene.outage.kill();
    const next = await setScene(t, { after: scene });
    await next.ledger.takeOver();
    const agent = answering("Something else");
    hire(t, next, agent).start();
    const job = await jobIn(next, "done");
    assert.equal(agent.runs.length, 0);
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text),
      ["All is well"],
    );
    assert.deepEqual(
      job.messages[0]?.attempts.map(({ outcome }) => outcome),
      ["interrupted", "sent"],
    );
  });

  test("during a run has it made again at the next start, and the first one recorded as interrupted", async (t) => {
    const { scene } = await atWork(t, puppet());
    await jobIn(scene, "running");
    scene.outage.kill();
    const next = await setScene(t, { after: scene });
    await next.ledger.takeOver();
    hire(t, next, answering("All is well")).start();
    assert.deepEqual(outcomes(await jobIn(next, "done")), ["interrupted", "completed"]);
  });

  test("during a run gives the job up where the route says so", async (t) => {
    const routes = { ci: { prompt: "Look", on_crash: "fail" } };
    const { scene } = await atWork(t, puppet(), { routes });
    await jobIn(scene, "running");
    scene.outage.kill();
    const next = await setScene(t, { after: scene });
    await next.ledger.takeOver();
    const job = await jobIn(next, "dead");
    assert.deepEqual(outcomes(job), ["interrupted"]);
    assert.match(job.reason ?? "", /on_crash/);
  });

  test("before it had begun loses nothing", async (t) => {
    const scene = await setScene(t);
    await accept(scene);
    scene.outage.kill();
    const next = await setScene(t, { after: scene });
    hire(t, next, answering("All is well")).start();
    assert.deepEqual(outcomes(await jobIn(next, "done")), ["completed"]);
  });

  test("between two parts of a message has the rest sent by the next one", async (t) => {
    const { scene } = await atWork(t, answering(`${"a".repeat(4000)}\n\n${"b".repeat(4000)}\n\n${"c".repeat(200)}`));
    scene.telegram.upcoming.push("ok", "hang");
    await until("the second part", () => scene.telegram.tries === 2);
    scene.outage.kill();
    const next = await setScene(t, { after: scene });
    await next.ledger.takeOver();
    hire(t, next, puppet()).start();
    await jobIn(next, "done");
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text[0]),
      ["a", "b", "c"],
    );
  });
});

describe("a lease", () => {
  test("is kept alive while a run goes on", async (t) => {
    const agent = puppet();
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    await accept(scene);
    hire(t, scene, agent).start();
    await until("the run", () => agent.runs.length === 1);
    for (let beat = 1; beat <= 12; beat += 1) {
      travel(10_000);
      await until("a heartbeat", () => scene.outage.asked.get("extendLeases") === beat);
      await scene.events();
    }
    const other = await setScene(t, { after: scene });
    assert.deepEqual(await other.ledger.takeJobs(aTake(10)), []);
    agent.runs[0]?.answer("All is well");
    await jobIn(scene, "done");
  });

  test("that is lost stops the run, whose result counts for nothing: another gateway makes it again", async (t) => {
    const agent = puppet();
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    await accept(scene);
    hire(t, scene, agent).start();
    await until("the run", () => agent.runs.length === 1);
    scene.outage.failing.add("extendLeases");
    travel(30_000);
    const other = await setScene(t, { after: scene });
    const [taken] = await until("the job", async () => {
      const jobs = await other.ledger.takeJobs(aTake(10));
      return jobs.length > 0 ? jobs : undefined;
    });
    scene.outage.failing.clear();
    travel(10_000);
    await until("the end of the run", () => agent.atWork() === 0);
    await until("the line", () => scene.lines.some(({ msg }) => /its result is dropped/.test(msg)));
    assert.ok(scene.lines.some(({ msg }) => /Runs stopped/.test(msg)));
    const job = await onlyJob(scene);
    assert.deepEqual([job.state, outcomes(job)], ["running", ["interrupted", null]]);
    assert.equal(await other.ledger.ran(taken!, { status: "completed", answer: "Mine", transcript: [] }), true);
    assert.equal((await onlyJob(scene)).messages[0]?.text, "Mine");
  });

  test("of a direct delivery is kept alive as well", async (t) => {
    const routes = { ci: { prompt: "Hi", deliver: "telegram", deliver_only: true } };
    const scene = await setScene(t, { routes });
    const travel = makeTimeTravel(t, scene);
    hire(t, scene, puppet()).start();
    scene.telegram.mode = "hang";
    const sending = handle(request({ id: "42" }), scene.gateway);
    await until("the try", () => scene.telegram.tries === 1);
    for (let beat = 1; beat <= 6; beat += 1) {
      travel(10_000);
      await until("a heartbeat", () => scene.outage.asked.get("extendLeases") === beat);
      await scene.events();
    }
    const other = await setScene(t, { after: scene });
    await other.ledger.takeMessages(aTake(10));
    assert.equal((await onlyJob(scene)).state, "delivering");
    await scene.telegram.close();
    assert.equal((await sending).reply.status, "error");
  });
});

describe("a run that somebody stops", () => {
  async function cancelled(t: TestContext, { timeStops = false } = {}) {
    const agent = puppet();
    const scene = await setScene(t);
    if (timeStops) stopTime(t);
    const travel = timeStops ? () => assert.fail("time stands still") : makeTimeTravel(t, scene);
    await accept(scene);
    const worker = hire(t, scene, agent);
    worker.start();
    await until("the run", () => agent.runs.length === 1);
    // Somebody else does it: a command beside the gateway.
    const command = await setScene(t, { after: scene });
    const [event] = await scene.events();
    const cancel = { eventId: event!.id, now: scene.clock.now(), reason: "Stopped by hand" };
    assert.equal(await command.outage.store.cancel(cancel), 1);
    return { agent, scene, worker, travel };
  }

  async function assertStopped(scene: Scene, agent: Puppet): Promise<void> {
    await until("the end of the run", () => agent.atWork() === 0);
    await until("the line", () => scene.lines.some(({ msg }) => /its result is dropped/.test(msg)));
    const job = await onlyJob(scene);
    assert.deepEqual([job.state, job.reason, outcomes(job)], ["cancelled", "Stopped by hand", ["cancelled"]]);
    assert.equal(scene.telegram.tries, 0);
  }

  test("ends within about a second", async (t) => {
    const { agent, scene, travel } = await cancelled(t);
    travel(1_000);
    await assertStopped(scene, agent);
    assert.ok(scene.lines.some(({ level, msg }) => level === "warn" && /cancelled, or taken over/.test(msg)));
  });

  test("ends at once when there is news of it", async (t) => {
    const { agent, scene, worker } = await cancelled(t, { timeStops: true });
    worker.hear("cancelled");
    await assertStopped(scene, agent);
  });

  test("is not taken for stopped while the ledger cannot be asked", async (t) => {
    const { agent, scene, travel } = await cancelled(t);
    scene.outage.failing.add("lostLeases");
    for (let count = 1; count <= 3; count += 1) {
      travel(1_000);
      await until("a look", () => scene.outage.asked.get("lostLeases") === count);
      await settle(scene);
    }
    assert.equal(agent.atWork(), 1);
    scene.outage.failing.clear();
    travel(1_000);
    await assertStopped(scene, agent);
  });
});

describe("a run whose lease cannot be extended", () => {
  /** A run under way, and a ledger that cannot extend leases. */
  async function cutOff(t: TestContext, isShared: boolean) {
    const agent = puppet();
    const scene = await setScene(t, { isShared });
    const travel = makeTimeTravel(t, scene);
    await accept(scene);
    hire(t, scene, agent).start();
    await until("the run", () => agent.runs.length === 1);
    scene.outage.failing.add("extendLeases").add("finishRun");
    return { agent, scene, travel };
  }

  test("is stopped before the lease ends, and given back: no two gateways ever run one job", async (t) => {
    const { agent, scene, travel } = await cutOff(t, true);
    for (let second = 1; second < 25; second += 1) travel(1_000);
    await settle(scene);
    assert.equal(agent.atWork(), 1);
    travel(1_000);
    await until("the end of the run", () => agent.atWork() === 0);
    assert.ok(scene.lines.some(({ msg }) => /could not be extended, and another gateway/.test(msg)));
    const other = await setScene(t, { after: scene, isShared: true });
    assert.deepEqual(await other.ledger.takeJobs(aTake()), []);
    assert.equal(agent.runs.length, 1);
    scene.outage.failing.clear();
    await until("the next run", () => agent.runs.length === 2);
    assert.deepEqual(outcomes(await onlyJob(scene)), ["released", null]);
  });

  test("is recorded when it had its answer just then", async (t) => {
    const { agent, scene, travel } = await cutOff(t, true);
    agent.runs[0]?.answer("All is well");
    travel(26_000);
    await settle(scene);
    scene.outage.failing.clear();
    await jobIn(scene, "done");
    assert.deepEqual(outcomes(await onlyJob(scene)), ["completed"]);
  });

  test("is not even begun when the ledger took longer to hand the job out than the lease lasts", async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const agent = puppet();
    const scene = await setScene(t, { isShared: true });
    scene.outage.delays.set("claimJobs", promise);
    await accept(scene);
    hire(t, scene, agent).start();
    await until("the claim", () => scene.outage.asked.get("claimJobs") === 1);
    scene.clock.advance(30_000);
    const other = await setScene(t, { after: scene, isShared: true });
    const [taken] = await other.ledger.takeJobs(aTake());
    resolve();
    await until("the line", () => scene.lines.some(({ msg }) => /its result is dropped/.test(msg)));
    assert.equal(agent.runs.length, 0);
    assert.equal(await other.ledger.ran(taken!, { status: "completed", answer: "Mine", transcript: [] }), true);
  });

  test("goes on where there is no other gateway", async (t) => {
    const { agent, scene, travel } = await cutOff(t, false);
    travel(60_000);
    await settle(scene);
    assert.equal(agent.atWork(), 1);
    scene.outage.failing.clear();
    agent.runs[0]?.answer("All is well");
    await jobIn(scene, "done");
  });
});

describe("while agents cannot run", () => {
  test("jobs wait with the reason, and run when they can", async (t) => {
    const agent = answering("All is well");
    agent.reason = "no model configured";
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    const worker = hire(t, scene, agent);
    worker.start();
    await accept(scene);
    worker.wake();
    assert.equal((await jobIn(scene, "waiting")).reason, "no model configured");
    travel(5_000);
    await scene.events();
    assert.equal(agent.runs.length, 0);
    agent.reason = undefined;
    await until("the run", () => {
      travel(1_000);
      return agent.runs.length === 1;
    });
    await jobIn(scene, "done");
    const said = scene.lines.filter(({ msg }) => /Agents can/.test(msg)).map(({ level, msg }) => `${level} ${msg}`);
    assert.deepEqual(said.at(-1), "info Agents can run again");
    assert.ok(said.length <= 4, "it does not say so at every look");
  });

  test("jobs that an earlier gateway has set aside are run by one that can", async (t) => {
    const scene = await setScene(t);
    await accept(scene);
    await scene.ledger.park("no model configured");
    const next = await setScene(t, { after: scene });
    hire(t, next, answering("All is well")).start();
    await jobIn(next, "done");
  });

  test("answers that are there already go out", async (t) => {
    const scene = await setScene(t);
    await accept(scene);
    const [job] = await scene.ledger.takeJobs(aTake(1));
    await scene.ledger.ran(job!, { status: "completed", answer: "All is well", transcript: [] });
    const agent = puppet();
    agent.reason = "no model configured";
    hire(t, scene, agent).start();
    await jobIn(scene, "done");
  });
});

describe("a worker that is told to stop", () => {
  test("lets its run end and its message go out", async (t) => {
    const agent = puppet();
    const { scene, worker } = await atWork(t, agent);
    await until("the run", () => agent.runs.length === 1);
    const drained = worker.drain(30_000);
    agent.runs[0]?.answer("All is well");
    await drained;
    assert.equal((await onlyJob(scene)).state, "done");
  });

  test("begins nothing new: what waits is there for the next start", async (t) => {
    const { scene, worker } = await atWork(t, answering("Done"));
    await jobIn(scene, "done");
    await worker.drain(1_000);
    await accept(scene);
    worker.wake();
    await scene.events();
    assert.deepEqual((await scene.events()).map(({ state }) => state).sort(), ["done", "queued"]);
  });

  test("gives a run back that takes too long, without counting a failure", async (t) => {
    const agent = puppet();
    const { scene, worker } = await atWork(t, agent);
    await until("the run", () => agent.runs.length === 1);
    await worker.drain(20);
    const job = await onlyJob(scene);
    assert.deepEqual([job.state, outcomes(job)], ["queued", ["released"]]);
    assert.ok(scene.lines.some(({ outcome, msg }) => outcome === "released" && msg === "Run ended"));
    const next = await setScene(t, { after: scene });
    const [taken] = await next.ledger.takeJobs(aTake(1));
    assert.equal(taken?.failures, 0);
  });

  test("does not forget a job that it is taking in that moment", async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const scene = await setScene(t);
    scene.outage.delays.set("claimJobs", promise);
    await accept(scene);
    const agent = answering("All is well");
    const worker = hire(t, scene, agent);
    worker.start();
    await until("the claim", () => scene.outage.asked.get("claimJobs") === 1);
    const drained = worker.drain(5_000);
    resolve();
    await drained;
    assert.equal((await onlyJob(scene)).state, "done");
  });

  test("waits for a message that is on its way, also when runs have used up the time", async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const agent = puppet();
    const scene = await setScene(t, { webhook: { rate_limit: 100 } });
    scene.outage.delays.set("finishAttempt", promise);
    await accept(scene);
    await accept(scene);
    const worker = hire(t, scene, agent);
    worker.start();
    await until("the runs", () => agent.runs.length === 2);
    agent.runs[0]?.answer("All is well");
    await until("the message", () => scene.outage.asked.get("finishAttempt") === 1);
    let isDrained = false;
    const drained = worker.drain(20).then(() => {
      isDrained = true;
    });
    await until("the run that is given back", () => scene.lines.some(({ outcome }) => outcome === "released"));
    await settle(scene);
    assert.equal(isDrained, false);
    scene.outage.delays.clear();
    resolve();
    await drained;
    const states = (await scene.events()).flatMap(({ jobs }) => jobs.map(({ state }) => state));
    assert.deepEqual(states.sort(), ["done", "queued"]);
  });
});

describe("an orderly stop", () => {
  /** A target that answers when the test says so. */
  function slowTarget(t: TestContext) {
    const parts: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    overlayTelegram(t, {
      send: async ({ text }) => {
        parts.push(text[0] ?? "");
        await promise;
        return {};
      },
    });
    return { parts, resolve };
  }

  /** Watches a worker that is told to stop at once. */
  function stop(worker: Worker) {
    const watched = { isOver: false };
    const over = worker.drain(0).then(() => {
      watched.isOver = true;
    });
    return { watched, over };
  }

  test("never cuts off a try that is under way, however long it takes", async (t) => {
    const { parts, resolve } = slowTarget(t);
    const { scene, worker } = await atWork(t, answering("All is well"));
    await until("the try", () => parts.length === 1);
    const { watched, over } = stop(worker);
    await settle(scene);
    await settle(scene);
    assert.equal(watched.isOver, false);
    resolve();
    await over;
    assert.equal((await onlyJob(scene)).state, "done");
  });

  test("gives a long message back between two parts, and the next start sends the rest", async (t) => {
    const { parts, resolve } = slowTarget(t);
    const { scene, worker } = await atWork(
      t,
      answering(`${"a".repeat(4000)}\n\n${"b".repeat(4000)}\n\n${"c".repeat(200)}`),
    );
    await until("the first part", () => parts.length === 1);
    const { over } = stop(worker);
    await settle(scene);
    resolve();
    await over;
    const [message] = (await onlyJob(scene)).messages;
    assert.deepEqual([message?.state, message?.partsSent, message?.attempts[0]?.outcome], ["pending", 1, "released"]);
    const next = await setScene(t, { after: scene });
    hire(t, next, puppet()).start();
    await jobIn(next, "done");
    assert.deepEqual(parts, ["a", "b", "c"]);
  });

  test("lets a long message go on until its time is up", async (t) => {
    const { parts, resolve } = slowTarget(t);
    const { scene, worker } = await atWork(t, answering(`${"a".repeat(4096)}b`));
    await until("the first part", () => parts.length === 1);
    const drained = worker.drain(60_000);
    resolve();
    await drained;
    assert.equal((await onlyJob(scene)).state, "done");
  });

  test("waits for a direct delivery that is under way", async (t) => {
    const { parts, resolve } = slowTarget(t);
    const routes = { ci: { prompt: "Hi", deliver: "telegram", deliver_only: true } };
    const scene = await setScene(t, { routes });
    const worker = hire(t, scene, puppet());
    worker.start();
    const sending = handle(request({ id: "42" }), scene.gateway);
    await until("the try", () => parts.length === 1);
    const { watched, over } = stop(worker);
    await settle(scene);
    assert.equal(watched.isOver, false);
    resolve();
    await over;
    assert.equal((await sending).reply.status, "delivered");
  });

  test("leaves what waits for its turn to the next start", async (t) => {
    const scene = await setScene(t, { isPaced: true, webhook: { rate_limit: 100 } });
    await accept(scene);
    const worker = hire(t, scene, answering("All is well"));
    worker.start();
    await until("the first", async () => (await onlyJob(scene)).state === "done");
    await accept(scene);
    worker.wake();
    await until("the second", async () => {
      return (await scene.events()).some(({ jobs }) => jobs[0]?.messages[0]?.state === "sending");
    });
    await worker.drain(0);
    const messages = (await scene.events()).flatMap(({ jobs }) => jobs.flatMap((job) => job.messages));
    assert.deepEqual(messages.map(({ state }) => state).sort(), ["pending", "sent"]);
    assert.equal(scene.telegram.tries, 1);
  });
});

describe("a gateway that only receives", () => {
  test("takes nothing from the ledger, and keeps the leases of its direct deliveries alive", async (t) => {
    const routes = {
      ci: { prompt: "Look", deliver: "telegram" },
      alerts: { prompt: "Hi", deliver: "telegram", deliver_only: true },
    };
    const scene = await setScene(t, { routes, isShared: true });
    const travel = makeTimeTravel(t, scene);
    const worker = hire(t, scene, answering("All is well"), { lanes: false });
    worker.start();
    await accept(scene);
    worker.wake();
    worker.hear("messages");
    scene.telegram.mode = "hang";
    const sending = handle(request({ route: "alerts", id: "42" }), scene.gateway);
    await until("the try", () => scene.telegram.tries === 1);
    travel(10_000);
    await until("a heartbeat", () => scene.outage.asked.get("extendLeases") === 1);
    assert.equal(scene.outage.asked.get("claimJobs"), undefined);
    assert.equal(scene.outage.asked.get("claimMessages"), undefined);
    await scene.telegram.close();
    await sending;
    await worker.drain(0);
  });
});

describe("while the ledger cannot commit", () => {
  test("a result waits, and the agent does not run twice", async (t) => {
    const agent = puppet();
    const { scene } = await atWork(t, agent);
    await until("the run", () => agent.runs.length === 1);
    scene.outage.failing.add("finishRun");
    agent.runs[0]?.answer("All is well");
    await until("a second try to record", () => (scene.outage.asked.get("finishRun") ?? 0) >= 2);
    assert.equal(scene.telegram.tries, 0);
    scene.outage.failing.clear();
    await jobIn(scene, "done");
    assert.equal(agent.runs.length, 1);
    assert.equal(scene.telegram.tries, 1);
    assert.ok(scene.lines.some(({ level, msg }) => level === "error" && /cannot commit/.test(msg)));
  });

  test("a message that was taken is not sent again", async (t) => {
    const { scene } = await atWork(t, answering("All is well"));
    scene.outage.failing.add("finishAttempt");
    await until("a second try to record", () => (scene.outage.asked.get("finishAttempt") ?? 0) >= 2);
    scene.outage.failing.clear();
    await jobIn(scene, "done");
    assert.equal(scene.telegram.tries, 1);
  });

  test("no job is begun, and work goes on by itself afterwards", async (t) => {
    const agent = answering("All is well");
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    scene.outage.failing.add("claimJobs");
    await accept(scene);
    hire(t, scene, agent).start();
    await until("three looks", () => {
      travel(1_000);
      return (scene.outage.asked.get("claimJobs") ?? 0) >= 3;
    });
    assert.equal(agent.runs.length, 0);
    scene.outage.failing.clear();
    await until("the run", () => {
      travel(1_000);
      return agent.runs.length === 1;
    });
    await jobIn(scene, "done");
  });
});

describe("a message", () => {
  test("that the target refuses for good is given up, with the target's words in the record", async (t) => {
    const scene = await setScene(t);
    scene.telegram.mode = "refused";
    await accept(scene);
    hire(t, scene, answering("All is well")).start();
    const job = await jobIn(scene, "dead");
    assert.match(job.messages[0]?.reason ?? "", /bot was blocked by the user/);
    assert.equal(scene.telegram.tries, 1);
  });

  test("is sent again when the service said it may, not before", async (t) => {
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    scene.telegram.upcoming.push("limited");
    await accept(scene);
    hire(t, scene, answering("All is well")).start();
    await until("the first try", () => scene.outage.asked.get("finishAttempt") === 1);
    travel(6_980);
    await settle(scene);
    assert.equal(scene.telegram.tries, 1);
    travel(30);
    const job = await jobIn(scene, "done");
    assert.deepEqual(
      job.messages[0]?.attempts.map(({ outcome }) => outcome),
      ["refused", "sent"],
    );
    assert.equal(scene.telegram.messages.length, 1);
  });

  test("is sent eight times at most, with longer and longer pauses", async (t) => {
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    scene.telegram.mode = "broken";
    await accept(scene);
    hire(t, scene, answering("All is well")).start();
    const readyAt = scene.clock.now();
    const pauses: number[] = [];
    let waited = 0;
    for (let count = 1; count <= 8; count += 1) {
      await until(`try ${count}`, () => scene.outage.asked.get("finishAttempt") === count);
      const [message] = (await onlyJob(scene)).messages;
      if (message?.state !== "pending") continue;
      pauses.push(message.dueAt - scene.clock.now());
      waited = message.dueAt - readyAt;
      await until("the lane to sleep", () => (scene.outage.asked.get("nextDue") ?? 0) > 0);
      await scene.events();
      travel(message.dueAt - scene.clock.now() + 1);
    }
    const job = await jobIn(scene, "dead");
    const last = 86_400_000 - (waited - pauses.at(-1)!);
    assert.deepEqual(pauses, [4_000, 24_000, 144_000, 864_000, 5_184_000, 31_104_000, last]);
    assert.equal(job.messages[0]?.attempts.length, 8);
    assert.equal(scene.telegram.tries, 8);
  });

  test("of several parts goes on with the part that failed", async (t) => {
    const scene = await setScene(t);
    const travel = makeTimeTravel(t, scene);
    scene.telegram.upcoming.push("ok", "limited", "ok", "limited");
    await accept(scene);
    hire(t, scene, answering(`${"a".repeat(4000)}\n\n${"b".repeat(4000)}\n\n${"c".repeat(200)}`)).start();
    for (const count of [1, 2, 3]) {
      await until(`end ${count} of a try`, () => scene.outage.asked.get("finishAttempt") === count);
      travel(24_010);
    }
    const job = await jobIn(scene, "done");
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text[0]),
      ["a", "b", "c"],
    );
    assert.equal(scene.telegram.tries, 5);
    assert.equal(job.messages[0]?.partsSent, 2);
  });

  test("to one target that fails does not hold up the others", async (t) => {
    const routes = {
      ci: { prompt: "Look", deliver: [{ to: "telegram", chat_id: "1" }, "log", { to: "telegram", chat_id: "2" }] },
    };
    const scene = await setScene(t, { routes });
    scene.telegram.upcoming.push("refused");
    await accept(scene);
    hire(t, scene, answering("All is well")).start();
    const job = await jobIn(scene, "dead");
    assert.deepEqual(job.messages.map(({ state }) => state).sort(), ["dead", "sent", "sent"]);
  });
});

describe("messages to one place", () => {
  const routes = { ci: { prompt: "{what}", deliver: "telegram" }, slow: { prompt: "{what}", deliver: "telegram" } };

  /** An agent that answers with its prompt. */
  function echo(): Puppet {
    const agent = puppet();
    agent.run = async ({ prompt }) => ({ status: "completed", answer: prompt, transcript: [] });
    return agent;
  }

  test("go one after the other, also when the first has to be sent again", async (t) => {
    const scene = await setScene(t, { routes, webhook: { rate_limit: 100 } });
    const travel = makeTimeTravel(t, scene);
    scene.telegram.upcoming.push("broken");
    await accept(scene, { body: { what: "one" } });
    hire(t, scene, echo()).start();
    await until("the failure", () => scene.outage.asked.get("finishAttempt") === 1);
    for (const what of ["two", "three"]) {
      scene.clock.advance(1);
      await accept(scene, { body: { what } });
      travel(1_000);
      await until("its answer", async () => (await scene.events())[0]?.state === "delivering");
    }
    const waiting = (await scene.events()).flatMap(({ jobs }) => jobs.flatMap(({ messages }) => messages));
    assert.deepEqual(waiting.map(({ state }) => state).sort(), ["pending", "waiting", "waiting"]);
    await until("all", () => {
      travel(1_000);
      return scene.telegram.messages.length === 3;
    });
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text),
      ["one", "two", "three"],
    );
  });

  test("do not wait longer for the first than its rule says", async (t) => {
    const own = { ...routes, slow: { ...routes.slow, retry: { keep_order_for: "0s", first_delay: "1h" } } };
    const scene = await setScene(t, { routes: own, webhook: { rate_limit: 100 } });
    const travel = makeTimeTravel(t, scene);
    scene.telegram.upcoming.push("broken");
    await accept(scene, { route: "slow", body: { what: "one" } });
    const worker = hire(t, scene, echo());
    worker.start();
    await until("the failure", () => scene.outage.asked.get("finishAttempt") === 1);
    scene.clock.advance(1);
    await accept(scene, { body: { what: "two" } });
    worker.wake();
    await until("the second", () => scene.telegram.messages.length === 1);
    await until("the first", () => {
      travel(60_000);
      return scene.telegram.messages.length === 2;
    });
    assert.deepEqual(
      scene.telegram.messages.map(({ text }) => text),
      ["two", "one"],
    );
  });
});

describe("one target", () => {
  /** Accepts events whose answers go to a chat each. */
  async function acceptMany(t: TestContext, count: number, options: SceneOptions = {}) {
    const routes = {
      ci: { prompt: "Look", deliver: "telegram", deliver_extra: { chat_id: "{n}" } },
      log: { prompt: "Look" },
    };
    const scene = await setScene(t, { routes, webhook: { rate_limit: 1_000 }, ...options });
    const travel = makeTimeTravel(t, scene);
    for (let n = 1; n <= count; n += 1) await accept(scene, { body: { n } });
    const states = async () =>
      (await scene.events()).flatMap(({ jobs }) => jobs[0]!.messages.map(({ state }) => state));
    const countOf = async (state: string) => (await states()).filter((one) => one === state).length;
    return { scene, travel, countOf };
  }

  test("that hangs does not take the places of the others", async (t) => {
    const { scene, countOf } = await acceptMany(t, 12, {
      sections: { agent: { backend: "preview", max_concurrent: 20 } },
    });
    scene.telegram.mode = "hang";
    hire(t, scene, answering("All is well")).start();
    await until("eight tries", () => scene.telegram.tries === 8);
    await accept(scene, { route: "log" });
    await until("the log's message", async () => (await countOf("sent")) === 1);
    assert.deepEqual([await countOf("sending"), scene.telegram.tries], [8, 8]);
  });

  test("is given no more than its pace allows, without looking again and again", async (t) => {
    overlayTelegram(t, { pace: { overall: { count: 2, everyMs: 10_000 } } });
    const { scene, travel, countOf } = await acceptMany(t, 5, { isPaced: true });
    hire(t, scene, answering("All is well")).start();
    await until("two", async () => (await countOf("sent")) === 2);
    await until("the others' answers", async () => (await countOf("pending")) === 3);
    await settle(scene);
    const before = scene.outage.asked.get("claimMessages") ?? 0;
    for (let second = 1; second < 10; second += 1) {
      travel(1_000);
      await settle(scene);
    }
    assert.ok((scene.outage.asked.get("claimMessages") ?? 0) - before < 100, "it looks all the time");
    assert.deepEqual([await countOf("pending"), await countOf("sending")], [3, 0]);
    travel(1_000);
    await until("two more", async () => (await countOf("sent")) === 4);
    assert.equal(await countOf("pending"), 1);
  });

  test("that keeps failing is left alone for a while, and then tried with one message first", async (t) => {
    const { scene, travel, countOf } = await acceptMany(t, 15);
    scene.telegram.mode = "broken";
    hire(t, scene, answering("All is well")).start();
    const paused = await until("the pause", () => scene.lines.find(({ msg }) => msg === "Target paused"));
    await until("quiet", async () => (await countOf("sending")) === 0 && (await countOf("held")) === 0);
    const tries = scene.telegram.tries;
    // Eight may be on their way when the fifth fails.
    assert.ok(tries >= 5 && tries <= 4 + 8, `${tries} tries`);
    const pauseMs = Date.parse(String(paused.until)) - scene.clock.now();
    for (let step = 0; step < 4; step += 1) {
      travel((pauseMs - 200) / 4);
      await settle(scene);
      await settle(scene);
    }
    assert.equal(scene.telegram.tries, tries);
    scene.telegram.mode = "hang";
    travel(1_500);
    await until("the probe", () => scene.telegram.tries === tries + 1);
    travel(2_000);
    await settle(scene);
    assert.equal(scene.telegram.tries, tries + 1);
  });
});

test("news of jobs and of messages is looked after at once", async (t) => {
  const agent = answering("All is well");
  const scene = await setScene(t);
  stopTime(t);
  const worker = hire(t, scene, agent);
  worker.start();
  await settle(scene);
  // Another gateway accepts it, or runs it.
  const other = await setScene(t, { after: scene });
  await accept(other);
  worker.hear("jobs");
  await until("the run", () => agent.runs.length === 1);
  await jobIn(scene, "done");
  await accept(other);
  const [job] = await other.ledger.takeJobs(aTake());
  await other.ledger.ran(job!, { status: "completed", answer: "Mine", transcript: [] });
  worker.hear("messages");
  await until("the message", () => scene.telegram.messages.length === 2);
});

test("no secret leaves with an answer, a reason or a transcript, nor stays in the record", async (t) => {
  const scene = await setScene(t, { webhook: { rate_limit: 10 } });
  const transcript = [{ role: "tool-result", text: `secret=${globalSecret}` }] as const;
  await accept(scene);
  const agent = puppet({
    status: "completed",
    answer: `It is ${globalSecret}, and ${scene.telegram.token}`,
    transcript,
  });
  const worker = hire(t, scene, agent);
  worker.start();
  await jobIn(scene, "done");
  assert.equal(scene.telegram.messages[0]?.text, "It is [redacted], and [redacted]");
  agent.always = { status: "failed", reason: `${globalSecret} is wrong`, transient: false, transcript };
  await accept(scene);
  worker.wake();
  const events = await until("the second job", async () => {
    const all = await scene.events();
    return all.some(({ state }) => state === "dead") ? all : undefined;
  });
  const kept = JSON.stringify(events.map(({ jobs }) => jobs));
  const logged = scene.lines.map((line) => JSON.stringify(line)).join("\n");
  for (const secret of [globalSecret, scene.telegram.token]) {
    assert.ok(!kept.includes(secret), "in the record");
    assert.ok(!logged.includes(secret), "in the log");
  }
  assert.match(kept, /secret=\[redacted\]/);
});
