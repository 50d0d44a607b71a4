import { APICallError, RetryError } from "ai";
import { redact, truncate } from "../core/text.ts";
import { type Ending, failed, messageOf } from "./ending.ts";

/** Characters of the provider's own words that a reason keeps. */
const maxReasonChars = 300;

/**
 * How a run ends whose model call threw. Transient: no connection, 408, 409, 429 and 5xx; not transient: what stays the
 * same when tried again (bad request, bad key, unknown model, an answer that cannot be read).
 */
export function endingOf(thrown: unknown, secrets: readonly string[]): Ending {
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown;
  if (!APICallError.isInstance(error)) return failed(`the run broke: ${shorten(messageOf(error), secrets)}`);
  const words = shorten(wordsOf(error), secrets);
  const status = error.statusCode;
  if (status === undefined) return failed(`the model cannot be reached: ${words}`, error.isRetryable);
  // A success whose body broke off is retryable for the SDK, one that is not what was expected is not.
  if (status < 300) return failed(`the model's answer (${status}) cannot be read: ${words}`, error.isRetryable);
  return failed(`the model answered ${status}: ${words}`, isTransient(status));
}

function isTransient(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** The SDK falls back to the status text when an error body is not in the provider's usual shape; the body says more. */
function wordsOf(error: APICallError): string {
  const isError = error.statusCode !== undefined && error.statusCode >= 300;
  const body = isError && error.data === undefined ? error.responseBody?.trim() : undefined;
  return body || error.message;
}

/** Blotted out before it is cut: half a key would not be recognised. */
function shorten(words: string, secrets: readonly string[]): string {
  return truncate(redact(words, secrets).replace(/\s+/g, " ").trim(), maxReasonChars) || "no words";
}
