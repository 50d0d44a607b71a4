import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Evidence, judge } from "../../chaos/judge.ts";
import type { Answer } from "../../chaos/load.ts";
import type { PlannedEvent } from "../../chaos/plan.ts";
import type { Copy } from "../../chaos/road.ts";
import { piecesOf, type RouteName } from "../../chaos/routes.ts";
import type { AttemptRecord, EventRecord, JobRecord } from "../../src/store/store.ts";

/** When the events of these tests arrived; other times are told from here. */
const start = 1_800_000_000_000;

function event(route: RouteName, changes: Partial<PlannedEvent> = {}): PlannedEvent {
  const planned = { n: 1, round: 1, chat: "7", route, deliveryId: "id-1", atMs: 0, copies: 1, echoMs: undefined };
  return { ...planned, isPatient: true, paddingBytes: 0, ...changes };
}

const one = event("short");

function answer(status: number | undefined, said: string, n = 1): Answer {
  return { n, gateway: 0, sentAt: start, endedAt: start, status, said };
}

const accepted = answer(202, "accepted");

/** A copy of a piece of an event, taken so long after the start. */
function copy(afterMs: number, changes: Partial<Copy> = {}, of = one, piece = 0): Copy {
  const at = start + afterMs;
  const { place, text } = piecesOf(of.route, of)[piece]!;
  return { place, text, gateway: 0, arrivedAt: at, takenAt: at, endedAt: at, fate: "answered", ...changes };
}

function attempts(...outcomes: AttemptRecord["outcome"][]): AttemptRecord[] {
  return outcomes.map((outcome, index) => ({
    number: index + 1,
    startedAt: start,
    endedAt: start,
    outcome,
    error: null,
  }));
}

interface Kept {
  readonly state?: JobRecord["state"];
  readonly tries?: readonly AttemptRecord[];
  readonly readyAt?: number;
  readonly jobs?: number;
}

/** An event as the ledger has it after the round. */
function record(of: PlannedEvent, { state = "done", tries = attempts("sent"), readyAt = start, jobs = 1 }: Kept = {}) {
  const message = {
    lane: `telegram ${of.chat}`,
    extra: JSON.stringify({ chat_id: of.chat }),
    readyAt,
    attempts: tries,
  };
  const job = { state, reason: null, runs: [], messages: [message] };
  const { deliveryId, route } = of;
  return { deliveryId, route, jobs: Array.from({ length: jobs }, () => job) } as unknown as EventRecord;
}

function evidence(
  changes: Partial<Omit<Evidence, "plan">> & { events?: PlannedEvent[]; isStrict?: boolean },
): Evidence {
  const { events = [one], isStrict = false, ...rest } = changes;
  const plan = { number: 1, faults: [], isStrict, roles: ["all"], agent: "preview", events } as const;
  return {
    ...{ plan, answers: [accepted], copies: [copy(100)], lookups: [], troubles: [], records: [record(one)] },
    ...{ runs: [], leaseMs: 4_000, surprises: [], ...rest },
  };
}

function kindsOf(changes: Parameters<typeof evidence>[0]): string[] {
  return judge(evidence(changes)).violations.map(({ kind }) => kind);
}

const kill = { kind: "kill", gateway: 0, from: start + 90, to: start + 120 } as const;
const cutOff = record(one, { tries: attempts("interrupted", "sent") });
const unknown = record(one, { tries: attempts("unknown", "sent") });
const twice = [copy(100), copy(2_000)];

describe("an event", () => {
  test("that arrived once is all right", () => {
    const verdict = judge(evidence({}));
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual([verdict.promised, verdict.delivered], [1, { 1: 1 }]);
  });

  test("that was promised and did not arrive is lost", () => {
    assert.deepEqual(kindsOf({ copies: [] }), ["LOST", "NOT SENT"]);
  });

  test("of which a part did not arrive is lost", () => {
    const long = event("long");
    const copies = [copy(100, {}, long, 0), copy(200, {}, long, 1)];
    assert.equal(piecesOf("long", long).length, 3);
    assert.deepEqual(kindsOf({ events: [long], copies, records: [record(long)] }), ["LOST", "NOT SENT"]);
  });

  test("that was refused or not answered may arrive or not", () => {
    for (const heard of [answer(503, "error"), answer(undefined, "socket hang up")]) {
      assert.deepEqual(kindsOf({ answers: [heard] }), []);
      assert.deepEqual(kindsOf({ answers: [heard], copies: [], records: [] }), []);
    }
  });

  test("that the ledger calls sent must have arrived, whatever its sender heard", () => {
    assert.deepEqual(kindsOf({ answers: [answer(undefined, "timeout")], copies: [] }), ["NOT SENT"]);
  });

  test("whose copy was called a duplicate is promised", () => {
    assert.deepEqual(kindsOf({ answers: [answer(200, "duplicate")], copies: [], records: [] }), ["LOST", "TWO JOBS"]);
  });

  test("that two copies were accepted of, or that has two jobs, breaks idempotency", () => {
    assert.deepEqual(kindsOf({ answers: [accepted, accepted] }), ["ANSWER"]);
    assert.deepEqual(kindsOf({ records: [record(one, { jobs: 2 })] }), ["TWO JOBS"]);
    assert.deepEqual(kindsOf({ records: [record(one), record(one)] }), ["TWO JOBS"]);
  });

  test("that was delivered directly may have been refused before", () => {
    const direct = event("direct");
    const records = [record(direct, { state: "refused", tries: attempts("refused") }), record(direct)];
    const answers = [answer(502, "error"), answer(200, "delivered")];
    assert.deepEqual(kindsOf({ events: [direct], answers, copies: [copy(100, {}, direct)], records }), []);
  });

  test("that was delivered directly may be called refused when its gateway could not say so in time", () => {
    const direct = event("direct");
    const cut = record(direct, { state: "refused", tries: attempts("interrupted") });
    const base = { events: [direct], answers: [answer(200, "delivered")], copies: [copy(100, {}, direct)] };
    const verdict = judge(evidence({ ...base, records: [cut] }));
    assert.deepEqual([verdict.violations, verdict.mistaken], [[], 1]);
    const refused = record(direct, { state: "refused", tries: attempts("refused") });
    assert.deepEqual(kindsOf({ ...base, records: [refused] }), ["TWO JOBS"]);
  });

  test("that was called refused while it was sent may be delivered once more, and both senders told so", () => {
    const direct = event("direct");
    const cut = record(direct, { state: "refused", tries: attempts("interrupted") });
    const answers = [answer(200, "delivered"), answer(200, "delivered")];
    const copies = [copy(100, {}, direct), copy(2_000, {}, direct)];
    const base = { events: [direct], answers, copies, troubles: [kill] };
    assert.deepEqual(kindsOf({ ...base, records: [cut, record(direct)] }), []);
    const refused = record(direct, { state: "refused", tries: attempts("refused") });
    assert.deepEqual(kindsOf({ ...base, records: [refused, record(direct)] }), ["ANSWER", "TWICE"]);
    const accepted = record(event("direct"), { state: "done" });
    assert.ok(kindsOf({ ...base, records: [accepted, record(direct)] }).includes("ANSWER"));
  });

  test("that was given up, or answered in an odd way, is told", () => {
    assert.deepEqual(kindsOf({ records: [record(one, { state: "dead" })] }), ["NOT DONE"]);
    assert.deepEqual(kindsOf({ answers: [answer(500, "error")], copies: [], records: [] }), ["ANSWER"]);
  });

  test("that nobody sent is told", () => {
    assert.deepEqual(kindsOf({ copies: [copy(100), copy(200, { text: "event 9 of round 1, line 0" })] }), ["STRAY"]);
  });
});

describe("an event that arrived twice", () => {
  test("is a violation without a reason", () => {
    assert.deepEqual(kindsOf({ copies: twice }), ["TWICE"]);
    assert.deepEqual(kindsOf({ copies: twice, records: [unknown] }), ["TWICE"]);
    const unheard = [copy(100, { fate: "unheard" }), copy(2_000)];
    assert.deepEqual(kindsOf({ copies: unheard, records: [unknown] }), ["TWICE"], "the gateway hung up by itself");
  });

  test("is allowed when the target's first answer was lost, and counted", () => {
    const verdict = judge(evidence({ copies: [copy(100, { fate: "lost" }), copy(2_000)], records: [unknown] }));
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual([verdict.twiceAllowed, verdict.delivered], [1, { 2: 1 }]);
  });

  test("is allowed when it was in flight at a kill of its gateway, and the ledger says so", () => {
    assert.deepEqual(kindsOf({ copies: twice, records: [cutOff], troubles: [kill] }), []);
    assert.deepEqual(kindsOf({ copies: twice, troubles: [kill] }), ["TWICE"], "no try without an end");
    const elsewhere = { ...kill, gateway: 1 };
    assert.deepEqual(kindsOf({ copies: twice, records: [cutOff], troubles: [elsewhere] }), ["TWICE"]);
    const later = { ...kill, from: start + 30_000, to: start + 30_100 };
    assert.deepEqual(kindsOf({ copies: twice, records: [cutOff], troubles: [later] }), ["TWICE"]);
  });

  test("is allowed for every gateway while the database was away", () => {
    const away = { kind: "db-crash", gateway: undefined, from: start, to: start + 500 } as const;
    assert.deepEqual(kindsOf({ copies: twice, records: [cutOff], troubles: [away] }), []);
  });

  test("is a violation when two copies more came than tries had an unknown end", () => {
    const copies = [copy(100, { fate: "lost" }), copy(900, { fate: "lost" }), copy(2_000)];
    assert.deepEqual(kindsOf({ copies, records: [unknown] }), ["TWICE"]);
    const tries = attempts("unknown", "unknown", "sent");
    assert.deepEqual(kindsOf({ copies, records: [record(one, { tries })] }), []);
  });

  test("is a violation after orderly stops, whatever the reason", () => {
    const copies = [copy(100, { fate: "unheard" }), copy(2_000)];
    assert.deepEqual(kindsOf({ isStrict: true, copies, records: [unknown] }), ["TWICE"]);
  });

  test("is a violation where the target could have been asked", () => {
    const review = event("review");
    const copies = [copy(100, { fate: "lost" }, review), copy(9_000, {}, review)];
    const base = { events: [review], copies, records: [record(review, { tries: attempts("interrupted", "sent") })] };
    assert.deepEqual(kindsOf(base), ["TWICE"], "a lost answer is no reason");
    assert.deepEqual(kindsOf({ ...base, troubles: [kill] }), [], "nobody had looked since");
    const { place } = copies[0]!;
    const looked = { ...base, troubles: [kill], lookups: [{ place, at: start + 5_000 }] };
    assert.deepEqual(kindsOf(looked), ["TWICE"], "it was there to be found");
  });
});

describe("of the whole round", () => {
  test("messages for one place arrive in the order in which they were ready", () => {
    const two = event("short", { n: 2, deliveryId: "id-2" });
    const base = {
      events: [one, two],
      answers: [accepted, answer(202, "accepted", 2)],
      records: [record(one), record(two, { readyAt: start + 1_000 })],
    };
    assert.deepEqual(kindsOf({ ...base, copies: [copy(1_500), copy(2_000, {}, two)] }), []);
    const swapped = { ...base, copies: [copy(2_500), copy(2_000, {}, two)] };
    assert.deepEqual(kindsOf(swapped), ["ORDER"]);
    assert.deepEqual(kindsOf({ ...swapped, troubles: [kill] }), [], "the answer may have been recorded later");
  });

  test("no more runs of a route go on at the same time than it allows", () => {
    const run = (from: number, to: number) => ({ route: "few", from: start + from, to: start + to });
    assert.deepEqual(kindsOf({ runs: [run(0, 300), run(10, 310), run(310, 500)] }), []);
    const crowd = [run(0, 300), run(10, 310), run(20, 320)];
    assert.deepEqual(kindsOf({ runs: crowd }), ["CROWD"]);
    assert.deepEqual(
      kindsOf({ runs: crowd, troubles: [kill] }),
      [],
      "a run of a killed gateway may go on for a moment",
    );
  });

  test("work of a gateway that was killed is taken up when its lease has run out", () => {
    const interrupted = (afterMs: number) => {
      const tries = [{ ...attempts("interrupted")[0]!, endedAt: start + afterMs }, ...attempts("sent")];
      return kindsOf({ records: [record(one, { tries })], troubles: [kill] });
    };
    assert.deepEqual(interrupted(4_500), []);
    assert.deepEqual(interrupted(10_000), ["LATE"]);
  });

  test("an orderly stop cuts nothing off", () => {
    assert.deepEqual(kindsOf({ isStrict: true, records: [cutOff] }), ["CUT OFF"]);
  });

  test("what gateways do that nobody expects is told", () => {
    assert.deepEqual(kindsOf({ surprises: ["gateway 1 ended by itself"] }), ["SURPRISE"]);
  });
});
