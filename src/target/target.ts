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

/** A service that messages go to (`deliver`). One file each, listed in `registry.ts`; everything else reads this data. */
export interface Target {
  readonly name: string;
  /** The specification's brand-neutral name, also accepted in configuration. */
  readonly neutralName?: string;
  /** False for targets that need no `platforms.<name>` section (`log`). */
  readonly isPlatform: boolean;
  readonly settings: Readonly<Record<string, Setting>>;
  readonly address: Readonly<Record<string, AddressField>>;
  /** Longer text is split into parts, at most `parts` of them; what does not fit ends in a notice. */
  readonly limit: { readonly unit: "utf16" | "codepoints" | "bytes"; readonly max: number; readonly parts: number };
  /** Sends one part. Throws `DeliveryError`, which drives the retry rule; answers only when the service took the part. */
  send(part: Part, settings: SettingValues, tools: TargetTools): Promise<Receipt>;
}
