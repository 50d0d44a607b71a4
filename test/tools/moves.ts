import assert from "node:assert/strict";
import { operationNames } from "../../src/store/names.ts";
import { beginnings, jobMoves, messageMoves } from "../../src/store/states.ts";
import type { Operations, Store } from "../../src/store/store.ts";

type Name = keyof Operations;
type JobMove = keyof typeof jobMoves;
type MessageMove = keyof typeof messageMoves;

/** The moves that each operation may make; what is not named changes no state. */
const movesOf: Partial<Record<Name, { readonly jobs: readonly JobMove[]; readonly messages: readonly MessageMove[] }>> =
  {
    withdraw: { jobs: ["refuse"], messages: ["cutOff"] },
    claimJobs: { jobs: ["claim", "reclaim", "abandon"], messages: ["drop"] },
    finishRun: {
      jobs: ["release", "retry", "answer", "giveUp", "finish"],
      messages: ["prepare", "line", "keep", "drop"],
    },
    park: { jobs: ["park"], messages: [] },
    unpark: { jobs: ["unpark"], messages: [] },
    claimMessages: {
      jobs: ["refuse", "fail", "finish", "cancel"],
      messages: ["claim", "reclaim", "cutOff", "stop", "promote"],
    },
    finishAttempt: {
      jobs: ["finish", "fail", "refuse", "cancel"],
      messages: ["retry", "take", "giveUp", "replace", "prepare", "line", "stop", "promote"],
    },
    addJob: { jobs: [], messages: ["prepare", "line"] },
    cancel: { jobs: ["cancel", "fail", "finish"], messages: ["cancel", "promote"] },
    // What comes in has the states it had, or goes on.
    importEvent: { jobs: ["finish", "fail", "refuse"], messages: ["prepare", "line"] },
  };

interface Move {
  readonly from: readonly string[];
  readonly to: string;
}

interface Row {
  readonly state: string;
  readonly begin: string;
}

interface States {
  readonly jobs: ReadonlyMap<string, Row>;
  readonly messages: ReadonlyMap<string, Row>;
}

/** Reads beside the store. */
type Query = (sql: string) => Promise<readonly Record<string, unknown>[]>;

/**
 * A store under watch: looks at every state before and after each operation, and fails on a change that is no move. Adds the
 * moves that it saw on their own to `seen`, as `job.claim` or `message.take`. For operations that come one after the other
 * only: what happens at the same time could not be told apart.
 */
export function watchMoves(store: Store, query: Query, seen: Set<string>): Store {
  const watch = async (name: Name, args: never): Promise<unknown> => {
    const before = await statesOf(query);
    const answer = await store[name](args);
    const after = await statesOf(query);
    const moves = movesOf[name] ?? { jobs: [], messages: [] };
    check(name, "job", pick(jobMoves, moves.jobs), before.jobs, after.jobs, seen);
    check(name, "message", pick(messageMoves, moves.messages), before.messages, after.messages, seen);
    return answer;
  };
  const watched = Object.fromEntries(operationNames.map((name) => [name, (args: never) => watch(name, args)]));
  return { ...store, ...watched } as Store;
}

const statement = `select 'jobs' as what, id, kind, state from jobs
  union all select 'messages' as what, m.id, j.kind, m.state from messages m join jobs j on j.id = m.job_id`;

async function statesOf(query: Query): Promise<States> {
  const jobs = new Map<string, Row>();
  const messages = new Map<string, Row>();
  for (const row of await query(statement)) {
    const { what, id, kind, state } = row as { what: string; id: string; kind: keyof typeof beginnings; state: string };
    if (what === "jobs") jobs.set(id, { state, begin: beginnings[kind].job });
    else messages.set(id, { state, begin: beginnings[kind].message });
  }
  return { jobs, messages };
}

function pick<Key extends string>(table: Readonly<Record<Key, Move>>, keys: readonly Key[]): [string, Move][] {
  return keys.map((key) => [key, table[key]]);
}

function check(
  operation: string,
  what: string,
  moves: readonly [string, Move][],
  before: ReadonlyMap<string, Row>,
  after: ReadonlyMap<string, Row>,
  seen: Set<string>,
): void {
  for (const [id, { state, begin }] of after) {
    const earlier = before.get(id)?.state;
    if (operation === "importEvent" && earlier === undefined) continue;
    if (earlier === undefined) {
      assert.ok(leads(moves, begin, state), `${operation} begins a ${what} as "${state}"`);
    } else if (earlier !== state) {
      assert.ok(leads(moves, earlier, state), `${operation} moves a ${what} from "${earlier}" to "${state}"`);
      for (const [name, move] of moves) {
        if (move.to === state && move.from.includes(earlier)) seen.add(`${what}.${name}`);
      }
    }
  }
  if (operation === "prune") return;
  for (const id of before.keys()) assert.ok(after.has(id), `${operation} removes a ${what}`);
}

/** Whether some of the moves, one after the other, lead from one state to another. */
function leads(moves: readonly [string, Move][], from: string, to: string): boolean {
  const reached = new Set([from]);
  for (const state of reached) {
    for (const [, move] of moves) if (move.from.includes(state)) reached.add(move.to);
  }
  return reached.has(to);
}
