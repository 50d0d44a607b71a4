/** Why a request is refused. `server/replies.ts` maps each to its status and body, and nothing else does. */
export type RejectionCode =
  | "bad_request"
  | "malformed_json"
  | "not_an_object"
  | "invalid_signature"
  | "route_disabled"
  | "unknown_route"
  | "method_not_allowed"
  | "payload_too_large"
  | "unsupported_encoding"
  | "rate_limited"
  | "unavailable";

/**
 * A request is refused. The sender is told only what its code stands for; `reason` is for the log and holds neither
 * secrets nor payload.
 */
export class Rejection extends Error {
  override readonly name = "Rejection";
  readonly code: RejectionCode;
  readonly retryAfterSeconds: number | undefined;
  /** Methods the path does take, with `method_not_allowed`. */
  readonly allow: string | undefined;

  constructor(code: RejectionCode, reason: string, options: RejectionOptions = {}) {
    super(reason, { cause: options.cause });
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
  }
}

interface RejectionOptions {
  readonly retryAfterSeconds?: number;
  readonly allow?: string;
  readonly cause?: unknown;
}

/** One mistake in a configuration file or variable. Line and column count from 1 and are absent where there is no file. */
export interface Problem {
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  /** Dotted path of the key, for example `platforms.webhook.extra.port`. */
  readonly key: string;
  /** What is wrong and what to write instead, in one sentence without a full stop. */
  readonly message: string;
}

/** A problem on one line, its place first, as compilers write it and editors understand it. */
export function describeProblem({ file, line, column, key, message }: Problem): string {
  const place = file === undefined ? "" : [file, line, column].filter((part) => part !== undefined).join(":");
  return [place, key, message].filter((part) => part !== "").join(": ");
}

/** The configuration cannot be used. Carries every problem found, not only the first; the program exits 78. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map((problem) => `${problem.key}: ${problem.message}`).join("\n"));
    this.problems = problems;
  }
}

/** Something the person at the command line can mend; its message is printed without a stack and the program exits 1. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/**
 * A target did not take a message.
 *
 * `sent: "no"` means that it certainly was not taken; `"maybe"` that the answer was lost after the request was written.
 * `retryAfterMs` is a number when the service named a time, `"never"` when trying again cannot help, and `undefined`
 * when the usual backoff applies. The message holds the service's own words and no secret.
 */
export class DeliveryError extends Error {
  override readonly name = "DeliveryError";
  readonly sent: "no" | "maybe";
  readonly retryAfterMs: number | "never" | undefined;

  constructor(message: string, options: DeliveryErrorOptions) {
    super(message, { cause: options.cause });
    this.sent = options.sent;
    this.retryAfterMs = options.retryAfterMs;
  }
}

interface DeliveryErrorOptions {
  readonly sent: "no" | "maybe";
  readonly retryAfterMs?: number | "never";
  readonly cause?: unknown;
}

/** The ledger could not commit or read (disk full, file gone, database away). Nothing of the call took effect. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";
}

/** The ledger's file or server is not one this program can use: nobody but its owner can mend that. */
export class StoreRefused extends StoreUnavailable {
  override readonly name: string = "StoreRefused";
}
