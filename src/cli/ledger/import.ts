import { existsSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Home, homeAt } from "../../config/home.ts";
import { type Entries, filePlace, readEntries, storePlace } from "../../config/subscriptions.ts";
import { StoreUnavailable, UserError } from "../../core/errors.ts";
import { openStore } from "../../ledger/open.ts";
import { finalJobStates } from "../../store/states.ts";
import type { EventRecord, Store } from "../../store/store.ts";
import { type CommonOptions, type Context, homeOf, print } from "../context.ts";
import { isBehind, openLedger, storeSettings, takeHomeLock } from "../ledger.ts";

export interface ImportOptions extends CommonOptions {
  readonly from?: string;
}

/** Where from: a ledger's file, and the home it belongs to unless it stands alone. */
interface Source {
  readonly ledger: string;
  readonly home: Home | undefined;
}

interface Imported {
  readonly imported: number;
  /** Of these, events that are not finished and go on here. */
  readonly resumed: number;
  readonly skipped: number;
  readonly failed: readonly string[];
}

interface Merged {
  readonly added: readonly string[];
  readonly same: readonly string[];
  readonly conflicting: readonly string[];
}

/** A delivery id counts as taken for this long (specification section 8). */
const claimMs = 3_600_000;
/** Events that are fetched, and as far as they are finished kept, at the same time. */
const perStep = 32;
const tellEvery = 10_000;

/**
 * Brings a SQLite ledger and the subscriptions beside it into the database that the home's configuration names. May be done
 * again: what is there already is left as it is there.
 */
export async function importLedger(options: ImportOptions, context: Context): Promise<void> {
  const home = homeOf(context, options);
  const settings = await storeSettings(home, context);
  if (settings.kind === "sqlite") throw new UserError(noDatabase);
  const source = sourceOf(options.from === undefined ? home.folder : resolve(options.from));
  const lock = source.home && (await takeHomeLock(source.home, "stop it first, so that what it holds stands still"));
  try {
    const store = await openLedger(home, settings, "write");
    try {
      const events = existsSync(source.ledger) ? await importEvents(source.ledger, store, context) : noEvents;
      const subscriptions = await mergeSubscriptions(source.home, store);
      for (const news of ["jobs", "messages"] as const) store.announce(news);
      if (events.failed.length > 0) context.setExitCode(1);
      print(
        context,
        options,
        { from: source.ledger, ...events, subscriptions },
        inWords(source, events, subscriptions),
      );
    } finally {
      await store.close();
    }
  } finally {
    lock?.release();
  }
}

const noDatabase =
  'The configuration names no PostgreSQL database to import into; set "store.url" or POSTERN_STORE_URL first. Between ' +
  'SQLite ledgers, use "postern events export" and "postern events import"';

const noEvents: Imported = { imported: 0, resumed: 0, skipped: 0, failed: [] };

function sourceOf(path: string): Source {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new UserError(`There is no "${path}"`);
  if (!found.isDirectory()) {
    const folder = dirname(path);
    return { ledger: path, home: basename(folder) === "data" ? homeAt(dirname(folder)) : undefined };
  }
  const home = homeAt(path);
  if (existsSync(home.ledger) || existsSync(home.subscriptions)) return { ledger: home.ledger, home };
  throw new UserError(`There is no ledger in "${path}", and there are no subscriptions; name another home with --from`);
}

async function importEvents(path: string, store: Store, context: Context): Promise<Imported> {
  // A file of an older Postern has to be brought up to date to be read, and the configured gateway will never do that.
  const source = await openStore({ kind: "sqlite", path }, { readOnly: !(await isBehind(path)) });
  try {
    const ids = await idsOldestFirst(source);
    const counts = { imported: 0, resumed: 0, skipped: 0, failed: [] as string[] };
    for (let at = 0; at < ids.length; at += perStep) {
      const records = await readAll(source, ids.slice(at, at + perStep), counts.failed);
      await importAll(records, store, counts);
      if (at > 0 && at % tellEvery < perStep) context.err(`${at} of ${ids.length} events\n`);
    }
    return counts;
  } finally {
    await source.close();
  }
}

async function idsOldestFirst(source: Store): Promise<string[]> {
  const ids: string[] = [];
  for (let before: string | undefined; ; before = ids.at(-1)) {
    const rows = await source.listEvents({ limit: 1_000, ...(before === undefined ? {} : { before }) });
    if (rows.length === 0) return ids.reverse();
    ids.push(...rows.map(({ id }) => id));
  }
}

/** What of these can be read. One broken event must not hold back the others. */
async function readAll(source: Store, ids: readonly string[], failed: string[]): Promise<EventRecord[]> {
  const records = await Promise.all(
    ids.map(async (id) => {
      try {
        return await source.readEvent({ id });
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        failed.push(`${id}: ${(error as Error).message.split("\n", 1)[0]}`);
        return undefined;
      }
    }),
  );
  return records.filter((record) => record !== undefined);
}

type Counts = { -readonly [Key in "imported" | "resumed" | "skipped"]: Imported[Key] };

/** Oldest first where order counts: among what is still to be sent. */
async function importAll(records: readonly EventRecord[], store: Store, counts: Counts): Promise<void> {
  const importOne = async (record: EventRecord) => {
    const isNew = await store.importEvent({
      record,
      now: store.now(),
      claimUntil: claimUntil(record, store.now()),
      unfinished: "resume",
    });
    if (!isNew) counts.skipped += 1;
    else counts.imported += 1;
    if (isNew && !isFinished(record)) counts.resumed += 1;
  };
  await Promise.all(records.filter(isFinished).map(importOne));
  for (const record of records.filter((one) => !isFinished(one))) await importOne(record);
}

function isFinished({ jobs }: EventRecord): boolean {
  return jobs.every(({ state }) => (finalJobStates as readonly string[]).includes(state));
}

/** A copy of an event that was accepted just before the move is a duplicate after it, too. */
function claimUntil({ receivedAt, state }: EventRecord, now: number): number | null {
  const until = receivedAt + claimMs;
  return until > now && state !== "refused" && state !== "ignored" ? until : null;
}

async function mergeSubscriptions(home: Home | undefined, store: Store): Promise<Merged> {
  const given = home === undefined ? {} : await readEntries(filePlace(home.subscriptions));
  let merged: Merged = { added: [], same: [], conflicting: [] };
  if (Object.keys(given).length === 0) return merged;
  await storePlace(store).change((entries) => {
    merged = compare(given, entries);
    return { ...entries, ...Object.fromEntries(merged.added.map((name) => [name, given[name]!])) };
  });
  return merged;
}

function compare(given: Entries, entries: Entries): Merged {
  const names = Object.keys(given);
  const known = names.filter((name) => Object.hasOwn(entries, name));
  return {
    added: names.filter((name) => !known.includes(name)),
    same: known.filter((name) => isDeepStrictEqual(given[name], entries[name])),
    conflicting: known.filter((name) => !isDeepStrictEqual(given[name], entries[name])),
  };
}

function inWords(source: Source, events: Imported, { added, same, conflicting }: Merged): string[] {
  const { imported, resumed, skipped, failed } = events;
  return [
    `Imported ${imported} events from "${source.ledger}", ${resumed} of which are not finished and go on in the database; ${skipped} were there already`,
    ...failed.map((reason) => `  Not imported, because it cannot be read: ${reason}`),
    `Subscriptions: ${added.length} added, ${same.length} there already`,
    ...conflicting.map((name) => `  Skipped "${name}": the database has another subscription of this name`),
    ...(existsSync(source.ledger)
      ? [
          "",
          `Move "${source.ledger}" and the files beside it aside now: a gateway that is started on it would do the rest again`,
        ]
      : []),
  ];
}
