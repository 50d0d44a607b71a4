import type { sleep } from "../../src/lib/sleep.ts";
import { type Clock, makeClock } from "./clock.ts";

/** A clock whose waits end when it is told to go on, in place of `lib/sleep.ts`. */
export interface Sleeper extends Clock {
  readonly sleep: typeof sleep;
  /** Milliseconds that each wait under way still takes, shortest first. */
  waits(): number[];
}

export function makeSleeper(): Sleeper {
  const clock = makeClock();
  const sleeping = new Set<{ readonly at: number; readonly wake: () => void }>();
  return {
    now: clock.now,
    advance(ms) {
      clock.advance(ms);
      for (const one of [...sleeping]) if (one.at <= clock.now()) one.wake();
    },
    waits: () => [...sleeping].map(({ at }) => at - clock.now()).sort((a, b) => a - b),
    sleep(ms, signal) {
      if (signal.aborted) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      const one = { at: clock.now() + ms, wake: resolve };
      sleeping.add(one);
      signal.addEventListener("abort", resolve as () => void, { once: true });
      return promise.finally(() => {
        sleeping.delete(one);
        signal.removeEventListener("abort", resolve as () => void);
      });
    },
  };
}
