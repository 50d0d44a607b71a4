import { UserError } from "../../core/errors.ts";
import type { EventRecord, Store } from "../../store/store.ts";
import { type CommonOptions, type Context, print } from "../context.ts";
import { withStore } from "../ledger.ts";
import { timeline } from "../timeline.ts";
import { recordForMachines } from "./machines.ts";

/** Prints one event's whole life. */
export async function show(id: string, options: CommonOptions, context: Context): Promise<void> {
  const event = await withStore(context, options, "read", (store) => readEvent(store, id));
  if (!event) throw noSuchEvent(id);
  print(context, options, recordForMachines(event), timeline(event));
}

/** The event whose id begins like this. */
export async function readEvent(store: Store, id: string): Promise<EventRecord> {
  const record = await store.readEvent({ id });
  if (!record) throw noSuchEvent(id);
  return record;
}

export function noSuchEvent(id: string): UserError {
  return new UserError(`No single event begins with "${id}"; see "postern events list", and give more of the id`);
}
