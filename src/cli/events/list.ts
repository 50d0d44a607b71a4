import type { EventRow } from "../../store/store.ts";
import { oneLine } from "../../target/neutralise.ts";
import { type CommonOptions, type Context, print } from "../context.ts";
import { withStore } from "../ledger.ts";
import { table } from "../table.ts";
import { type Filters, findEvents } from "./filters.ts";
import { rowForMachines } from "./machines.ts";

export interface ListOptions extends CommonOptions, Filters {
  readonly limit: number;
  readonly follow?: boolean;
}

/** Prints the newest events that pass the filters, newest first. */
export async function list(options: ListOptions, context: Context): Promise<void> {
  const found =
    (await withStore(context, options, "read", (store) => Array.fromAsync(findEvents(store, options)))) ?? [];
  const lines = table(["ID", "RECEIVED", "ROUTE", "EVENT", "STATE", "REASON"], found.map(cellsOf));
  print(context, options, found.map(rowForMachines), found.length === 0 ? ["No events"] : lines);
}

/** An event as cells of a table. A stranger's line ends would make lines of their own. */
export function cellsOf({ id, receivedAt, route, type, state, reason }: EventRow): string[] {
  const received = new Date(receivedAt).toISOString().replace(/\.\d+Z$/, "Z");
  return [id, received, route, oneLine(type), state, oneLine(reason ?? "")];
}
