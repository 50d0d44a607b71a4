import assert from "node:assert/strict";
import type { ClaimedJob, ClaimedMessage, NextDue, Store } from "../../../src/store/store.ts";
import { fc } from "../../tools/property.ts";
import {
  aClaim,
  aDirectEvent,
  aFailedTry,
  aLastTry,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  newJob,
  noon,
} from "../../tools/rows.ts";
import type { Place } from "../../tools/stores.ts";
import { answeredJob, idsOf, jobOf, minute, record, type Suite, states } from "./suite.ts";

/** Two processes on one ledger, and much at once. */
export function testSeveral(suite: Suite): void {
  testAccepting(suite);
  testClaiming(suite);
  testRaces(suite);
  testLanes(suite);
}

type Pair = readonly [Store, Store];

async function openPair(place: Place): Promise<Pair> {
  return [place.store, await place.open()];
}

function testAccepting({ on }: Suite): void {
  on("accept one of fifty copies that are spread over both", async (_watched, place) => {
    const pair = await openPair(place);
    const copies = Array.from({ length: 50 }, () => anAgentEvent({ deliveryId: "42" }));
    const answers = await Promise.all(copies.map((copy, index) => pair[index % 2]!.accept(copy)));
    const winner = copies[answers.findIndex(({ duplicate }) => !duplicate)]!;
    assert.equal(answers.filter(({ duplicate }) => !duplicate).length, 1);
    for (const store of pair) {
      assert.deepEqual(idsOf(await store.listEvents({ limit: 100 })), [winner.event.id]);
      assert.deepEqual(await store.tallyJobs({}), { queued: 1 });
    }
    assert.deepEqual(idsOf(await pair[0].claimJobs(aClaim({ limit: 100 }))), [winner.job.id]);
  });

  on("accept one of fifty direct copies, and call the others under way", async (_watched, place) => {
    const pair = await openPair(place);
    const copies = Array.from({ length: 50 }, () => aDirectEvent({ deliveryId: "42" }));
    const answers = await Promise.all(copies.map((copy, index) => pair[index % 2]!.accept(copy)));
    const others = answers.filter(({ duplicate }) => duplicate);
    assert.equal(others.length, 49);
    for (const answer of others) assert.deepEqual(answer, { duplicate: true, isUnderWay: true });
  });

  on("accept one of fifty copies of a delivery id whose claim has run out", async (_watched, place) => {
    const pair = await openPair(place);
    await pair[0].accept(anAgentEvent({ deliveryId: "42", claimMs: minute }));
    const copies = Array.from({ length: 50 }, () => anAgentEvent({ deliveryId: "42", at: noon + minute }));
    const forgetting = pair.map((store) => store.pruneClaims({ now: noon + minute, limit: 100 }));
    const answers = await Promise.all(copies.map((copy, index) => pair[index % 2]!.accept(copy)));
    await Promise.all(forgetting);
    assert.equal(answers.filter(({ duplicate }) => !duplicate).length, 1);
    assert.equal((await pair[1].accept(anAgentEvent({ deliveryId: "42", at: noon + minute + 1 }))).duplicate, true);
  });

  on("add jobs to an event and forget it at once: it is there with its job, or it is gone", async (_watched, place) => {
    const [one, two] = await openPair(place);
    for (let turn = 0; turn < 20; turn += 1) {
      const args = aDirectEvent();
      await one.accept(args);
      const eventId = args.event.id;
      await one.finishAttempt(anEndedTry({ id: args.job.messages[0]!.id, fence: 1 }));
      const [added] = await Promise.all([
        one.addJob({ eventId, now: noon, job: newJob("agent") }),
        two.prune({ after: "", limit: 100, before: { done: noon + 1 } }),
      ]);
      assert.equal((await two.readEvent({ id: eventId }))?.state, added ? "queued" : undefined);
    }
  });
}

/** Who holds what at this moment, as far as their holders know. */
class Holders {
  readonly #held = new Map<string, string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  take(ids: readonly string[], owner: string): void {
    for (const id of ids) {
      assert.equal(this.#held.get(id), undefined, `${owner} got what somebody holds`);
      this.#held.set(id, owner);
    }
    assert.ok(this.#held.size <= this.#most, `${this.#held.size} at once`);
  }

  /** Before the store hears of it: from then on somebody else may take it. */
  give(id: string): void {
    this.#held.delete(id);
  }
}

function testClaiming({ on }: Suite): void {
  on("never take the same job, and together run no more of a route than it may", async (_watched, place) => {
    const pair = await openPair(place);
    const events = Array.from({ length: 60 }, (_, index) =>
      anAgentEvent({ route: index % 3 === 0 ? "narrow" : "wide" }),
    );
    await Promise.all(events.map((event, index) => pair[index % 2]!.accept(event)));
    const limits = { narrow: 2, wide: 5 };
    const holders = { narrow: new Holders(2), wide: new Holders(5) };
    const ran: string[] = [];
    const work = async (store: Store, owner: string) => {
      const claim = () => store.claimJobs(aClaim({ owner, limit: 3, limits, mayReclaim: false }));
      const finish = async (job: ClaimedJob) => {
        // A run takes its time.
        const lease = { jobs: [{ id: job.id, fence: job.fence }], messages: [], leaseUntil: noon + minute };
        assert.deepEqual((await store.extendLeases(lease)).lost, []);
        holders[job.route as "narrow" | "wide"].give(job.id);
        ran.push(job.id);
        assert.equal(await store.finishRun(anEndedRun(job, { next: { move: "answer", silent: true } })), true);
      };
      while (ran.length < events.length) {
        const jobs = await claim();
        for (const job of jobs) holders[job.route as "narrow" | "wide"].take([job.id], owner);
        await Promise.all(jobs.map(finish));
      }
    };
    await Promise.all(["a", "b", "c", "d", "e", "f"].map((owner, index) => work(pair[index % 2]!, owner)));
    assert.deepEqual(ran.sort(), events.map(({ job }) => job.id).sort());
    assert.deepEqual(await pair[0].tallyJobs({}), {});
  });

  on("never take back a job twice when its gateway died", async (_watched, place) => {
    const pair = await openPair(place);
    for (let count = 0; count < 20; count += 1) await pair[0].accept(anAgentEvent({ deliveryId: `${count}` }));
    await pair[0].claimJobs(aClaim({ owner: "gone", limit: 20 }));
    const claims = ["a", "b", "c", "d"].map((owner, index) =>
      pair[index % 2]!.claimJobs(aClaim({ owner, now: noon + minute, limit: 20 })),
    );
    const claimed = (await Promise.all(claims)).flat();
    assert.equal(claimed.length, 20);
    assert.equal(new Set(idsOf(claimed)).size, 20);
    for (const { fence } of claimed) assert.equal(fence, 2);
  });

  on("try a target with one message after a pause, whoever of them asks", async (_watched, place) => {
    const pair = await openPair(place);
    for (let count = 0; count < 10; count += 1) await pair[0].accept(anAgentEvent());
    for (const job of await pair[0].claimJobs(aClaim())) await pair[0].finishRun(anEndedRun(job));
    const [first] = await pair[0].claimMessages(aClaim({ limit: 1 }));
    const health = { mark: "busy", until: noon + minute, reason: "busy" } as const;
    await pair[0].finishAttempt(aFailedTry(first!, noon, { health }));
    const claims = Array.from({ length: 10 }, (_, index) =>
      pair[index % 2]!.claimMessages(aClaim({ owner: `${index}`, now: noon + minute, mayReclaim: false })),
    );
    assert.equal((await Promise.all(claims)).flat().length, 1);
  });
}

function testRaces({ on }: Suite): void {
  on("end a job once when its two messages end at once", async (_watched, place) => {
    const pair = await openPair(place);
    for (let turn = 0; turn < 20; turn += 1) {
      const args = aDirectEvent({ targets: ["a", "b"] });
      await pair[0].accept(args);
      const ends = args.job.messages.map(({ id }, index) => pair[index]!.finishAttempt(anEndedTry({ id, fence: 1 })));
      assert.deepEqual(await Promise.all(ends), [true, true]);
      assert.equal((await record(pair[0], args.event.id)).state, "done");
    }
  });

  on("call the next message of a lane when the one before it ends and is stopped at once", async (_watched, place) => {
    const pair = await openPair(place);
    const laneOf = (turn: number) => `telegram ${turn}`;
    for (let turn = 0; turn < 20; turn += 1) {
      const events = await answered(pair[0], 3, laneOf(turn));
      const [first] = await pair[0].claimMessages(aClaim({ mayReclaim: false }));
      await Promise.all([
        pair[0].finishAttempt(anEndedTry(first!)),
        pair[1].cancel({ eventId: events[1]!, now: noon, reason: "Stopped" }),
      ]);
      assert.equal((await jobOf(pair[0], events[1]!)).state, "cancelled");
      const [next] = await pair[1].claimMessages(aClaim({ owner: "two", mayReclaim: false }));
      assert.equal(next?.jobId, (await jobOf(pair[0], events[2]!)).id, `turn ${turn}`);
      await pair[0].finishAttempt(anEndedTry(next!));
    }
  });

  on("stop a job while its message is taken: it is not sent, or not tried again", async (_watched, place) => {
    const pair = await openPair(place);
    for (let turn = 0; turn < 30; turn += 1) {
      const [eventId] = (await answered(pair[0], 1, `telegram ${turn}`)) as [string];
      const [cancelled, [message]] = await Promise.all([
        pair[0].cancel({ eventId, now: noon, reason: "Stopped" }),
        pair[1].claimMessages(aClaim({ mayReclaim: false })),
      ]);
      assert.equal(cancelled, 1);
      if (message) await pair[1].finishAttempt(aFailedTry(message, noon));
      assert.equal((await jobOf(pair[0], eventId)).state, "cancelled", `turn ${turn}`);
    }
  });

  on("give up two messages at once that go to each other's places instead", async (_watched, place) => {
    const [one, two] = await openPair(place);
    for (let turn = 0; turn < 20; turn += 1) {
      const at = noon + turn;
      const lanes = [`a ${turn}`, `b ${turn}`] as const;
      const here = { at, lane: lanes[0], fallback: ["t"], fallbackLane: lanes[1] };
      const there = { at, lane: lanes[1], fallback: ["t"], fallbackLane: lanes[0] };
      const jobs = [await answeredJob(one, here), await answeredJob(one, there)];
      const messages = await one.claimMessages(aClaim({ now: at, limits: { t: 0 } }));
      assert.equal(messages.length, 2);
      const ends = await Promise.all([
        one.finishAttempt(aLastTry(messages[0]!, { now: at })),
        two.finishAttempt(aLastTry(messages[1]!, { now: at })),
      ]);
      assert.deepEqual(ends, ["replaced", "replaced"]);
      for (const { eventId } of jobs)
        assert.deepEqual(await states(one, eventId), ["delivering", "replaced", "pending"]);
    }
  });

  on("call one message when the first of a lane ends while another is put in", async (_watched, place) => {
    const pair = await openPair(place);
    for (let turn = 0; turn < 20; turn += 1) {
      const lane = `telegram ${turn}`;
      await answered(pair[0], 1, lane);
      const [first] = await pair[0].claimMessages(aClaim({ mayReclaim: false }));
      const added = anAgentEvent({ lane });
      await pair[0].accept(added);
      const [job] = await pair[1].claimJobs(aClaim({ mayReclaim: false }));
      await Promise.all([pair[0].finishAttempt(anEndedTry(first!)), pair[1].finishRun(anEndedRun(job!))]);
      const [next] = await pair[0].claimMessages(aClaim({ mayReclaim: false }));
      assert.equal(next?.jobId, job?.id, `turn ${turn}`);
      await pair[0].finishAttempt(anEndedTry(next!));
    }
  });
}

/** Events whose only message is on its way to one place. */
async function answered(store: Store, count: number, lane: string): Promise<string[]> {
  const events: string[] = [];
  for (let done = 0; done < count; done += 1) {
    const event = anAgentEvent({ lane });
    await store.accept(event);
    const [job] = await store.claimJobs(aClaim({ mayReclaim: false }));
    assert.equal(job?.id, event.job.id);
    await store.finishRun(anEndedRun(job!, { now: noon + done }));
    events.push(event.event.id);
  }
  return events;
}

const lanes = ["a 1", "a 2", "b 1", "b 2", "b 3", "c 1"];
const perLane = 12;

/** What becomes of one message's tries, drawn in advance so that a seed brings the same draws again. */
const fates = fc.array(fc.nat({ max: 99 }), { minLength: 400, maxLength: 400 });

function testLanes({ on }: Suite): void {
  on(
    "send everything, one at a time and in order in each lane, through failures, stops and deaths",
    async (_watched, place) => {
      await fc.assert(
        fc.asyncProperty(fates, async (draws) => {
          await new Bustle(await openPair(place), draws).run();
        }),
        { numRuns: 1, endOnFailure: true },
      );
    },
  );
}

/** Everything that gateways do at once with a few lanes, until nothing is left to do. */
class Bustle {
  readonly #pair: Pair;
  readonly #draws: readonly number[];
  #drawn = 0;
  #now = noon;
  /** Lane and place in it of each message. */
  readonly #places = new Map<string, { readonly lane: string; readonly position: number; readonly eventId: string }>();
  readonly #busy = new Map<string, string>();
  readonly #left = new Set<string>();
  readonly #sent = new Map<string, number[]>();
  #isProducing = true;

  constructor(pair: Pair, draws: readonly number[]) {
    this.#pair = pair;
    this.#draws = draws;
  }

  async run(): Promise<void> {
    const producing = Promise.all(lanes.map((lane, index) => this.#produce(this.#pair[index % 2]!, lane)));
    const working = ["one", "two", "three", "four", "five"].map((owner, index) =>
      this.#send(this.#pair[index % 2]!, owner),
    );
    await producing;
    this.#isProducing = false;
    await Promise.all(working);
    await this.#check();
  }

  #draw(): number {
    this.#drawn += 1;
    return this.#draws[this.#drawn % this.#draws.length]!;
  }

  /** Answers jobs for one place, one after the other; some events are stopped at some later moment. */
  async #produce(store: Store, lane: string): Promise<void> {
    const stops: Promise<unknown>[] = [];
    for (let position = 0; position < perLane; position += 1) {
      const event = anAgentEvent({ lane, route: lane, targets: [lane.slice(0, 1)], deliveryId: `${lane} ${position}` });
      const eventId = event.event.id;
      for (const { id } of event.job.messages) this.#places.set(id, { lane, position, eventId });
      await store.accept(event);
      // Every lane is a route of its own, so that this is the job that is found.
      const others = Object.fromEntries(lanes.filter((one) => one !== lane).map((one) => [one, 0]));
      const [job] = await store.claimJobs(aClaim({ owner: lane, limits: others, mayReclaim: false }));
      assert.equal(job?.id, event.job.id);
      this.#now += 1;
      assert.equal(await store.finishRun(anEndedRun(job!, { now: this.#now })), true);
      if (this.#draw() < 15) stops.push(this.#pair[position % 2]!.cancel({ eventId, now: noon, reason: "Stopped" }));
    }
    await Promise.all(stops);
  }

  async #send(store: Store, owner: string): Promise<void> {
    const active = new Set<string>();
    for (;;) {
      const wasProducing = this.#isProducing;
      const claim = { owner, now: this.#now + minute, leaseUntil: this.#now + 10 * minute, limit: 4 };
      const claimed = await store.claimMessages(aClaim({ ...claim, active: [...active], mayReclaim: true }));
      for (const message of claimed) this.#begin(message, owner);
      await Promise.all(claimed.map((message) => this.#end(store, message)));
      if (claimed.length === 0 && !wasProducing && isIdle(await store.nextDue({}))) return;
    }
  }

  #begin({ id }: ClaimedMessage, owner: string): void {
    const { lane } = this.#places.get(id)!;
    if (this.#left.has(id)) return;
    assert.equal(this.#busy.get(lane), undefined, `${owner} got a second message of the lane ${lane}`);
    this.#busy.set(lane, id);
  }

  async #end(store: Store, message: ClaimedMessage): Promise<void> {
    const { lane, position } = this.#places.get(message.id)!;
    const draw = this.#draw();
    // A try takes its time.
    assert.equal(await store.recordPart({ id: message.id, fence: message.fence, partsSent: 1 }), true);
    const now = this.#now;
    if (!this.#left.has(message.id)) this.#busy.delete(lane);
    if (draw < 5) {
      // Its gateway dies: the lease runs out, and somebody takes it back.
      const lease = { messages: [{ id: message.id, fence: message.fence }], jobs: [], leaseUntil: noon };
      assert.deepEqual((await store.extendLeases(lease)).lost, []);
    } else if (draw < 20) {
      const leaveLane = draw < 10;
      if (leaveLane) this.#left.add(message.id);
      const health = { mark: "trouble", threshold: 3, firstPauseMs: 1, longestPauseMs: 2, reason: "Down" } as const;
      assert.equal(await store.finishAttempt(aFailedTry(message, now, { now, leaveLane, health })), true);
    } else if (draw < 30) {
      assert.equal(await store.finishAttempt(aLastTry(message, { now })), true);
    } else {
      if (!this.#left.has(message.id)) this.#sent.set(lane, [...(this.#sent.get(lane) ?? []), position]);
      const taken = { now, health: { mark: "well" } } as const;
      assert.equal(await store.finishAttempt(anEndedTry(message, taken)), true);
    }
  }

  async #check(): Promise<void> {
    for (const [lane, positions] of this.#sent) {
      assert.deepEqual(
        positions,
        positions.toSorted((one, other) => one - other),
        `the lane ${lane} in order`,
      );
    }
    for (const { eventId } of this.#places.values()) {
      const { state } = await record(this.#pair[0], eventId);
      assert.ok(["done", "dead", "cancelled"].includes(state), state);
    }
  }
}

function isIdle({ messages }: NextDue): boolean {
  return messages.length === 0;
}
