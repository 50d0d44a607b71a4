import type { Command } from "commander";
import { UserError } from "../../core/errors.ts";
import { type EventState, finalEventStates } from "../../store/states.ts";
import type { EventRecord, Store } from "../../store/store.ts";
import { type CommonOptions, type Context, print } from "../context.ts";
import { withStore } from "../ledger.ts";
import { checkChoice, chooseEvents, inWords } from "./choose.ts";
import type { Filters } from "./filters.ts";
import { noSuchEvent, readEvent } from "./show.ts";

export interface CancelOptions extends CommonOptions, Filters {
  readonly yes?: boolean;
}

/** What became of one event. `messages` counts those of the jobs that were stopped, by what became of them. */
type Cancelled =
  | { readonly id: string; readonly result: "cancelled"; readonly jobs: number; readonly messages: Fates }
  | { readonly id: string; readonly result: "failed"; readonly reason: string };

interface Fates {
  readonly cancelled: number;
  /** Before it was stopped. */
  readonly sent: number;
  /** At this moment: such a try ends as it will. */
  readonly sending: number;
}

const reason = 'Stopped with "postern events cancel"';

const beingSent = "It is being sent at this moment while its sender waits, and ends as it will";

/** Stops what has not ended of events; what is being sent at this moment ends as it will. */
export async function cancel(
  ids: readonly string[],
  options: CancelOptions,
  command: Command,
  context: Context,
): Promise<void> {
  checkChoice(ids, options, command);
  const results = await withStore(context, options, "write", async (store) => {
    const deed = { verb: "Cancel", done: "cancelled", canBeDone: isUnderWay, mustAsk: !options.yes };
    const chosen = await chooseEvents(ids, options, deed, store, command, context);
    const results: Cancelled[] = [];
    for (const id of chosen) results.push(await cancelOne(id, store));
    store.announce("cancelled");
    return results;
  });
  if (!results && ids[0] !== undefined) throw noSuchEvent(ids[0]);
  if (results?.some(({ result }) => result === "failed")) context.setExitCode(1);
  print(context, options, results ?? [], (results ?? []).map(lineFor));
}

function isUnderWay({ state }: { readonly state: EventState }): boolean {
  return !(finalEventStates as readonly EventState[]).includes(state);
}

async function cancelOne(given: string, store: Store): Promise<Cancelled> {
  let id = given;
  try {
    const before = await readEvent(store, given);
    id = before.id;
    const jobs = await store.cancel({ eventId: id, now: store.now(), reason });
    if (jobs === 0)
      throw new UserError(isUnderWay(before) ? beingSent : `There is nothing to stop: it is ${before.state}`);
    return { id, result: "cancelled", jobs, messages: fatesOf(before, await readEvent(store, id)) };
  } catch (error) {
    if (error instanceof UserError) return { id, result: "failed", reason: error.message };
    throw error;
  }
}

function fatesOf(before: EventRecord, after: EventRecord): Fates {
  const stopped = before.jobs.filter(isUnderWay).map(({ id }) => id);
  const messages = after.jobs.filter(({ id }) => stopped.includes(id)).flatMap((job) => job.messages);
  const count = (state: string) => messages.filter((message) => message.state === state).length;
  return { cancelled: count("cancelled"), sent: count("sent"), sending: count("sending") };
}

function lineFor(one: Cancelled): string {
  if (one.result === "failed") return `${one.id}  failed: ${one.reason}`;
  const { cancelled, sent, sending } = one.messages;
  const fates = [
    `${inWords(cancelled, "message")} will not be sent`,
    sent > 0 && `${inWords(sent, "message")} had been sent already`,
    sending > 0 &&
      `${inWords(sending, "message")} ${sending === 1 ? "is" : "are"} being sent at this moment, and not tried again`,
  ];
  return `${one.id}  cancelled: ${fates.filter(Boolean).join(", ")}`;
}
