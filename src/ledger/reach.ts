import { StoreUnavailable } from "../core/errors.ts";

/**
 * Remembers whether the store could be reached lately. A lease that ran out while it could not says nothing about its
 * holder, who could not report either: so nobody is called dead before the others have had time to.
 */
export class Reach {
  readonly #graceMs: number;
  readonly #now: () => number;
  #wasAway = false;
  /** Since when it answers again, or `undefined` while it does not. */
  #backSince: number | undefined;

  /** `graceMs`: how long the others get, counted from the first answer after the store was away. */
  constructor(graceMs: number, now: () => number) {
    this.#graceMs = graceMs;
    this.#now = now;
  }

  /** False while it is too early to call anybody dead. */
  get mayReclaim(): boolean {
    if (!this.#wasAway) return true;
    if (this.#backSince === undefined || this.#now() - this.#backSince < this.#graceMs) return false;
    this.#wasAway = false;
    return true;
  }

  /** Passes on what the store answers, and notes that it did, or did not. */
  async listen<Value>(answer: Promise<Value>): Promise<Value> {
    const askedAt = this.#now();
    try {
      const value = await answer;
      // A store that stood still and goes on fails nobody, and yet nobody could report.
      if (this.#now() - askedAt > this.#graceMs) this.missed();
      this.#backSince ??= this.#now();
      return value;
    } catch (error) {
      if (error instanceof StoreUnavailable) this.missed();
      throw error;
    }
  }

  /** It did not answer, or not in time. */
  missed(): void {
    this.#wasAway = true;
    this.#backSince = undefined;
  }
}
