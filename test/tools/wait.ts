import { setTimeout as wait } from "node:timers/promises";

/** Asks again and again until the answer is there. Fails, naming what was waited for, after ten seconds when not set. */
export async function until<Answer>(
  what: string,
  ask: () => Promise<Answer> | Answer,
  timeoutMs = 10_000,
): Promise<NonNullable<Answer>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`Waited in vain for ${what}`);
    await wait(10);
  }
}
