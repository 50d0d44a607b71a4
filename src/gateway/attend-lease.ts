import type { Memory } from "../target/target.ts";

export interface AttendLeaseOptions {
  readonly memory: Memory;
  /** The target that is attended. */
  readonly target: string;
  /** This gateway, in a word that no other has. */
  readonly owner: string;
  readonly leaseMs: number;
  /** The store's clock, Unix milliseconds. */
  readonly now: () => number;
}

interface Held {
  readonly owner: string;
  /** Unix milliseconds by the store's clock. */
  readonly until: number;
  /** How long before `until` it was taken or renewed. */
  readonly leaseMs: number;
}

/** The right to attend a target, which one of the gateways on a store has. It runs out unless it is renewed. */
export class AttendLease {
  readonly #options: AttendLeaseOptions;

  constructor(options: AttendLeaseOptions) {
    this.#options = options;
  }

  /**
   * Takes the lease, or renews it. False when another gateway has it.
   * @throws StoreUnavailable
   */
  async take(): Promise<boolean> {
    const { memory, owner, leaseMs, now } = this.#options;
    const { version, text } = await memory.read(this.#name);
    const held = parseHeld(text);
    if (held !== undefined && held.owner !== owner && isRunning(held, now())) return false;
    const mine: Held = { owner, until: now() + leaseMs, leaseMs };
    return memory.write(this.#name, JSON.stringify(mine), version);
  }

  /**
   * Lets another gateway take it at once. Does nothing when it is another one's by now.
   * @throws StoreUnavailable
   */
  async giveBack(): Promise<void> {
    const { memory, owner } = this.#options;
    const { version, text } = await memory.read(this.#name);
    if (parseHeld(text)?.owner === owner) await memory.write(this.#name, "", version);
  }

  get #name(): string {
    return `${this.#options.target} attended`;
  }
}

/** One that would last longer than it was taken for is from before the clock was set back. */
function isRunning({ until, leaseMs }: Held, now: number): boolean {
  return now < until && until - now <= leaseMs;
}

function parseHeld(text: string): Held | undefined {
  try {
    const { owner, until, leaseMs } = JSON.parse(text) as Partial<Record<keyof Held, unknown>>;
    const isWhole = typeof owner === "string" && Number.isFinite(until) && Number.isFinite(leaseMs);
    return isWhole ? { owner, until: Number(until), leaseMs: Number(leaseMs) } : undefined;
  } catch {
    return undefined;
  }
}
