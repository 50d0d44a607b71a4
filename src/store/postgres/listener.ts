import { setTimeout as wait } from "node:timers/promises";
import type { Client } from "pg";
import type { News } from "../store.ts";
import { newClient, type Place, quoteName } from "./connect.ts";

const firstPauseMs = 500;
const longestPauseMs = 10_000;
/** What is told within this time is told once. */
const gatherMs = 20;

/** Hears what other gateways announce (LISTEN), on a connection of its own that is made anew when it breaks. */
export class Listener {
  readonly #place: Place;
  readonly #listeners: ((news: News) => void)[] = [];
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  constructor(place: Place) {
    this.#place = place;
  }

  add(listener: (news: News) => void): void {
    this.#listeners.push(listener);
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      if (await this.#listen()) pauseMs = firstPauseMs;
      await wait(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Listens until the connection ends. Answers whether there was one. */
  async #listen(): Promise<boolean> {
    const { signal } = this.#end;
    const client = newClient(this.#place);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    client.on("error", () => end());
    client.on("end", () => end());
    signal.addEventListener("abort", () => end(), { once: true });
    client.on("notification", ({ payload }) => this.#tell(payload as News));
    try {
      await client.connect();
      await client.query(`listen ${quoteName(channelOf(this.#place))}`);
      // What was said before is not heard: everybody looks for themselves once.
      for (const news of ["jobs", "messages", "subscriptions", "cancelled"] as const) this.#tell(news);
      await ended;
      return true;
    } catch {
      return false;
    } finally {
      await close(client);
    }
  }

  #tell(news: News): void {
    for (const listener of this.#listeners) listener(news);
  }
}

async function close(client: Client): Promise<void> {
  await Promise.race([client.end().catch(() => {}), wait(1_000, undefined, { ref: false })]);
}

export function channelOf({ schema }: Place): string {
  return `postern_${schema}`;
}

/**
 * Gathers what is to be announced, and says it by `send`. Not part of any transaction: commits that notify wait for each
 * other, and what is not heard is found at the next look.
 */
export class Announcer {
  readonly #send: (news: News) => Promise<unknown>;
  readonly #waiting = new Map<News, NodeJS.Timeout>();

  constructor(send: (news: News) => Promise<unknown>) {
    this.#send = send;
  }

  announce(news: News): void {
    if (this.#waiting.has(news)) return;
    const timer = setTimeout(() => void this.#say(news), gatherMs);
    this.#waiting.set(news, timer.unref());
  }

  /** Says at once what waits. */
  async flush(): Promise<void> {
    await Promise.all([...this.#waiting.keys()].map((news) => this.#say(news)));
  }

  async #say(news: News): Promise<void> {
    clearTimeout(this.#waiting.get(news));
    this.#waiting.delete(news);
    await this.#send(news).catch(() => {});
  }
}
