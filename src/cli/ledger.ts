import { existsSync } from "node:fs";
import type { Home } from "../config/home.ts";
import type { Store } from "../store/store.ts";

/** Reads in the ledger of a home, beside a running gateway or without one. `undefined` when there is no ledger yet. */
export async function readLedger<Result>(
  home: Home,
  read: (store: Store) => Promise<Result>,
): Promise<Result | undefined> {
  if (!existsSync(home.ledger)) return undefined;
  const { sqlite } = await import("../store/registry.ts");
  const store = await sqlite({ path: home.ledger, readOnly: true });
  try {
    return await read(store);
  } finally {
    await store.close();
  }
}
