import type { Log } from "../lib/log.ts";
import type { Held } from "../store/store.ts";

export interface LaneOptions<Item extends Held> {
  readonly name: string;
  /** Items at work at the same time, at most. */
  readonly capacity: number;
  /** Takes up to `limit` due items under a lease. */
  readonly take: (limit: number) => Promise<readonly Item[]>;
  /** Does the work and records its end. Must not throw; what it throws is a bug and is logged. */
  readonly work: (item: Item, signal: AbortSignal) => Promise<void>;
  /** When the next item is due (Unix milliseconds), or `undefined` when none waits. */
  readonly nextDue: () => Promise<number | undefined>;
  readonly log: Log;
  readonly now: () => number;
}

/** Leases of others may run out at any time, and other gateways may add work, so a lane looks again after this long. */
const longestSleepMs = 5_000;
const pauseAfterTroubleMs = 1_000;

/** Takes items from the ledger as places become free, and sleeps until the next one is due or `wake` is called. */
export class Lane<Item extends Held> {
  readonly #options: LaneOptions<Item>;
  readonly #active = new Map<Item, { readonly controller: AbortController; readonly end: Promise<void> }>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isLooking = false;
  #lookAgain = false;
  #isOpen = false;
  #isAborted = false;

  constructor(options: LaneOptions<Item>) {
    this.#options = options;
  }

  get active(): readonly Item[] {
    return [...this.#active.keys()];
  }

  open(): void {
    this.#isOpen = true;
    this.wake();
  }

  /** Takes nothing more; what is at work goes on. */
  shut(): void {
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  /** Something may be due now. */
  wake(): void {
    if (!this.#isOpen) return;
    if (this.#isLooking) {
      this.#lookAgain = true;
      return;
    }
    this.#isLooking = true;
    clearTimeout(this.#timer);
    this.#looking = this.#look();
  }

  /** For a lane that is shut: fulfils when nothing is at work, nor about to be, because it was being taken just then. */
  async idle(): Promise<void> {
    await this.#looking;
    while (this.#active.size > 0) await Promise.all([...this.#active.values()].map(({ end }) => end));
  }

  /** Aborts the items of these ids; or all, and every one that is still being taken. */
  abort(ids?: readonly string[]): void {
    this.#isAborted ||= ids === undefined;
    for (const [item, { controller }] of this.#active) {
      if (!ids || ids.includes(item.id)) controller.abort();
    }
  }

  async #look(): Promise<void> {
    let sleepMs = longestSleepMs;
    try {
      do {
        this.#lookAgain = false;
        await this.#fill();
      } while (this.#lookAgain && this.#isOpen);
      sleepMs = await this.#sleepTime();
    } catch (err) {
      this.#options.log.error({ err, lane: this.#options.name }, "The worker cannot read the ledger; trying again");
      sleepMs = pauseAfterTroubleMs;
    }
    this.#isLooking = false;
    if (!this.#isOpen) return;
    if (this.#lookAgain) return this.wake();
    this.#timer = setTimeout(() => this.wake(), sleepMs);
  }

  async #fill(): Promise<void> {
    const { capacity, take } = this.#options;
    for (;;) {
      const free = capacity - this.#active.size;
      if (free <= 0 || !this.#isOpen) return;
      const items = await take(free);
      for (const item of items) this.#begin(item);
      if (items.length < free) return;
    }
  }

  #begin(item: Item): void {
    const { work, log, name } = this.#options;
    const controller = new AbortController();
    if (this.#isAborted) controller.abort();
    const end = work(item, controller.signal)
      .catch((err: unknown) => log.error({ err, lane: name, id: item.id }, "The worker failed"))
      .finally(() => {
        this.#active.delete(item);
        this.wake();
      });
    this.#active.set(item, { controller, end });
  }

  async #sleepTime(): Promise<number> {
    const { capacity, nextDue, now } = this.#options;
    // With every place taken, the end of one of them wakes the lane.
    if (this.#active.size >= capacity) return longestSleepMs;
    const due = await nextDue();
    if (due === undefined) return longestSleepMs;
    return Math.min(Math.max(due - now(), 10), longestSleepMs);
  }
}
