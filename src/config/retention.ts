import { type FinalEventState, finalEventStates } from "../store/states.ts";
import type { FileConfig } from "./schema.ts";

/** The key `retention`: how much of the past is kept. */
export interface RetentionSettings {
  /** How long a finished event is kept after its newest news, by its state. A state that is not named has no end. */
  readonly maxAgeMs: Readonly<Partial<Record<FinalEventState, number>>>;
  /** How much the ledger may hold before finished events go, oldest first; `undefined`: no end. */
  readonly maxBytes: number | undefined;
}

/** What the file says, with `off` as the absence of a bound. */
export function retentionSettings(keys: FileConfig["retention"]): RetentionSettings {
  const ages = finalEventStates.map((state) => [state, keys.states[state] ?? keys.max_age] as const);
  return {
    maxAgeMs: Object.fromEntries(ages.filter(([, age]) => age !== "off")),
    maxBytes: keys.max_size === "off" ? undefined : keys.max_size,
  };
}
