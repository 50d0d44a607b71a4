import { type Client, type ClientBase, type ClientConfig, default as pg } from "pg";
import { StoreRefused, StoreUnavailable } from "../../core/errors.ts";
import { badStoreUrl } from "../settings.ts";

/** Where a database is, in words that hold no password. */
export interface Place {
  readonly url: string;
  readonly schema: string;
  /** For messages: `database "hooks" at "db:5432" as "postern"`. */
  readonly words: string;
  /** How long the answer to a statement is waited for. */
  readonly answerTimeoutMs: number;
}

export interface PostgresOptions {
  readonly url: string;
  /** Schema that holds the tables. */
  readonly schema: string;
  readonly readOnly: boolean;
  /** How long the answer to a statement is waited for; 10 seconds when not set. */
  readonly answerTimeoutMs?: number;
}

const longestConnectMs = 5_000;

/** @throws StoreRefused when the address makes no sense. */
export function placeOf({ url, schema, answerTimeoutMs = 10_000 }: Omit<PostgresOptions, "readOnly">): Place {
  const fault = badStoreUrl(url);
  if (fault !== undefined) throw new StoreRefused(`Cannot use "store.url", or POSTERN_STORE_URL: ${fault}`);
  const { hostname, port, pathname, username, searchParams } = new URL(url);
  const host = hostname || searchParams.get("host") || "localhost";
  const database = decodeURIComponent(pathname.slice(1)) || decodeURIComponent(username) || "postgres";
  const user = username ? ` as "${decodeURIComponent(username)}"` : "";
  return { url, schema, answerTimeoutMs, words: `database "${database}" at "${host}:${port || 5432}"${user}` };
}

export function clientConfig({ url, answerTimeoutMs }: Place): ClientConfig {
  return {
    connectionString: url,
    application_name: "postern",
    connectionTimeoutMillis: Math.min(longestConnectMs, answerTimeoutMs),
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: parserOf as never },
  };
}

const int8 = 20;

/** Whole numbers are times and counts, far below 2^53. */
function parserOf(id: number, format: "text" | "binary" = "text"): unknown {
  return id === int8 ? Number : pg.types.getTypeParser(id, format as "text");
}

/**
 * What every connection is told first. A gateway that stops in the middle of a transaction must not hold rows for long, and a
 * commit is only answered when it is on disk, whatever the server's default is.
 */
export async function prepareSession(client: ClientBase, { schema }: Place, readOnly: boolean): Promise<void> {
  await client.query(`set search_path to ${quoteName(schema)}; set idle_in_transaction_session_timeout = '10s';
    set lock_timeout = '8s'; set statement_timeout = '60s'; set default_transaction_read_only = ${readOnly ? "on" : "off"};
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')`);
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function newClient(place: Place): Client {
  return new pg.Client(clientConfig(place));
}

/** SQLSTATE of what the server said (PostgreSQL, appendix A), or `undefined` when it was not the server that failed. */
export function stateOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && "severity" in (error as object) ? code : undefined;
}

/** A transaction that may be made again as it is: it met another one (serialization failure, deadlock). */
export function isCollision(error: unknown): boolean {
  return ["40001", "40P01"].includes(stateOf(error) ?? "");
}

// Classes of SQLSTATE that say the server cannot serve now: connection, transaction rolled back, resources, operator
// intervention, system error, and single ones: read-only (a standby), lock not available, idle too long.
const passing = /^(08|40|53|57|58)|^(25006|55P03|25P03|25P04)$/;

/** What went wrong, as the ledger's errors; a bug of ours stays what it is. */
export function describe(error: unknown, place: Place): Error {
  const state = stateOf(error);
  if (state !== undefined && !passing.test(state)) {
    return new Error(`The ledger failed: ${wordsOf(error)} (${state})`, { cause: error });
  }
  if (error instanceof TypeError) return new Error(`The ledger failed: ${wordsOf(error)}`, { cause: error });
  return new StoreUnavailable(`Cannot use the ${place.words}: ${wordsOf(error)}`, { cause: error });
}

/** Invalid authorization, no such database or schema, too little right: nothing that passes by itself. */
const refusals = /^(28|3D|3F|42501)/;

/** The same for the first contact, where a refusal is final. */
export function describeOpening(error: unknown, place: Place): Error {
  if (error instanceof StoreUnavailable) return error;
  const words = `Cannot open the ${place.words}: ${wordsOf(error)}; check "store.url", or POSTERN_STORE_URL`;
  if (refusals.test(stateOf(error) ?? "")) return new StoreRefused(words, { cause: error });
  return new StoreUnavailable(words, { cause: error });
}

/** Several addresses of one host that all fail come as one error without a message. */
function wordsOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(wordsOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
