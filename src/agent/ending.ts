import type { Outcome } from "./agent.ts";

/** How a run ended without an answer; with its transcript it is an `Outcome`. */
export type Ending = Pick<Exclude<Outcome, { status: "completed" }>, "status" | "reason" | "transient">;

/** The signal was aborted: the run was given back, and may well be started again. */
export const cancelled: Ending = { status: "cancelled", reason: "the run was cancelled", transient: true };

/** The run used up its wall time. */
export function timedOut(timeoutMs: number): Ending {
  return { status: "timeout", reason: `the run did not end within ${timeoutMs / 1000} s`, transient: false };
}

/** The run failed. `transient` is true when the same run may well succeed later. */
export function failed(reason: string, transient = false): Ending {
  return { status: "failed", reason, transient };
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
