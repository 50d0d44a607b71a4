import type { RetentionSettings } from "../config/retention.ts";
import type { Log } from "../lib/log.ts";
import { type FinalEventState, finalEventStates } from "../store/states.ts";
import type { Pruned, Store } from "../store/store.ts";

export interface RetentionOptions {
  readonly store: Pick<Store, "prune" | "pruneClaims" | "measure">;
  /** Read for each step: the configuration may be replaced. */
  readonly settings: () => RetentionSettings;
  readonly log: Log;
  /** Unix milliseconds, as events and claims are told by. */
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicMs?: () => number;
}

/** Events, or claims, that one step looks at. */
const perStep = 100;
/** A step is followed by a pause this many times as long, so that requests have the store nearly to themselves. */
const pauseFactor = 49;
/** Far over its size, the ledger grows faster than that frees; a full disk would be worse than slower requests. */
const hurriedPauseFactor = 9;
const shortestPauseMs = 50;
/** Between two looks at everything. */
const restMs = 60_000;
/** A machine's clock may be wrong when it starts, until it has asked others. */
const clockSettlesMs = 300_000;
/** How long nothing is called old after the clock jumped: somebody may have set it wrong, and sets it right again. */
const distrustMs = 3_600_000;
/** Forgotten is down to here, so that not every event costs a step of its own. */
const roomFactor = 0.95;
const dayMs = 86_400_000;
/** From here on it is far over its size. */
const farOver = 1.1;
/** How often the log is told that nothing can be done about the size. */
const warnEveryMs = 3_600_000;

/**
 * Forgets finished events: those that are older than the settings keep, by state, and the oldest ones when the ledger is too
 * large. Goes over everything in small steps with pauses between them. Several gateways may do so on one store at once.
 */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #monotonicMs: () => number;
  /** Until then, by the monotonic clock, no age is believed. */
  #trustAt: number;
  #round: AsyncGenerator<void, void> | undefined;
  #hurries = false;
  #warnedAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #step: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
    this.#trustAt = this.#monotonicMs() + clockSettlesMs;
  }

  /** Begins, after a pause. */
  start(): void {
    this.#plan(shortestPauseMs);
  }

  /** Fulfils when the step that is under way is over; there will be no other. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#step;
  }

  /** The clock jumped: for an hour nothing is forgotten because of its age. */
  clockJumped(): void {
    this.#trustAt = this.#monotonicMs() + distrustMs;
  }

  /** Does one step. Answers after how many milliseconds the next one may follow. Never rejects. */
  async step(): Promise<number> {
    const startedAt = this.#monotonicMs();
    this.#round ??= this.#steps();
    let isOver = true;
    try {
      isOver = (await this.#round.next()).done === true;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn({ reason }, "Old events could not be forgotten; it is tried again in a minute");
    }
    const pauseMs = this.#pauseAfter(this.#monotonicMs() - startedAt);
    if (!isOver) return pauseMs;
    this.#round = undefined;
    this.#hurries = false;
    return Math.max(restMs, pauseMs);
  }

  #plan(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#step = this.step().then((pauseMs) => this.#plan(pauseMs));
    }, ms);
    this.#timer.unref();
  }

  #pauseAfter(tookMs: number): number {
    const factor = this.#hurries ? hurriedPauseFactor : pauseFactor;
    return Math.max(shortestPauseMs, tookMs * factor);
  }

  /** Everything once; one small operation between two yields. */
  async *#steps(): AsyncGenerator<void, void> {
    yield* this.#forgetClaims();
    yield* this.#forgetOld();
    yield* this.#forgetForRoom();
  }

  async *#forgetClaims(): AsyncGenerator<void, void> {
    const { store, now } = this.#options;
    while ((await store.pruneClaims({ now: now(), limit: perStep })) === perStep) yield;
    yield;
  }

  async *#forgetOld(): AsyncGenerator<void, void> {
    let forgotten = 0;
    for (let after: string | undefined = ""; after !== undefined; ) {
      const before = this.#limits();
      if (Object.keys(before).length === 0) break;
      const pruned = await this.#options.store.prune({ after, limit: perStep, before });
      forgotten += pruned.forgotten;
      after = isBeyond(pruned.next, before) ? undefined : pruned.next;
      yield;
    }
    if (forgotten > 0) this.#options.log.info({ events: forgotten }, "Old events were forgotten");
  }

  /** Before when the news of an event must be from, by state; none while no age can be believed. */
  #limits(): Partial<Record<FinalEventState, number>> {
    if (this.#monotonicMs() < this.#trustAt) return {};
    const now = this.#options.now();
    const ages = Object.entries(this.#options.settings().maxAgeMs) as [FinalEventState, number | undefined][];
    return Object.fromEntries(ages.flatMap(([state, age]) => (age === undefined ? [] : [[state, now - age]])));
  }

  async *#forgetForRoom(): AsyncGenerator<void, void> {
    let { bytes, over, tookMs } = await this.#measure();
    if (over <= 1) return;
    let forgotten = 0;
    let spentMs = 0;
    let after: string | undefined = "";
    while (after !== undefined && over > roomFactor) {
      this.#hurries = over > farOver;
      yield;
      const startedAt = this.#monotonicMs();
      const pruned: Pruned = await this.#options.store.prune({ after, limit: perStep, before: anyAge });
      spentMs += this.#monotonicMs() - startedAt;
      forgotten += pruned.forgotten;
      after = pruned.next;
      // A database measures by looking at all it has: no more time goes into that than into forgetting.
      if (after !== undefined && spentMs < tookMs) continue;
      ({ bytes, over, tookMs } = await this.#measure());
      spentMs = 0;
    }
    this.#hurries = false;
    if (forgotten > 0)
      this.#options.log.info({ events: forgotten, bytes }, "The oldest events were forgotten for room");
    if (over > 1) this.#warn(bytes);
  }

  /** How many times too large the ledger is. */
  async #measure() {
    const { maxBytes } = this.#options.settings();
    if (maxBytes === undefined) return { bytes: 0, over: 0, tookMs: 0 };
    const startedAt = this.#monotonicMs();
    const { bytes } = await this.#options.store.measure({});
    return { bytes, over: bytes / maxBytes, tookMs: this.#monotonicMs() - startedAt };
  }

  #warn(bytes: number): void {
    const now = this.#monotonicMs();
    if (now - this.#warnedAt < warnEveryMs) return;
    this.#warnedAt = now;
    const { maxBytes } = this.#options.settings();
    this.#options.log.warn(
      { bytes, maxBytes },
      'The ledger is larger than "retention.max_size", and only events that are not finished are left; see "postern doctor" for what holds them up',
    );
  }
}

/** The oldest go first, and all that may go is finished. */
const anyAge = Object.fromEntries(finalEventStates.map((state) => [state, Number.MAX_SAFE_INTEGER]));

/**
 * Whether nothing that is old enough can follow: ids sort by the time an event was received (UUID version 7), and no news
 * of it is older than that. Machines may be a day apart.
 */
function isBeyond(id: string | undefined, before: Partial<Record<FinalEventState, number>>): boolean {
  if (id === undefined) return true;
  const receivedAt = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  return receivedAt - dayMs >= Math.max(...Object.values(before));
}
