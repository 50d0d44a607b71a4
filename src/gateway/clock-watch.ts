import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

export interface ClockWatchOptions {
  readonly store: Pick<Store, "shiftTimes" | "readDocument" | "writeDocument">;
  readonly log: Log;
  /** The clock that times in the store are told by, Unix milliseconds. Somebody may set it. */
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicMs: () => number;
  /** Told after a jump, with how far it went. */
  readonly jumped: (byMs: number) => void;
}

/** A smaller step is what time servers correct every day. */
const jumpMs = 5_000;
const everyMs = 1_000;
/** How often the time is written down, for whoever starts next. */
const noteEveryMs = 60_000;
const documentName = "clock";

/**
 * Watches the ledger's clock against this machine's monotonic one. When somebody sets it, everything that waits is moved
 * along: what was to be tried in a minute is tried in a minute, whether the clock went a year forward or back. The time is
 * written down now and then, so that a clock that was set back while nobody ran is noticed too; and where several gateways
 * see the same jump, the one that writes the new time down first moves things along.
 */
export class ClockWatch {
  readonly #options: ClockWatchOptions;
  /** The clock minus the monotonic one, as it should stay. */
  #offsetMs: number;
  #notedAt = Number.NEGATIVE_INFINITY;
  /** By how much what waits has still to be moved along. */
  #owedMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #look: Promise<void> = Promise.resolve();

  constructor(options: ClockWatchOptions) {
    this.#options = options;
    this.#offsetMs = options.now() - options.monotonicMs();
  }

  /** Looks first whether the clock was set back while no gateway ran, then goes on watching. */
  async start(): Promise<void> {
    const { now } = this.#options;
    const noted = await this.#noted();
    const backMs = noted.at - now();
    if (backMs > jumpMs) await this.#follow(-backMs);
    else await this.#write(noted.version);
    await this.#settle();
    this.#timer = setInterval(() => {
      this.#look = this.#look.then(() => this.look());
    }, everyMs);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#look;
  }

  /** Looks now. Never rejects: what could not be moved along is at the next look. */
  async look(): Promise<void> {
    const { log, now, monotonicMs } = this.#options;
    const offsetMs = now() - monotonicMs();
    const byMs = Math.round(offsetMs - this.#offsetMs);
    const hasJumped = Math.abs(byMs) > jumpMs;
    try {
      if (hasJumped) await this.#follow(byMs);
      // Small corrections add up over the years.
      this.#offsetMs = offsetMs;
      await this.#settle();
      if (monotonicMs() - this.#notedAt >= noteEveryMs) await this.#note();
    } catch (err) {
      if (hasJumped || this.#owedMs !== 0) {
        log.error({ err, byMs }, "The clock was set; what waits cannot be moved along yet");
      }
    }
  }

  /** Takes a jump upon this gateway, unless another one has written down a time of the new clock already. */
  async #follow(byMs: number): Promise<void> {
    const { now, jumped } = this.#options;
    const noted = await this.#noted();
    const isDone = Math.abs(now() - noted.at) < Math.abs(byMs) / 2;
    if (!isDone && (await this.#write(noted.version))) this.#owedMs += byMs;
    jumped(byMs);
  }

  /** Moves what waits along with the clock. */
  async #settle(): Promise<void> {
    const byMs = this.#owedMs;
    if (byMs === 0) return;
    await this.#options.store.shiftTimes({ by: byMs });
    this.#owedMs = 0;
    this.#options.log.warn({ byMs }, "The clock was set; what waits has been moved along with it");
  }

  /** Writes the time down, unless another gateway goes by another clock: then one of the two has not seen a jump yet. */
  async #note(): Promise<void> {
    const noted = await this.#noted();
    const isStrange = noted.version > 0 && Math.abs(this.#options.now() - noted.at) > 2 * noteEveryMs + jumpMs;
    if (!isStrange) await this.#write(noted.version);
  }

  async #noted(): Promise<{ readonly version: number; readonly at: number }> {
    const document = await this.#options.store.readDocument({ name: documentName });
    return { version: document?.version ?? 0, at: Number(document?.text ?? 0) };
  }

  /** False when somebody else wrote in between. */
  async #write(seen: number): Promise<boolean> {
    const { store, now, monotonicMs } = this.#options;
    this.#notedAt = monotonicMs();
    return store.writeDocument({ name: documentName, seen, text: String(now()) });
  }
}
