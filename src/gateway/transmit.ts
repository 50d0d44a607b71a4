import type { Config } from "../config/load.ts";
import { findTarget } from "../config/platforms.ts";
import { DeliveryError } from "../core/errors.ts";
import type { MessageRule } from "../core/retry.ts";
import { splitText } from "../core/split.ts";
import { redact } from "../core/text.ts";
import { type Ledger, type Message, partKey } from "../ledger/ledger.ts";
import type { Log } from "../lib/log.ts";
import { readAddress } from "../target/address.ts";
import { markdownToPlain } from "../target/markup/plain.ts";
import { plainText } from "../target/neutralise.ts";
import type { Memory, Part, Receipt, SettingValues, Target } from "../target/target.ts";
import { insist } from "./insist.ts";
import type { Paces } from "./pace.ts";

/** What a try to send works with. */
export interface TransmitTools {
  readonly config: Config;
  readonly ledger: Ledger;
  /** What targets remember. */
  readonly memory: Memory;
  readonly paces: Pick<Paces, "turn">;
  readonly log: Log;
  /** Values that must not leave with a message. */
  readonly secrets: () => readonly string[];
  readonly rule: MessageRule;
  /** How long a part waits for its turn, at most; as long as it takes when not set. */
  readonly patienceMs?: number;
  /** Aborted when nothing more is to be begun: what is not sent by then is given back. */
  readonly leave: AbortSignal;
  /** Aborted when the gateway must end now. */
  readonly signal: AbortSignal;
}

/** How a try ended. */
export type End =
  | { readonly as: "sent"; readonly reference: string | undefined }
  | { readonly as: "failed"; readonly error: DeliveryError }
  /** Nothing was sent, because an earlier try may have gone through and the rule says "at_most_once". */
  | { readonly as: "unsure" }
  /** Stopped before the next part: the gateway ends. */
  | { readonly as: "left" }
  /** Stopped before the next part: the lease has run out by our clock. */
  | { readonly as: "lapsed" }
  /** The ledger says that somebody else has the message by now. */
  | { readonly as: "lost" };

interface Sending extends TransmitTools {
  readonly message: Message;
  readonly target: Target;
  readonly values: SettingValues;
}

const emptyText = "(empty answer)";

/** Makes one try to send the parts of a message that earlier tries have not. Records parts, but not how the try ended. */
export async function transmit(message: Message, tools: TransmitTools): Promise<End> {
  try {
    const sending = { ...tools, message, ...usableTarget(message, tools.config) };
    return await sendParts(sending);
  } catch (cause) {
    return { as: "failed", error: describe(cause, tools) };
  }
}

function usableTarget({ target: name }: Message, config: Config): Pick<Sending, "target" | "values"> {
  const target = findTarget(name);
  const platform = target && config.platforms.get(target.name);
  if (!target || !platform) {
    throw new DeliveryError(`This version has no target "${name}"`, { sent: "no", retryAfterMs: "never" });
  }
  if ("unusable" in platform) {
    throw new DeliveryError(`The target "${target.name}" cannot be used: ${platform.unusable}`, { sent: "no" });
  }
  return { target, values: platform.values };
}

async function sendParts(sending: Sending): Promise<End> {
  const { message, ledger, log, signal } = sending;
  const parts = partsOf(sending);
  let reference: string | undefined;
  for (const part of parts.slice(message.partsSent)) {
    const isUnsure = message.isUnsure && part.index === message.partsSent;
    const step = await sendPart(part, isUnsure, sending);
    if ("as" in step) return step;
    reference = step.reference;
    // The last part is recorded together with the end of the message.
    const isLast = part.index === parts.length - 1;
    const isRecorded = isLast || (await insist(() => ledger.partSent(message, part.index + 1), log, signal));
    if (!isRecorded) return { as: "lost" };
  }
  return { as: "sent", reference };
}

function partsOf({ message, target, values, secrets }: Sending): Part[] {
  const address = readAddress(target, message.extra, values);
  const { route, eventType, readyAt: firstTriedAt } = message;
  return cut(message.text, target, secrets()).map((text, index, { length: count }) => {
    return { text, address, index, count, key: partKey(message, index), firstTriedAt, route, eventType };
  });
}

/** A message's text as the parts in which a target gets it, without secrets. */
export function cut(text: string, { limit }: Target, secrets: readonly string[]): string[] {
  // First of all, because a character that is dropped from within a secret would hide it.
  const clean = plainText(text);
  // Services refuse blank text; an empty answer is delivered all the same (specification section 7).
  return splitText(/[^\s\p{Cf}]/u.test(clean) ? withoutSecrets(clean, secrets) : emptyText, limit);
}

/** Marks within a secret (`se**cr**et`) would be gone where a target renders them: then the text goes out without any. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const redacted = redact(text, secrets);
  if (!/[*_~`\\]/.test(redacted)) return redacted;
  const words = markdownToPlain(redacted);
  const redactedWords = redact(words, secrets);
  return redactedWords === words ? redacted : redactedWords;
}

/** Sends a part when its turn has come, unless an earlier try has, or the message must be let go of before. */
async function sendPart(part: Part, isUnsure: boolean, sending: Sending): Promise<Receipt | End> {
  const { message, target, values, config, ledger, memory, paces, log, leave, signal, patienceMs } = sending;
  // A process that stood still must not send what another gateway has taken over meanwhile.
  if (!ledger.holds(message)) return { as: "lapsed" };
  if (leave.aborted) return { as: "left" };
  const earlier = isUnsure ? await earlierTry(part, sending) : undefined;
  if (earlier) return earlier;
  const patience = patienceMs === undefined ? {} : { patienceMs };
  if (!(await paces.turn(target, placeOf(part, target), { signal: leave, ...patience }))) return { as: "left" };
  if (!ledger.holds(message)) return { as: "lapsed" };
  return target.send(part, values, { env: config.env, log, memory, signal });
}

/** What an earlier try came to whose end nobody knows. `undefined`: the part is to be sent, again or for the first time. */
async function earlierTry(part: Part, sending: Sending): Promise<Receipt | End | undefined> {
  const { target, values, config, memory, log, signal, rule } = sending;
  if (target.repeats === "recognised") return undefined;
  if (target.repeats === "findable") {
    try {
      return await target.find(part, values, { env: config.env, log, memory, signal });
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      const { message, retryAfterMs, cause } = error;
      // It is as unknown as before whether the part was sent.
      if (retryAfterMs !== "never") throw new DeliveryError(message, { sent: "maybe", retryAfterMs, cause });
    }
  }
  return rule.whenUnknown === "at_most_once" ? { as: "unsure" } : undefined;
}

/** What the pace of a place is kept for. */
export function placeOf({ address }: Part, { pace }: Target): string {
  const field = pace?.perPlace?.field;
  return field === undefined ? "" : (address[field] ?? "");
}

function describe(cause: unknown, { secrets, log }: TransmitTools): DeliveryError {
  if (cause instanceof DeliveryError) {
    const { sent, retryAfterMs } = cause;
    return new DeliveryError(redact(cause.message, secrets()), { sent, retryAfterMs, cause });
  }
  log.error({ err: cause }, "A target failed in a way it should not");
  return new DeliveryError("The target failed unexpectedly; the log has the details", { sent: "maybe", cause });
}
