import type { Config } from "../config/load.ts";
import { findTarget } from "../config/platforms.ts";
import { DeliveryError } from "../core/errors.ts";
import { redact, splitText } from "../core/text.ts";
import type { Event } from "../core/types.ts";
import { type Ledger, type Message, partKey } from "../ledger/ledger.ts";
import type { Log } from "../lib/log.ts";
import { readAddress } from "../target/settings.ts";
import { insist } from "./insist.ts";

export interface DeliveriesOptions {
  readonly config: Config;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly now: () => number;
  /** Values that must not leave with a message. */
  readonly secrets: () => readonly string[];
  /** Aborted when the gateway must end now. */
  readonly signal: AbortSignal;
}

const emptyText = "(empty answer)";

/** Sends messages and records each try: for the worker, and for requests whose sender waits for the result. */
export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #underWay = new Map<string, Promise<boolean>>();
  readonly #held = new Set<Message>();

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** Messages being sent for a waiting sender; their leases need a heartbeat. */
  get held(): readonly Message[] {
    return [...this.#held];
  }

  /** The direct delivery under way for the same delivery id, fulfilled with whether it succeeded. */
  underWay(event: Event): Promise<boolean> | undefined {
    return this.#underWay.get(keyOf(event));
  }

  /** Sends a direct delivery. True when every target took its message; otherwise the delivery id is free again. */
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
    const { ledger, log, now, signal } = this.#options;
    const startedAt = now();
    const line = {
      route: message.route,
      event: message.eventType,
      target: message.target,
      message: message.id,
      try: message.fence,
    };
    try {
      const reference = await this.#transmit(message);
      await insist(() => ledger.sent(message, reference), log, signal);
      log.info({ ...line, ms: now() - startedAt, reference }, "Message sent");
      return true;
    } catch (cause) {
      const error = this.#describe(cause);
      await insist(() => ledger.failed(message, error, mayRetry), log, signal);
      log.warn({ ...line, ms: now() - startedAt, sent: error.sent, error: error.message }, "Message not sent");
      return false;
    }
  }

  async #sendHeld(message: Message): Promise<boolean> {
    this.#held.add(message);
    try {
      return await this.send(message, false);
    } finally {
      this.#held.delete(message);
    }
  }

  /** Sends the parts that earlier tries have not, and answers what the service calls the last one. */
  async #transmit(message: Message): Promise<string | undefined> {
    const { config, ledger, log, signal, secrets } = this.#options;
    const target = findTarget(message.target);
    const platform = target && config.platforms.get(target.name);
    if (!target || !platform) {
      throw new DeliveryError(`This version has no target "${message.target}"`, { sent: "no", retryAfterMs: "never" });
    }
    if ("unusable" in platform) {
      throw new DeliveryError(`The target "${target.name}" cannot be used: ${platform.unusable}`, { sent: "no" });
    }
    const address = readAddress(target, message.extra, platform.values);
    // Services refuse blank text; an empty answer is delivered all the same (specification section 7).
    const text = message.text.trim() === "" ? emptyText : redact(message.text, secrets());
    const texts = splitText(text, target.limit);
    const { route, eventType } = message;
    let reference: string | undefined;
    for (let index = message.partsSent; index < texts.length; index += 1) {
      const part = {
        text: texts[index] ?? "",
        address,
        index,
        count: texts.length,
        key: partKey(message, index),
        route,
        eventType,
      };
      reference = (await target.send(part, platform.values, { env: config.env, log, signal })).reference;
      // The last part is recorded together with the end of the message.
      if (index < texts.length - 1) await insist(() => ledger.partSent(message, index + 1), log, signal);
    }
    return reference;
  }

  #describe(cause: unknown): DeliveryError {
    if (cause instanceof DeliveryError) {
      const { sent, retryAfterMs } = cause;
      return new DeliveryError(redact(cause.message, this.#options.secrets()), { sent, retryAfterMs, cause });
    }
    this.#options.log.error({ err: cause }, "A target failed in a way it should not");
    return new DeliveryError("The target failed unexpectedly; the log has the details", { sent: "maybe", cause });
  }
}

function keyOf({ route, deliveryId }: Event): string {
  return JSON.stringify([route, deliveryId]);
}
