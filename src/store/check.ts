import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { type Found, rules } from "./rules.ts";
import { type Codec, unpack } from "./sql/body.ts";

/** What a check of a ledger found, one sentence each. */
export interface Findings {
  /** The file itself is damaged: what cannot be read, or does not fit together. */
  readonly damage: readonly string[];
  /** The file is sound, but what it says breaks a rule. */
  readonly violations: readonly string[];
  /** Why not everything was looked at, if so. */
  readonly notes: readonly string[];
}

/** Of one kind, more than this many say no more. */
const mostOfAKind = 20;

/** "PSTN", in the header of every ledger (SQLite file format, section 1.3.11). */
const applicationId = 0x5053544e;

/**
 * Checks a ledger's file beside a running gateway or without one, and changes nothing. Goes on as far as it can be read.
 * Blocks this thread for as long as that takes.
 */
export function checkSqlite(path: string): Findings {
  const findings = { damage: new Set<string>(), violations: [] as string[], notes: [] as string[] };
  /** What a look finds; one that cannot be taken is damage. */
  const look = (at: () => readonly string[]): readonly string[] => {
    try {
      return at();
    } catch (error) {
      findings.damage.add(`A part of it cannot be read: ${wordsOf(error)}`);
      return [];
    }
  };
  for (const problem of look(() => strangeness(path))) findings.damage.add(problem);
  if (findings.damage.size === 0) look(() => withDatabase(path, (database) => checkOpen(database, findings, look)));
  return { ...findings, damage: [...findings.damage] };
}

/** Why SQLite must not be asked about the file at all. */
function strangeness(path: string): string[] {
  const mark = markOf(path);
  if (mark === undefined) return ["Its first page is not that of a SQLite database"];
  return isOurs(mark, path) ? [] : ["It does not have the mark of a ledger of Postern"];
}

/** In the first moments of a ledger everything is in its log still. */
function isOurs(mark: number | undefined, path: string): boolean {
  return mark === applicationId || (mark === 0 && existsSync(`${path}-wal`));
}

type Look = (at: () => readonly string[]) => readonly string[];

/** In one transaction, so that all is seen as at one moment. */
function checkOpen(
  database: DatabaseSync,
  findings: { readonly damage: Set<string>; readonly violations: string[]; readonly notes: string[] },
  look: Look,
): readonly string[] {
  database.exec("begin");
  for (const problem of look(() => integrity(database))) findings.damage.add(problem);
  for (const problem of look(() => orphans(database))) findings.damage.add(problem);
  const { reached, newest } = schemaIn(database);
  if (reached !== newest) {
    const note = `It has schema ${reached}, and this Postern knows ${newest}: only the file itself was checked`;
    findings.notes.push(note);
    return [];
  }
  for (const { sql, says } of rules) findings.violations.push(...limited(look(() => read(database, sql).map(says))));
  for (const problem of limited(look(() => brokenBodies(database)))) findings.damage.add(problem);
  return [];
}

function withDatabase<Result>(path: string, use: (database: DatabaseSync) => Result): Result {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    return use(database);
  } finally {
    database.close();
  }
}

function limited(found: readonly string[]): readonly string[] {
  if (found.length <= mostOfAKind) return found;
  return [...found.slice(0, mostOfAKind), `… and ${found.length - mostOfAKind} more like the last one`];
}

/** SQLite's own check (sqlite.org/pragma.html#pragma_integrity_check). */
function integrity(database: DatabaseSync): string[] {
  const rows = database.prepare("pragma integrity_check").all() as { integrity_check: string }[];
  const lines = rows.flatMap(({ integrity_check }) => integrity_check.split("\n"));
  return lines.filter((line) => line !== "ok" && !line.startsWith("*** in database"));
}

function orphans(database: DatabaseSync): string[] {
  const rows = database.prepare("pragma foreign_key_check").all() as { table: string; parent: string }[];
  const pairs = rows.map(({ table, parent }) => `A row of "${table}" belongs to one of "${parent}" that is not there`);
  return [...new Set(pairs)].map((pair) => {
    const count = pairs.filter((one) => one === pair).length;
    return count === 1 ? pair : `${pair} (${count} times)`;
  });
}

function read(database: DatabaseSync, sql: string): Found[] {
  return database.prepare(sql).all() as unknown as Found[];
}

/** Bodies that cannot be unpacked any more. */
function brokenBodies(database: DatabaseSync): string[] {
  const bodies = database.prepare("select event_id as id, body, codec from bodies").iterate();
  const broken: string[] = [];
  for (const one of bodies) {
    const { id, body, codec } = one as unknown as { id: string; body: Uint8Array; codec: Codec };
    try {
      unpack(body, codec);
    } catch (error) {
      broken.push(`The body of the event ${id} cannot be unpacked: ${wordsOf(error)}`);
    }
  }
  return broken;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Checks a ledger in PostgreSQL, at one moment, while gateways work on it. References and the files themselves are the
 * database's own business.
 * @throws StoreRefused when it is not a ledger this program knows; StoreUnavailable when it cannot be reached.
 */
export async function checkPostgres(place: { readonly url: string; readonly schema: string }): Promise<Findings> {
  const { withSession } = await import("./postgres/session.ts");
  return withSession({ ...place, readOnly: true }, async (client) => {
    await client.query("begin isolation level repeatable read, read only");
    const violations: string[] = [];
    for (const { sql, says } of rules) {
      const { rows } = await client.query<Found>(sql);
      violations.push(...limited(rows.map(says)));
    }
    await client.query("commit");
    return { damage: [], violations, notes: [] };
  });
}

/**
 * The schema a ledger's file has, and the newest one this program knows; or `undefined` when the file cannot be read that
 * far, or is not ours: whoever opens it is told why.
 */
export function schemaOf(path: string): { readonly reached: number; readonly newest: number } | undefined {
  try {
    // SQLite must not touch another program's file.
    return isOurs(markOf(path), path) ? withDatabase(path, schemaIn) : undefined;
  } catch {
    return undefined;
  }
}

function schemaIn(database: DatabaseSync): { readonly reached: number; readonly newest: number } {
  const { user_version } = database.prepare("pragma user_version").get() as { user_version: number };
  return { reached: user_version, newest: newestSchema() };
}

/** The application id in a database's header; `undefined` when it is none. */
function markOf(path: string): number | undefined {
  const header = Buffer.alloc(100);
  const file = openSync(path, "r");
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  return header.toString("latin1", 0, 16) === "SQLite format 3\0" ? header.readUInt32BE(68) : undefined;
}

function newestSchema(): number {
  const folder = fileURLToPath(new URL("./migrations/sqlite/", import.meta.url));
  const numbers = readdirSync(folder).flatMap((name) =>
    /^\d{4}_\w+\.sql$/.test(name) ? [Number(name.slice(0, 4))] : [],
  );
  return Math.max(0, ...numbers);
}
