import type { Home } from "../../config/home.ts";
import type { Config } from "../../config/load.ts";
import type { Route } from "../../config/route.ts";
import type { Environment } from "../../core/types.ts";
import type { StoreSettings } from "../../store/settings.ts";
import type { Store } from "../../store/store.ts";

/** `problem`: something does not work. `warning`: it works, but somebody should look. */
export type Grade = "ok" | "warning" | "problem";

/** What one check found. */
export interface Finding {
  /** A word or two: what was looked at. */
  readonly check: string;
  readonly grade: Grade;
  /** How it stands, in one sentence without a full stop. */
  readonly text: string;
  /** More lines, for example one for each event. */
  readonly details?: readonly string[];
  /** What to do about it. */
  readonly next?: string;
}

/** What the checks look at. Where something could not be had, an earlier check has said why. */
export interface Patient {
  readonly home: Home;
  readonly env: Environment;
  readonly config: Config | undefined;
  readonly settings: StoreSettings | undefined;
  readonly store: Store | undefined;
  /** Static routes and subscriptions that can be used. */
  readonly routes: readonly Route[];
}

export type Check = (patient: Patient) => Promise<readonly Finding[]>;

/** Makes the findings of one check. */
export function findings(check: string) {
  return {
    ok: (text: string, details: readonly string[] = []): Finding => ({
      ...{ check, grade: "ok", text },
      ...(details.length > 0 ? { details } : {}),
    }),
    warning: (text: string, next: string, details: readonly string[] = []): Finding => ({
      ...{ check, grade: "warning", text, next, details },
    }),
    problem: (text: string, next: string): Finding => ({ check, grade: "problem", text, next }),
  };
}
