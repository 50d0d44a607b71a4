import type { Home } from "../config/home.ts";
import type { Route, RouteContext } from "../config/route.ts";
import { buildSubscriptions } from "../config/subscriptions.ts";
import { fileSignature, readTextIfThere } from "../lib/file.ts";
import type { Log } from "../lib/log.ts";

/** What the routes are made from. `fixed` and `context` may change; `rebuild` then says so. */
export interface RoutesOptions {
  readonly home: Home;
  /** Static routes: they win over subscriptions of the same name. */
  readonly fixed: ReadonlyMap<string, Route>;
  readonly context: RouteContext;
  readonly log: Log;
}

/** The routes as they are now: those of the configuration, and the subscriptions, whose file is looked at anew. */
export class Routes {
  readonly #options: RoutesOptions;
  #subscribed: ReadonlyMap<string, Route> = new Map();
  /** `undefined` makes the next look read the file in any case. */
  #seen: string | undefined = "";
  #looking: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(options: RoutesOptions) {
    this.#options = options;
  }

  /** The route of this name, or `undefined`. Costs a look at the subscriptions file unless the route is a static one. */
  async find(name: string): Promise<Route | undefined> {
    const fixed = this.#options.fixed.get(name);
    if (fixed) return fixed;
    await this.refresh();
    return this.#subscribed.get(name);
  }

  /** The configuration was replaced: at the next look the subscriptions are read again, whether they changed or not. */
  rebuild(): void {
    this.#seen = undefined;
  }

  /** All names, static ones first. */
  names(): string[] {
    return [...new Set([...this.#options.fixed.keys(), ...this.#subscribed.keys()])];
  }

  /** Secrets of the subscriptions, for redaction. */
  secrets(): string[] {
    return [...this.#subscribed.values()].flatMap(({ secrets }) => secrets);
  }

  /**
   * Reads the subscriptions again if their file has changed since. Callers that come together share one look, but never
   * one that began before they came: what was subscribed before a request is there for the request.
   */
  refresh(): Promise<void> {
    if (!this.#looking) {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined;
      });
      return this.#looking;
    }
    this.#next ??= this.#looking.then(() => {
      this.#next = undefined;
      return this.refresh();
    });
    return this.#next;
  }

  async #look(): Promise<void> {
    const { home, context, log } = this.#options;
    try {
      const signature = await fileSignature(home.subscriptions);
      if (signature === this.#seen) return;
      const text = (await readTextIfThere(home.subscriptions)) ?? "";
      this.#seen = signature;
      const { routes, errors } = buildSubscriptions(text, home, context);
      this.#subscribed = routes;
      for (const error of errors) log.error({ file: home.subscriptions }, error);
      log.info({ file: home.subscriptions, routes: [...routes.keys()] }, "Subscriptions loaded");
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.error(
        { file: home.subscriptions, reason },
        "The subscriptions file cannot be read; the last good ones stay in force",
      );
    }
  }
}
