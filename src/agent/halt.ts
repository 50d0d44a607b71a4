import { cancelled, type Ending, timedOut } from "./ending.ts";

/** The one switch that stops a run from outside its model loop: cancelled, out of time, or its workspace lost. */
export interface Halt {
  readonly signal: AbortSignal;
  /** Why the run was stopped, or `undefined` while it may go on. The first reason stands. */
  ending(): Ending | undefined;
  stop(ending: Ending): void;
  /** Frees the timer and the listener; to be called when the run has ended. */
  release(): void;
}

/** Longer times overflow a timer, which would then fire at once. */
const longestTimerMs = 2 ** 31 - 1;

/** Starts the clock of a run and listens to its signal. */
export function startHalt(timeoutMs: number, signal: AbortSignal): Halt {
  const controller = new AbortController();
  let first: Ending | undefined;
  const stop = (ending: Ending) => {
    first ??= ending;
    controller.abort();
  };
  const onAbort = () => stop(cancelled);
  const timer = setTimeout(() => stop(timedOut(timeoutMs)), Math.min(timeoutMs, longestTimerMs));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const release = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  };
  return { signal: controller.signal, ending: () => first, stop, release };
}

/** Waits for `work`, but no longer than until the signal is aborted: then rejects at once, whatever `work` does. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
