import assert from "node:assert/strict";
import type {
  AcceptArgs,
  ClaimedJob,
  ClaimedMessage,
  EventRecord,
  Held,
  JobRecord,
  MessageRecord,
  Store,
} from "../../../src/store/store.ts";
import { type AcceptParts, aClaim, anAgentEvent, anEndedRun, noon } from "../../tools/rows.ts";
import type { Place, StoreName } from "../../tools/stores.ts";

export const minute = 60_000;

/** What the themes of the suite are given: one kind of store to try. */
export interface Suite {
  readonly kind: StoreName;
  /** A test on an empty ledger. `store` is watched: each change of a state must be a move of the tables. */
  on(title: string, body: (store: Store, place: Place) => Promise<void>): void;
}

export async function record(store: Store, id: string): Promise<EventRecord> {
  const found = await store.readEvent({ id });
  assert.ok(found, `event ${id} is not there`);
  return found;
}

/** The only job of an event. */
export async function jobOf(store: Store, id: string): Promise<JobRecord> {
  const { jobs } = await record(store, id);
  assert.equal(jobs.length, 1);
  return jobs[0]!;
}

export async function messagesOf(store: Store, id: string): Promise<readonly MessageRecord[]> {
  return (await jobOf(store, id)).messages;
}

export async function states(store: Store, id: string): Promise<[job: string, ...messages: string[]]> {
  const { state, messages } = await jobOf(store, id);
  return [state, ...messages.map((message) => message.state)];
}

/** Accepts an agent event and takes its job. */
export async function takenJob(store: Store, parts: AcceptParts = {}): Promise<ClaimedJob> {
  const event = anAgentEvent(parts);
  await store.accept(event);
  const [job] = await store.claimJobs(aClaim({ now: event.event.receivedAt }));
  assert.equal(job?.id, event.job.id);
  return job!;
}

/** An agent's answer whose messages are to be sent. */
export async function answeredJob(store: Store, parts: AcceptParts = {}): Promise<ClaimedJob> {
  const job = await takenJob(store, parts);
  assert.equal(await store.finishRun(anEndedRun(job, { now: parts.at ?? noon })), true);
  return job;
}

/** A message that "one" is sending. */
export async function takenMessage(store: Store, parts: AcceptParts = {}): Promise<ClaimedMessage> {
  await answeredJob(store, parts);
  const [message] = await store.claimMessages(aClaim({ now: parts.at ?? noon }));
  return message!;
}

/** What whoever accepted a direct delivery holds. */
export function heldBy(args: AcceptArgs): Held[] {
  return args.job.messages.map(({ id }) => ({ id, fence: 1 }));
}

/** What must not change when an operation is refused. */
export async function everything(store: Store): Promise<(EventRecord | undefined)[]> {
  const rows = await store.listEvents({ limit: 1000 });
  return Promise.all(rows.map(({ id }) => store.readEvent({ id })));
}

export function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}
