/** Whole requests in a fixed window of one minute (specification section 8). */
interface Window {
  startedAt: number;
  spent: number;
}

export const windowMs = 60_000;

/**
 * The budgets of the routes. Only verified requests spend a route's budget, so that nobody without the secret can lock the
 * sender out; failed verifications have a window of their own. Asked for known routes only, so it cannot grow.
 */
export interface Rates {
  /** Requests per minute and route; may be changed at any time. */
  limit: number;
  /** Seconds until the route has budget again, or `undefined` when it has some now, as far as is known at once. */
  spentFor(route: string): number | undefined;
  /** Spends one verified request. Seconds to wait when there is none left. */
  spend(route: string): number | undefined | Promise<number | undefined>;
  /** Gives one back: a duplicate, or a request that could not be kept, costs nothing. */
  giveBack(route: string): void;
  /** Counts a failed verification. Seconds to wait when there were too many already. */
  fail(route: string): number | undefined;
}

/** The budgets of a gateway that is alone, in memory. */
export class LocalRates implements Rates {
  limit: number;
  readonly #now: () => number;
  readonly #verified = new Map<string, Window>();
  readonly #failed = new Map<string, Window>();

  constructor(limit: number, now: () => number) {
    this.limit = limit;
    this.#now = now;
  }

  spentFor(route: string): number | undefined {
    const window = this.#window(this.#verified, route);
    return window.spent < this.limit ? undefined : this.#secondsLeft(window);
  }

  spend(route: string): number | undefined {
    return this.#take(this.#verified, route);
  }

  giveBack(route: string): void {
    const window = this.#window(this.#verified, route);
    if (window.spent > 0) window.spent -= 1;
  }

  fail(route: string): number | undefined {
    return this.#take(this.#failed, route);
  }

  #take(windows: Map<string, Window>, route: string): number | undefined {
    const window = this.#window(windows, route);
    if (window.spent >= this.limit) return this.#secondsLeft(window);
    window.spent += 1;
    return undefined;
  }

  #window(windows: Map<string, Window>, route: string): Window {
    const now = this.#now();
    const window = windows.get(route);
    // A clock that was set back must not keep a window open for ever.
    if (window && now >= window.startedAt && now < window.startedAt + windowMs) return window;
    const fresh = { startedAt: now, spent: 0 };
    windows.set(route, fresh);
    return fresh;
  }

  #secondsLeft(window: Window): number {
    return Math.max(1, Math.ceil((window.startedAt + windowMs - this.#now()) / 1000));
  }
}
