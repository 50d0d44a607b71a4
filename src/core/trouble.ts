export interface TroubleOptions {
  /** Longest wait after the first failure; it may double with each further one. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** Reasons that one trouble may have: more than these are noise. */
const mostReasons = 20;

/** Something that is tried until it works: how long to wait for the next try, and what of it has not been told yet. */
export class Trouble {
  readonly #options: TroubleOptions;
  readonly #told = new Set<string>();
  #failures = 0;

  constructor(options: TroubleOptions) {
    this.#options = options;
  }

  /** A try failed. Answers the wait before the next one, with full jitter, and whether the reason is new in this trouble. */
  failed(reason: string): { readonly pauseMs: number; readonly isNews: boolean } {
    const { firstMs, longestMs, random } = this.#options;
    this.#failures += 1;
    const isNews = !this.#told.has(reason) && this.#told.size < mostReasons;
    if (isNews) this.#told.add(reason);
    return { pauseMs: Math.round(random() * Math.min(firstMs * 2 ** (this.#failures - 1), longestMs)), isNews };
  }

  /** It works. Answers whether there was a trouble, which is over now. */
  over(): boolean {
    const wasThere = this.#failures > 0;
    this.#failures = 0;
    this.#told.clear();
    return wasThere;
  }
}
