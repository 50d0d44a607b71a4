/** Runs a task as soon as fewer than the gate's limit are running; the others wait in order of arrival. */
export type Gate = <Result>(task: () => Promise<Result>) => Promise<Result>;

/** Makes a gate that lets at most `limit` tasks run at the same time. A task that throws frees its place. */
export function createGate(limit: number): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];

  return async (task) => {
    // A finished task hands its place to the next one, so nobody who comes between can take it.
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
