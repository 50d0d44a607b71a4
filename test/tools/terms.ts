import type { MessageRule } from "../../src/core/retry.ts";
import type { Take } from "../../src/ledger/ledger.ts";

/** The rule of a message where nothing else is configured. */
export const aRule: MessageRule = {
  tries: 8,
  maxAgeMs: 86_400_000,
  firstDelayMs: 4_000,
  factor: 6,
  longestDelayMs: 86_400_000,
  keepOrderMs: 600_000,
  whenUnknown: "at_least_once",
};

/** What a gateway takes that does nothing yet. */
export function aTake(limit = 10): Take {
  return { limit, active: [], limits: {} };
}
