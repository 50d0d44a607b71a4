import type { Outcome } from "../agent/agent.ts";
import type { DeliveryError } from "../core/errors.ts";
import { keyOf, newId } from "../core/id.ts";
import type { Event, HeaderMap } from "../core/types.ts";
import type {
  ClaimedJob,
  ClaimedMessage,
  EventRecord,
  EventRow,
  Held,
  ListArgs,
  NewEvent,
  RunResult,
  Store,
} from "../store/store.ts";
import { messageRule, nextDelayMs, runRule } from "./retry.ts";

/** What a run is made from, fixed when the event is accepted. */
export interface Plan {
  readonly prompt: string;
  /** Names, the first one found is used. */
  readonly skills: readonly string[];
  readonly tools: readonly string[];
}

/** A message as the request path composes it: where it goes, and the text if it is known already. */
export interface Draft {
  readonly target: string;
  /** Rendered `deliver_extra`. */
  readonly extra: Readonly<Record<string, string>>;
}

/** A job taken under a lease. */
export interface Job extends Held {
  readonly eventId: string;
  readonly route: string;
  readonly eventType: string;
  readonly deliveryId: string;
  readonly plan: Plan;
  readonly failures: number;
}

/** A message taken under a lease. */
export interface Message extends Held {
  readonly target: string;
  readonly extra: Readonly<Record<string, string>>;
  readonly text: string;
  /** Parts that the target took in earlier tries. */
  readonly partsSent: number;
  readonly failures: number;
  readonly route: string;
  readonly eventType: string;
}

export interface LedgerOptions {
  readonly store: Store;
  readonly now: () => number;
  /** Numbers from 0 to 1, for jitter. */
  readonly random: () => number;
  /** Who holds the leases: different for every start of a gateway. */
  readonly owner: string;
  /** How long a lease lasts without a heartbeat. */
  readonly leaseMs: number;
  /** How long a repeated delivery id counts as a duplicate: one hour (specification section 8). */
  readonly claimMs: number;
}

/** A gateway that dies during ten runs of one job is most likely killed by that job. */
const maxInterruptions = 10;

/** An answer that is exactly this is kept back (contract section 6). */
const silentAnswer = "[SILENT]";

/**
 * The durable record of events, jobs, runs, messages and attempts, in the words of the gateway. Every method that changes
 * something fulfils only after the change is on disk, and rejects with `StoreUnavailable` when it could not be made.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #store: Store;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  /** Keeps an event with the agent run we promise for it. False when its delivery id is claimed: nothing is kept. */
  async acceptRun(event: Event, plan: Plan, drafts: readonly Draft[]): Promise<boolean> {
    const messages = drafts.map((draft) => this.#newMessage(draft, null));
    return this.#accept(event, { kind: "agent", plan: JSON.stringify(plan), messages });
  }

  /**
   * Keeps an event whose text is sent at once. Answers its messages, held by the caller, who must end each with `sent`
   * or `failed`; or `undefined` when its delivery id is claimed.
   */
  async acceptDirect(event: Event, text: string, drafts: readonly Draft[]): Promise<Message[] | undefined> {
    const messages = drafts.map((draft) => this.#newMessage(draft, text));
    if (!(await this.#accept(event, { kind: "direct", plan: "{}", messages }))) return undefined;
    return messages.map(({ id, target }, index) => ({
      id,
      fence: 1,
      target,
      extra: drafts[index]?.extra ?? {},
      text,
      partsSent: 0,
      failures: 0,
      route: event.route,
      eventType: event.type,
    }));
  }

  /** Keeps an event that no job follows; `reason` names the clause that declined it. */
  async ignore(event: Event, reason: string): Promise<void> {
    await this.#store.ignore({ ...newEvent(event), reason });
  }

  /**
   * Takes back at once what a gateway that is gone held under a lease: before the first request, so that a sender's retry
   * of a direct delivery that was cut off finds its id free. Only for the holder of the home's lock.
   */
  async takeOver(): Promise<void> {
    await this.#store.expireLeases({ owner: this.#options.owner, now: this.#options.now() });
    await Promise.all([this.takeJobs(0), this.takeMessages(0)]);
  }

  async takeJobs(limit: number): Promise<Job[]> {
    const jobs = await this.#store.claimJobs({ ...this.#lease(), limit, maxInterruptions });
    return jobs.map(({ plan, ...job }: ClaimedJob) => ({ ...job, plan: JSON.parse(plan) as Plan }));
  }

  async takeMessages(limit: number): Promise<Message[]> {
    const messages = await this.#store.claimMessages({ ...this.#lease(), limit });
    return messages.map(({ extra, ...message }: ClaimedMessage) => ({
      ...message,
      extra: JSON.parse(extra) as Record<string, string>,
    }));
  }

  /**
   * Records how a run ended, and with it what comes next: its messages, another run, or the end. False when the lease was
   * lost: somebody else has the job, and nothing was recorded.
   */
  async ran(job: Job, outcome: Outcome): Promise<boolean> {
    const now = this.#options.now();
    const held = { id: job.id, fence: job.fence, now, result: resultOf(outcome) };
    if (outcome.status === "completed") {
      const silent = outcome.answer.trim() === silentAnswer;
      return this.#store.finishRun({ ...held, next: { move: "answer", silent } });
    }
    const delay = outcome.transient ? nextDelayMs(runRule, job.failures + 1, this.#options.random) : undefined;
    const next = delay === undefined ? ({ move: "giveUp" } as const) : ({ move: "retry", runAt: now + delay } as const);
    return this.#store.finishRun({ ...held, next });
  }

  /** Gives a job back unharmed: the next gateway runs it. */
  async giveBackJob(job: Job, outcome: Outcome): Promise<void> {
    const result = {
      ...resultOf(outcome),
      outcome: "released",
      reason: "Given back: the gateway was stopped",
    } as const;
    await this.#store.finishRun({ ...held(job), now: this.#options.now(), result, next: { move: "release" } });
  }

  async partSent(message: Message, partsSent: number): Promise<void> {
    await this.#store.recordPart({ ...held(message), partsSent });
  }

  async sent(message: Message, reference: string | undefined): Promise<void> {
    await this.#store.finishAttempt({
      ...held(message),
      now: this.#options.now(),
      outcome: "sent",
      error: null,
      reference: reference ?? null,
      next: { move: "take" },
    });
  }

  /** Records a failed try; `mayRetry` is false for a direct delivery, whose sender is told and tries again. */
  async failed(message: Message, error: DeliveryError, mayRetry: boolean): Promise<void> {
    const now = this.#options.now();
    const delay = mayRetry ? this.#delayAfter(message, error) : undefined;
    await this.#store.finishAttempt({
      ...held(message),
      now,
      outcome: error.sent === "maybe" ? "unknown" : "refused",
      error: error.message,
      reference: null,
      next: delay === undefined ? { move: "giveUp" } : { move: "retry", dueAt: now + delay },
    });
  }

  /** Moves the leases on. Answers the ids that somebody else has meanwhile. */
  async heartbeat(jobs: readonly Held[], messages: readonly Held[]): Promise<readonly string[]> {
    const { leaseUntil } = this.#lease();
    const { lost } = await this.#store.extendLeases({ jobs: jobs.map(held), messages: messages.map(held), leaseUntil });
    return lost;
  }

  async park(reason: string): Promise<number> {
    return this.#store.park({ reason, now: this.#options.now() });
  }

  async unpark(): Promise<number> {
    return this.#store.unpark({ now: this.#options.now() });
  }

  async nextDue(): Promise<{ readonly jobs: number | undefined; readonly messages: number | undefined }> {
    return this.#store.nextDue({});
  }

  async list(args: ListArgs): Promise<readonly EventRow[]> {
    return this.#store.listEvents(args);
  }

  async read(id: string): Promise<EventRecord | undefined> {
    return this.#store.readEvent({ id });
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  #accept(event: Event, job: Omit<Parameters<Store["accept"]>[0]["job"], "id">): Promise<boolean> {
    const { owner, claimMs, leaseMs } = this.#options;
    return this.#store
      .accept({
        event: newEvent(event),
        claimUntil: event.receivedAt + claimMs,
        job: { id: newId(event.receivedAt), ...job },
        owner,
        leaseUntil: event.receivedAt + leaseMs,
      })
      .then(({ duplicate }) => !duplicate);
  }

  #newMessage(draft: Draft, text: string | null) {
    return { id: newId(this.#options.now()), target: draft.target, extra: JSON.stringify(draft.extra), text };
  }

  #lease() {
    const now = this.#options.now();
    return { owner: this.#options.owner, now, leaseUntil: now + this.#options.leaseMs };
  }

  #delayAfter(message: Message, error: DeliveryError): number | undefined {
    if (error.retryAfterMs === "never") return undefined;
    const delay = nextDelayMs(messageRule, message.failures + 1, this.#options.random);
    // What the service asked for counts, but not its asking for less than a moment or more than a day.
    if (delay === undefined || error.retryAfterMs === undefined) return delay;
    return Math.min(Math.max(error.retryAfterMs, 250), 86_400_000);
  }
}

/** The key of one part of a message: the same for every try of it. */
export function partKey(message: Message, index: number): string {
  return keyOf(message.id, index);
}

function held({ id, fence }: Held): Held {
  return { id, fence };
}

function resultOf(outcome: Outcome): RunResult {
  return {
    outcome: outcome.status,
    reason: outcome.status === "completed" ? null : outcome.reason,
    answer: outcome.status === "completed" ? outcome.answer : null,
    transcript: JSON.stringify(outcome.transcript),
    inputTokens: outcome.usage?.inputTokens ?? null,
    outputTokens: outcome.usage?.outputTokens ?? null,
  };
}

function newEvent(event: Event): NewEvent {
  return {
    id: event.id,
    route: event.route,
    type: event.type,
    deliveryId: event.deliveryId,
    receivedAt: event.receivedAt,
    headers: JSON.stringify(headersWorthKeeping(event.headers)),
    body: event.body,
  };
}

/** Headers whose value may be, or lead to, a credential. */
const secretHeader = /authorization|cookie|token|signature|secret|password|passcode|credential|api-?key|hmac/;

function headersWorthKeeping(headers: HeaderMap): Record<string, string> {
  const kept = [...headers].filter(([name]) => !secretHeader.test(name));
  return Object.fromEntries(kept.map(([name, values]) => [name, values.join(", ")]));
}
