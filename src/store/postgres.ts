import { operationNames } from "./names.ts";
import type { PostgresOptions } from "./postgres/connect.ts";
import type { News, Store } from "./store.ts";

/**
 * Opens a ledger in PostgreSQL (14 or newer), which several gateways may share. Its driver is loaded only here: who keeps
 * the ledger in a file does not pay for it.
 * @throws StoreRefused when it is not one this program can use; StoreUnavailable when it cannot be reached.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const [{ Database }, { placeOf }] = await Promise.all([
    import("./postgres/database.ts"),
    import("./postgres/connect.ts"),
  ]);
  const database = new Database(placeOf(options), options.readOnly);
  await database.open();
  const calls = operationNames.map((name) => [name, (args: unknown) => database.call(name, args)]);
  return {
    ...Object.fromEntries(calls),
    name: "postgres",
    isShared: true,
    now: () => database.clock.now(),
    watch: (listener: (news: News) => void) => database.listener.add(listener),
    announce: (news: News) => database.announcer.announce(news),
    close: () => database.close(),
  } as Store;
}
