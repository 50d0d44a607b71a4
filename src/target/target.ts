import type { SplitLimit } from "../core/split.ts";
import type { Environment } from "../core/types.ts";
import type { Log } from "../lib/log.ts";

/** One setting of a target: the same data validates the configuration, and writes its help and its docs. */
export interface Setting {
  /** `secret_url` is an address that is a secret as a whole, for example an incoming webhook's; `list` holds texts. */
  readonly kind: "string" | "secret" | "secret_url" | "integer" | "boolean" | "url" | "choice" | "list";
  /** What it is, in one sentence without a full stop. */
  readonly help: string;
  /** Environment variables that set it, the first that is set wins over the configuration file. */
  readonly env?: readonly string[];
  /** The value must match as a whole; `help` then says what it is. Of text and secrets. */
  readonly pattern?: RegExp;
  /** Of a `choice`. */
  readonly choices?: readonly string[];
  /** Other names of this key, for example `homeserver` for `base_url`. */
  readonly alternatives?: readonly string[];
  /** Without it the target cannot be used. */
  readonly required?: boolean;
  /** `gateway setup` asks for every choice but those where this is false: what they are when not set suits nearly everybody. */
  readonly isAsked?: boolean;
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
  /** The setting with which this field may be missing, because it names the place already: an incoming webhook. */
  readonly unlessSet?: string;
  /** It leads to a place by itself, whatever the other fields name: a route's `allow_chat_ids` counts for it too. */
  readonly leadsElsewhere?: boolean;
}

/** Settings by name after environment, file and default were joined. */
export type SettingValues = Readonly<Record<string, SettingValue>>;

/** A list for the kind `list`, which is never empty. */
export type SettingValue = string | number | boolean | readonly string[] | undefined;

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
  readonly memory: Memory;
  /** Aborted when the gateway must stop now. */
  readonly signal: AbortSignal;
}

/** What a target must not forget between two messages or two starts, shared by all gateways on one store. */
export interface Memory {
  /** What was written under a name last; `version` is 0 when nothing was. */
  read(name: string): Promise<Remembered>;
  /** Writes over the version that was read. False when somebody else wrote first: nothing was changed. */
  write(name: string, text: string, seen: number): Promise<boolean>;
}

export interface Remembered {
  readonly version: number;
  readonly text: string;
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
  /** Settings of which one group must be there as a whole, for a service with several ways in: `[["token"], ["webhook_url"]]`. */
  readonly ways?: readonly (readonly string[])[];
  readonly address: Readonly<Record<string, AddressField>>;
  /** Longer text is split into parts, at most `parts` of them; what does not fit ends in a notice. */
  readonly limit: SplitLimit;
  /** The integer setting with which the operator has parts cut shorter than `limit.max`, in the same unit. */
  readonly boundedBy?: string;
  /** What its Markdown becomes, in one phrase for the docs, for example `Slack's mrkdwn`. */
  readonly markup: string;
  /**
   * For the docs, in a few words: what the service says when a message may be tried again, beside what is the same for every
   * target (nobody listens, 408, 429, and of what may have been taken 5xx, no answer, a strange answer).
   */
  readonly retried: string;
  /**
   * What the service takes before it says "later": in all, and in each place that the address field `field` names (a
   * chat). It may have more limits than these; it tells of them by `DeliveryError.retryAfterMs`.
   */
  readonly pace?: { readonly overall?: Pace; readonly perPlace?: Pace & { readonly field: string } };
  /** Setting that names another server than the vendor's, whose pace is then not known. */
  readonly ownServer?: string;
  /** Sends one part. Throws `DeliveryError`, which drives the retry rule; answers only when the service took the part. */
  send(part: Part, settings: SettingValues, tools: TargetTools): Promise<Receipt>;
  /**
   * Looks whether the settings work, without sending anything: who the gateway is to the service, and whether the home
   * channel can be reached. Answers what is fine and what cannot be told, one sentence each without a full stop.
   * @throws DeliveryError that says what is not.
   */
  check(settings: SettingValues, tools: TargetTools): Promise<readonly string[]>;
  /**
   * Keeps something open with the service until the signal is aborted: a poll, a socket. Called once for each set of
   * settings by a gateway that sends; only one of the gateways on a store is in it at a time. What may pass it mends itself.
   * @throws Error when that cannot help; it is called again later.
   */
  attend?(settings: SettingValues, tools: TargetTools): Promise<void>;
}

/** Options for tests, the same for every target. */
export interface TargetOptions {
  /** All exchanges of one call together; 30 seconds when not set. */
  readonly timeoutMs?: number;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
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
