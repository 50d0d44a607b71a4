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
  /**
   * When to look again (Unix milliseconds): the times at which something becomes due or may be taken. One that has passed
   * before the last look was of no use then, and counts for nothing.
   */
  readonly nextTimes: () => Promise<readonly number[]>;
  readonly log: Log;
  readonly now: () => number;
}

/** Leases of others may run out at any time, and others may add work or make room, so a lane looks again after this long. */
const longestSleepMs = 1_000;
const shortestSleepMs = 10;
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
  /** When what could be taken was asked for last (Unix milliseconds). */
  #askedAt = 0;

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
    const { capacity, take, now } = this.#options;
    for (;;) {
      const free = capacity - this.#active.size;
      if (free <= 0 || !this.#isOpen) return;
      this.#askedAt = now();
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
    const { capacity, nextTimes, now } = this.#options;
    // With every place taken, the end of one of them wakes the lane.
    if (this.#active.size >= capacity) return longestSleepMs;
    // What was due at the last look and is still there may not be taken (its route or its target is busy). To look for it
    // at once, again and again, would take all of this machine's time.
    const times = (await nextTimes()).filter((time) => time > this.#askedAt);
    const sleepMs = Math.min(...times) - now();
    return Math.min(Math.max(sleepMs, shortestSleepMs), longestSleepMs);
  }
}
