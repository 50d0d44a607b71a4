import type { Environment } from "../../../src/core/types.ts";
import type { SettingValues, Target, TargetOptions } from "../../../src/target/target.ts";
import type { Fake, Mode } from "../../fakes/mode.ts";

/** A target with a service for it, as the suite tries it. */
export interface TargetCase {
  readonly create: (options: TargetOptions) => Target;
  /** `deliver_extra` of a route. */
  readonly extra: Readonly<Record<string, string>>;
  readonly start: () => Promise<Service>;
  /** Why it cannot be tried here. */
  readonly skip?: string | false;
  /** What must have become of one try, by what the service does with it. */
  readonly expected: Readonly<Record<Mode, Expected>>;
  /** What would do something at the service if it stood in `raw` of a message: it never may, whatever the text. */
  readonly live?: readonly RegExp[];
  /** For a target that can look for a part: fields of another place at the same service. */
  readonly elsewhere?: Readonly<Record<string, string>>;
  /** For a target that can look for a part, though not with these settings: it must say so, and the rule decides. */
  readonly isBlind?: boolean;
  /**
   * With these settings the service knows a repeat by its key, if only for a while: it keeps one copy, whatever `repeats`
   * says of the target as a whole. A target that can look for a part need not look then.
   */
  readonly isRecognised?: boolean;
  /** With settings that name no server of the fake's, something must keep the target from the real one. */
  readonly unreachable?: (env: Environment) => Environment;
  /** Whether the service keeps the text as it is; false where it shows it in a form of its own (lines joined, marks lost). */
  readonly isVerbatim?: boolean;
}

export interface Service {
  readonly fake: Fake<{ readonly text: string; readonly raw?: string }> & { readonly mismatches?: readonly string[] };
  readonly settings: SettingValues;
  readonly env?: Environment;
  /** Never to be seen in an error. */
  readonly secret: string;
}

/** Copies at the service, and how the try ended. */
export interface Expected {
  readonly copies: number;
  /** Absent: the target answered, so the message is delivered. */
  readonly sent?: "no" | "maybe";
  readonly retryAfterMs?: number | "never";
}

/** Outcomes that most services share. */
export const delivered: Expected = { copies: 1 };
export const unknownTaken: Expected = { copies: 1, sent: "maybe" };
export const unknownNotTaken: Expected = { copies: 0, sent: "maybe" };
export const never: Expected = { copies: 0, sent: "no", retryAfterMs: "never" };
/** The service named 7 seconds, as the fakes do. */
export const inSevenSeconds: Expected = { copies: 0, sent: "no", retryAfterMs: 7000 };
/** Refused for now, without a time. */
export const later: Expected = { copies: 0, sent: "no" };

/** A service that speaks JSON over HTTP, says in its answer whether it took the message, and names a time when it is busy. */
export const jsonService: TargetCase["expected"] = {
  ok: delivered,
  lost: unknownTaken,
  refused: never,
  limited: inSevenSeconds,
  broken: unknownNotTaken,
  reset: unknownTaken,
  hang: unknownNotTaken,
  garbage: unknownNotTaken,
  huge: unknownTaken,
  redirect: never,
};
