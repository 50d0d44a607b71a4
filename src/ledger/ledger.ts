import type { Outcome } from "../agent/agent.ts";
import { type DeliveryError, StoreUnavailable } from "../core/errors.ts";
import { keyOf, newId } from "../core/id.ts";
import type { MessageRule } from "../core/retry.ts";
import type { Event } from "../core/types.ts";
import type {
  Accepted,
  FinishAttemptArgs,
  Held,
  NewJob,
  NewMessage,
  NextDue,
  Place,
  Store,
  TargetTrouble,
} from "../store/store.ts";
import { type Draft, fallbackText, placesIn } from "./fallback.ts";
import { Reach } from "./reach.ts";
import { afterFailure, healthAfter, jitteredMs, type Repeats, runRule, unsureReason } from "./retry.ts";
import { eventRow, resultRow } from "./rows.ts";
import { Withdrawals } from "./withdrawals.ts";

/** What a run is made from, fixed when the event is accepted. */
export interface Plan {
  readonly prompt: string;
  /** Names, the first one found is used. */
  readonly skills: readonly string[];
  readonly tools: readonly string[];
  /** Why no place that the answer could go to will take it; then there is no run. */
  readonly hopeless?: string;
}

/** Whose rules an accepted run follows. */
export interface RunTerms {
  readonly route: string;
  /** What becomes of it when its gateway dies during the run. */
  readonly onCrash: "rerun" | "fail";
}

/** Something held under a lease. */
export interface Leased extends Held {
  /** Until when nobody else takes it (Unix milliseconds). Heartbeats move it on. */
  leaseUntil: number;
}

/** A job taken under a lease. */
export interface Job extends Leased {
  readonly eventId: string;
  readonly route: string;
  readonly eventType: string;
  readonly deliveryId: string;
  readonly plan: Plan;
  readonly failures: number;
}

/** A message taken under a lease. */
export interface Message extends Leased {
  readonly target: string;
  readonly extra: Readonly<Record<string, string>>;
  readonly text: string;
  /** Parts that the target took in earlier tries. */
  readonly partsSent: number;
  readonly failures: number;
  /** Why it must not be sent; `null` when nothing is against it. */
  readonly refusal: string | null;
  /** Where it goes instead when it is given up. */
  readonly fallback: readonly Place[];
  /** When its text was known: its age counts from here, and no try of it can have begun before. */
  readonly readyAt: number;
  /** True when the target may have taken the next part in an earlier try. */
  readonly isUnsure: boolean;
  readonly route: string;
  readonly eventType: string;
}

/** What to take. */
export interface Take {
  readonly limit: number;
  /** Everything of the kind that the caller works on: what its lease says beyond that, it does not know of. */
  readonly active: readonly Held[];
  /** Jobs at work on all gateways, by route; messages to be taken now, by target. What is not named has no bound. */
  readonly limits: Readonly<Record<string, number>>;
}

/** How to judge a failed try. */
export interface Judgement {
  readonly rule: MessageRule;
  readonly repeats: Repeats;
  /** False for a direct delivery, whose sender is told and tries again. */
  readonly mayRetry: boolean;
  /** False when the try was cut off on this side: that says nothing of the target. */
  readonly isTargetsFault: boolean;
}

export interface LedgerOptions {
  readonly store: Store;
  /** The store's time, Unix milliseconds. */
  readonly now: () => number;
  /** Numbers from 0 to 1, for jitter. */
  readonly random: () => number;
  /** Who holds the leases: different for every start of a gateway. */
  readonly owner: string;
  /** How long a lease lasts without a heartbeat. */
  readonly leaseMs: number;
  /** How long a repeated delivery id counts as a duplicate: one hour (specification section 8). */
  readonly claimMs: number;
  /** How long a sender waits for the store; 10 seconds when not set. */
  readonly acceptTimeoutMs?: number;
  /** Ends what is still tried in the background. */
  readonly signal?: AbortSignal;
}

/** A gateway that dies during ten runs of one job is most likely killed by that job. */
const maxInterruptions = 10;

/** An answer that is exactly this is kept back (contract section 6). */
const silentAnswer = "[SILENT]";

/**
 * The durable record of events, jobs, runs, messages and attempts, in the words of the gateway. Every method that changes
 * something fulfils only after the change is on disk, and rejects with `StoreUnavailable` when it could not be made, or when
 * nobody can tell.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #store: Store;
  readonly #reach: Reach;
  readonly #withdrawals: Withdrawals;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#reach = new Reach(options.leaseMs / 3, options.now);
    const { store, now, signal = new AbortController().signal } = options;
    const reason = "The ledger could not say in time that it was kept; the sender was told to try again";
    this.#withdrawals = new Withdrawals(
      (eventId) => this.#reach.listen(store.withdraw({ eventId, now: now(), reason })),
      signal,
    );
  }

  /** True when other gateways may work on it, and take over what is held here once its lease has run out. */
  get isShared(): boolean {
    return this.#store.isShared;
  }

  /** Whether the lease still stands by our clock, for at least `marginMs`. Where nobody else works, it always does. */
  holds(item: Leased, marginMs = 0): boolean {
    return !this.#store.isShared || item.leaseUntil - marginMs > this.#options.now();
  }

  // ── a request

  /**
   * Keeps an event with the agent run we promise for it. False when its delivery id is claimed: nothing is kept.
   * @throws StoreUnavailable also when the store takes too long. It may keep the event after all: the sender's retry is then
   * a duplicate, and the run is made.
   */
  async acceptRun(event: Event, plan: Plan, drafts: readonly Draft[], terms: RunTerms): Promise<boolean> {
    const messages = drafts.map((draft) => this.#newMessage(draft, null));
    const job = { kind: "agent", plan: JSON.stringify(plan), ...terms, origin: null, messages } as const;
    const { duplicate } = await this.#inTime(this.#accept(event, job));
    return !duplicate;
  }

  /**
   * Keeps an event whose text is sent at once. Answers its messages, held by the caller, who must end each with `sent` or
   * `failed`; or that its delivery id is claimed, and whether what claimed it is still being sent by somebody.
   * @throws StoreUnavailable also when the store takes too long. What it keeps after all is taken back, so that the sender's
   * retry is no duplicate of something that nobody sends.
   */
  async acceptDirect(
    event: Event,
    text: string,
    drafts: readonly Draft[],
  ): Promise<Message[] | Extract<Accepted, { duplicate: true }>> {
    const messages = drafts.map((draft) => this.#newMessage(draft, text));
    const leaseUntil = this.#lease().leaseUntil;
    const terms = { route: event.route, onCrash: "fail", origin: null } as const;
    const answer = this.#accept(event, { kind: "direct", plan: "{}", ...terms, messages });
    const accepted = await this.#inTime(answer).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) void this.#withdraw(event, answer);
      throw error;
    });
    if (accepted.duplicate) return accepted;
    const known = { text, partsSent: 0, failures: 0, isUnsure: false, route: event.route, eventType: event.type };
    const lease = { fence: 1, leaseUntil, readyAt: leaseUntil - this.#options.leaseMs };
    return messages.map(({ id, target }, index) => {
      const { extra = {}, refusal = null, fallback = [] } = drafts[index] ?? {};
      return { id, target, extra, refusal, fallback, ...known, ...lease };
    });
  }

  /** Keeps an event that no job follows; `reason` names the clause that declined it. */
  async ignore(event: Event, reason: string): Promise<void> {
    await this.#reach.listen(this.#store.ignore({ ...eventRow(event), reason }));
  }

  // ── work

  /**
   * Takes back at once what a gateway that is gone held under a lease: before the first request, so that a sender's retry
   * of a direct delivery that was cut off finds its id free. Only for the holder of the home's lock; does nothing where
   * gateways share the store.
   */
  async takeOver(): Promise<void> {
    if (this.#store.isShared) return;
    await this.#store.expireLeases({ owner: this.#options.owner, now: this.#options.now() });
    const nothing = { limit: 0, active: [], limits: {} };
    await Promise.all([this.takeJobs(nothing), this.takeMessages(nothing)]);
  }

  async takeJobs(take: Take): Promise<Job[]> {
    const claim = this.#claim(take);
    const jobs = await this.#reach.listen(this.#store.claimJobs({ ...claim, maxInterruptions }));
    return jobs.map(({ plan, ...job }) => ({
      ...job,
      plan: JSON.parse(plan) as Plan,
      leaseUntil: claim.leaseUntil,
    }));
  }

  async takeMessages(take: Take): Promise<Message[]> {
    const claim = this.#claim(take);
    const messages = await this.#reach.listen(this.#store.claimMessages(claim));
    return messages.map(({ extra, fallback, ...message }) => ({
      ...message,
      extra: JSON.parse(extra) as Record<string, string>,
      fallback: placesIn(fallback),
      leaseUntil: claim.leaseUntil,
    }));
  }

  /**
   * Records how a run ended, and with it what comes next: its messages, another run (`tries` in all), or the end. False when
   * somebody else has the job, or stopped it: nothing was recorded.
   */
  async ran(job: Job, outcome: Outcome, tries = runRule.tries): Promise<boolean> {
    const now = this.#options.now();
    const ended = { ...held(job), now, result: resultRow(outcome) };
    const finish = (next: Parameters<Store["finishRun"]>[0]["next"]) =>
      this.#reach.listen(this.#store.finishRun({ ...ended, next }));
    if (outcome.status === "completed") {
      return finish({ move: "answer", silent: outcome.answer.trim() === silentAnswer });
    }
    const failures = job.failures + 1;
    if (!outcome.transient || failures >= tries) return finish({ move: "giveUp" });
    return finish({ move: "retry", runAt: now + jitteredMs(runRule, failures, this.#options.random) });
  }

  /** Gives a job back unharmed: the next gateway runs it. False when somebody else has it, or stopped it. */
  async giveBackJob(job: Job, outcome: Outcome): Promise<boolean> {
    const reason = "Given back: the gateway was stopped, or could not keep its lease";
    const result = { ...resultRow(outcome), outcome: "released", reason } as const;
    const now = this.#options.now();
    return this.#reach.listen(this.#store.finishRun({ ...held(job), now, result, next: { move: "release" } }));
  }

  /** Notes that the parts before `partsSent` were taken. False when somebody else has the message. */
  async partSent(message: Message, partsSent: number): Promise<boolean> {
    return this.#reach.listen(this.#store.recordPart({ ...held(message), partsSent }));
  }

  /** The target took the last part. False when somebody else has the message, and will send it again. */
  async sent(message: Message, reference: string | undefined): Promise<boolean> {
    const answer = await this.#finish(message, {
      outcome: "sent",
      error: null,
      reference: reference ?? null,
      next: { move: "take" },
      health: { mark: "well" },
    });
    return answer !== false;
  }

  /**
   * Records a failed try, and with it when the next one is, or the end. False when somebody else has the message. When it
   * was given up and its fallback goes on, answers the message that goes instead; that of a direct delivery is held by the
   * caller, who must end it too.
   */
  async failed(message: Message, error: DeliveryError, judgement: Judgement): Promise<boolean | Message> {
    const now = this.#options.now();
    const { rule, repeats, mayRetry, isTargetsFault } = judgement;
    const failed = { failures: message.failures + 1, readyAt: message.readyAt, now, error, repeats };
    const next = mayRetry ? afterFailure(rule, failed, this.#options.random) : { giveUp: error.message };
    const outcome = error.sent === "maybe" ? "unknown" : "refused";
    const health = isTargetsFault ? healthAfter(error, now) : null;
    if (!("giveUp" in next)) {
      const retry = { move: "retry", ...next } as const;
      return (await this.#finish(message, { outcome, error: error.message, next: retry, health })) !== false;
    }
    // A gateway that ends would go through the whole fallback of a direct delivery in vain.
    const fallback = mayRetry || isTargetsFault ? message.fallback : [];
    return this.#giveUp({ ...message, fallback }, { outcome, error: next.giveUp, health });
  }

  /**
   * Gives a message up without another try, because an earlier one may have gone through. False when somebody else has it,
   * or the message that goes instead, as `failed` does.
   */
  async giveUpUnsure(message: Message): Promise<boolean | Message> {
    const error = unsureReason("an earlier try ended without an answer");
    return this.#giveUp(message, { outcome: "unknown", error, health: null });
  }

  /** Gives a message back unharmed, to be sent on by whoever takes it next. False when somebody else has it. */
  async release(message: Message, reason: string): Promise<boolean> {
    const next = { move: "retry", dueAt: this.#options.now(), leaveLane: false } as const;
    return (await this.#finish(message, { outcome: "released", error: reason, next, health: null })) !== false;
  }

  /** Moves the leases on. Answers the ids that somebody else has meanwhile. */
  async heartbeat(jobs: readonly Leased[], messages: readonly Leased[]): Promise<readonly string[]> {
    const { leaseUntil } = this.#lease();
    const rows = { jobs: jobs.map(held), messages: messages.map(held) };
    const { lost } = await this.#reach.listen(this.#store.extendLeases({ ...rows, leaseUntil }));
    for (const item of [...jobs, ...messages]) {
      item.leaseUntil = lost.includes(item.id) ? 0 : Math.max(item.leaseUntil, leaseUntil);
    }
    return lost;
  }

  /** The ids that are not held any more: somebody cancelled them, or took them over. */
  async lost(jobs: readonly Held[], messages: readonly Held[]): Promise<readonly string[]> {
    const rows = { jobs: jobs.map(held), messages: messages.map(held) };
    return (await this.#reach.listen(this.#store.lostLeases(rows))).lost;
  }

  /** Sets queued agent jobs aside with a reason, or takes them back. Answers how many. */
  async park(reason: string): Promise<number> {
    return this.#reach.listen(this.#store.park({ reason, now: this.#options.now() }));
  }

  async unpark(): Promise<number> {
    return this.#reach.listen(this.#store.unpark({ now: this.#options.now() }));
  }

  async nextDue(): Promise<NextDue> {
    return this.#reach.listen(this.#store.nextDue({}));
  }

  /** Targets that failed lately, paused or not. */
  async troubles(): Promise<readonly TargetTrouble[]> {
    return this.#store.listTroubles({});
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  #accept(event: Event, job: Omit<NewJob, "id">): Promise<Accepted> {
    const { owner, claimMs } = this.#options;
    return this.#reach.listen(
      this.#store.accept({
        event: eventRow(event),
        claimUntil: event.receivedAt + claimMs,
        job: { id: newId(event.receivedAt), ...job },
        owner,
        leaseUntil: this.#lease().leaseUntil,
      }),
    );
  }

  /** Waits for the store as long as a sender may be kept waiting. */
  async #inTime<Value>(answer: Promise<Value>): Promise<Value> {
    const timeoutMs = this.#options.acceptTimeoutMs ?? 10_000;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.#reach.missed();
      reject(new StoreUnavailable(`The ledger did not answer within ${timeoutMs} ms`));
    }, timeoutMs);
    // What becomes of it later is no error of anybody's.
    answer.catch(() => {});
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  }

  /** Takes a direct delivery back whose sender was told to come again, as soon as the store has said what it can of it. */
  async #withdraw({ id }: Event, answer: Promise<Accepted>): Promise<void> {
    const accepted = await answer.catch(() => undefined);
    if (!accepted?.duplicate) this.#withdrawals.add(id);
  }

  async #giveUp(message: Message, end: Pick<End, "outcome" | "error" | "health">): Promise<boolean | Message> {
    const { now, leaseUntil } = this.#lease();
    const [place, ...fallback] = message.fallback;
    if (!place) return (await this.#finish(message, { ...end, next: { move: "giveUp" } })) !== false;
    const successor = { id: newId(now), leaseUntil };
    const answer = await this.#finish(message, { ...end, next: { move: "giveUp", successor } });
    if (answer !== "replaced") return answer;
    const { target, extra, refusal } = place;
    const fresh = { partsSent: 0, failures: 0, readyAt: now, isUnsure: false, fence: 1 };
    return { ...message, ...fresh, ...successor, target, extra, refusal, fallback };
  }

  #finish(message: Message, end: End): ReturnType<Store["finishAttempt"]> {
    const ended = { ...held(message), now: this.#options.now(), reference: null, ...end };
    return this.#reach.listen(this.#store.finishAttempt(ended));
  }

  #newMessage({ target, extra, lane, refusal, fallback }: Draft, text: string | null): NewMessage {
    const message = { id: newId(this.#options.now()), target, extra: JSON.stringify(extra), lane, text };
    return { ...message, refusal, fallback: fallbackText(fallback) };
  }

  #claim({ limit, active, limits }: Take) {
    const mayReclaim = !this.#store.isShared || this.#reach.mayReclaim;
    return { ...this.#lease(), limit, active: active.map(({ id }) => id), limits, mayReclaim };
  }

  #lease() {
    const now = this.#options.now();
    return { owner: this.#options.owner, now, leaseUntil: now + this.#options.leaseMs };
  }
}

/** The key of one part of a message: the same for every try of it. */
export function partKey(message: Pick<Message, "id">, index: number): string {
  return keyOf(message.id, index);
}

/** How a try ended, whose message is known. */
type End = Omit<FinishAttemptArgs, "id" | "fence" | "now" | "reference"> & { readonly reference?: string | null };

function held({ id, fence }: Held): Held {
  return { id, fence };
}
