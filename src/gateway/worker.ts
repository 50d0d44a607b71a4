import { setTimeout as wait } from "node:timers/promises";
import type { Agent, Outcome } from "../agent/agent.ts";
import { findSkill } from "../compose/skill.ts";
import type { Config } from "../config/load.ts";
import { redact } from "../core/text.ts";
import type { Skill } from "../core/types.ts";
import type { Job, Ledger, Message } from "../ledger/ledger.ts";
import type { Log } from "../lib/log.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Deliveries } from "./deliver.ts";
import { insist } from "./insist.ts";
import { Lane } from "./lane.ts";

/** What the worker works with. `config`, `agent` and `sandbox` may change between two jobs. */
export interface WorkerOptions {
  readonly config: Config;
  readonly ledger: Ledger;
  readonly deliveries: Deliveries;
  readonly agent: Agent;
  readonly sandbox: Sandbox;
  readonly log: Log;
  readonly now: () => number;
  readonly leaseMs: number;
  readonly secrets: () => readonly string[];
  /** Aborted when the gateway must end now. */
  readonly signal: AbortSignal;
}

/** Messages on their way at the same time. They wait for services, not for this machine. */
const mostSends = 32;
/** How long an answer to "can agents run?" holds. */
const readinessMs = 5_000;
/** After being told to stop, a run has this long to end and be given back, and then a try to send to be recorded. */
const lastCallMs = 5_000;

/** Does what was promised: runs agents on jobs, and sends messages. Everything it knows is in the ledger. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #runs: Lane<Job>;
  readonly #sends: Lane<Message>;
  #heart: NodeJS.Timeout | undefined;
  #blocked: { readonly reason: string | undefined; readonly until: number } | undefined;
  #isParked: boolean | undefined;
  #isStopping = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { ledger, log, now } = options;
    this.#runs = new Lane({
      name: "runs",
      // Read each time: the configuration may be replaced.
      get capacity() {
        return options.config.agent.maxConcurrent;
      },
      take: (limit) => this.#takeJobs(limit),
      work: (job, signal) => this.#run(job, signal),
      nextDue: async () => (this.#isParked ? now() + readinessMs : (await ledger.nextDue()).jobs),
      log,
      now,
    });
    this.#sends = new Lane({
      name: "sends",
      capacity: mostSends,
      take: (limit) => ledger.takeMessages(limit),
      work: async (message) => {
        await options.deliveries.send(message, true);
      },
      nextDue: async () => (await ledger.nextDue()).messages,
      log,
      now,
    });
  }

  start(): void {
    this.#runs.open();
    this.#sends.open();
    this.#heart = setInterval(() => void this.#beat(), this.#options.leaseMs / 3);
  }

  /** A job was accepted. */
  wake(): void {
    this.#runs.wake();
  }

  /** The configuration was replaced: what could not run may run now. */
  reconsider(): void {
    this.#blocked = undefined;
    this.#runs.wake();
    this.#sends.wake();
  }

  /**
   * Stops taking jobs, lets runs and sends end within `timeoutMs`, and gives the rest back unharmed. What is due but was
   * not begun stays in the ledger for the next start.
   */
  async drain(timeoutMs: number): Promise<void> {
    const giveUp = new AbortController();
    const deadline = wait(timeoutMs, undefined, { signal: giveUp.signal }).catch(() => {});
    this.#runs.shut();
    await Promise.race([this.#runs.idle(), deadline]);
    this.#isStopping = true;
    this.#runs.abort();
    await Promise.race([this.#runs.idle(), wait(lastCallMs, undefined, { ref: false })]);
    this.#sends.shut();
    // A try that is cut off here is made again at the next start, and the target may have it twice.
    const lastCall = Promise.all([deadline, wait(lastCallMs, undefined, { ref: false })]);
    await Promise.race([this.#sends.idle(), lastCall]);
    giveUp.abort();
    clearInterval(this.#heart);
  }

  /** After `signal` was aborted: waits a moment for what was cut off to be recorded as such. */
  async settle(): Promise<void> {
    const idle = Promise.all([this.#runs.idle(), this.#sends.idle()]);
    await Promise.race([idle, wait(lastCallMs, undefined, { ref: false })]);
  }

  async #takeJobs(limit: number): Promise<readonly Job[]> {
    const { ledger, log, now } = this.#options;
    // Finding out whether agents can run opens a sandbox: not every few seconds for nothing. Lost leases are looked for.
    const due = (await ledger.nextDue()).jobs;
    if (this.#isParked === false && (due === undefined || due > now())) return ledger.takeJobs(0);
    const reason = await this.#whyBlocked();
    if (reason !== undefined) {
      const parked = await ledger.park(reason);
      if (parked > 0 || this.#isParked !== true) log.warn({ reason, jobs: parked }, "Agents cannot run; jobs wait");
      this.#isParked = true;
      return [];
    }
    // At the first look too: an earlier gateway may have parked jobs that this one can run.
    if (this.#isParked !== false) {
      const freed = await ledger.unpark();
      if (freed > 0) log.info({ jobs: freed }, "Agents can run again");
      this.#isParked = false;
    }
    return ledger.takeJobs(limit);
  }

  async #whyBlocked(): Promise<string | undefined> {
    const { agent, config, sandbox, now } = this.#options;
    if (!this.#blocked || now() >= this.#blocked.until) {
      const reason = await agent.blocked({ settings: config.agent, env: config.env, sandbox });
      this.#blocked = { reason, until: now() + readinessMs };
    }
    return this.#blocked.reason;
  }

  async #run(job: Job, signal: AbortSignal): Promise<void> {
    const { ledger, log, now, signal: end } = this.#options;
    const startedAt = now();
    const outcome = this.#clean(await this.#runAgent(job, signal));
    const isGivenBack = this.#isStopping && outcome.status === "cancelled";
    if (isGivenBack) await insist(() => ledger.giveBackJob(job, outcome), log, end);
    const isRecorded = isGivenBack || (await insist(() => ledger.ran(job, outcome), log, end));
    this.#sends.wake();
    const line = { route: job.route, event: job.eventType, delivery: job.deliveryId, job: job.id, run: job.fence };
    const end_ = {
      ms: now() - startedAt,
      outcome: isGivenBack ? "released" : outcome.status,
      reason: reasonOf(outcome),
    };
    if (!isRecorded) log.warn({ ...line, ...end_ }, "Run ended after its lease was lost; its result is dropped");
    else if (outcome.status === "completed" || isGivenBack) log.info({ ...line, ...end_ }, "Run ended");
    else log.warn({ ...line, ...end_ }, "Run failed");
  }

  async #runAgent(job: Job, signal: AbortSignal): Promise<Outcome> {
    const { agent, config, sandbox } = this.#options;
    const { plan, route, eventType, deliveryId } = job;
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

  async #beat(): Promise<void> {
    const { ledger, log, deliveries } = this.#options;
    const jobs = this.#runs.active;
    const messages = [...this.#sends.active, ...deliveries.held];
    if (jobs.length + messages.length === 0) return;
    try {
      const lost = await ledger.heartbeat(jobs, messages);
      // What ended while the heartbeat was on its way is lost in name only.
      const gone = this.#runs.active.filter(({ id }) => lost.includes(id)).map(({ id }) => id);
      if (gone.length > 0) log.warn({ jobs: gone }, "Leases lost; these runs are stopped");
      this.#runs.abort(gone);
    } catch (err) {
      log.error({ err }, "The leases could not be extended; trying again");
    }
  }
}

function reasonOf(outcome: Outcome): string | undefined {
  return outcome.status === "completed" ? undefined : outcome.reason;
}
