import type { Job, Ledger, Message } from "../ledger/ledger.ts";
import type { Log } from "../lib/log.ts";

export interface HeartOptions {
  readonly ledger: Ledger;
  readonly log: Log;
  readonly leaseMs: number;
  /** What is at work now, until its end is recorded. */
  readonly jobs: () => readonly Job[];
  readonly messages: () => readonly Message[];
  /** Those of the jobs whose run has not ended. */
  readonly runs: () => readonly Job[];
  /** Stops the runs of these jobs. */
  readonly stop: (ids: readonly string[]) => void;
}

/** How often somebody's cancelling is looked for, at least: a run then ends in about a second. */
const lookMs = 1_000;
/** A run that is stopped takes a moment to end: a program has two seconds to put its things away. */
const endingMs = 3_000;

/** Keeps the leases of what is at work alive, and stops runs whose lease is lost or cannot be kept. */
export class Heart {
  readonly #options: HeartOptions;
  readonly #stopped = new WeakSet<Job>();
  #timers: NodeJS.Timeout[] = [];
  #isLooking = false;

  constructor(options: HeartOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timers = [
      setInterval(() => void this.#beat(), this.#options.leaseMs / 3),
      setInterval(() => void this.look(), Math.min(lookMs, this.#options.leaseMs / 6)),
    ];
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Stops the runs that nobody should go on with: cancelled, taken over, or about to be. */
  async look(): Promise<void> {
    this.#stopExpiring();
    const runs = this.#options.runs();
    if (runs.length === 0 || this.#isLooking) return;
    this.#isLooking = true;
    try {
      this.#stop(await this.#options.ledger.lost(runs, []), "Runs stopped: cancelled, or taken over");
    } catch {
      // The heartbeat says what is wrong with the ledger, and less often.
    } finally {
      this.#isLooking = false;
    }
  }

  /**
   * Two gateways must never run the same job: when its lease could not be extended for nearly all of its time, the run is
   * ended while nobody else can have begun it.
   */
  #stopExpiring(): void {
    const { ledger, runs, leaseMs } = this.#options;
    const marginMs = Math.min(Math.max(leaseMs / 6, endingMs), leaseMs / 4);
    const expiring = runs().filter((job) => !ledger.holds(job, marginMs));
    const ids = expiring.map(({ id }) => id);
    this.#stop(ids, "Runs stopped: their leases could not be extended, and another gateway will take them over");
  }

  async #beat(): Promise<void> {
    const { ledger, log, jobs, messages } = this.#options;
    if (jobs().length + messages().length === 0) return;
    try {
      this.#stop(await ledger.heartbeat(jobs(), messages()), "Runs stopped: their leases were lost");
    } catch (err) {
      log.error({ err }, "The leases could not be extended; trying again");
    }
  }

  /** What ended while the ledger was being asked is lost in name only, and messages see for themselves. */
  #stop(ids: readonly string[], message: string): void {
    const { runs, stop, log } = this.#options;
    const gone = runs().filter((job) => ids.includes(job.id) && !this.#stopped.has(job));
    if (gone.length === 0) return;
    for (const job of gone) this.#stopped.add(job);
    log.warn({ jobs: gone.map(({ id }) => id) }, message);
    stop(gone.map(({ id }) => id));
  }
}
