import assert from "node:assert/strict";
import { newId } from "../../../src/core/id.ts";
import { finalJobStates } from "../../../src/store/states.ts";
import type { Held, Store } from "../../../src/store/store.ts";
import type { fc } from "../../tools/property.ts";
import {
  aClaim,
  aDirectEvent,
  aFailedTry,
  aLastTry,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  aResult,
  newJob,
} from "../../tools/rows.ts";
import type { Place } from "../../tools/stores.ts";
import {
  activeOf,
  checkAfter,
  everything,
  type Hold,
  hold,
  isFinal,
  look,
  type Model,
  type Real,
  type Row,
} from "./model.ts";

export const second = 1_000;
export const claimMs = 600 * second;
export const leaseMs = 30 * second;
const maxInterruptions = 3;

abstract class Step implements fc.AsyncCommand<Model, Real> {
  check(_model: Readonly<Model>): boolean {
    return true;
  }

  async run(model: Model, real: Real): Promise<void> {
    await this.act(model, real);
    await checkAfter(model, real);
  }

  abstract act(model: Model, real: Real): Promise<void>;

  toString(): string {
    return `${this.constructor.name} ${JSON.stringify(this)}`;
  }
}

export class Accept extends Step {
  readonly kind: "agent" | "direct";
  readonly route: string;
  readonly deliveryId: string;
  readonly owner: string;
  readonly parts: {
    readonly targets: readonly string[];
    readonly lane?: string;
    readonly onCrash: "rerun" | "fail";
    readonly fallback: readonly string[];
    readonly fallbackLane?: string;
  };

  constructor(kind: "agent" | "direct", route: string, deliveryId: string, owner: string, parts: Accept["parts"]) {
    super();
    this.kind = kind;
    this.route = route;
    this.deliveryId = deliveryId;
    this.owner = owner;
    this.parts = parts;
  }

  async act(model: Model, { store, seen }: Real): Promise<void> {
    const { kind, route, deliveryId, owner } = this;
    const { lane, fallbackLane, ...parts } = this.parts;
    // What is sent at once is in no lane.
    const isOrdered = kind === "agent" && lane !== undefined;
    const place = isOrdered ? { lane, ...(fallbackLane !== undefined && { fallbackLane }) } : {};
    const event = kind === "agent" ? anAgentEvent : aDirectEvent;
    const args = event({ at: model.now, route, deliveryId, owner, leaseMs, claimMs, ...parts, ...place });
    const key = `${route} ${deliveryId}`;
    const claim = model.claims.get(key);
    const answer = await store.accept(args);
    assert.equal(answer.duplicate, claim !== undefined && claim.until > model.now, "a duplicate while a claim holds");
    if (answer.duplicate) {
      const first = [...seen.jobs.values()].filter(({ parent }) => parent === claim?.eventId);
      const isUnderWay = first.some((job) => job.kind === "direct" && job.state === "delivering");
      assert.equal(answer.isUnderWay, isUnderWay);
      return;
    }
    model.accepted.set(args.event.id, key);
    model.claims.set(key, { eventId: args.event.id, until: model.now + claimMs });
    for (const { id } of args.job.messages) model.fallbacks.set(id, parts.fallback.length);
    if (kind === "direct")
      for (const { id } of args.job.messages) hold(model, owner, "messages", { id, fence: 1 }, true);
  }
}

export class Claim extends Step {
  readonly what: Hold["what"];
  readonly owner: string;
  readonly limit: number;
  readonly mayReclaim: boolean;

  constructor(what: Hold["what"], owner: string, limit: number, mayReclaim: boolean) {
    super();
    this.what = what;
    this.owner = owner;
    this.limit = limit;
    this.mayReclaim = mayReclaim;
  }

  async act(model: Model, { store, seen, place }: Real): Promise<void> {
    const { what, owner, limit, mayReclaim } = this;
    const { now } = model;
    const active = new Set([...activeOf(model, owner)].map(({ id }) => id));
    const claim = aClaim({
      owner,
      now,
      leaseUntil: now + leaseMs,
      limit,
      mayReclaim,
      maxInterruptions,
      active: [...active],
    });
    const claimed = await (what === "jobs" ? store.claimJobs(claim) : store.claimMessages(claim));
    for (const { id, fence } of claimed) {
      const row = seen[what].get(id)!;
      const isHeld = row.state === "running" || row.state === "sending";
      const isLost = mayReclaim && row.leaseUntil <= now && (row.owner !== owner || !active.has(id));
      assert.ok(!isHeld || isLost, "nothing is taken from somebody alive");
      assert.equal(fence, row.fence + 1);
      hold(model, owner, what, { id, fence });
    }
    assert.ok(claimed.length <= limit);
    if (claimed.length === limit) return;
    const due = [...(await look(place))[what].values()].filter(
      ({ state, due }) => (state === "queued" || state === "pending") && due <= now,
    );
    assert.deepEqual(due, [], "nothing that is due is left lying");
  }
}

export class Heartbeat extends Step {
  readonly owner: string;

  constructor(owner: string) {
    super();
    this.owner = owner;
  }

  async act(model: Model, { store, seen }: Real): Promise<void> {
    const holds = [...activeOf(model, this.owner)];
    const of = (what: Hold["what"]) => holds.filter((one) => one.what === what).map(({ id, fence }) => ({ id, fence }));
    const rows = { jobs: of("jobs"), messages: of("messages") };
    const lost = [...rows.jobs.map(lostIn(seen.jobs)), ...rows.messages.map(lostIn(seen.messages))].flat();
    assert.deepEqual((await store.lostLeases(rows)).lost, lost);
    assert.deepEqual((await store.extendLeases({ ...rows, leaseUntil: model.now + leaseMs })).lost, lost);
    for (const one of holds) if (lost.includes(one.id)) activeOf(model, this.owner).delete(one);
  }
}

/** The id when the row is not worked on under this fence any more. */
function lostIn(rows: ReadonlyMap<string, Row>): (held: Held) => string[] {
  return ({ id, fence }) => {
    const row = rows.get(id);
    const isHeld = row?.fence === fence && (row.state === "running" || row.state === "sending");
    return isHeld ? [] : [id];
  };
}

/** An owner forgets what it holds; what it does may still be under way and be reported on. */
export class Crash extends Step {
  readonly owner: string;

  constructor(owner: string) {
    super();
    this.owner = owner;
  }

  async act(model: Model): Promise<void> {
    activeOf(model, this.owner).clear();
  }
}

/** An operation on something that was held once, maybe long ago. */
abstract class Report extends Step {
  readonly what: Hold["what"];
  readonly pick: number;

  constructor(what: Hold["what"], pick: number) {
    super();
    this.what = what;
    this.pick = pick;
  }

  override check(model: Readonly<Model>): boolean {
    return model.holds.some(({ what }) => what === this.what);
  }

  async act(model: Model, real: Real): Promise<void> {
    const holds = model.holds.filter(({ what }) => what === this.what);
    // The newest ones are more likely to be held still.
    const held = holds[holds.length - 1 - (this.pick % holds.length)]!;
    const row = real.seen[this.what].get(held.id);
    const isExpected = row !== undefined && row.fence === held.fence && this.accepts(row.state, held);
    const before = isExpected ? undefined : await everything(real.place);
    assert.equal(await this.report(model, real.store, held), isExpected);
    if (before) assert.deepEqual(await everything(real.place), before, "a stale fence changes nothing");
  }

  abstract accepts(state: string, held: Hold): boolean;
  abstract report(model: Model, store: Store, held: Hold): Promise<boolean>;
}

export class FinishRun extends Report {
  readonly move: "answer" | "silent" | "retry" | "release" | "giveUp";

  constructor(pick: number, move: FinishRun["move"]) {
    super("jobs", pick);
    this.move = move;
  }

  accepts(state: string): boolean {
    const isAnswer = this.move === "answer" || this.move === "silent";
    return state === "running" || (isAnswer && state === "queued");
  }

  async report(model: Model, store: Store, held: Hold): Promise<boolean> {
    const { now } = model;
    const next = {
      answer: { move: "answer", silent: false },
      silent: { move: "answer", silent: true },
      retry: { move: "retry", runAt: now + 5 * second },
      release: { move: "release" },
      giveUp: { move: "giveUp" },
    } as const;
    const isGood = this.move === "answer" || this.move === "silent";
    const result = isGood ? aResult() : aResult({ outcome: "failed", reason: "Down", answer: null });
    const done = await store.finishRun(anEndedRun(held as never, { now, result, next: next[this.move] }));
    activeOf(model, held.owner).delete(held);
    return done;
  }
}

export class FinishAttempt extends Report {
  readonly end: "sent" | "refused" | "unknown" | "released" | "leaves" | "dead";

  constructor(pick: number, end: FinishAttempt["end"]) {
    super("messages", pick);
    this.end = end;
  }

  accepts(state: string, held: Hold): boolean {
    return state === "sending" || (this.#endOf(held) === "sent" && state === "pending");
  }

  async report(model: Model, store: Store, held: Hold): Promise<boolean> {
    const { now } = model;
    const end = this.#endOf(held);
    const leaveLane = end === "leaves";
    const left = model.stopped.has(held.id) ? 0 : (model.fallbacks.get(held.id) ?? 0);
    const successor = { id: newId(now), leaseUntil: now + leaseMs };
    const outcome = end === "unknown" || end === "released" ? end : "refused";
    const tried =
      end === "sent"
        ? anEndedTry(held, { now })
        : end === "dead"
          ? aLastTry(held, { now, next: { move: "giveUp", successor } })
          : aFailedTry(held, now + 5 * second, { now, outcome, leaveLane });
    const done = await store.finishAttempt(tried);
    activeOf(model, held.owner).delete(held);
    if (done && end === "sent") {
      assert.ok(!model.sent.has(held.id), "nothing counts as sent twice");
      model.sent.add(held.id);
    }
    if (done !== false)
      assert.equal(done === "replaced", end === "dead" && left > 0, "replaced while there is another");
    if (done !== "replaced") return done;
    model.fallbacks.set(successor.id, left - 1);
    if (held.isDirect) hold(model, held.owner, "messages", { id: successor.id, fence: 1 }, true);
    return true;
  }

  /** The sender of a direct delivery waits for no second try. */
  #endOf({ isDirect }: Hold): FinishAttempt["end"] {
    return isDirect && this.end !== "sent" ? "dead" : this.end;
  }
}

export class RecordPart extends Report {
  constructor(pick: number) {
    super("messages", pick);
  }

  accepts(state: string): boolean {
    return state === "sending" || state === "pending";
  }

  report(_model: Model, store: Store, { id, fence }: Hold): Promise<boolean> {
    return store.recordPart({ id, fence, partsSent: this.pick });
  }
}

/** Something done to an event by hand. */
abstract class ByHand extends Step {
  readonly pick: number;

  constructor(pick: number) {
    super();
    this.pick = pick;
  }

  override check(model: Readonly<Model>): boolean {
    return model.accepted.size > 0;
  }

  eventId({ accepted }: Model): string {
    return [...accepted.keys()][this.pick % accepted.size]!;
  }

  /** What is open of the event. */
  async open(model: Model, place: Place): Promise<{ jobs: Row[]; messages: Row[] }> {
    const seen = await look(place);
    const jobs = [...seen.jobs.values()].filter(({ parent }) => parent === this.eventId(model));
    const messages = [...seen.messages.values()].filter(({ parent }) => jobs.some(({ id }) => id === parent));
    return {
      jobs: jobs.filter(({ state }) => !isFinal.jobs(state)),
      messages: messages.filter(({ state }) => !isFinal.messages(state)),
    };
  }
}

export class Replay extends ByHand {
  readonly kind: "agent" | "delivery";
  readonly lane: string | undefined;

  constructor(pick: number, kind: Replay["kind"], lane: string | undefined) {
    super(pick);
    this.kind = kind;
    this.lane = lane;
  }

  async act(model: Model, { store }: Real): Promise<void> {
    const { now } = model;
    const job = newJob(this.kind, { at: now, ...(this.lane !== undefined && { lane: this.lane }) });
    assert.equal(await store.addJob({ eventId: this.eventId(model), now, job }), true);
    assert.equal(await store.addJob({ eventId: "gone", now, job }), false);
  }
}

export class Cancel extends ByHand {
  async act(model: Model, { store, place, seen }: Real): Promise<void> {
    const before = await this.open(model, place);
    const cancelled = await store.cancel({ eventId: this.eventId(model), now: model.now, reason: "Stopped" });
    const stopped = before.jobs.filter(({ id, kind, state }) => {
      const messages = before.messages.filter(({ parent }) => parent === id);
      return state !== "delivering" || messages.some(({ state }) => state !== "sending" || kind !== "direct");
    });
    assert.equal(cancelled, stopped.length);
    const after = await this.open(model, place);
    const left = before.messages.filter(({ state }) => state === "sending").map(({ id }) => id);
    const direct = new Set(before.jobs.filter(({ kind }) => kind === "direct").map(({ id }) => id));
    for (const { id, parent, state } of before.messages) {
      if (state === "sending" && !direct.has(parent)) model.stopped.add(id);
    }
    assert.deepEqual(after.messages.map(({ id }) => id).sort(), left.sort(), "what is being sent ends as it will");
    for (const { state } of after.jobs) assert.equal(state, "delivering");
    if (stopped.length === 0) assert.deepEqual(await look(place), seen);
  }
}

export class Withdraw extends ByHand {
  async act(model: Model, { store, place }: Real): Promise<void> {
    const { jobs } = await this.open(model, place);
    await store.withdraw({ eventId: this.eventId(model), now: model.now, reason: "Late" });
    const after = await this.open(model, place);
    assert.deepEqual(
      after.jobs.map(({ id }) => id),
      jobs.filter(({ kind }) => kind !== "direct").map(({ id }) => id),
    );
  }
}

export class Wait extends Step {
  readonly ms: number;

  constructor(ms: number) {
    super();
    this.ms = ms;
  }

  async act(model: Model): Promise<void> {
    model.now += this.ms;
  }
}

export class Park extends Step {
  async act({ now }: Model, { store, seen }: Real): Promise<void> {
    const queued = [...seen.jobs.values()].filter(({ state }) => state === "queued" || state === "waiting");
    await store.park({ reason: "No model", now });
    assert.equal(await store.unpark({ now }), queued.length);
  }
}

export class Prune extends Step {
  readonly ageMs: number;

  constructor(ageMs: number) {
    super();
    this.ageMs = ageMs;
  }

  async act(model: Model, { store, seen }: Real): Promise<void> {
    const before = model.now - this.ageMs;
    const old = [...model.accepted.keys()].filter((eventId) =>
      [...seen.jobs.values()].every(
        ({ parent, state, updatedAt }) => parent !== eventId || (isFinal.jobs(state) && updatedAt < before),
      ),
    );
    const bounds = Object.fromEntries(finalJobStates.map((state) => [state, before]));
    let forgotten = 0;
    for (let after: string | undefined = ""; after !== undefined; ) {
      const pruned: Awaited<ReturnType<Store["prune"]>> = await store.prune({ after, limit: 2, before: bounds });
      forgotten += pruned.forgotten;
      after = pruned.next;
    }
    assert.equal(forgotten, old.length);
    for (const id of old) model.accepted.delete(id);
    const over = [...model.claims].filter(([, { until }]) => until <= model.now);
    assert.equal(await store.pruneClaims({ now: model.now, limit: 1000 }), over.length);
    for (const [key] of over) model.claims.delete(key);
  }
}
