import { setTimeout as wait } from "node:timers/promises";
import { StoreUnavailable } from "../core/errors.ts";
import type { Log } from "../lib/log.ts";

/**
 * Repeats a write until the ledger can commit it. For what has already happened outside (a run has ended, a target has
 * taken a message): forgetting it would make it happen again. That somebody else has the row by now is an answer (false)
 * and ends it too.
 * @throws StoreUnavailable when `signal` is aborted first.
 */
export async function insist<Value>(write: () => Promise<Value>, log: Log, signal: AbortSignal): Promise<Value> {
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, 5_000)) {
    try {
      return await write();
    } catch (err) {
      if (!(err instanceof StoreUnavailable) || signal.aborted) throw err;
      log.error({ err, retryInMs: pauseMs }, "The ledger cannot commit; trying again");
      await wait(pauseMs, undefined, { signal }).catch(() => {});
    }
  }
}
