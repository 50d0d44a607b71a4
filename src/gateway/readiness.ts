import type { Agent } from "../agent/agent.ts";
import type { Config } from "../config/load.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Log } from "../lib/log.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** `config`, `agent` and `sandbox` may change between two looks. */
export interface ReadinessOptions {
  readonly config: Config;
  readonly agent: Agent;
  readonly sandbox: Sandbox;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly now: () => number;
  readonly leaseMs: number;
}

/** How long an answer to "can agents run?" holds. */
const holdsMs = 5_000;

/** Knows whether agents can run here, and sets jobs aside while they cannot. */
export class Readiness {
  readonly #options: ReadinessOptions;
  #blocked: { readonly reason: string | undefined; readonly until: number } | undefined;
  /** `undefined` before the first look. */
  #isReady: boolean | undefined;
  /** When jobs were set aside, or taken back, last (Unix milliseconds). */
  #movedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  /** The configuration was replaced: what could not run may run now. */
  reconsider(): void {
    this.#blocked = undefined;
  }

  /**
   * How many jobs of `limit` may be taken; `due` says when the first one is. Finding out whether agents can run opens a
   * sandbox, so it is not done for nothing: then none may be taken, but lost leases may be looked for.
   */
  async allow(limit: number, due: number | undefined): Promise<number> {
    if (this.#isReady === true) await this.#takeBackOthers();
    const isDue = due !== undefined && due <= this.#options.now();
    if (this.#isReady === true && !isDue) return 0;
    const reason = await this.#whyBlocked();
    if (reason !== undefined) await this.#setAside(reason, due);
    else if (this.#isReady !== true) await this.#begin();
    return reason === undefined ? limit : 0;
  }

  async #whyBlocked(): Promise<string | undefined> {
    const { agent, config, sandbox, now } = this.#options;
    if (!this.#blocked || now() >= this.#blocked.until) {
      const reason = await agent.blocked({ settings: config.agent, env: config.env, sandbox });
      this.#blocked = { reason, until: now() + holdsMs };
    }
    return this.#blocked.reason;
  }

  /** At the first look too: an earlier gateway may have set jobs aside that this one can run. */
  async #begin(): Promise<void> {
    const { ledger, log, now } = this.#options;
    const jobs = await ledger.unpark();
    if (jobs > 0 || this.#isReady === false) log.info({ jobs }, "Agents can run again");
    this.#isReady = true;
    this.#movedAt = now();
  }

  async #setAside(reason: string, due: number | undefined): Promise<void> {
    const { ledger, log } = this.#options;
    const jobs = this.#isLeftToUs(due) ? await ledger.park(reason) : 0;
    if (jobs > 0 || this.#isReady !== false) log.warn({ reason, jobs }, "Agents cannot run; jobs wait");
    this.#isReady = false;
  }

  /** Where several gateways work, others may be able to run what this one cannot: they come first. */
  #isLeftToUs(due: number | undefined): boolean {
    const { ledger, now, leaseMs } = this.#options;
    if (due === undefined) return false;
    if (!ledger.isShared) return true;
    if (due > now() - leaseMs || now() < this.#movedAt + leaseMs) return false;
    this.#movedAt = now();
    return true;
  }

  /** Another gateway, on which agents cannot run, may have set aside what can be run here. */
  async #takeBackOthers(): Promise<void> {
    const { ledger, now } = this.#options;
    if (!ledger.isShared || now() < this.#movedAt + holdsMs) return;
    this.#movedAt = now();
    await ledger.unpark();
  }
}
