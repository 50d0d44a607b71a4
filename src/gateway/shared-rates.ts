import type { Store } from "../store/store.ts";
import { LocalRates, type Rates, windowMs } from "./rates.ts";

/** What is known of a route's window. */
interface Known {
  windowStart: number;
  /** When the store last said that nothing was left, or `undefined` when it did not. */
  emptyAt: number | undefined;
}

/** Requests of one route that wait to be counted. */
interface Queue {
  waiting: PromiseWithResolvers<number | undefined>[];
  isAsking: boolean;
}

/** "Nothing left" holds for this long without asking again: somebody may give budget back. */
const emptyMs = 1_000;

/**
 * Budgets that several gateways share, kept in the store. Requests that come while the store is asked are counted together
 * by the next question, so a busy route costs one round trip at a time. Failed verifications are counted by each gateway
 * alone: nobody without the secret may make it write.
 */
export class SharedRates implements Rates {
  readonly #store: Pick<Store, "spend" | "giveBack">;
  readonly #now: () => number;
  readonly #local: LocalRates;
  readonly #known = new Map<string, Known>();
  readonly #queues = new Map<string, Queue>();

  constructor(store: Pick<Store, "spend" | "giveBack">, limit: number, now: () => number) {
    this.#store = store;
    this.#now = now;
    this.#local = new LocalRates(limit, now);
  }

  get limit(): number {
    return this.#local.limit;
  }

  set limit(limit: number) {
    this.#local.limit = limit;
  }

  spentFor(route: string): number | undefined {
    const known = this.#known.get(route);
    const now = this.#now();
    const isEmpty = known?.emptyAt !== undefined && now - known.emptyAt < emptyMs && now < known.windowStart + windowMs;
    return isEmpty ? this.#secondsLeft(known) : undefined;
  }

  /** @throws StoreUnavailable when the store cannot say. */
  spend(route: string): Promise<number | undefined> {
    const request = Promise.withResolvers<number | undefined>();
    const queue = this.#queues.get(route) ?? { waiting: [], isAsking: false };
    this.#queues.set(route, queue);
    queue.waiting.push(request);
    if (!queue.isAsking) void this.#ask(route, queue);
    return request.promise;
  }

  giveBack(route: string): void {
    const known = this.#known.get(route);
    if (!known) return;
    known.emptyAt = undefined;
    // What is not given back is lost for a minute at most.
    this.#store.giveBack({ route, count: 1, windowStart: known.windowStart }).catch(() => {});
  }

  fail(route: string): number | undefined {
    return this.#local.fail(route);
  }

  async #ask(route: string, queue: Queue): Promise<void> {
    queue.isAsking = true;
    while (queue.waiting.length > 0) {
      const requests = queue.waiting;
      queue.waiting = [];
      await this.#count(route, requests);
    }
    queue.isAsking = false;
  }

  async #count(route: string, requests: readonly PromiseWithResolvers<number | undefined>[]): Promise<void> {
    const count = requests.length;
    const now = this.#now();
    try {
      const { granted, windowStart } = await this.#store.spend({ route, count, limit: this.limit, windowMs, now });
      const known = { windowStart, emptyAt: granted < count ? now : undefined };
      this.#known.set(route, known);
      for (const [index, { resolve }] of requests.entries()) {
        resolve(index < granted ? undefined : this.#secondsLeft(known));
      }
    } catch (error) {
      for (const { reject } of requests) reject(error);
    }
  }

  #secondsLeft({ windowStart }: Known): number {
    return Math.max(1, Math.ceil((windowStart + windowMs - this.#now()) / 1000));
  }
}
