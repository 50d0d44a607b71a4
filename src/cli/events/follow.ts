import { setTimeout as pause } from "node:timers/promises";
import { StoreRefused, StoreUnavailable } from "../../core/errors.ts";
import { type EventState, finalEventStates, jobStates } from "../../store/states.ts";
import type { EventRow, Store } from "../../store/store.ts";
import { plainText } from "../../target/neutralise.ts";
import type { Context } from "../context.ts";
import { withStore } from "../ledger.ts";
import { findEvents, mentions } from "./filters.ts";
import { cellsOf, type ListOptions } from "./list.ts";
import { rowForMachines } from "./machines.ts";

const pollMs = 1_000;
/** So many of the newest events are looked at each time, whatever happened; and this many rows are read at once. */
const pageSize = 200;

const unfinishedStates = (Object.keys(jobStates) as EventState[]).filter((state) => !isFinal(state));

/**
 * Prints events as they come, and again when their state changes, until it is stopped or nobody reads any more. Looks once
 * a second: of what an event goes through in between, the last is shown. Waits for a ledger that is not there yet, and for
 * one that is away.
 */
export async function follow(options: ListOptions, context: Context): Promise<void> {
  const end = new AbortController();
  context.onStop(() => end.abort());
  const sight = new Sight(options, context);
  while (!end.signal.aborted && context.isHeard()) {
    await withStore(context, options, "read", (store) => watch(store, sight, context, end.signal));
    await restUnless(end.signal);
  }
}

async function watch(store: Store, sight: Sight, context: Context, signal: AbortSignal): Promise<void> {
  let isAway = false;
  while (!signal.aborted && context.isHeard()) {
    try {
      await sight.look(store);
      isAway = false;
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || error instanceof StoreRefused) throw error;
      if (!isAway) context.err(`postern: ${error.message}; waiting until it is back\n`);
      isAway = true;
    }
    await restUnless(signal);
  }
}

async function restUnless(signal: AbortSignal): Promise<void> {
  await pause(pollMs, undefined, { signal }).catch(() => undefined);
}

/** What was seen so far, to tell what is new. */
class Sight {
  readonly #options: ListOptions;
  readonly #context: Context;
  /** How events stood that may change: those under way, and the newest ones. */
  #known: ReadonlyMap<string, string> | undefined;
  #newest = "";
  /** The last of the newest ones: of what is older, only what is under way was looked at. */
  #oldest = "";

  constructor(options: ListOptions, context: Context) {
    this.#options = options;
    this.#context = context;
  }

  /** Prints what came or changed since the last look; the first one prints what an ordinary list would, oldest first. */
  async look(store: Store): Promise<void> {
    const known = this.#known;
    const newest = await this.#readNewest(store);
    const rows = await this.#readAll(store, newest, known);
    const news = known === undefined ? await this.#list(store, rows) : await this.#changed(store, rows, known);
    for (const row of news) this.#print(row);
    this.#known = new Map([...rows.values()].map((row) => [row.id, stand(row)]));
    this.#newest = newest[0]?.id ?? "";
    this.#oldest = newest.length < pageSize ? "" : (newest.at(-1)?.id ?? "");
  }

  /** What an ordinary list would print. It was read later than `rows`, and takes their place. */
  async #list(store: Store, rows: Map<string, EventRow>): Promise<EventRow[]> {
    const found = await Array.fromAsync(findEvents(store, this.#options));
    for (const row of found) rows.set(row.id, row);
    return found.reverse();
  }

  async #changed(store: Store, rows: ReadonlyMap<string, EventRow>, known: ReadonlyMap<string, string>) {
    const news: EventRow[] = [];
    for (const row of rows.values()) {
      // What ended long ago comes into sight when newer ones are forgotten.
      const isOld = !known.has(row.id) && row.id < this.#oldest && isFinal(row.state);
      if (isOld || known.get(row.id) === stand(row)) continue;
      if (await this.#isWanted(row, store)) news.push(row);
    }
    return news.sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** The newest events, and further back to those that were the newest at the last look. */
  async #readNewest(store: Store): Promise<EventRow[]> {
    const rows: EventRow[] = [];
    for await (const row of findEvents(store, { route: this.#options.route })) {
      if (rows.length >= pageSize && (this.#newest === "" || row.id <= this.#newest)) break;
      rows.push(row);
    }
    return rows;
  }

  /** The newest, all that are under way, and those that were at the last look. */
  async #readAll(store: Store, newest: readonly EventRow[], known: ReadonlyMap<string, string> = new Map()) {
    const rows = new Map(newest.map((row) => [row.id, row]));
    for (const state of unfinishedStates) {
      for await (const row of findEvents(store, { route: this.#options.route, state })) rows.set(row.id, row);
    }
    for (const [id, before] of known) {
      if (rows.has(id) || isFinal(before.split(" ", 1)[0] as EventState)) continue;
      const record = await store.readEvent({ id });
      if (record) rows.set(id, record);
    }
    return rows;
  }

  async #isWanted(row: EventRow, store: Store): Promise<boolean> {
    const { state, since, until, text } = this.#options;
    const now = store.now();
    if (state !== undefined && row.state !== state) return false;
    if (since !== undefined && row.receivedAt < since(now)) return false;
    if (until !== undefined && row.receivedAt >= until(now)) return false;
    return text === undefined || mentions(row, text, store);
  }

  #print(row: EventRow): void {
    const text = this.#options.json ? JSON.stringify(rowForMachines(row)) : lineFor(row);
    this.#context.out(`${text}\n`);
  }
}

function lineFor(row: EventRow): string {
  const [id = "", received = "", route = "", type = "", state = "", reason = ""] = cellsOf(row);
  const cells = [received, id, route.padEnd(16), type.padEnd(16), state.padEnd(10), reason];
  return plainText(cells.join("  ")).trimEnd();
}

function isFinal(state: EventState): boolean {
  return (finalEventStates as readonly EventState[]).includes(state);
}

/** The state first: it is read from here again. */
function stand({ state, reason }: EventRow): string {
  return `${state} ${reason ?? ""}`;
}
