import type { Environment } from "../core/types.ts";
import type { Log } from "../lib/log.ts";

/** One setting of a target: the same data validates the configuration, and writes its help and its docs. */
export interface Setting {
  readonly kind: "string" | "secret" | "integer" | "boolean" | "url";
  /** What it is, in one sentence without a full stop. */
  readonly help: string;
  /** Environment variables that set it, the first that is set wins over the configuration file. */
  readonly env?: readonly string[];
  /** Without it the target cannot be used. */
  readonly required?: boolean;
  readonly default?: string | number | boolean;
}

/** One key of `deliver_extra`. */
export interface AddressField {
  readonly help: string;
  /** The rendered value must match as a whole; anything else is refused before anything is sent. */
  readonly pattern: RegExp;
  /** A route that names neither this key nor one of `alternatives` is refused when it is loaded. */
  readonly required?: boolean;
  /** Other names of this key, for example `thread_id` for `message_thread_id`. */
  readonly alternatives?: readonly string[];
  /** The platform's `home_channel` stands in when the route names none. */
  readonly homeChannel?: boolean;
}

/** Settings by name after environment, file and default were joined. */
export type SettingValues = Readonly<Record<string, string | number | boolean | undefined>>;

/** Where a message goes: rendered `deliver_extra` by the names of the target's `address`, checked against its patterns. */
export type Address = Readonly<Record<string, string | undefined>>;

/** One piece of a message, small enough for the service. */
export interface Part {
  readonly text: string;
  readonly address: Address;
  /** Counts from 0. */
  readonly index: number;
  readonly count: number;
  /** The same for every try of this part and of no other: an idempotency key where the service has one. 32 hex digits. */
  readonly key: string;
  /** Unix time in milliseconds before which no try of this part can have begun, the same for every try. */
  readonly firstTriedAt: number;
  readonly route: string;
  readonly eventType: string;
}

export interface TargetTools {
  readonly env: Environment;
  readonly log: Log;
  /** Aborted when the gateway must stop now. */
  readonly signal: AbortSignal;
}

export interface Receipt {
  /** What the service calls the message: an id or a link. Kept in the ledger. */
  readonly reference?: string;
}

/** At most `count` messages in any `everyMs` milliseconds. */
export interface Pace {
  readonly count: number;
  readonly everyMs: number;
}

/** What a target is, whatever its service makes of repeated messages. */
interface TargetBase {
  readonly name: string;
  /** The specification's brand-neutral name, also accepted in configuration. */
  readonly neutralName?: string;
  /** False for targets that need no `platforms.<name>` section (`log`). */
  readonly isPlatform: boolean;
  readonly settings: Readonly<Record<string, Setting>>;
  readonly address: Readonly<Record<string, AddressField>>;
  /** Longer text is split into parts, at most `parts` of them; what does not fit ends in a notice. */
  readonly limit: { readonly unit: "utf16" | "codepoints" | "bytes"; readonly max: number; readonly parts: number };
  /**
   * What the service takes before it says "later": in all, and in each place that the address field `field` names (a
   * chat). It may have more limits than these; it tells of them by `DeliveryError.retryAfterMs`.
   */
  readonly pace?: { readonly overall?: Pace; readonly perPlace?: Pace & { readonly field: string } };
  /** Setting that names another server than the vendor's, whose pace is then not known. */
  readonly ownServer?: string;
  /** Sends one part. Throws `DeliveryError`, which drives the retry rule; answers only when the service took the part. */
  send(part: Part, settings: SettingValues, tools: TargetTools): Promise<Receipt>;
}

/** A second copy of a part cannot be told from outside: the service keeps only one, or it shows both. */
interface Unsearched {
  /** What the service makes of one part that is sent twice with the same `key`: keeps one copy, or shows two. */
  readonly repeats: "recognised" | "doubled";
  readonly find?: never;
}

/** The service shows two copies, but it can be asked first. */
interface Searched {
  readonly repeats: "findable";
  /**
   * Looks whether an earlier try of this very part arrived. `undefined`: it did not, as far as the service shows; a try
   * that ended a moment ago may not show yet. Throws `DeliveryError` with `sent: "no"` when it cannot be told now,
   * and with `retryAfterMs: "never"` when it cannot be told later either.
   */
  find(part: Part, settings: SettingValues, tools: TargetTools): Promise<Receipt | undefined>;
}

/** A service that messages go to (`deliver`). One file each, listed in `registry.ts`; everything else reads this data. */
export type Target = TargetBase & (Unsearched | Searched);
