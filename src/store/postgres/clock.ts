import { uptime } from "node:os";
import { performance } from "node:perf_hooks";

/** Clocks of this machine that nobody sets, in milliseconds from any beginning. */
export interface SteadyClocks {
  /** Stands still while the machine is suspended (Linux). */
  readonly monotonicMs: () => number;
  /** Goes on then; whole seconds. */
  readonly uptimeMs: () => number;
}

/** How often the database is asked for its time. */
const everyMs = 30_000;
/** The two clocks tell the same time within this, while the machine is awake. */
const toleranceMs = 2_500;

/**
 * The database's time, told between two looks by this machine's own steady clocks: gateways whose wall clocks are wrong, or
 * jump, agree on leases all the same, and one that was suspended knows that time has passed.
 */
export class DatabaseClock {
  readonly #ask: () => Promise<number>;
  readonly #clocks: SteadyClocks;
  /** Database's time minus monotonic time. */
  #offsetMs = 0;
  /** Uptime minus monotonic time, at the last look. */
  #asleepMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `ask` gives the database's time in Unix milliseconds. */
  constructor(
    ask: () => Promise<number>,
    clocks: SteadyClocks = { monotonicMs: () => performance.now(), uptimeMs: () => uptime() * 1000 },
  ) {
    this.#ask = ask;
    this.#clocks = clocks;
  }

  /** @throws what asking throws. */
  async start(): Promise<void> {
    await this.look();
    this.#timer = setInterval(() => void this.look().catch(() => {}), everyMs);
    this.#timer.unref();
  }

  now(): number {
    const asleepMs = this.#drift() - this.#asleepMs;
    return Math.round(this.#clocks.monotonicMs() + this.#offsetMs + (asleepMs > toleranceMs ? asleepMs : 0));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Asks the database now. */
  async look(): Promise<void> {
    const before = this.#clocks.monotonicMs();
    const time = await this.#ask();
    // The question took its time both ways.
    this.#offsetMs = time - (before + this.#clocks.monotonicMs()) / 2;
    this.#asleepMs = this.#drift();
  }

  #drift(): number {
    return this.#clocks.uptimeMs() - this.#clocks.monotonicMs();
  }
}
