import assert from "node:assert/strict";
import { beginnings, jobMoves, messageMoves } from "../../src/store/states.ts";
import type { EventRecord, Operations, Store } from "../../src/store/store.ts";

type Name = keyof Operations;
type JobMove = keyof typeof jobMoves;
type MessageMove = keyof typeof messageMoves;

/** The moves that each operation may make; what is not named changes no state. */
const movesOf: Partial<Record<Name, { readonly jobs: readonly JobMove[]; readonly messages: readonly MessageMove[] }>> =
  {
    claimJobs: { jobs: ["claim", "reclaim", "abandon"], messages: ["drop"] },
    finishRun: { jobs: ["release", "retry", "answer", "giveUp", "finish"], messages: ["prepare", "keep", "drop"] },
    park: { jobs: ["park"], messages: [] },
    unpark: { jobs: ["unpark"], messages: [] },
    claimMessages: { jobs: ["refuse"], messages: ["claim", "reclaim", "cutOff"] },
    finishAttempt: { jobs: ["finish", "fail", "refuse"], messages: ["retry", "take", "giveUp"] },
  };

const names: readonly Name[] = [
  ...(["accept", "ignore", "claimJobs", "finishRun", "park", "unpark", "claimMessages", "recordPart"] as const),
  ...(["finishAttempt", "extendLeases", "expireLeases", "nextDue", "listEvents", "readEvent"] as const),
];

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

/**
 * A store under watch: looks at every state before and after each operation, and fails on a change that is no move. Adds the
 * moves that it saw on their own to `seen`, as `job.claim` or `message.take`. For operations that come one after the other
 * only: what happens at the same time could not be told apart.
 */
export function watchMoves(store: Store, seen: Set<string>): Store {
  const watch = async (name: Name, args: never): Promise<unknown> => {
    const before = await statesOf(store);
    const answer = await store[name](args);
    const after = await statesOf(store);
    const moves = movesOf[name] ?? { jobs: [], messages: [] };
    check(name, "job", pick(jobMoves, moves.jobs), before.jobs, after.jobs, seen);
    check(name, "message", pick(messageMoves, moves.messages), before.messages, after.messages, seen);
    return answer;
  };
  const watched = Object.fromEntries(names.map((name) => [name, (args: never) => watch(name, args)]));
  return { ...watched, close: () => store.close() } as Store;
}

function pick<Key extends string>(table: Readonly<Record<Key, Move>>, keys: readonly Key[]): [string, Move][] {
  return keys.map((key) => [key, table[key]]);
}

async function statesOf(store: Store): Promise<States> {
  const rows = await store.listEvents({ limit: 1000 });
  const records = await Promise.all(rows.map(({ id }) => store.readEvent({ id })));
  const jobs = new Map<string, Row>();
  const messages = new Map<string, Row>();
  for (const job of records.flatMap((record) => (record as EventRecord).jobs)) {
    const begin = beginnings[job.kind];
    jobs.set(job.id, { state: job.state, begin: begin.job });
    for (const message of job.messages) messages.set(message.id, { state: message.state, begin: begin.message });
  }
  return { jobs, messages };
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
    if (earlier === undefined) {
      assert.equal(state, begin, `${operation} begins a ${what} as "${state}"`);
    } else if (earlier !== state) {
      assert.ok(leads(moves, earlier, state), `${operation} moves a ${what} from "${earlier}" to "${state}"`);
      for (const [name, move] of moves) {
        if (move.to === state && move.from.includes(earlier)) seen.add(`${what}.${name}`);
      }
    }
  }
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
