import { openSqlite } from "../../src/store/sqlite.ts";
import type { EventRecord } from "../../src/store/store.ts";

/** Everything that a home's ledger holds, read beside a running gateway or after it. */
export async function readLedger(path: string): Promise<EventRecord[]> {
  const store = await openSqlite({ path, readOnly: true });
  try {
    const rows = await store.listEvents({ limit: 100_000 });
    const records = await Promise.all(rows.map(({ id }) => store.readEvent({ id })));
    return records.filter((record) => record !== undefined);
  } finally {
    await store.close();
  }
}
