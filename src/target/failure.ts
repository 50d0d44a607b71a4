import { DeliveryError } from "../core/errors.ts";
import { redact, truncate } from "../core/text.ts";
import { HttpFailure } from "../lib/http.ts";

/** Words from outside for an error message: in double quotes, at most `max` UTF-16 units, nothing that does not print. */
export function quote(words: string, max = 200): string {
  return `"${truncate(words.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ").trim(), max)}"`;
}

/** The message will never be taken as it is: the address or the settings must change first. */
export function permanent(message: string, cause?: unknown): DeliveryError {
  return new DeliveryError(message, { sent: "no", retryAfterMs: "never", cause });
}

/**
 * For an exchange that ended without an answer. `action` opens the sentence, for example `Cannot send to Telegram`.
 * Anything but an `HttpFailure` goes through unchanged. The cause is left out: it may hold the address, and so a secret.
 */
export function withoutAnswer(action: string, error: unknown, secrets: readonly string[]): unknown {
  if (!(error instanceof HttpFailure)) return error;
  return new DeliveryError(`${action}: ${redact(error.message, secrets)}`, { sent: error.sent });
}
