import { setTimeout as wait } from "node:timers/promises";

/** Fulfils after a time. */
export async function pause(ms: number): Promise<void> {
  await wait(Math.max(0, ms));
}

/** Asks every 25 ms until the answer is true. False when it was not within the time. */
export async function within(timeoutMs: number, ask: () => Promise<boolean> | boolean): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    if (await ask()) return true;
    if (performance.now() > deadline) return false;
    await wait(25);
  }
}
