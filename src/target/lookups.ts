/** What services rarely change (which room a name stands for), asked once and kept in memory for a while. */
export class Lookups<Value> {
  readonly #lastsMs: (value: Value) => number;
  readonly #now: () => number;
  readonly #known = new Map<string, { readonly value: Value; readonly endsAt: number }>();

  /** `lastsMs`: how long a value counts as known. */
  constructor(lastsMs: number | ((value: Value) => number), now: () => number = Date.now) {
    this.#lastsMs = typeof lastsMs === "number" ? () => lastsMs : lastsMs;
    this.#now = now;
  }

  /** What is known under the key's parts, or else what `ask` answers. A failure is not kept. */
  async get(key: readonly string[], ask: () => Promise<Value>): Promise<Value> {
    const name = JSON.stringify(key);
    const known = this.#known.get(name);
    if (known !== undefined && known.endsAt > this.#now()) return known.value;
    const value = await ask();
    this.#known.delete(name);
    // Keys may come from payloads: the oldest goes when there are many.
    if (this.#known.size >= mostKnown) this.#known.delete(this.#known.keys().next().value ?? "");
    this.#known.set(name, { value, endsAt: this.#now() + this.#lastsMs(value) });
    return value;
  }

  /** The next `get` asks again. */
  forget(key: readonly string[]): void {
    this.#known.delete(JSON.stringify(key));
  }
}

const mostKnown = 1000;
