import { StoreUnavailable } from "../../src/core/errors.ts";
import { operationNames } from "../../src/store/names.ts";
import type { Operations, Store } from "../../src/store/store.ts";

type Name = keyof Operations;

/** A store that can be cut off from its callers. */
export interface Outage {
  readonly store: Store;
  /** Operations that fail now with `StoreUnavailable`, without having taken effect. */
  readonly failing: Set<Name>;
  /** How often each operation was asked for. */
  readonly asked: Map<Name, number>;
  /** Called once when the operation is asked for next, right behind it in the store's queue. */
  readonly hooks: Map<Name, () => void>;
  /** Answers of these operations are held back until the promise fulfils. */
  readonly delays: Map<Name, Promise<void>>;
  /** From now on nothing that is asked is answered, until it is buried: as if the process that asks had been killed. */
  kill(): void;
  /** Lets go of what still waits for an answer. */
  bury(): void;
}

export function withOutage(store: Store): Outage {
  const failing = new Set<Name>();
  const asked = new Map<Name, number>();
  const hooks = new Map<Name, () => void>();
  const delays = new Map<Name, Promise<void>>();
  const grave = Promise.withResolvers<never>();
  grave.promise.catch(() => {});
  let isKilled = false;
  const proxy = new Proxy(store, {
    get(target, key) {
      if (key === "close") return () => target.close();
      if (!(operationNames as readonly unknown[]).includes(key)) return Reflect.get(target, key);
      const name = key as Name;
      return async (args: never) => {
        asked.set(name, (asked.get(name) ?? 0) + 1);
        if (isKilled) return grave.promise;
        if (failing.has(name)) throw new StoreUnavailable("database or disk is full");
        const answer = target[name](args);
        const hook = hooks.get(name);
        hooks.delete(name);
        hook?.();
        const delay = delays.get(name);
        await Promise.allSettled([answer]);
        await delay;
        // A process that was killed in the meantime does not hear the answer.
        return isKilled ? grave.promise : answer;
      };
    },
  });
  return {
    store: proxy,
    failing,
    asked,
    hooks,
    delays,
    kill() {
      isKilled = true;
    },
    bury: () => grave.reject(new StoreUnavailable("The process was killed")),
  };
}
