import type { Home } from "../config/home.ts";
import type { Route, RouteContext } from "../config/route.ts";
import { buildSubscriptions, filePlace, type SubscriptionsPlace } from "../config/subscriptions.ts";
import { Rejection, StoreUnavailable } from "../core/errors.ts";
import type { Log } from "../lib/log.ts";

/** What the routes are made from. `fixed` and `context` may change; `rebuild` then says so. */
export interface RoutesOptions {
  readonly home: Home;
  /** Where the subscriptions are; the home's file when not set. */
  readonly place?: SubscriptionsPlace;
  /** Static routes: they win over subscriptions of the same name. */
  readonly fixed: ReadonlyMap<string, Route>;
  readonly context: RouteContext;
  readonly log: Log;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicMs?: () => number;
  /** Calls back after a time; answers how to give that up. */
  readonly after?: (ms: number, then: () => void) => () => void;
}

/** How a place that is far away is looked at: the file in the home is looked at for every request instead. */
const freshForMs = 1_000;
/** Strangers may ask for names that are not there as often as they like. */
const betweenLooksMs = 250;
/** So long a request to a known route waits for a look, and one to an unknown name. */
const patienceMs = { known: 2_000, unknown: 10_000 } as const;

/** The routes as they are now: those of the configuration, and the subscriptions, whose place is looked at anew. */
export class Routes {
  readonly #options: RoutesOptions;
  readonly #place: SubscriptionsPlace;
  readonly #monotonicMs: () => number;
  readonly #after: NonNullable<RoutesOptions["after"]>;
  #subscribed: ReadonlyMap<string, Route> = new Map();
  /** `undefined` makes the next look read the text in any case. */
  #seen: string | undefined = "";
  #lookedAt = -Infinity;
  #isStale = true;
  /** Why the last look failed, if it did. */
  #failure: unknown;
  #running: Promise<void> = Promise.resolve();
  /** The look that has not begun yet. */
  #next: Promise<void> | undefined;

  constructor(options: RoutesOptions) {
    this.#options = options;
    this.#place = options.place ?? filePlace(options.home.subscriptions);
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
    this.#after = options.after ?? afterTimeout;
  }

  /**
   * The route of this name, or `undefined`. Unless it is a static one, what was subscribed before the call counts; but of a
   * shared place, a change to a subscription that is known already may be a second old.
   * @throws Rejection `unavailable` when nobody can tell whether there is one, because the store is away.
   */
  async find(name: string): Promise<Route | undefined> {
    const fixed = this.#options.fixed.get(name);
    if (fixed) return fixed;
    if (!this.#place.isShared) await this.refresh();
    else if (this.#subscribed.has(name)) await this.#freshen();
    else await this.#makeSure();
    return this.#subscribed.get(name);
  }

  /** The configuration was replaced: at the next look the subscriptions are read again, whether they changed or not. */
  rebuild(): void {
    this.#seen = undefined;
    this.#isStale = true;
  }

  /** There is news of the subscriptions. */
  heard(): void {
    this.#isStale = true;
    void this.refresh();
  }

  /** All names, static ones first. */
  names(): string[] {
    return [...new Set([...this.#options.fixed.keys(), ...this.#subscribed.keys()])];
  }

  /** Every route as it was at the last look. */
  all(): Route[] {
    return [...new Map([...this.#subscribed, ...this.#options.fixed]).values()];
  }

  /** The route of this name as it was at the last look. */
  known(name: string): Route | undefined {
    return this.#options.fixed.get(name) ?? this.#subscribed.get(name);
  }

  /** Secrets of the subscriptions, for redaction. */
  secrets(): string[] {
    return [...this.#subscribed.values()].flatMap(({ secrets }) => secrets);
  }

  /**
   * Reads the subscriptions again if they have changed since. Callers that come together share one look, but never one that
   * began before they came: what was subscribed before a request is there for the request. Never rejects.
   */
  refresh(): Promise<void> {
    this.#next ??= this.#whenAllowed().then(() => {
      this.#next = undefined;
      this.#running = this.#look();
      return this.#running;
    });
    return this.#next;
  }

  /** What is known is good for a moment; while the place does not answer, for as long as that takes. */
  async #freshen(): Promise<void> {
    const isFresh = !this.#isStale && this.#monotonicMs() - this.#lookedAt < freshForMs;
    if (!isFresh) await this.#within(patienceMs.known, this.refresh());
  }

  async #makeSure(): Promise<void> {
    const isOver = await this.#within(patienceMs.unknown, this.refresh());
    if (isOver && !(this.#failure instanceof StoreUnavailable)) return;
    const options = { retryAfterSeconds: 10, cause: this.#failure };
    throw new Rejection("unavailable", "The subscriptions cannot be looked up", options);
  }

  async #whenAllowed(): Promise<void> {
    await this.#running;
    const waitMs = this.#place.isShared ? this.#lookedAt + betweenLooksMs - this.#monotonicMs() : 0;
    if (waitMs > 0) await new Promise<void>((resolve) => this.#after(waitMs, resolve));
  }

  /** Whether it was over within the time. */
  #within(ms: number, look: Promise<void>): Promise<boolean> {
    return new Promise((resolve) => {
      const giveUp = this.#after(ms, () => resolve(false));
      void look.then(() => {
        giveUp();
        resolve(true);
      });
    });
  }

  async #look(): Promise<void> {
    this.#lookedAt = this.#monotonicMs();
    this.#isStale = false;
    try {
      await this.#readIfChanged();
      this.#failure = undefined;
    } catch (error) {
      this.#tell(error);
      this.#failure = error;
    }
  }

  async #readIfChanged(): Promise<void> {
    const { home, context, log } = this.#options;
    const place = this.#place.name;
    if ((await this.#place.version()) === this.#seen) return;
    const { text, version } = await this.#place.read();
    this.#seen = version;
    const { routes, errors } = buildSubscriptions(text, home, context);
    this.#subscribed = routes;
    for (const error of errors) log.error({ place }, error);
    log.info({ place, routes: [...routes.keys()] }, "Subscriptions loaded");
  }

  /** Once, not with each look: a store that is away would fill the log. */
  #tell(error: unknown): void {
    const reason = reasonOf(error);
    if (this.#failure !== undefined && reasonOf(this.#failure) === reason) return;
    const message = "The subscriptions cannot be read; the last good ones stay in force";
    this.#options.log.error({ place: this.#place.name, reason }, message);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function afterTimeout(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}
