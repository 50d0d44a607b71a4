import type { JobState, MessageState } from "./states.ts";

/**
 * The ledger's store. Every operation is one atomic transaction that is on disk when its promise fulfils, and rejects with
 * `StoreUnavailable` when it could not be made so. Times are Unix milliseconds; the store never looks at a clock.
 */
export type Store = {
  readonly [Name in keyof Operations]: (args: Parameters<Operations[Name]>[0]) => Promise<ReturnType<Operations[Name]>>;
} & {
  /** Waits for what was asked before, then lets the file go. */
  close(): Promise<void>;
};

/** The operations as a store carries them out inside one transaction. */
export interface Operations {
  /** Claims the delivery id, and keeps the event with its job and messages; or finds the id claimed and keeps nothing. */
  accept(args: AcceptArgs): { readonly duplicate: boolean };
  /** Keeps an event that no job follows, with the reason. */
  ignore(args: NewEvent & { readonly reason: string }): void;
  /** Takes due jobs under a lease and opens a run for each. Jobs whose lease ran out are queued again first. */
  claimJobs(args: ClaimJobsArgs): readonly ClaimedJob[];
  /** Ends the run that `fence` stands for. Answers false, and changes nothing, when the lease was lost. */
  finishRun(args: FinishRunArgs): boolean;
  /** Sets queued agent jobs aside with a reason, or takes them back. Answers how many. */
  park(args: { readonly reason: string; readonly now: number }): number;
  unpark(args: { readonly now: number }): number;
  /**
   * Takes due messages under a lease and opens an attempt for each. Those whose lease ran out are made pending again
   * first; a direct delivery that was cut off is refused instead, since its sender never got an answer and will retry.
   */
  claimMessages(args: ClaimArgs): readonly ClaimedMessage[];
  /** Notes that the parts before `partsSent` were taken, so that a later try goes on after them. */
  recordPart(args: Held & { readonly partsSent: number }): boolean;
  /**
   * Ends the attempt that `fence` stands for, and the job when it was its last message: `done` when all went well, else
   * `dead`, or for a direct delivery `refused`, whose delivery id is then free again. False when the lease was lost.
   */
  finishAttempt(args: FinishAttemptArgs): boolean;
  /** Moves leases on. Answers the ids whose lease was lost. */
  extendLeases(args: {
    readonly jobs: readonly Held[];
    readonly messages: readonly Held[];
    readonly leaseUntil: number;
  }): {
    readonly lost: readonly string[];
  };
  /** Lets every lease of another owner run out now. Only for the one gateway that holds the home's lock. */
  expireLeases(args: { readonly owner: string; readonly now: number }): void;
  /** When the next job and the next message is due, `undefined` where nothing waits. */
  nextDue(args: Record<string, never>): { readonly jobs: number | undefined; readonly messages: number | undefined };
  /** Newest first. */
  listEvents(args: ListArgs): readonly EventRow[];
  /** Everything known of one event; `id` may be a unique beginning of one. */
  readEvent(args: { readonly id: string }): EventRecord | undefined;
}

export interface NewEvent {
  readonly id: string;
  readonly route: string;
  readonly type: string;
  readonly deliveryId: string;
  readonly receivedAt: number;
  /** JSON object of the headers worth keeping; no secret among them. */
  readonly headers: string;
  readonly body: Uint8Array;
}

export interface NewMessage {
  readonly id: string;
  readonly target: string;
  /** JSON object: rendered `deliver_extra`. */
  readonly extra: string;
  /** Known at once for a direct delivery, else `null` until the agent has answered. */
  readonly text: string | null;
}

export interface AcceptArgs {
  readonly event: NewEvent;
  readonly claimUntil: number;
  readonly job: {
    readonly id: string;
    readonly kind: "agent" | "direct";
    /** JSON object the run is made from. */
    readonly plan: string;
    readonly messages: readonly NewMessage[];
  };
  /** Who sends a direct delivery, and until when it is thought alive. */
  readonly owner: string;
  readonly leaseUntil: number;
}

export interface ClaimArgs {
  readonly owner: string;
  readonly now: number;
  readonly leaseUntil: number;
  readonly limit: number;
}

export interface ClaimJobsArgs extends ClaimArgs {
  /** A job interrupted this often is given up: it may be what kills the gateway. */
  readonly maxInterruptions: number;
}

/** What a lease holder shows to act on a row: the row's fence changes with every claim, so an old holder is refused. */
export interface Held {
  readonly id: string;
  readonly fence: number;
}

export interface ClaimedJob extends Held {
  readonly eventId: string;
  readonly route: string;
  readonly eventType: string;
  readonly deliveryId: string;
  readonly plan: string;
  /** Runs that ended in failure before. */
  readonly failures: number;
}

export interface RunResult {
  readonly outcome: "completed" | "failed" | "timeout" | "cancelled" | "budget" | "released";
  readonly reason: string | null;
  readonly answer: string | null;
  /** JSON list. */
  readonly transcript: string;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

export interface FinishRunArgs extends Held {
  readonly now: number;
  readonly result: RunResult;
  readonly next:
    | { readonly move: "answer"; readonly silent: boolean }
    | { readonly move: "retry"; readonly runAt: number }
    | { readonly move: "release" }
    | { readonly move: "giveUp" };
}

export interface ClaimedMessage extends Held {
  readonly jobId: string;
  readonly target: string;
  readonly extra: string;
  readonly text: string;
  readonly partsSent: number;
  readonly failures: number;
  readonly route: string;
  readonly eventType: string;
}

export type AttemptOutcome = "sent" | "refused" | "unknown";

export interface FinishAttemptArgs extends Held {
  readonly now: number;
  readonly outcome: AttemptOutcome;
  readonly error: string | null;
  readonly reference: string | null;
  readonly next:
    | { readonly move: "take" }
    | { readonly move: "retry"; readonly dueAt: number }
    | { readonly move: "giveUp" };
}

export interface ListArgs {
  readonly limit: number;
  readonly route?: string;
  readonly state?: string;
  readonly before?: string;
}

/** One line of a list of events. */
export interface EventRow {
  readonly id: string;
  readonly route: string;
  readonly type: string;
  readonly deliveryId: string;
  readonly receivedAt: number;
  /** The newest job's state, or `ignored`. */
  readonly state: JobState | "ignored";
  readonly reason: string | null;
}

export interface EventRecord extends EventRow {
  readonly headers: string;
  readonly body: Uint8Array;
  readonly jobs: readonly JobRecord[];
}

export interface JobRecord {
  readonly id: string;
  readonly kind: "agent" | "direct";
  readonly state: JobState;
  readonly reason: string | null;
  readonly plan: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runAt: number;
  readonly runs: readonly RunRecord[];
  readonly messages: readonly MessageRecord[];
}

export interface RunRecord {
  readonly number: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly outcome: RunResult["outcome"] | "interrupted" | null;
  readonly reason: string | null;
  readonly answer: string | null;
  readonly transcript: string | null;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

export interface MessageRecord {
  readonly id: string;
  readonly target: string;
  readonly extra: string;
  readonly text: string | null;
  readonly state: MessageState;
  readonly reason: string | null;
  readonly reference: string | null;
  readonly partsSent: number;
  readonly dueAt: number;
  readonly attempts: readonly AttemptRecord[];
}

export interface AttemptRecord {
  readonly number: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly outcome: AttemptOutcome | "interrupted" | null;
  readonly error: string | null;
}
