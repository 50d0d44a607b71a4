import type { Config } from "../config/load.ts";
import { findTarget, type Platform } from "../config/platforms.ts";
import { messageRule } from "../config/retry.ts";
import { DeliveryError } from "../core/errors.ts";
import type { MessageRule } from "../core/retry.ts";
import type { Event } from "../core/types.ts";
import type { Ledger, Message } from "../ledger/ledger.ts";
import type { Log, LogFields } from "../lib/log.ts";
import { sleep } from "../lib/sleep.ts";
import { permanent } from "../target/failure.ts";
import type { Memory, Target } from "../target/target.ts";
import { insist } from "./insist.ts";
import { Paces } from "./pace.ts";
import type { Routes } from "./routes.ts";
import { type End, transmit } from "./transmit.ts";

export interface DeliveriesOptions {
  readonly config: Config;
  /** Whose rules of retry apply. */
  readonly routes: Pick<Routes, "known">;
  readonly ledger: Ledger;
  /** What targets remember. */
  readonly memory: Memory;
  readonly log: Log;
  readonly now: () => number;
  /** Values that must not leave with a message. */
  readonly secrets: () => readonly string[];
  /** Aborted when the gateway must end now. */
  readonly signal: AbortSignal;
  /** Keeps to the targets' pace; by `now` when not set. */
  readonly paces?: Pacing;
}

/** What `Paces` does for others. */
export type Pacing = Pick<Paces, "allowance" | "nextAt" | "turn">;

/** A sender waits: its message goes ahead after this long, whatever the target's pace. */
const directPatienceMs = 3_000;

const stoppedReason = "Given back: the gateway was stopped";
const lapsedReason = "Given back: its lease ran out before it was sent";

/** Sends messages and records each try: for the worker, and for requests whose sender waits for the result. */
export class Deliveries {
  /** What the targets may be sent now. */
  readonly paces: Pacing;
  readonly #options: DeliveriesOptions;
  readonly #underWay = new Map<string, Promise<boolean>>();
  readonly #held = new Set<Message>();
  readonly #sending = new Set<Promise<Sent>>();
  /** Aborted when the worker begins nothing more. */
  readonly #leave = new AbortController();
  /** Until when each target's pause was told. */
  readonly #told = new Map<string, number>();

  constructor(options: DeliveriesOptions) {
    this.#options = options;
    const applies = (target: Target) => isVendors(target, options.config.platforms.get(target.name));
    this.paces = options.paces ?? new Paces({ now: options.now, sleep, applies });
    options.signal.addEventListener("abort", () => this.leave(), { once: true });
  }

  /** Messages being sent for a waiting sender; their leases need a heartbeat. */
  get held(): readonly Message[] {
    return [...this.#held];
  }

  /** The direct delivery under way for the same delivery id, fulfilled with whether it succeeded. */
  underWay(event: Event): Promise<boolean> | undefined {
    return this.#underWay.get(keyOf(event));
  }

  /**
   * Sends a direct delivery. True when every target, or one of its fallback, took its message; otherwise the delivery id is
   * free again.
   */
  async sendNow(event: Event, messages: readonly Message[]): Promise<boolean> {
    const sending = Promise.all(messages.map((message) => this.#sendHeld(message))).then((results) =>
      results.every((isSent) => isSent),
    );
    const key = keyOf(event);
    this.#underWay.set(key, sending);
    try {
      return await sending;
    } finally {
      // A failure frees the delivery id before it comes here: the entry may be the next try's already.
      if (this.#underWay.get(key) === sending) this.#underWay.delete(key);
    }
  }

  /**
   * Makes one try to send a message and records how it went. True when the target took it. `mayRetry` false means that a
   * failure is final, because the sender of the event is told.
   */
  async send(message: Message, mayRetry: boolean): Promise<boolean> {
    return (await this.#tracked(message, mayRetry)) === "sent";
  }

  /** Begins no further try or part of the worker's messages: what is not sent is given back. Direct deliveries go on. */
  leave(): void {
    this.#leave.abort();
  }

  /** Fulfils when nothing is being sent. */
  async idle(): Promise<void> {
    while (this.#sending.size > 0) await Promise.allSettled(this.#sending);
  }

  /** Sends a message, and when it is given up, each that goes instead. */
  async #sendHeld(message: Message): Promise<boolean> {
    const end = await this.#hold(message);
    return typeof end === "object" ? this.#sendHeld(end) : end === "sent";
  }

  async #hold(message: Message): Promise<Sent> {
    this.#held.add(message);
    try {
      return await this.#tracked(message, false);
    } finally {
      this.#held.delete(message);
    }
  }

  #tracked(message: Message, mayRetry: boolean): Promise<Sent> {
    const sending = this.#send(message, mayRetry);
    this.#sending.add(sending);
    return sending.finally(() => this.#sending.delete(sending));
  }

  async #send(message: Message, mayRetry: boolean): Promise<Sent> {
    const { config, routes, log, now, signal } = this.#options;
    const startedAt = now();
    const rule = messageRule(config, routes.known(message.route), message.target);
    const leave = mayRetry ? this.#leave.signal : signal;
    const patience = mayRetry ? {} : { patienceMs: directPatienceMs };
    const tools = { ...this.#tools(), rule, leave, ...patience };
    const end = message.refusal === null ? await transmit(message, tools) : refusedBefore(message.refusal);
    const recorded = await insist(() => this.#record(message, end, rule, mayRetry), log, signal);
    this.#tell(message, end, recorded, now() - startedAt);
    if (end.as === "failed" && end.error.retryAfterMs !== "never") void this.#tellPause(message.target);
    if (end.as === "sent") return "sent";
    return typeof recorded === "object" ? recorded : "not sent";
  }

  /** One by one: they may be read anew each time (`config`), and a copy of all would not follow. */
  #tools() {
    const { config, ledger, memory, log, secrets, signal } = this.#options;
    return { config, ledger, memory, log, secrets, signal, paces: this.paces };
  }

  /** False when somebody else has the message. When it was given up, the one that goes instead, if any. */
  async #record(message: Message, end: End, rule: MessageRule, mayRetry: boolean): Promise<boolean | Message> {
    const { ledger, signal } = this.#options;
    const judgement = { rule, repeats: findTarget(message.target)?.repeats ?? "doubled", mayRetry } as const;
    switch (end.as) {
      case "sent":
        return ledger.sent(message, end.reference);
      case "failed":
        // What was cut off at the gateway's end says nothing of the target.
        return ledger.failed(message, end.error, { ...judgement, isTargetsFault: !signal.aborted });
      case "unsure":
        return ledger.giveUpUnsure(message);
      case "left":
      case "lapsed": {
        const reason = end.as === "left" ? stoppedReason : lapsedReason;
        if (mayRetry) return ledger.release(message, reason);
        // Its sender waits, and is told to come again.
        const error = new DeliveryError(reason, { sent: "no" });
        return ledger.failed(message, error, { ...judgement, isTargetsFault: false });
      }
      case "lost":
        return false;
    }
  }

  /** One line per try. */
  #tell(message: Message, end: End, recorded: boolean | Message, ms: number): void {
    const { log } = this.#options;
    const { route, eventType: event, target, id, fence } = message;
    const isRecorded = recorded !== false;
    const instead = typeof recorded === "object" ? { instead: recorded.target } : {};
    const line: LogFields = { route, event, target, message: id, try: fence, ms, ...instead };
    if (end.as === "sent" && isRecorded) log.info({ ...line, reference: end.reference }, "Message sent");
    else if (end.as === "sent") log.warn({ ...line, reference: end.reference }, "Message sent, but its lease was lost");
    else if (end.as === "failed") {
      log.warn({ ...line, sent: end.error.sent, error: end.error.message, isRecorded }, "Message not sent");
    } else if (end.as === "unsure") log.warn(line, "Message given up: it may have been sent");
    else if (end.as === "left") log.info(line, "Message given back");
    else log.warn(line, "Message not sent: its lease was lost");
  }

  /** Says once that a target is paused from now on, and for how long. */
  async #tellPause(target: string): Promise<void> {
    const { ledger, log, now } = this.#options;
    const troubles = await ledger.troubles().catch(() => []);
    const trouble = troubles.find((one) => one.target === target);
    if (!trouble || trouble.pausedUntil <= now() || this.#told.get(target) === trouble.pausedUntil) return;
    const { pausedUntil, failures, reason } = trouble;
    this.#told.set(target, pausedUntil);
    log.warn({ target, until: new Date(pausedUntil).toISOString(), failures, reason }, "Target paused");
  }
}

/** What became of a try: when it was the last one, there may be a message that goes instead. */
type Sent = "sent" | "not sent" | Message;

function refusedBefore(refusal: string): End {
  return { as: "failed", error: permanent(refusal) };
}

function keyOf({ route, deliveryId }: Event): string {
  return JSON.stringify([route, deliveryId]);
}

/** A pace is what the vendor's server takes. What another one takes (a server of one's own, a test's) it says itself. */
function isVendors(target: Target, platform: Platform | undefined): boolean {
  const { ownServer } = target;
  if (ownServer === undefined || !platform || "unusable" in platform) return true;
  const server = platform.values[ownServer];
  return server === undefined || server === target.settings[ownServer]?.default;
}
