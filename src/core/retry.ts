/** When a message is tried again, how often and how long, and what others have to wait for it. */
export interface MessageRule {
  /** Tries in all, the first one included. */
  readonly tries: number;
  /** No try is made later than this after the message was ready. */
  readonly maxAgeMs: number;
  /** Longest wait before the second try. */
  readonly firstDelayMs: number;
  /** Each further wait may be this many times as long. */
  readonly factor: number;
  /** No wait is longer, unless the service asks for more. */
  readonly longestDelayMs: number;
  /** How long, from when it was ready, later messages to the same place wait for it; 0 lets them pass once a try failed. */
  readonly keepOrderMs: number;
  /** What to do when nobody can tell whether the service took it: send it again, or give it up. */
  readonly whenUnknown: WhenUnknown;
}

export type WhenUnknown = "at_least_once" | "at_most_once";
