/**
 * The states of the ledger and every move between them: the one place that knows. Statements are written with it, and
 * `docs/ARCHITECTURE.md` shows it.
 */

/** What we promised to do about an event. */
export const jobStates = {
  queued: "waits for a free agent",
  waiting: "cannot run yet; the reason says what is missing",
  running: "an agent works on it, under a lease",
  delivering: "the text is known; its messages are being sent",
  done: "every message, or one of its fallback, was sent or kept back on purpose",
  dead: "given up; the reason says why",
  refused: "a direct delivery failed and the sender was told so",
  cancelled: "stopped by hand",
} as const;

/** What goes out to one target. */
export const messageStates = {
  held: "waits for the agent's answer",
  waiting: "an earlier message for the same place goes first",
  pending: "waits for its next try",
  sending: "a try is under way, under a lease",
  sent: "the target took it",
  kept: "kept back, because the answer was exactly [SILENT]",
  dead: "given up; the reason holds the target's own words",
  replaced: "given up; the next target of its fallback goes instead",
  cancelled: "stopped by hand before it was sent",
} as const;

export type JobState = keyof typeof jobStates;
export type MessageState = keyof typeof messageStates;
export type JobKind = keyof typeof beginnings;

interface Move<State> {
  readonly from: readonly State[];
  readonly to: State;
  readonly when: string;
}

/**
 * What a job is: an agent's run whose answer is sent; a text that is sent while the event's sender waits; or a text that is
 * sent when nobody waits (a replay). With where it and its messages begin.
 */
export const beginnings = {
  agent: { job: "queued", message: "held" },
  direct: { job: "delivering", message: "sending" },
  delivery: { job: "delivering", message: "held" },
} as const satisfies Record<string, { job: JobState; message: MessageState }>;

export const jobMoves = {
  claim: { from: ["queued"], to: "running", when: "a worker takes it" },
  park: { from: ["queued"], to: "waiting", when: "agents cannot run: no model, no sandbox" },
  unpark: { from: ["waiting"], to: "queued", when: "agents can run again" },
  reclaim: { from: ["running"], to: "queued", when: "its lease ran out: the gateway died during the run" },
  release: { from: ["running"], to: "queued", when: "shutdown gives it back" },
  retry: { from: ["running"], to: "queued", when: "the run failed and may succeed later" },
  // From "queued" too: the lease ran out, but nobody has taken the job since, so the answer is good.
  answer: { from: ["running", "queued"], to: "delivering", when: "the run's answer is recorded" },
  giveUp: { from: ["running"], to: "dead", when: "the run failed for good" },
  abandon: {
    from: ["running"],
    to: "dead",
    when: "the gateway died during its run, once or again and again as its route says",
  },
  finish: {
    from: ["delivering"],
    to: "done",
    when: "its last message ended and none is dead: each was sent, kept, or replaced",
  },
  fail: { from: ["delivering"], to: "dead", when: "its last message ended and one of them is dead" },
  refuse: { from: ["delivering"], to: "refused", when: "a direct delivery failed or was cut off; the claim is freed" },
  cancel: { from: ["queued", "waiting", "running", "delivering"], to: "cancelled", when: "somebody stops it" },
} as const satisfies Record<string, Move<JobState>>;

export const messageMoves = {
  prepare: { from: ["held"], to: "pending", when: "the text is known" },
  line: {
    from: ["held"],
    to: "waiting",
    when: "the text is known, and an earlier message for the same place is on its way",
  },
  promote: { from: ["waiting"], to: "pending", when: "nothing for the same place is before it any more" },
  keep: { from: ["held"], to: "kept", when: "the answer is exactly [SILENT]" },
  drop: { from: ["held"], to: "dead", when: "the run failed for good" },
  claim: { from: ["pending"], to: "sending", when: "a worker takes it" },
  reclaim: { from: ["sending"], to: "pending", when: "its lease ran out: the gateway died during the try" },
  retry: { from: ["sending"], to: "pending", when: "the try failed and may succeed later" },
  // From "pending" too: the lease ran out, but nobody has tried again since.
  take: { from: ["sending", "pending"], to: "sent", when: "the target took the last part" },
  giveUp: { from: ["sending"], to: "dead", when: "refused for good, or out of tries" },
  replace: {
    from: ["sending"],
    to: "replaced",
    when: "the same, and its fallback has a target that was not tried yet",
  },
  cutOff: { from: ["sending"], to: "dead", when: "a direct delivery's lease ran out: its sender got no answer" },
  stop: { from: ["sending"], to: "cancelled", when: "its try failed after somebody stopped it" },
  cancel: { from: ["held", "waiting", "pending"], to: "cancelled", when: "somebody stops it before it is sent" },
} as const satisfies Record<string, Move<MessageState>>;

/** States in which a message needs nothing more. */
export const finalMessageStates = [
  "sent",
  "kept",
  "dead",
  "replaced",
  "cancelled",
] as const satisfies readonly MessageState[];

/** States in which a job needs nothing more. */
export const finalJobStates = ["done", "dead", "refused", "cancelled"] as const satisfies readonly JobState[];

/** States of an event: those of its newest job, and `ignored` when no job follows. */
export const eventStates = [...Object.keys(jobStates), "ignored"] as readonly (JobState | "ignored")[];
export type EventState = JobState | "ignored";

/** States in which an event may be forgotten one day. */
export const finalEventStates = [...finalJobStates, "ignored"] as const satisfies readonly EventState[];
export type FinalEventState = (typeof finalEventStates)[number];
