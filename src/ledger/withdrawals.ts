import { StoreUnavailable } from "../core/errors.ts";
import { sleep } from "../lib/sleep.ts";

/** Between two tries while the store is away. */
const pauseMs = 1_000;
/** Beyond this many the oldest is left to its lease, which runs out soon enough. */
const mostWaiting = 10_000;

/**
 * Direct deliveries that have to be taken back, because their senders were told to come again before the store said whether
 * it kept them. Tried in the background until the store does it: what stays would make the sender's retry a duplicate.
 */
export class Withdrawals {
  readonly #withdraw: (eventId: string) => Promise<void>;
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<string>();
  #isAtWork = false;

  /** `signal` ends it; what waits then is left to its lease. */
  constructor(withdraw: (eventId: string) => Promise<void>, signal: AbortSignal) {
    this.#withdraw = withdraw;
    this.#signal = signal;
  }

  add(eventId: string): void {
    this.#waiting.add(eventId);
    if (this.#waiting.size > mostWaiting) this.#forgetOldest();
    if (!this.#isAtWork) void this.#work();
  }

  #forgetOldest(): void {
    for (const eventId of this.#waiting) {
      this.#waiting.delete(eventId);
      return;
    }
  }

  async #work(): Promise<void> {
    this.#isAtWork = true;
    // What is added meanwhile comes at the end and is reached too.
    for (const eventId of this.#waiting) {
      while (!this.#signal.aborted && !(await this.#try(eventId))) await sleep(pauseMs, this.#signal);
      this.#waiting.delete(eventId);
    }
    this.#isAtWork = false;
  }

  /** False when it is to be tried again. */
  async #try(eventId: string): Promise<boolean> {
    try {
      await this.#withdraw(eventId);
      return true;
    } catch (error) {
      // Anything else is a bug, which no second try mends.
      return !(error instanceof StoreUnavailable);
    }
  }
}
