import type { Config } from "../config/load.ts";
import { findTarget } from "../config/platforms.ts";
import { DeliveryError, StoreUnavailable } from "../core/errors.ts";
import { Trouble } from "../core/trouble.ts";
import type { Log } from "../lib/log.ts";
import { sleep as realSleep } from "../lib/sleep.ts";
import type { Memory, SettingValues, Target } from "../target/target.ts";
import { AttendLease } from "./attend-lease.ts";

export interface AttendantsOptions {
  /** Read at each `reconsider`: the configuration may be replaced. */
  readonly settings: () => Pick<Config, "platforms" | "env">;
  readonly memory: Memory;
  readonly log: Log;
  /** This gateway, in a word that no other has. */
  readonly owner: string;
  /** Whether other gateways may work on the same store: then a lease says which of them attends. */
  readonly isShared: boolean;
  readonly leaseMs: number;
  /** The store's clock, Unix milliseconds. */
  readonly now: () => number;
  readonly random?: () => number;
  readonly sleep?: typeof realSleep;
  readonly find?: (name: string) => Target | undefined;
}

const firstPauseMs = 1_000;
const longestPauseMs = 300_000;

type Attended = Target & Required<Pick<Target, "attend">>;

/** A target that is attended, or was. */
interface Attendance {
  /** The values it is attended with, for comparison. */
  readonly text: string;
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

/** How one stretch of attending ended: because of an error, or because it is another gateway's turn. */
type RoundEnd = { readonly error: unknown } | "elsewhere";

/**
 * Keeps open what targets keep open with their services (`Target.attend`), for each platform that can be used. What ends or
 * fails is begun again after a pause of up to a second, which may double up to five minutes. Of several gateways on one
 * store only one attends a target; when it is gone another one does, after the lease has run out.
 */
export class Attendants {
  readonly #options: AttendantsOptions;
  readonly #random: () => number;
  readonly #sleep: typeof realSleep;
  readonly #attendances = new Map<string, Attendance>();
  #isStopped = false;

  constructor(options: AttendantsOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#sleep = options.sleep ?? realSleep;
  }

  /** Begins with what the settings in force ask for, and ends what they do not ask for any more. Other settings begin anew. */
  reconsider(): void {
    if (this.#isStopped) return;
    for (const name of this.#options.settings().platforms.keys()) this.#reconsiderOne(name);
  }

  /** Ends everything. Fulfils when it has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const attendances = [...this.#attendances.values()];
    for (const { end } of attendances) end.abort();
    await Promise.all(attendances.map(({ ended }) => ended));
  }

  #reconsiderOne(name: string): void {
    const target = (this.#options.find ?? findTarget)(name);
    const platform = this.#options.settings().platforms.get(name);
    if (target === undefined || !isAttended(target) || platform === undefined) return;
    const values = "values" in platform ? platform.values : undefined;
    const text = JSON.stringify(values);
    const before = this.#attendances.get(name);
    if (before !== undefined && !before.end.signal.aborted && before.text === text) return;
    before?.end.abort();
    if (values === undefined) return;
    const end = new AbortController();
    // One service takes it badly when the same account comes twice at once.
    const ended = (before?.ended ?? Promise.resolve()).then(() => this.#attend(target, values, end.signal));
    this.#attendances.set(name, { text, end, ended });
  }

  /** Attends until the signal is aborted. Never rejects. */
  async #attend(target: Attended, values: SettingValues, signal: AbortSignal): Promise<void> {
    const { now, leaseMs } = this.#options;
    const trouble = new Trouble({ firstMs: firstPauseMs, longestMs: longestPauseMs, random: this.#random });
    while (!signal.aborted) {
      const startedAt = now();
      const end = await this.#round(target, values, signal);
      if (signal.aborted) return;
      if (end === "elsewhere") {
        await this.#sleep(leaseMs / 3, signal);
        continue;
      }
      // What held for so long was no part of an earlier trouble.
      if (now() - startedAt >= longestPauseMs) trouble.over();
      await this.#sleep(this.#tell(target, end.error, trouble), signal);
    }
  }

  /** Says what is wrong, once in each trouble. Answers the pause that follows. */
  #tell({ name }: Target, error: unknown, trouble: Trouble): number {
    const reason = error instanceof Error ? error.message : String(error);
    const { pauseMs, isNews } = trouble.failed(reason);
    const isExpected = error instanceof DeliveryError || error instanceof StoreUnavailable;
    const fields = { target: name, ...(isExpected ? { reason } : { err: error }), retryInMs: pauseMs };
    const what = "What the target keeps open with its service has ended; it is tried again";
    if (isNews) this.#options.log.warn(fields, what);
    else this.#options.log.debug(fields, what);
    return pauseMs;
  }

  async #round(target: Attended, values: SettingValues, signal: AbortSignal): Promise<RoundEnd> {
    try {
      if (!this.#options.isShared) return await this.#call(target, values, signal);
      const lease = new AttendLease({ ...this.#options, target: target.name });
      const until = this.#options.now() + this.#options.leaseMs;
      if (!(await lease.take())) return "elsewhere";
      return await this.#whileHeld(lease, until, signal, (held) => this.#call(target, values, held));
    } catch (error) {
      return { error };
    }
  }

  async #call(target: Attended, values: SettingValues, signal: AbortSignal): Promise<RoundEnd> {
    const { memory, log, settings } = this.#options;
    try {
      await target.attend(values, { env: settings().env, log, memory, signal });
      return { error: new DeliveryError("It ended by itself", { sent: "no" }) };
    } catch (error) {
      return { error };
    }
  }

  /** Runs `attend` while the lease is ours, and gives it back afterwards: another gateway may have more luck. */
  async #whileHeld(
    lease: AttendLease,
    until: number,
    signal: AbortSignal,
    attend: (held: AbortSignal) => Promise<RoundEnd>,
  ): Promise<RoundEnd> {
    const lost = new AbortController();
    const over = new AbortController();
    const renewing = this.#renew(lease, until, lost, over.signal);
    try {
      const end = await attend(AbortSignal.any([signal, lost.signal]));
      return lost.signal.aborted ? "elsewhere" : end;
    } finally {
      over.abort();
      await renewing;
      // It runs out by itself too.
      await lease.giveBack().catch(() => {});
    }
  }

  /** Renews every third of the lease. Aborts `lost` when another gateway has it, or may have. */
  async #renew(lease: AttendLease, firstUntil: number, lost: AbortController, over: AbortSignal): Promise<void> {
    const { now, leaseMs } = this.#options;
    for (let until = firstUntil; ; ) {
      await this.#sleep(leaseMs / 3, over);
      if (over.aborted) return;
      const askedAt = now();
      const isMine = await this.#renewed(lease);
      if (isMine === false || (isMine === undefined && askedAt >= until)) return lost.abort();
      if (isMine === true) until = askedAt + leaseMs;
    }
  }

  /** `undefined`: the store is away. For a moment that is no reason to leave, as nobody else can take the lease either. */
  async #renewed(lease: AttendLease): Promise<boolean | undefined> {
    try {
      return await lease.take();
    } catch {
      return undefined;
    }
  }
}

function isAttended(target: Target): target is Attended {
  return target.attend !== undefined;
}
