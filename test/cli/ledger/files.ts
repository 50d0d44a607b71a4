import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { makePrivateFolder } from "../../../src/lib/file.ts";
import { openSqlite } from "../../../src/store/sqlite.ts";
import { eventStates } from "../../../src/store/states.ts";
import type { Store } from "../../../src/store/store.ts";
import { makeHome, type TestHome } from "../../tools/home.ts";
import { aRecord } from "../../tools/records.ts";
import { aClaim, aDirectEvent, anAgentEvent, anEndedRun, anEndedTry, noon } from "../../tools/rows.ts";

/** A home with a ledger in which everything happens at the same time, each state at least once. */
export async function makeLedger(t: TestContext, files: Readonly<Record<string, string>> = {}): Promise<TestHome> {
  const home = await makeHome(t, files);
  await makePrivateFolder(home.data);
  await withFile(home.ledger, live);
  return home;
}

/** Opens a ledger's file as a gateway does, for as long as `use` takes. */
export async function withFile<Result>(path: string, use: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await openSqlite({ path, readOnly: false });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** Puts each state at least once into a ledger. */
export async function live(store: Store): Promise<void> {
  for (const [index, state] of eventStates.entries()) {
    const record = aRecord({ at: noon - 86_400_000 + index, state });
    await store.importEvent({ record, now: noon, claimUntil: null, unfinished: "resume" });
  }
  await store.park({ reason: "no model configured", now: noon });
  // Three answers for one chat, of which the first is on its way; and a run, and a direct delivery.
  const body = Buffer.from(JSON.stringify({ text: "long enough to be worth packing ".repeat(100) }));
  for (let index = 0; index < 3; index += 1) {
    await store.accept(anAgentEvent({ at: noon + index, lane: "telegram 42", body }));
  }
  for (const job of await store.claimJobs(aClaim({ now: noon + 10, limit: 3 }))) {
    await store.finishRun(anEndedRun(job, { now: noon + 20 }));
  }
  await store.claimMessages(aClaim({ now: noon + 30 }));
  await store.accept(anAgentEvent({ at: noon + 40 }));
  await store.claimJobs(aClaim({ now: noon + 50 }));
  await store.accept(aDirectEvent({ at: noon + 60 }));
  const failing = aDirectEvent({ at: noon + 70 });
  await store.accept(failing);
  const pending = aRecord({ at: noon + 75, state: "delivering" });
  await store.importEvent({ record: pending, now: noon, claimUntil: null, unfinished: "resume" });
  await store.accept(anAgentEvent({ at: noon + 76 }));
  const [message] = failing.job.messages;
  const refused = { outcome: "refused", error: "chat not found", next: { move: "giveUp" } } as const;
  await store.finishAttempt(anEndedTry({ id: message!.id, fence: 1 }, { now: noon + 80, ...refused }));
}

/** Makes the file of a ledger as the first version of the program made it, with one event that is done. */
export function makeOldFile(path: string): void {
  const database = new DatabaseSync(path);
  const schema = new URL("../../../src/store/migrations/sqlite/0001_ledger.sql", import.meta.url);
  database.exec(`pragma journal_mode = wal; ${readFileSync(schema, "utf8")}
    pragma application_id = ${0x5053544e}; pragma user_version = 1;
    insert into events values ('019bc1c0-0000-7000-8000-000000000001', 'r', 't', 'd', 1, '{}', x'7b7d', 'none', null);
    insert into jobs (id, event_id, kind, state, plan, run_at, created_at, updated_at)
      values ('019bc1c0-0000-7000-8000-000000000002', '019bc1c0-0000-7000-8000-000000000001', 'agent', 'done', '{}', 1, 1, 1)`);
  database.close();
}

export function schemaOf(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return Number(database.prepare("pragma user_version").get()?.user_version);
  } finally {
    database.close();
  }
}

/** Runs statements on a ledger's file, past the program and its rules. */
export function tamper(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(`pragma foreign_keys = off; ${sql}`);
  database.close();
}
