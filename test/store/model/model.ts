import assert from "node:assert/strict";
import { finalJobStates, finalMessageStates, type JobKind } from "../../../src/store/states.ts";
import type { Held, Store } from "../../../src/store/store.ts";
import { noon } from "../../tools/rows.ts";
import { type Place, violations } from "../../tools/stores.ts";

/** All that has to be remembered to say what the next operation must answer. */
export interface Model {
  now: number;
  /** Routes and delivery ids of events that must be there, by id. */
  readonly accepted: Map<string, string>;
  /** Which event claimed a delivery id, and until when. */
  readonly claims: Map<string, { readonly eventId: string; readonly until: number }>;
  /** Everything that anybody ever held and may report on. */
  readonly holds: Hold[];
  /** What each owner knows that it works on. */
  readonly active: Map<string, Set<Hold>>;
  /** Messages that their targets took. */
  readonly sent: Set<string>;
  /** How many targets are left in the fallback of messages that have one. */
  readonly fallbacks: Map<string, number>;
  /** Messages that were being sent when somebody stopped their job. */
  readonly stopped: Set<string>;
}

export interface Hold extends Held {
  readonly what: "jobs" | "messages";
  readonly owner: string;
  readonly isDirect: boolean;
}

export interface Row {
  readonly id: string;
  /** Id of a job's event, or of a message's job. */
  readonly parent: string;
  readonly kind: JobKind | null;
  readonly state: string;
  readonly fence: number;
  readonly owner: string | null;
  readonly leaseUntil: number;
  readonly due: number;
  readonly updatedAt: number;
}

/** A ledger with what was seen in it last. */
export interface Real {
  readonly store: Store;
  readonly place: Place;
  seen: Seen;
}

interface Seen {
  readonly events: ReadonlyMap<string, Row>;
  readonly jobs: ReadonlyMap<string, Row>;
  readonly messages: ReadonlyMap<string, Row>;
}

const rowsOfAll = `select 'jobs' as what, id, event_id as parent, kind, state, fence, owner, lease_until as lease,
    run_at as due, updated_at as updated from jobs
  union all select 'messages', id, job_id, null, state, fence, owner, lease_until, due_at, updated_at from messages
  union all select 'events', id, null, null, null, 0, null, null, received_at, null from events`;

export async function look({ query }: Place): Promise<Seen> {
  const seen = { events: new Map<string, Row>(), jobs: new Map<string, Row>(), messages: new Map<string, Row>() };
  for (const { what, fence, lease, due, updated, ...row } of await query(rowsOfAll)) {
    // One of the two databases' programs gives whole numbers as texts.
    const numbers = { fence: Number(fence), leaseUntil: Number(lease), due: Number(due), updatedAt: Number(updated) };
    seen[what as keyof Seen].set(row.id as string, { ...row, ...numbers } as Row);
  }
  return seen;
}

/** All there is, to see whether anything changes. */
export async function everything({ query }: Place): Promise<unknown> {
  const tables = ["events", "claims", "jobs", "runs", "messages", "attempts"];
  const rows: unknown[] = [];
  for (const table of tables) rows.push(await query(`select * from ${table} order by 1, 2`));
  return rows;
}

export const isFinal = {
  jobs: (state: string) => (finalJobStates as readonly string[]).includes(state),
  messages: (state: string) => (finalMessageStates as readonly string[]).includes(state),
};

/** What must be so after each operation. */
export async function checkAfter(model: Model, real: Real): Promise<void> {
  const before = real.seen;
  const after = await look(real.place);
  real.seen = after;
  assert.deepEqual(
    [...after.events.keys()].sort(),
    [...model.accepted.keys()].sort(),
    "no event disappears, and none is added",
  );
  for (const what of ["jobs", "messages"] as const) {
    for (const [id, old] of before[what]) {
      const row = after[what].get(id);
      // Whether its event was forgotten was looked at already.
      if (!row) continue;
      assert.ok(row.fence >= old.fence, "fences never go back");
      if (isFinal[what](old.state)) assert.equal(row.state, old.state, "an end is an end");
    }
    for (const row of after[what].values()) {
      if (row.state !== "running" && row.state !== "sending") continue;
      const holds = model.holds.filter(({ id, fence }) => id === row.id && fence === row.fence);
      assert.deepEqual(
        holds.map(({ owner }) => owner),
        [row.owner],
        "one holder, the one who was told so",
      );
    }
  }
  for (const id of model.stopped) {
    const { state } = after.messages.get(id) ?? {};
    assert.ok(
      state === undefined || state === "sending" || isFinal.messages(state),
      "what was stopped is not tried again",
    );
  }
  assert.deepEqual(await violations(real.place), []);
  freeClaims(model, after);
}

/** A direct delivery that was refused does not count. */
function freeClaims(model: Model, { jobs }: Seen): void {
  for (const { kind, state, parent } of jobs.values()) {
    if (kind !== "direct" || state !== "refused") continue;
    for (const [key, { eventId }] of model.claims) if (eventId === parent) model.claims.delete(key);
  }
}

export function hold(model: Model, owner: string, what: Hold["what"], { id, fence }: Held, isDirect = false): void {
  const held = { id, fence, what, owner, isDirect };
  const active = activeOf(model, owner);
  // Whoever takes something again knows that the first time is over.
  for (const one of active) if (one.id === id) active.delete(one);
  model.holds.push(held);
  active.add(held);
}

export function activeOf(model: Model, owner: string): Set<Hold> {
  const active = model.active.get(owner) ?? new Set();
  model.active.set(owner, active);
  return active;
}

/** Nothing has happened yet. */
export function newModel(): Model {
  return {
    now: noon,
    accepted: new Map(),
    claims: new Map(),
    holds: [],
    active: new Map(),
    sent: new Set(),
    fallbacks: new Map(),
    stopped: new Set(),
  };
}
