import { openStore } from "../src/ledger/open.ts";
import { checkPostgres, checkSqlite } from "../src/store/check.ts";
import { finalJobStates } from "../src/store/states.ts";
import type { EventRecord, Store } from "../src/store/store.ts";
import type { Stage } from "./stage.ts";
import { within } from "./wait.ts";

/** Waits until every job has ended, and answers whether it has come to that in time. */
export async function waitUntilFinal({ ledger }: Stage, timeoutMs: number): Promise<boolean> {
  const store = await openStore(ledger, { readOnly: true });
  try {
    return await within(timeoutMs, () => isAtRest(store));
  } finally {
    await store.close();
  }
}

async function isAtRest(store: Store): Promise<boolean> {
  const states = Object.keys(await store.tallyJobs({}));
  return states.every((state) => (finalJobStates as readonly string[]).includes(state));
}

/** Everything that the ledger holds. */
export async function readRecords({ ledger }: Stage): Promise<EventRecord[]> {
  const store = await openStore(ledger, { readOnly: true });
  try {
    const rows = await store.listEvents({ limit: 1_000_000 });
    const records: EventRecord[] = [];
    for (const { id } of rows) {
      const record = await store.readEvent({ id });
      if (record) records.push(record);
    }
    return records;
  } finally {
    await store.close();
  }
}

/** What `postern ledger check` finds wrong, in words. */
export async function checkLedger({ ledger }: Stage): Promise<string[]> {
  const findings = await (ledger.kind === "sqlite" ? checkSqlite(ledger.path) : checkPostgres(ledger));
  return [...findings.damage, ...findings.violations];
}
