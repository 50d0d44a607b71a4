import type { EventRecord, JobRecord, MessageRecord } from "../src/store/store.ts";
import type { AgentRun, Span } from "./agent.ts";
import type { Trouble } from "./faults.ts";
import type { Answer } from "./load.ts";
import type { PlannedEvent, RoundPlan } from "./plan.ts";
import type { Copy, Lookup } from "./road.ts";
import { type ChaosRoute, chaosRoutes, keyOf, type Piece, piecesOf, routeNamed } from "./routes.ts";

/** Everything that is known of a round after it. */
export interface Evidence {
  readonly plan: RoundPlan;
  readonly answers: readonly Answer[];
  readonly copies: readonly Copy[];
  readonly lookups: readonly Lookup[];
  readonly troubles: readonly Trouble[];
  readonly records: readonly EventRecord[];
  /** Runs of the agent that came to their end, by the agent's own watch. */
  readonly runs: readonly AgentRun[];
  readonly leaseMs: number;
  /** What gateways did, or the ledger's check found, that nobody expects of them, in words. */
  readonly surprises: readonly string[];
}

/** Something that breaks a promise. */
export interface Violation {
  /** One word or two for the kind, in capitals. */
  readonly kind: string;
  /** Of the event; none when it is about a gateway. */
  readonly n: number | undefined;
  readonly detail: string;
}

export interface Verdict {
  /** Events that a gateway promised to deliver (202), or said it had (200). */
  readonly promised: number;
  /** How many of those were delivered so often: `{ "1": 298, "2": 2 }`. */
  readonly delivered: Readonly<Record<string, number>>;
  /** Of those, delivered more than once, and allowed to. */
  readonly twiceAllowed: number;
  /** Of those, sent directly, and called refused by the ledger, because its gateway was cut off from it. */
  readonly mistaken: number;
  /** Answered 503 or 502 in the end, and not answered at all. */
  readonly refused: number;
  readonly unanswered: number;
  /** Of these, how many arrived all the same. */
  readonly arrivedAnyway: number;
  readonly violations: readonly Violation[];
}

/** A busy gateway may need so long to record a target's answer; what stood still goes on so much later. */
const recordingMs = 5_000;
const awakeningMs = 1_000;
/** Clocks of several gateways differ a little, and what becomes ready at nearly the same time has no order. */
const sameTimeMs = 250;
/** How long a busy gateway may take to look for work of others. */
const lookingMs = 3_000;

/** Counts how often every event was delivered, and decides what of it breaks a promise. */
export function judge(evidence: Evidence): Verdict {
  const cases = evidence.plan.events.map((event) => openCase(event, evidence));
  const promised = cases.filter(({ isPromised }) => isPromised);
  const others = cases.filter(({ isPromised }) => !isPromised);
  const delivered: Record<string, number> = {};
  for (const { times } of promised) delivered[times] = (delivered[times] ?? 0) + 1;
  const violations = cases.flatMap((one) => faultsOf(one, evidence));
  const guilty = new Set(violations.map(({ n }) => n));
  return {
    promised: promised.length,
    delivered,
    twiceAllowed: promised.filter(({ times, event }) => times > 1 && !guilty.has(event.n)).length,
    mistaken: promised.filter(isMistaken).length,
    refused: others.filter(({ answers }) => answers.some(({ status }) => status !== undefined)).length,
    unanswered: others.filter(({ answers }) => answers.every(({ status }) => status === undefined)).length,
    arrivedAnyway: others.filter(({ times }) => times > 0).length,
    violations: [
      ...violations,
      ...disorders(evidence),
      ...delays(evidence),
      ...crowds(evidence),
      ...strays(evidence),
      ...evidence.surprises.map((detail) => ({ kind: "SURPRISE", n: undefined, detail })),
    ],
  };
}

interface Case {
  readonly event: PlannedEvent;
  readonly answers: readonly Answer[];
  readonly isPromised: boolean;
  /** What the ledger holds under its delivery id. */
  readonly records: readonly EventRecord[];
  readonly jobs: readonly JobRecord[];
  readonly pieces: readonly { readonly piece: Piece; readonly copies: readonly Copy[] }[];
  /** How often all of it arrived; more than once when any piece of it did. */
  readonly times: number;
}

function openCase(event: PlannedEvent, { answers, copies, records }: Evidence): Case {
  const own = answers.filter(({ n }) => n === event.n);
  const held = records.filter(({ deliveryId, route }) => deliveryId === event.deliveryId && route === event.route);
  const pieces = piecesOf(event.route, event).map((piece) => {
    return { piece, copies: copies.filter((copy) => keyOf(copy) === keyOf(piece)) };
  });
  const counts = pieces.map((one) => one.copies.length);
  return {
    ...{ event, pieces, records: held, answers: own },
    jobs: held.flatMap(({ jobs }) => jobs),
    isPromised: own.some(({ status }) => status === 200 || status === 202),
    times: Math.min(...counts) === 0 ? 0 : Math.max(...counts),
  };
}

function faultsOf(one: Case, evidence: Evidence): Violation[] {
  const found: [kind: string, detail: string | undefined][] = [
    ["ANSWER", oddAnswer(one)],
    ["LOST", lost(one)],
    ["TWO JOBS", severalJobs(one)],
    ["NOT DONE", notDone(one)],
    ["NOT SENT", saidSent(one)],
    ["TWICE", twice(one, evidence)],
  ];
  return found.flatMap(([kind, detail]) => (detail === undefined ? [] : [{ kind, n: one.event.n, detail }]));
}

/** Signed, known, and within every limit: so there is nothing to answer but this. */
function oddAnswer({ event, answers, jobs }: Case): string | undefined {
  const allowed = routeNamed(event.route).isDirect ? [200, 502, 503] : [200, 202, 503];
  const odd = answers.find(({ status }) => status !== undefined && !allowed.includes(status));
  if (odd) return `answered ${odd.status} "${odd.said}"`;
  const accepted = answers.filter(({ said }) => said === "accepted" || said === "delivered");
  // A direct delivery that was sent and then thought cut off has freed its id, and its sender hears late that it was sent.
  const mistaken = routeNamed(event.route).isDirect ? jobs.filter(wasCutOff).length : 0;
  if (accepted.length < 2 + mistaken) return undefined;
  return `${accepted.length} copies of one delivery id were answered "${accepted[0]?.said}"`;
}

function lost({ isPromised, times, pieces }: Case): string | undefined {
  if (!isPromised || times > 0) return undefined;
  const missing = pieces.filter(({ copies }) => copies.length === 0).length;
  return `promised, and ${missing} of ${pieces.length} pieces arrived nowhere`;
}

/** A direct delivery that failed frees its id, so the sender's next try is another event. */
function severalJobs(one: Case): string | undefined {
  const { isPromised, records, jobs } = one;
  const kept = jobs.filter(({ state }) => state !== "refused");
  if (kept.length > 1) return `${kept.length} jobs in ${records.length} events`;
  if (!isPromised || kept.length > 0 || isMistaken(one)) return undefined;
  return "promised, and the ledger has no job for it";
}

/**
 * Sent directly and its sender told so, but the ledger calls it refused: its gateway could not say so in time, and the others
 * thought that it had died.
 */
function isMistaken({ event, isPromised, jobs, times }: Case): boolean {
  if (!routeNamed(event.route).isDirect || !isPromised || times === 0) return false;
  return jobs.every(({ state }) => state === "refused") && jobs.some(wasCutOff);
}

/** A direct delivery whose gateway was thought dead while it was sending. */
function wasCutOff({ state, messages }: JobRecord): boolean {
  const attempts = messages.flatMap((message) => message.attempts);
  return state === "refused" && attempts.some(({ outcome }) => outcome === "interrupted");
}

/** No fault lasts so long that tries are exhausted, and nobody cancels anything. */
function notDone({ jobs }: Case): string | undefined {
  const odd = jobs.find(({ state }) => state !== "done" && state !== "refused");
  return odd && `its job is ${odd.state}${odd.reason === null ? "" : `: ${odd.reason}`}`;
}

/** What the ledger calls sent must have arrived, whatever its sender was told. */
function saidSent({ jobs, pieces }: Case): string | undefined {
  const isDone = jobs.some(({ state }) => state === "done");
  return isDone && pieces.some(({ copies }) => copies.length === 0) ? "the ledger calls it sent" : undefined;
}

function twice(one: Case, evidence: Evidence): string | undefined {
  for (const { piece, copies } of one.pieces) {
    if (copies.length < 2) continue;
    const told = `${copies.length} copies of "${firstLine(piece.text)}" at ${piece.place}`;
    if (evidence.plan.isStrict) return `${told} after orderly stops`;
    const excused = copies.filter((copy) => isExcused(copy, copies, evidence));
    if (excused.length < copies.length - 1) return `${told}, of which ${excused.length} were in flight or unanswered`;
    const unsure = unsureTries(one);
    if (unsure < copies.length - 1) return `${told}, but the ledger knows of ${unsure} tries with an unknown end`;
  }
  return undefined;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

/** Whether the gateway could not know that this copy had been taken. */
function isExcused(copy: Copy, all: readonly Copy[], { troubles, lookups }: Evidence): boolean {
  const wasTroubled = troubles.some(
    ({ gateway, from, to }) =>
      (gateway === undefined || gateway === copy.gateway) &&
      copy.arrivedAt <= to + awakeningMs &&
      copy.endedAt >= from - recordingMs,
  );
  if (!copy.place.startsWith("github")) return wasTroubled || copy.fate === "lost";
  // There it could have looked: it is excused only if the copy was taken after the next try had done so.
  const next = all.find(({ takenAt }) => takenAt > copy.takenAt);
  const wasFindable = lookups.some(
    ({ place, at }) => place === copy.place && at > copy.takenAt && at < (next?.takenAt ?? Number.POSITIVE_INFINITY),
  );
  return wasTroubled && !wasFindable;
}

function unsureTries({ jobs }: Case): number {
  const attempts = jobs.flatMap(({ messages }: { messages: readonly MessageRecord[] }) =>
    messages.flatMap((message) => message.attempts),
  );
  return attempts.filter(({ outcome }) => outcome === "unknown" || outcome === "interrupted").length;
}

/** Messages for one place that arrived in another order than their texts were known in. */
function disorders({ plan, records, copies, troubles }: Evidence): Violation[] {
  // An answer that was being recorded when its gateway was cut off is in the ledger later than it says.
  const wasDelayed = ({ readyAt }: Lined) =>
    troubles.some(({ from, to }) => readyAt >= from - recordingMs && readyAt <= to + awakeningMs);
  const known = lined(plan, records, copies).filter((message) => !wasDelayed(message));
  const lanes = Map.groupBy(known, ({ lane }) => lane);
  return [...lanes.values()].flatMap((messages) => {
    const inOrder = messages.toSorted((one, other) => one.readyAt - other.readyAt);
    return inOrder.flatMap((message, index) => {
      const before = inOrder[index - 1];
      if (!before || message.readyAt - before.readyAt < sameTimeMs || message.from >= before.to) return [];
      return [{ kind: "ORDER", n: message.n, detail: `arrived at ${message.lane} before event ${before.n} had` }];
    });
  });
}

/** A message that kept its place in a lane, and from when to when its pieces arrived for the first time. */
interface Lined extends Span {
  readonly n: number;
  readonly lane: string;
  readonly readyAt: number;
}

function lined({ events }: RoundPlan, records: readonly EventRecord[], copies: readonly Copy[]): Lined[] {
  const firsts = new Map<string, number>();
  for (const copy of copies) firsts.set(keyOf(copy), Math.min(copy.takenAt, firsts.get(keyOf(copy)) ?? copy.takenAt));
  return events.flatMap((event) => {
    const own = records.filter(({ deliveryId, route }) => deliveryId === event.deliveryId && route === event.route);
    const messages = own.flatMap(({ jobs }) => jobs.flatMap(({ messages }) => messages));
    // A message's place is among those of its event, of which each has a message of its own.
    return messages.flatMap(({ lane, extra, readyAt }) => {
      if (lane === null || readyAt === null) return [];
      const chat = (JSON.parse(extra) as { chat_id?: string }).chat_id;
      const pieces = piecesOf(event.route, event).filter(
        ({ place }) => chat !== undefined && place.endsWith(` ${chat}`),
      );
      const times = pieces.flatMap((piece) => firsts.get(keyOf(piece)) ?? []);
      if (times.length === 0) return [];
      return [{ n: event.n, lane, readyAt, from: Math.min(...times), to: Math.max(...times) }];
    });
  });
}

/** Work that was cut off by an orderly stop, or taken up later than the lease of a killed gateway allows. */
function delays({ plan, troubles, records, leaseMs }: Evidence): Violation[] {
  const killedAt = Math.max(...troubles.map(({ to }) => to));
  // Other faults keep gateways from looking.
  const isTimely = troubles.length > 0 && troubles.every(({ kind }) => kind === "kill");
  return plan.events.flatMap(({ n, deliveryId }): Violation[] => {
    const jobs = records.filter((record) => record.deliveryId === deliveryId).flatMap((record) => record.jobs);
    const tries = jobs.flatMap(({ runs, messages }) => [...runs, ...messages.flatMap(({ attempts }) => attempts)]);
    const cutOff = tries.filter(({ outcome }) => outcome === "interrupted");
    if (cutOff.length === 0) return [];
    if (plan.isStrict) return [{ kind: "CUT OFF", n, detail: "a run or a try to send was cut off by an orderly stop" }];
    const lateMs = Math.max(...cutOff.map(({ endedAt }) => endedAt ?? 0)) - killedAt - leaseMs;
    if (!isTimely || lateMs <= lookingMs) return [];
    return [{ kind: "LATE", n, detail: `taken up ${lateMs} ms after the lease of the killed gateway had run out` }];
  });
}

/** What arrived and belongs to no event of the round. */
function strays({ plan, copies }: Evidence): Violation[] {
  const known = new Set(plan.events.flatMap((event) => piecesOf(event.route, event).map(keyOf)));
  const unknown = copies.filter((copy) => !known.has(keyOf(copy)));
  return unknown.slice(0, 3).map(({ place, text }) => {
    return { kind: "STRAY", n: undefined, detail: `${JSON.stringify(text.slice(0, 100))} arrived at ${place}` };
  });
}

/** More runs of a route at the same time than it allows, at a time when no gateway could have lost one of them. */
function crowds({ runs, troubles, leaseMs }: Evidence): Violation[] {
  const wasLost = ({ from, to }: Span) =>
    troubles.some((trouble) => from <= trouble.to + leaseMs + awakeningMs && to >= trouble.from);
  return Object.entries(chaosRoutes).flatMap(([name, { maxConcurrent: limit }]: [string, ChaosRoute]) => {
    const most = mostAtOnce(runs.filter((run) => run.route === name && !wasLost(run)));
    if (limit === undefined || most <= limit) return [];
    return [
      { kind: "CROWD", n: undefined, detail: `${most} runs of "${name}" at the same time; its limit is ${limit}` },
    ];
  });
}

function mostAtOnce(spans: readonly Span[]): number {
  return Math.max(0, ...spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length));
}
