import { setTimeout as wait } from "node:timers/promises";
import type { Agent, Outcome } from "../agent/agent.ts";
import { findSkill } from "../compose/skill.ts";
import type { Config } from "../config/load.ts";
import { findTarget, targetNames } from "../config/platforms.ts";
import { runTries } from "../config/retry.ts";
import { redact } from "../core/text.ts";
import type { Skill } from "../core/types.ts";
import type { Job, Ledger, Message } from "../ledger/ledger.ts";
import type { Log } from "../lib/log.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { News } from "../store/store.ts";
import type { Deliveries } from "./deliver.ts";
import { Heart } from "./heart.ts";
import { insist } from "./insist.ts";
import { Lane } from "./lane.ts";
import { Readiness } from "./readiness.ts";
import type { Routes } from "./routes.ts";

/** What the worker works with. `config`, `agent` and `sandbox` may change between two jobs. */
export interface WorkerOptions {
  readonly config: Config;
  readonly routes: Pick<Routes, "all" | "known" | "refresh">;
  readonly ledger: Ledger;
  readonly deliveries: Deliveries;
  readonly agent: Agent;
  readonly sandbox: Sandbox;
  readonly log: Log;
  readonly now: () => number;
  readonly leaseMs: number;
  readonly secrets: () => readonly string[];
  /** False: nothing is taken from the ledger, and only the leases of direct deliveries are kept alive. */
  readonly lanes: boolean;
  /** Aborted when the gateway must end now. */
  readonly signal: AbortSignal;
}

/** Messages on their way at the same time. They wait for services, not for this machine. */
const mostSends = 32;
/** The same for one target, so that a slow one does not take the places of all others. */
const mostSendsPerTarget = 8;
/** How old what is known of subscriptions may be when a job is taken. */
const routesHoldMs = 1_000;
/** After being told to stop, a run has this long to end and be given back. */
const lastCallMs = 5_000;
/** A try to send that is under way is never cut off: no target takes longer than 30 s, and then it is recorded. */
const longestTryMs = 35_000;

/** Does what was promised: runs agents on jobs, and sends messages. Everything it knows is in the ledger. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #runs: Lane<Job>;
  readonly #sends: Lane<Message>;
  readonly #heart: Heart;
  readonly #readiness: Readiness;
  /** Jobs whose run has ended, and whose end is being recorded. */
  readonly #ended = new WeakSet<Job>();
  #refreshedAt = Number.NEGATIVE_INFINITY;

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { deliveries, ledger, log, now, leaseMs } = options;
    this.#readiness = new Readiness(options);
    this.#runs = new Lane({
      name: "runs",
      // Read each time: the configuration may be replaced.
      get capacity() {
        return options.config.agent.maxConcurrent;
      },
      take: (limit) => this.#takeJobs(limit),
      work: (job, signal) => this.#run(job, signal),
      nextTimes: async () => [(await ledger.nextDue()).jobs ?? Number.POSITIVE_INFINITY],
      log,
      now,
    });
    this.#sends = new Lane({
      name: "sends",
      capacity: mostSends,
      take: (limit) => this.#takeMessages(limit),
      work: async (message) => {
        await deliveries.send(message, true);
      },
      nextTimes: () => this.#messageTimes(),
      log,
      now,
    });
    this.#heart = new Heart({
      ...{ ledger, log, leaseMs },
      jobs: () => this.#runs.active,
      messages: () => this.#messagesAtWork(),
      runs: () => this.#runs.active.filter((job) => !this.#ended.has(job)),
      stop: (ids) => this.#runs.abort(ids),
    });
  }

  start(): void {
    this.#heart.start();
    if (!this.#options.lanes) return;
    this.#runs.open();
    this.#sends.open();
  }

  /** A job was accepted. */
  wake(): void {
    this.#runs.wake();
  }

  /** Another process may have added something, or cancelled it. */
  hear(news: News): void {
    if (news === "jobs") this.#runs.wake();
    if (news === "messages") this.#sends.wake();
    if (news === "cancelled") void this.#heart.look();
  }

  /** The configuration was replaced: what could not run may run now. */
  reconsider(): void {
    this.#readiness.reconsider();
    this.#runs.wake();
    this.#sends.wake();
  }

  /**
   * Stops taking jobs, lets runs and sends end within `timeoutMs`, and gives the rest back unharmed. A try to send that is
   * under way then is waited for, however long the target takes: it would be made twice. What is due but was not begun stays
   * in the ledger for the next start.
   */
  async drain(timeoutMs: number): Promise<void> {
    const { deliveries } = this.#options;
    const drained = new AbortController();
    const deadline = wait(timeoutMs, undefined, { signal: drained.signal }).catch(() => {});
    this.#runs.shut();
    await Promise.race([this.#runs.idle(), deadline]);
    this.#runs.abort();
    await Promise.race([this.#runs.idle(), wait(lastCallMs, undefined, { ref: false })]);
    this.#sends.shut();
    const sent = Promise.all([this.#sends.idle(), deliveries.idle()]);
    await Promise.race([sent, deadline]);
    deliveries.leave();
    await Promise.race([sent, wait(longestTryMs, undefined, { ref: false })]);
    drained.abort();
    this.#heart.stop();
  }

  /** After `signal` was aborted: waits a moment for what was cut off to be recorded as such. */
  async settle(): Promise<void> {
    const idle = Promise.all([this.#runs.idle(), this.#sends.idle(), this.#options.deliveries.idle()]);
    await Promise.race([idle, wait(lastCallMs, undefined, { ref: false })]);
  }

  async #takeJobs(limit: number): Promise<readonly Job[]> {
    const { ledger } = this.#options;
    this.#refreshRoutes();
    const allowed = await this.#readiness.allow(limit, (await ledger.nextDue()).jobs);
    return ledger.takeJobs({ limit: allowed, active: this.#runs.active, limits: this.#runLimits() });
  }

  /** Runs at the same time, by route. */
  #runLimits(): Record<string, number> {
    const limits = this.#options.routes
      .all()
      .flatMap(({ name, maxConcurrent: most }) => (most === undefined ? [] : [[name, most] as const]));
    return Object.fromEntries(limits);
  }

  /** In the background, since a look at the subscriptions may take its time. */
  #refreshRoutes(): void {
    const { routes, now } = this.#options;
    if (now() < this.#refreshedAt + routesHoldMs && now() >= this.#refreshedAt) return;
    this.#refreshedAt = now();
    void routes.refresh();
  }

  async #takeMessages(limit: number): Promise<readonly Message[]> {
    const { ledger, deliveries } = this.#options;
    const limits = targetNames.flatMap((name) => {
      const target = findTarget(name);
      if (!target) return [];
      return [[name, Math.min(this.#roomFor(name), deliveries.paces.allowance(target))] as const];
    });
    return ledger.takeMessages({ limit, active: this.#messagesAtWork(), limits: Object.fromEntries(limits) });
  }

  #messagesAtWork(): readonly Message[] {
    return [...this.#sends.active, ...this.#options.deliveries.held];
  }

  #roomFor(target: string): number {
    const atWork = this.#sends.active.filter((message) => message.target === target).length;
    return Math.max(0, mostSendsPerTarget - atWork);
  }

  /** When there may be messages to take. Where this worker has no room, the end of what is at work says so. */
  async #messageTimes(): Promise<readonly number[]> {
    const { paces } = this.#options.deliveries;
    const { messages } = await this.#options.ledger.nextDue();
    return messages.flatMap(({ target: name, due }) => {
      const target = findTarget(name);
      if (!target) return [due];
      if (this.#roomFor(name) === 0) return [];
      if (paces.allowance(target) > 0) return [due];
      const allowedAt = paces.nextAt(target);
      return allowedAt === undefined ? [] : [Math.max(due, allowedAt)];
    });
  }

  async #run(job: Job, signal: AbortSignal): Promise<void> {
    const { ledger, config, routes, log, now, signal: end } = this.#options;
    const startedAt = now();
    // The ledger may have taken longer to hand it out than the lease lasts: then somebody else may have begun it.
    const outcome = ledger.holds(job) ? this.#clean(await this.#runAgent(job, signal)) : notBegun;
    this.#ended.add(job);
    // Stopped from here, because the gateway ends or the lease is lost: that is not the job's end.
    const isGivenBack = outcome === notBegun || (signal.aborted && outcome.status === "cancelled");
    const tries = runTries(config, routes.known(job.route));
    const record = () => (isGivenBack ? ledger.giveBackJob(job, outcome) : ledger.ran(job, outcome, tries));
    const isRecorded = await insist(record, log, end);
    this.#sends.wake();
    const line = {
      ...{ route: job.route, event: job.eventType, delivery: job.deliveryId, job: job.id, run: job.fence },
      ms: now() - startedAt,
      outcome: isGivenBack ? "released" : outcome.status,
      reason: reasonOf(outcome),
    };
    if (!isRecorded) log.warn(line, "Run ended after it was taken over or cancelled; its result is dropped");
    else if (outcome.status === "completed" || isGivenBack) log.info(line, "Run ended");
    else log.warn(line, "Run failed");
  }

  async #runAgent(job: Job, signal: AbortSignal): Promise<Outcome> {
    const { agent, config, sandbox } = this.#options;
    const { plan, route, eventType, deliveryId } = job;
    if (plan.hopeless !== undefined) return forNothing(plan.hopeless);
    try {
      const skill = await this.#findSkill(job);
      const request = { route, eventType, deliveryId, prompt: plan.prompt, skill, tools: plan.tools };
      return await agent.run(request, { settings: config.agent, env: config.env, sandbox, signal });
    } catch (err) {
      this.#options.log.error({ err, job: job.id }, "An agent failed in a way it should not");
      const reason = `The agent failed unexpectedly: ${err instanceof Error ? err.message : String(err)}`;
      return { status: "failed", reason, transient: false, transcript: [] };
    }
  }

  async #findSkill(job: Job): Promise<Skill | undefined> {
    const { config, log } = this.#options;
    const { skill, missing } = await findSkill(job.plan.skills, config.home.skills);
    for (const name of missing) {
      log.warn({ route: job.route, skill: name }, "Skill not found; the run goes on without it");
    }
    return skill;
  }

  /** Known secrets leave neither in an answer nor in the record. */
  #clean(outcome: Outcome): Outcome {
    const secrets = this.#options.secrets();
    const transcript = outcome.transcript.map((entry) => ({ ...entry, text: redact(entry.text, secrets) }));
    if (outcome.status === "completed") return { ...outcome, transcript, answer: redact(outcome.answer, secrets) };
    return { ...outcome, transcript, reason: redact(outcome.reason, secrets) };
  }
}

const notBegun: Outcome = {
  status: "cancelled",
  reason: "its lease ran out before it began",
  transient: true,
  transcript: [],
};

/** A run costs money, and this one's answer could go nowhere. */
function forNothing(why: string): Outcome {
  const reason = `No agent was asked, because no target would take the answer: ${why}`;
  return { status: "failed", reason, transient: false, transcript: [] };
}

function reasonOf(outcome: Outcome): string | undefined {
  return outcome.status === "completed" ? undefined : outcome.reason;
}
