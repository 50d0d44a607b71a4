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
  done: "every message was sent or kept back on purpose",
  dead: "given up; the reason says why",
  refused: "a direct delivery failed and the sender was told so",
} as const;

/** What goes out to one target. */
export const messageStates = {
  held: "waits for the agent's answer",
  pending: "waits for its next try",
  sending: "a try is under way, under a lease",
  sent: "the target took it",
  kept: "kept back, because the answer was exactly [SILENT]",
  dead: "given up; the reason holds the target's own words",
} as const;

export type JobState = keyof typeof jobStates;
export type MessageState = keyof typeof messageStates;

interface Move<State> {
  readonly from: readonly State[];
  readonly to: State;
  readonly when: string;
}

/** Where a job and its messages begin. */
export const beginnings = {
  agent: { job: "queued", message: "held" },
  direct: { job: "delivering", message: "sending" },
} as const satisfies Record<string, { job: JobState; message: MessageState }>;

export const jobMoves = {
  claim: { from: ["queued"], to: "running", when: "a worker takes it" },
  park: { from: ["queued"], to: "waiting", when: "agents cannot run: no model, no sandbox" },
  unpark: { from: ["waiting"], to: "queued", when: "agents can run again" },
  reclaim: { from: ["running"], to: "queued", when: "its lease ran out: the gateway died during the run" },
  release: { from: ["running"], to: "queued", when: "shutdown gives it back" },
  retry: { from: ["running"], to: "queued", when: "the run failed and may succeed later" },
  answer: { from: ["running"], to: "delivering", when: "the run's answer is recorded" },
  giveUp: { from: ["running"], to: "dead", when: "the run failed for good" },
  abandon: { from: ["running"], to: "dead", when: "the gateway died during its runs again and again" },
  finish: { from: ["delivering"], to: "done", when: "its last message is sent or kept" },
  fail: { from: ["delivering"], to: "dead", when: "its last message ended and one of them is dead" },
  refuse: { from: ["delivering"], to: "refused", when: "a direct delivery failed or was cut off; the claim is freed" },
} as const satisfies Record<string, Move<JobState>>;

export const messageMoves = {
  prepare: { from: ["held"], to: "pending", when: "the answer is recorded" },
  keep: { from: ["held"], to: "kept", when: "the answer is exactly [SILENT]" },
  drop: { from: ["held"], to: "dead", when: "the run failed for good" },
  claim: { from: ["pending"], to: "sending", when: "a worker takes it" },
  reclaim: { from: ["sending"], to: "pending", when: "its lease ran out: the gateway died during the try" },
  retry: { from: ["sending"], to: "pending", when: "the try failed and may succeed later" },
  take: { from: ["sending"], to: "sent", when: "the target took the last part" },
  giveUp: { from: ["sending"], to: "dead", when: "refused for good, or out of tries" },
  cutOff: { from: ["sending"], to: "dead", when: "a direct delivery's lease ran out: its sender got no answer" },
} as const satisfies Record<string, Move<MessageState>>;

/** States in which a message needs nothing more. */
export const finalMessageStates = ["sent", "kept", "dead"] as const satisfies readonly MessageState[];
