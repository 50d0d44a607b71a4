import type { Answer } from "./conversation.ts";

/** A token that a service gives for credentials, and for how long it is good. */
export interface Granted {
  readonly token: string;
  readonly lastsMs: number;
}

/** Asks the service for a new token. */
export type Grant = () => Promise<Granted>;

/** A token that ends this soon may have ended when the request arrives. */
const marginMs = 60_000;

/**
 * Tokens that services give for a while, kept in memory by what they were given for. Those who ask at the same time share one
 * question; a failure is not kept.
 */
export class AccessTokens {
  readonly #now: () => number;
  readonly #tokens = new Map<string, { readonly token: string; readonly endsAt: number }>();
  readonly #asking = new Map<string, Promise<string>>();

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * Lets `use` ask with a token. When the service says that the token is not good (any more), once again with a new one:
   * a service may end a token before its time.
   */
  async use(
    credentials: readonly string[],
    grant: Grant,
    use: (token: string) => Promise<Answer>,
    isStale: (answer: Answer) => boolean,
  ): Promise<Answer> {
    const key = JSON.stringify(credentials);
    const token = await this.#get(key, grant);
    const answer = await use(token);
    if (!isStale(answer)) return answer;
    if (this.#tokens.get(key)?.token === token) this.#tokens.delete(key);
    return use(await this.#get(key, grant));
  }

  async #get(key: string, grant: Grant): Promise<string> {
    const known = this.#tokens.get(key);
    if (known !== undefined && known.endsAt > this.#now()) return known.token;
    const asking = this.#asking.get(key) ?? this.#ask(key, grant);
    this.#asking.set(key, asking);
    return asking.finally(() => {
      if (this.#asking.get(key) === asking) this.#asking.delete(key);
    });
  }

  async #ask(key: string, grant: Grant): Promise<string> {
    const { token, lastsMs } = await grant();
    this.#tokens.set(key, { token, endsAt: this.#now() + lastsMs - marginMs });
    return token;
  }
}
