import type { EventState, FinalEventState, JobKind, JobState, MessageState } from "./states.ts";

/**
 * The ledger's store. Every operation is one atomic transaction that is on disk when its promise fulfils, and rejects with
 * `StoreUnavailable` when it could not be made so, or when nobody can tell: then it may have taken effect all the same.
 * Times are Unix milliseconds that the caller hands in.
 */
export type Store = {
  readonly [Name in keyof Operations]: (args: Parameters<Operations[Name]>[0]) => Promise<ReturnType<Operations[Name]>>;
} & {
  readonly name: "sqlite" | "postgres";
  /** True when several gateways may work on it at the same time; then rates and subscriptions are kept in it too. */
  readonly isShared: boolean;
  /** The time that leases and due times are told by: this machine's, or the database's where machines share one. */
  now(): number;
  /**
   * Calls back when another process may have added work or changed something, until the store is closed. A hint only: it may
   * come late, twice or never, so that callers look again from time to time anyway.
   */
  watch(listener: (news: News) => void): void;
  /** Tells the others, soon. */
  announce(news: News): void;
  /** Waits for what was asked before, then lets the file or the connections go. */
  close(): Promise<void>;
};

/** What there may be news of. */
export type News = "jobs" | "messages" | "subscriptions" | "cancelled";

/** The operations as a store carries them out inside one transaction. */
export interface Operations {
  // ── a request

  /** Claims the delivery id, and keeps the event with its job and messages; or finds the id claimed and keeps nothing. */
  accept(args: AcceptArgs): Accepted;
  /**
   * Takes a direct delivery back that nobody will send, because its gateway gave up waiting for `accept`: it is refused and
   * its delivery id is free, if it was kept at all.
   */
  withdraw(args: { readonly eventId: string; readonly now: number; readonly reason: string }): void;
  /** Keeps an event that no job follows, with the reason. */
  ignore(args: NewEvent & { readonly reason: string }): void;

  // ── jobs

  /** Takes due jobs under a lease and opens a run for each. Jobs whose lease ran out are queued again first. */
  claimJobs(args: ClaimJobsArgs): readonly ClaimedJob[];
  /** Ends the run that `fence` stands for. Answers false, and changes nothing, when somebody else has the job. */
  finishRun(args: FinishRunArgs): boolean;
  /** Sets queued agent jobs aside with a reason, or takes them back. Answers how many. */
  park(args: { readonly reason: string; readonly now: number }): number;
  unpark(args: { readonly now: number }): number;

  // ── messages

  /**
   * Takes due messages under a lease and opens an attempt for each. Those whose lease ran out are made pending again
   * first; a direct delivery that was cut off is refused instead, since its sender never got an answer and will retry.
   */
  claimMessages(args: ClaimMessagesArgs): readonly ClaimedMessage[];
  /** Notes that the parts before `partsSent` were taken, so that a later try goes on after them. */
  recordPart(args: Held & { readonly partsSent: number }): boolean;
  /**
   * Ends the attempt that `fence` stands for, and the job when it was its last message: `done` when all went well, else
   * `dead`, or for a direct delivery `refused`, whose delivery id is then free again. False when somebody else has it.
   * `"replaced"` when it was given up and the next target of its fallback has a message of its own now, at the end of its
   * lane; that of a direct delivery is being sent already, held by who held the first. Somebody who stopped the job wants
   * no fallback either.
   */
  finishAttempt(args: FinishAttemptArgs): boolean | "replaced";

  // ── leases

  /** Moves leases on. Answers the ids whose lease was lost. */
  extendLeases(args: HeldRows & { readonly leaseUntil: number }): { readonly lost: readonly string[] };
  /** Looks, and answers the ids that are not held any more (somebody cancelled them, or took them over). */
  lostLeases(args: HeldRows): { readonly lost: readonly string[] };
  /** Lets every lease of another owner run out now. Only for the one gateway that holds the home's lock. */
  expireLeases(args: { readonly owner: string; readonly now: number }): void;
  /** When the next job is due, and the next message of each target; a paused target's no sooner than its pause ends. */
  nextDue(args: Record<string, never>): NextDue;
  /** Moves every time that something waits for: the clock was set by `by` milliseconds, and nothing has come nearer by it. */
  shiftTimes(args: { readonly by: number }): void;

  // ── by hand

  /** Adds a job to an event that is there. False when it is not. */
  addJob(args: AddJobArgs): boolean;
  /**
   * Stops what can be stopped of an event's jobs: a try that is under way at this moment ends as it will, and there is no
   * other. Answers how many jobs.
   */
  cancel(args: { readonly eventId: string; readonly now: number; readonly reason: string }): number;
  /** Keeps an event as another ledger had it. False when an event of this id is there already. */
  importEvent(args: ImportArgs): boolean;

  // ── looking

  /** Newest first. */
  listEvents(args: ListArgs): readonly EventRow[];
  /** Everything known of one event; `id` may be a unique beginning of one. */
  readEvent(args: { readonly id: string }): EventRecord | undefined;
  /** How many jobs there are in each state but `done`; states without any are left out. */
  tallyJobs(args: Record<string, never>): Readonly<Partial<Record<JobState, number>>>;
  /** Targets that failed lately, paused or not. */
  listTroubles(args: Record<string, never>): readonly TargetTrouble[];

  // ── keeping in bounds

  /** Forgets finished events, oldest first, in one small step. */
  prune(args: PruneArgs): Pruned;
  /** Forgets claims that have run out, at most `limit`. Answers how many. */
  pruneClaims(args: { readonly now: number; readonly limit: number }): number;
  /** Bytes that what is kept takes up; free space inside the file is not counted. */
  measure(args: Record<string, never>): { readonly bytes: number };

  // ── shared by the gateways on one database

  /** Spends up to `count` of a route's budget for the window that is open; opens a new one when it is over. */
  spend(args: SpendArgs): { readonly granted: number; readonly windowStart: number };
  giveBack(args: { readonly route: string; readonly count: number; readonly windowStart: number }): void;
  /** A small text kept under a name, with a number that every change raises. */
  readDocument(args: { readonly name: string }): StoredDocument | undefined;
  /** Replaces it if its version is still `seen` (0: it is not there yet). False when somebody else was faster. */
  writeDocument(args: { readonly name: string; readonly seen: number; readonly text: string }): boolean;
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
  /** Names the place it goes to: messages of one lane are sent one after the other. `null`: in no order. */
  readonly lane: string | null;
  /** Known at once for a delivery, else `null` until the agent has answered. */
  readonly text: string | null;
  /** Why it must not be sent there, which whoever sends it has to look at; `null` when nothing is against it. */
  readonly refusal: string | null;
  /** JSON list of `Place`: where it goes instead, one after the other, when it is given up; `null` when nowhere. */
  readonly fallback: string | null;
}

/** Where a message of a fallback goes. */
export interface Place extends Pick<NewMessage, "target" | "lane" | "refusal"> {
  /** Rendered `deliver_extra`. */
  readonly extra: Readonly<Record<string, string>>;
}

export interface NewJob {
  readonly id: string;
  readonly kind: JobKind;
  /** Whose rules it follows; a replay may follow another route than its event came in on. */
  readonly route: string;
  /** JSON object the run is made from. */
  readonly plan: string;
  /** What becomes of it when its gateway dies during the run. */
  readonly onCrash: "rerun" | "fail";
  /** How it came about, when not from the event's arrival, for people. */
  readonly origin: string | null;
  readonly messages: readonly NewMessage[];
}

export interface AcceptArgs {
  readonly event: NewEvent;
  readonly claimUntil: number;
  readonly job: NewJob;
  /** Who sends a direct delivery, and until when it is thought alive. */
  readonly owner: string;
  readonly leaseUntil: number;
}

export type Accepted =
  | { readonly duplicate: false }
  /** `isUnderWay`: the first is a direct delivery that is being sent, so nobody knows yet whether it will have counted. */
  | { readonly duplicate: true; readonly isUnderWay: boolean };

export interface AddJobArgs {
  readonly eventId: string;
  readonly now: number;
  readonly job: NewJob;
}

export interface ClaimArgs {
  readonly owner: string;
  readonly now: number;
  readonly leaseUntil: number;
  readonly limit: number;
  /**
   * What the owner works on. What it does not, though its lease says so, was claimed when its answer got lost: that is taken
   * back like another's.
   */
  readonly active: readonly string[];
  /** False while it is too early to call anybody dead: the store was away, and its holders could not report. */
  readonly mayReclaim: boolean;
}

export interface ClaimJobsArgs extends ClaimArgs {
  /** A job interrupted this often is given up: it may be what kills the gateway. */
  readonly maxInterruptions: number;
  /** Runs at the same time, on all gateways together, by route; a route that is not named has no bound. */
  readonly limits: Readonly<Record<string, number>>;
}

export interface ClaimMessagesArgs extends ClaimArgs {
  /** Messages that may be taken now, by target; a target that is not named has no bound but `limit`. */
  readonly limits: Readonly<Record<string, number>>;
}

/** What a lease holder shows to act on a row: the row's fence changes with every claim, so an old holder is refused. */
export interface Held {
  readonly id: string;
  readonly fence: number;
}

export interface HeldRows {
  readonly jobs: readonly Held[];
  readonly messages: readonly Held[];
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
  /** Tries that failed before. */
  readonly failures: number;
  /** Why it must not be sent; `null` when nothing is against it. */
  readonly refusal: string | null;
  /** JSON list of `Place`: where it goes instead. */
  readonly fallback: string | null;
  /** When its text was known: its age counts from here. */
  readonly readyAt: number;
  /** True when the target may have taken the next part in an earlier try: its answer was lost, or its gateway died. */
  readonly isUnsure: boolean;
  readonly route: string;
  readonly eventType: string;
}

export type AttemptOutcome = "sent" | "refused" | "unknown" | "released";

export interface FinishAttemptArgs extends Held {
  readonly now: number;
  readonly outcome: AttemptOutcome;
  readonly error: string | null;
  readonly reference: string | null;
  readonly next:
    | { readonly move: "take" }
    /** `leaveLane`: what waits behind it for the same place need not wait any longer. */
    | { readonly move: "retry"; readonly dueAt: number; readonly leaveLane: boolean }
    /** `successor`: the message that begins when it has a fallback; without one nothing goes instead. */
    | { readonly move: "giveUp"; readonly successor?: Successor };
  /** What the try says of its target; `null` when nothing. */
  readonly health: TargetHealth | null;
}

export interface Successor {
  readonly id: string;
  /** Until when the sender of a direct delivery is thought alive. */
  readonly leaseUntil: number;
}

/**
 * How a target takes it. `trouble`: it failed in a way that may pass; when the tries of `threshold` messages in a row did, it
 * is paused, each time for twice as long. `busy`: it asked to be left alone until then. After a pause one message tries first.
 */
export type TargetHealth =
  | { readonly mark: "well" }
  | {
      readonly mark: "trouble";
      readonly threshold: number;
      readonly firstPauseMs: number;
      readonly longestPauseMs: number;
      readonly reason: string;
    }
  | { readonly mark: "busy"; readonly until: number; readonly reason: string };

export interface TargetTrouble {
  readonly target: string;
  /** Messages in a row whose last try failed. */
  readonly failures: number;
  /** How often it was paused since it last took something; 0 when it is not. */
  readonly pauses: number;
  readonly pausedUntil: number;
  readonly reason: string | null;
}

export interface NextDue {
  readonly jobs: number | undefined;
  readonly messages: readonly { readonly target: string; readonly due: number }[];
}

export interface ListArgs {
  readonly limit: number;
  readonly route?: string;
  readonly state?: string;
  /** Received at or after, and before (Unix milliseconds). */
  readonly since?: number;
  readonly until?: number;
  /** Only events that are older than the one of this id. */
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
  readonly state: EventState;
  readonly reason: string | null;
}

export interface EventRecord extends EventRow {
  /** Why its route declined it when it came in, whatever followed later; `null` when it was accepted. */
  readonly ignored: string | null;
  readonly headers: string;
  readonly body: Uint8Array;
  readonly jobs: readonly JobRecord[];
}

export interface JobRecord {
  readonly id: string;
  readonly kind: JobKind;
  readonly route: string;
  readonly origin: string | null;
  readonly onCrash: "rerun" | "fail";
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
  readonly lane: string | null;
  readonly text: string | null;
  readonly refusal: string | null;
  /** JSON list of `Place`, whether it was needed or not. */
  readonly fallback: string | null;
  /** Id of the message that it goes instead of. */
  readonly replaces: string | null;
  readonly state: MessageState;
  readonly reason: string | null;
  readonly reference: string | null;
  readonly partsSent: number;
  readonly readyAt: number | null;
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

export interface ImportArgs {
  readonly record: EventRecord;
  readonly now: number;
  /** When the delivery id is free again; `null` claims nothing. */
  readonly claimUntil: number | null;
  /**
   * What becomes of jobs that had not ended: they go on here, or are cancelled with this reason. What was at work goes on as
   * if its gateway had died.
   */
  readonly unfinished: "resume" | { readonly cancel: string };
}

export interface PruneArgs {
  /** Where the last step ended; `""` begins with the oldest event. */
  readonly after: string;
  /** Events to look at, at most. */
  readonly limit: number;
  /** An event whose newest news is from before this time is forgotten; a state that is not named is kept. */
  readonly before: Readonly<Partial<Record<FinalEventState, number>>>;
}

export interface Pruned {
  readonly forgotten: number;
  /** Where to go on, or `undefined` when there was no more to look at. */
  readonly next: string | undefined;
}

export interface SpendArgs {
  readonly route: string;
  readonly count: number;
  readonly limit: number;
  readonly windowMs: number;
  readonly now: number;
}

export interface StoredDocument {
  readonly version: number;
  readonly text: string;
}
