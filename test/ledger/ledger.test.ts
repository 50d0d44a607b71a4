import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Outcome } from "../../src/agent/agent.ts";
import { DeliveryError, StoreUnavailable } from "../../src/core/errors.ts";
import type { Draft } from "../../src/ledger/fallback.ts";
import { type Job, Ledger, type LedgerOptions, type Message, partKey } from "../../src/ledger/ledger.ts";
import type {
  AcceptArgs,
  ClaimArgs,
  FinishAttemptArgs,
  FinishRunArgs,
  NewEvent,
  Store,
} from "../../src/store/store.ts";
import { eventOf, headersOf } from "../core/event.ts";
import { makeClock } from "../tools/clock.ts";
import { noon } from "../tools/rows.ts";
import { aRule } from "../tools/terms.ts";

type Answers = Readonly<Record<string, unknown>>;

/** A ledger on a store that notes what it is asked, and answers as told; an answer that is a function is asked for one. */
function openLedger(answers: Answers = {}, options: Partial<LedgerOptions> & { readonly isShared?: boolean } = {}) {
  const asked: { name: string; args: unknown }[] = [];
  const clock = makeClock(noon);
  const { isShared = false, ...rest } = options;
  const store = new Proxy({} as Store, {
    get(_target, name: string) {
      if (name === "isShared") return isShared;
      return async (args: unknown) => {
        asked.push({ name, args });
        const answer = name in answers ? answers[name] : true;
        return typeof answer === "function" ? answer(args) : answer;
      };
    },
  });
  const ledger = new Ledger({
    ...{ store, now: clock.now, random: () => 1, owner: "me", leaseMs: 30_000, claimMs: 3_600_000 },
    ...rest,
  });
  const last = <Args>(name: string): Args => {
    const call = asked.findLast((one) => one.name === name);
    assert.ok(call, `the store was not asked for ${name}`);
    return call.args as Args;
  };
  const count = (name: string) => asked.filter((one) => one.name === name).length;
  return { ledger, asked, last, count, clock };
}

function aJob(failures = 0): Job {
  const plan = { prompt: "Look", skills: [], tools: [] };
  const lease = { id: "j", fence: 3, leaseUntil: noon + 30_000 };
  return { ...lease, eventId: "e", route: "r", eventType: "push", deliveryId: "42", plan, failures };
}

function aMessage(failures = 0): Message {
  const parts = { target: "telegram", extra: {}, text: "Hi", partsSent: 0, route: "r", eventType: "push" };
  const own = { refusal: null, fallback: [] };
  return { id: "m", fence: 2, failures, readyAt: noon, isUnsure: false, leaseUntil: noon + 30_000, ...parts, ...own };
}

const transcript = [{ role: "assistant", text: "Hm" }] as const;

function failure(parts: Partial<Extract<Outcome, { reason: string }>> = {}): Outcome {
  return { status: "failed", reason: "The model is down", transient: true, transcript, ...parts };
}

const away = () => Promise.reject(new StoreUnavailable("away"));

async function settle(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await turn();
}

const nothing = { limit: 0, active: [], limits: {} };

describe("accepting an event", () => {
  const event = eventOf({ deliveryId: "42", receivedAt: noon, body: Buffer.from("{}"), route: "ci" });
  const plan = { prompt: "Look", skills: ["review"], tools: ["terminal"] };
  const terms = { route: "ci", onCrash: "rerun" } as const;
  const elsewhere = { target: "email", extra: { chat_id: "a@example.com" }, lane: "email a", refusal: null };
  const drafts: Draft[] = [
    { target: "telegram", extra: { chat_id: "1" }, lane: "telegram 1", refusal: "Not there", fallback: [elsewhere] },
    { target: "log", extra: {}, lane: null, refusal: null, fallback: [] },
  ];

  test("promises a run by its route's terms, with the claim counted from its arrival", async () => {
    const { ledger, last } = openLedger({ accept: { duplicate: false } });
    assert.equal(await ledger.acceptRun(event, plan, drafts, { ...terms, onCrash: "fail" }), true);
    const args = last<AcceptArgs>("accept");
    assert.deepEqual([args.claimUntil, args.owner], [noon + 3_600_000, "me"]);
    const { kind, route, onCrash, origin } = args.job;
    assert.deepEqual([kind, route, onCrash, origin], ["agent", "ci", "fail", null]);
    assert.deepEqual(JSON.parse(args.job.plan), plan);
    assert.deepEqual(
      args.job.messages.map(({ target, extra, lane, text }) => [target, extra, lane, text]),
      [
        ["telegram", '{"chat_id":"1"}', "telegram 1", null],
        ["log", "{}", null, null],
      ],
    );
    assert.deepEqual(
      args.job.messages.map(({ refusal, fallback }) => [refusal, fallback]),
      [
        ["Not there", JSON.stringify([elsewhere])],
        [null, null],
      ],
    );
    assert.equal(new Set(args.job.messages.map(({ id }) => id)).size, 2);
  });

  test("hands the messages of a direct delivery to whoever asked", async () => {
    const { ledger, last } = openLedger({ accept: { duplicate: false } });
    const messages = await ledger.acceptDirect(event, "Hello", drafts);
    assert.ok(Array.isArray(messages));
    const { kind, route, messages: kept } = last<AcceptArgs>("accept").job;
    assert.deepEqual([kind, route], ["direct", "ci"]);
    assert.deepEqual(
      kept.map(({ text }) => text),
      ["Hello", "Hello"],
    );
    const common = { fence: 1, text: "Hello", partsSent: 0, failures: 0, isUnsure: false, eventType: "push" };
    const times = { readyAt: noon, leaseUntil: noon + 30_000 };
    assert.deepEqual(
      messages,
      kept.map(({ id, target }, index) => {
        const { extra, refusal, fallback } = drafts[index]!;
        return { id, target, extra, refusal, fallback, route: "ci", ...common, ...times };
      }),
    );
  });

  test("counts the lease from now: composing may have taken longer than a lease lasts", async () => {
    const { ledger, last, clock } = openLedger({ accept: { duplicate: false } });
    clock.advance(40_000);
    const messages = await ledger.acceptDirect(event, "Hello", drafts);
    assert.equal(last<AcceptArgs>("accept").leaseUntil, noon + 70_000);
    assert.ok(Array.isArray(messages) && messages.every(({ leaseUntil }) => leaseUntil === noon + 70_000));
  });

  test("says when the delivery id is claimed, and whether that one is still being sent", async () => {
    for (const isUnderWay of [true, false]) {
      const { ledger } = openLedger({ accept: { duplicate: true, isUnderWay } });
      assert.equal(await ledger.acceptRun(event, plan, drafts, terms), false);
      assert.deepEqual(await ledger.acceptDirect(event, "Hello", drafts), { duplicate: true, isUnderWay });
    }
  });

  test("keeps no header that may hold a credential, and the others as they were", async () => {
    const { ledger, last } = openLedger();
    const secret = [
      ...["authorization", "proxy-authorization", "cookie", "set-cookie", "x-gitlab-token", "x-hostb-token"],
      ...[
        "x-hub-signature",
        "x-hub-signature-256",
        "x-webhook-signature",
        "x-webhook-signature-v2",
        "webhook-signature",
      ],
      ...["svix-signature", "stripe-signature", "x-slack-signature", "x-shopify-hmac-sha256", "x-api-key", "apikey"],
      ...["x-amz-security-token", "x-client-secret", "x-password", "x-passcode", "x-credential"],
    ];
    const kept = { "content-type": "application/json", "x-github-event": "push", "user-agent": "GitHub-Hookshot/1" };
    const headers = headersOf({
      ...Object.fromEntries(secret.map((name) => [name, "hush"])),
      ...kept,
      via: ["a", "b"],
    });
    await ledger.ignore(eventOf({ headers }), "no reason");
    assert.deepEqual(JSON.parse(last<NewEvent>("ignore").headers), { ...kept, via: "a, b" });
  });

  describe("by a store that takes too long", () => {
    /** A ledger whose store answers when the test says so. */
    function openSlow(t: TestContext, withdraw: unknown = undefined) {
      t.mock.timers.enable({ apis: ["setTimeout"] });
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      return { ...openLedger({ accept: () => promise, withdraw }), resolve, reject };
    }

    test("ends after ten seconds as if it were away", async (t) => {
      const { ledger, resolve } = openSlow(t);
      const accepting = ledger.acceptRun(event, plan, drafts, terms);
      let isOver = false;
      accepting
        .catch(() => {})
        .finally(() => {
          isOver = true;
        });
      t.mock.timers.tick(9_999);
      await settle();
      assert.equal(isOver, false);
      t.mock.timers.tick(1);
      await assert.rejects(accepting, StoreUnavailable);
      resolve({ duplicate: false });
    });

    test("is as good as by a fast one when it answers in time", async (t) => {
      const { ledger, resolve, count } = openSlow(t);
      const accepting = ledger.acceptDirect(event, "Hello", drafts);
      t.mock.timers.tick(9_999);
      resolve({ duplicate: false });
      assert.equal(((await accepting) as Message[]).length, 2);
      t.mock.timers.tick(60_000);
      await settle();
      assert.equal(count("withdraw"), 0);
    });

    test("is taken back for a direct delivery, but not before it is known what became of it", async (t) => {
      const { ledger, resolve, count, last } = openSlow(t);
      const accepting = ledger.acceptDirect(event, "Hello", drafts);
      t.mock.timers.tick(10_000);
      await assert.rejects(accepting, StoreUnavailable);
      await settle();
      assert.equal(count("withdraw"), 0, "the store might do it before it accepts");
      resolve({ duplicate: false });
      await settle();
      const { eventId, now, reason } = last<{ eventId: string; now: number; reason: string }>("withdraw");
      assert.deepEqual([eventId, now, /could not say in time/.test(reason)], [event.id, noon, true]);
    });

    test("is taken back again and again until the store has done it", async (t) => {
      let isAway = true;
      const { ledger, reject, count } = openSlow(t, () => (isAway ? away() : undefined));
      const accepting = ledger.acceptDirect(event, "Hello", drafts);
      reject(new StoreUnavailable("nobody can tell"));
      await assert.rejects(accepting, StoreUnavailable);
      await settle();
      t.mock.timers.tick(1_000);
      await settle();
      assert.equal(count("withdraw"), 2);
      isAway = false;
      t.mock.timers.tick(1_000);
      await settle();
      t.mock.timers.tick(60_000);
      await settle();
      assert.equal(count("withdraw"), 3);
    });

    test("is not taken back when it was a duplicate", async (t) => {
      const { ledger, resolve, count } = openSlow(t);
      const accepting = ledger.acceptDirect(event, "Hello", drafts);
      t.mock.timers.tick(10_000);
      await assert.rejects(accepting, StoreUnavailable);
      resolve({ duplicate: true, isUnderWay: false });
      await settle();
      assert.equal(count("withdraw"), 0);
    });

    test("is not taken back for a run: that is made, and the sender's retry is a duplicate of it", async (t) => {
      const { ledger, resolve, count } = openSlow(t);
      const accepting = ledger.acceptRun(event, plan, drafts, terms);
      t.mock.timers.tick(10_000);
      await assert.rejects(accepting, StoreUnavailable);
      resolve({ duplicate: false });
      await settle();
      assert.equal(count("withdraw"), 0);
    });
  });
});

describe("the end of a run", () => {
  async function ended(outcome: Outcome, failures = 0, random = 1, tries?: number): Promise<FinishRunArgs> {
    const { ledger, last } = openLedger({}, { random: () => random });
    assert.equal(await ledger.ran(aJob(failures), outcome, tries), true);
    return last<FinishRunArgs>("finishRun");
  }

  test("with an answer is recorded whole, under the lease it was made with", async () => {
    const usage = { inputTokens: 7, outputTokens: 3 };
    const { next, result, id, fence, now } = await ended({ status: "completed", answer: "Yes", transcript, usage });
    assert.deepEqual([id, fence, now, next], ["j", 3, noon, { move: "answer", silent: false }]);
    assert.deepEqual(result, {
      outcome: "completed",
      reason: null,
      answer: "Yes",
      transcript: JSON.stringify(transcript),
      inputTokens: 7,
      outputTokens: 3,
    });
  });

  const answers: [answer: string, silent: boolean][] = [
    ["[SILENT]", true],
    ["  [SILENT]\n", true],
    ["[silent]", false],
    ["[SILENT].", false],
    ["[SILENT] [SILENT]", false],
    ["", false],
    ["SKIP", false],
  ];
  for (const [answer, silent] of answers) {
    test(`with the answer ${JSON.stringify(answer)} is ${silent ? "kept back" : "delivered"}`, async () => {
      assert.deepEqual((await ended({ status: "completed", answer, transcript })).next, { move: "answer", silent });
    });
  }

  test("in a passing failure leads to two more runs, then to none", async () => {
    const nexts = await Promise.all([0, 1, 2, 3].map((failures) => ended(failure(), failures)));
    assert.deepEqual(
      nexts.map(({ next }) => next),
      [
        { move: "retry", runAt: noon + 5_000 },
        { move: "retry", runAt: noon + 30_000 },
        { move: "giveUp" },
        { move: "giveUp" },
      ],
    );
    assert.deepEqual((await ended(failure(), 0, 0.5)).next, { move: "retry", runAt: noon + 2_500 });
  });

  test("in a passing failure leads to as many runs as the route says", async () => {
    assert.deepEqual((await ended(failure(), 0, 1, 1)).next, { move: "giveUp" });
    assert.equal((await ended(failure(), 3, 1, 5)).next.move, "retry");
  });

  for (const status of ["failed", "timeout", "cancelled", "budget"] as const) {
    test(`for good ("${status}") leads to no other run`, async () => {
      const { next, result } = await ended(failure({ status, transient: false }));
      assert.deepEqual([next, result.outcome, result.reason], [{ move: "giveUp" }, status, "The model is down"]);
    });
  }

  test("that comes too late is not recorded, and the caller is told", async () => {
    const { ledger } = openLedger({ finishRun: false });
    assert.equal(await ledger.ran(aJob(), failure()), false);
    assert.equal(await ledger.giveBackJob(aJob(), failure()), false);
  });

  test("that is given back says so, whatever its outcome was", async () => {
    const { ledger, last } = openLedger();
    assert.equal(await ledger.giveBackJob(aJob(1), failure({ status: "cancelled" })), true);
    const { next, result } = last<FinishRunArgs>("finishRun");
    assert.deepEqual([next, result.outcome], [{ move: "release" }, "released"]);
    assert.match(result.reason ?? "", /^Given back/);
  });
});

describe("the end of a try to send", () => {
  const judgement = { rule: aRule, repeats: "doubled", mayRetry: true, isTargetsFault: true } as const;
  const refused = new DeliveryError("It said no", { sent: "no" });
  const lostAnswer = new DeliveryError("No answer", { sent: "maybe" });
  const forGood = new DeliveryError("Never", { sent: "no", retryAfterMs: "never" });

  async function failed(error: DeliveryError, how: Partial<Parameters<Ledger["failed"]>[2]> = {}, failures = 0) {
    const { ledger, last } = openLedger();
    assert.equal(await ledger.failed(aMessage(failures), error, { ...judgement, ...how }), true);
    return last<FinishAttemptArgs>("finishAttempt");
  }

  test("that the target took is recorded with its reference, and that the target is well", async () => {
    const { ledger, last } = openLedger();
    assert.equal(await ledger.sent(aMessage(), "https://example.com/1"), true);
    assert.deepEqual(last("finishAttempt"), {
      ...{ id: "m", fence: 2, now: noon, outcome: "sent", error: null, reference: "https://example.com/1" },
      ...{ next: { move: "take" }, health: { mark: "well" } },
    });
    await ledger.sent(aMessage(), undefined);
    assert.equal(last<FinishAttemptArgs>("finishAttempt").reference, null);
  });

  test("that failed leads to another one by the message's rule, and is trouble of the target", async () => {
    const { next, error, outcome, health } = await failed(refused);
    const retry = { move: "retry", dueAt: noon + 4_000, leaveLane: false };
    assert.deepEqual([next, error, outcome], [retry, "It said no", "refused"]);
    assert.deepEqual([health?.mark, health?.mark === "trouble" && health.reason], ["trouble", "It said no"]);
    const second = await failed(refused, { rule: { ...aRule, keepOrderMs: 0 } }, 1);
    assert.deepEqual(second.next, { move: "retry", dueAt: noon + 24_000, leaveLane: true });
  });

  test("that was the last one ends with the reason, in the attempt and in the message", async () => {
    const { next, error } = await failed(refused, {}, 7);
    assert.deepEqual([next, error], [{ move: "giveUp" }, "Given up after 8 tries: It said no"]);
  });

  test("that is refused for good ends with the target's words, which say nothing of the target", async () => {
    const { next, error, health } = await failed(forGood);
    assert.deepEqual([next, error, health], [{ move: "giveUp" }, "Never", null]);
  });

  test("whose answer was lost is recorded as unknown, and made again or not by the rule", async () => {
    const { outcome, next } = await failed(lostAnswer);
    assert.deepEqual([outcome, next.move], ["unknown", "retry"]);
    const once = await failed(lostAnswer, { rule: { ...aRule, whenUnknown: "at_most_once" } });
    assert.deepEqual([once.outcome, once.next.move], ["unknown", "giveUp"]);
    assert.match(once.error ?? "", /may have been sent.*No answer/);
  });

  test("for a waiting sender is final, whatever the service says, and counts for the target", async () => {
    const later = new DeliveryError("Later", { sent: "no", retryAfterMs: 1_000 });
    const { next, error, health } = await failed(later, { mayRetry: false });
    assert.deepEqual([next, error], [{ move: "giveUp" }, "Later"]);
    assert.deepEqual(health, { mark: "busy", until: noon + 1_000, reason: "Later" });
  });

  test("that was cut off on this side says nothing of the target", async () => {
    assert.equal((await failed(lostAnswer, { isTargetsFault: false })).health, null);
  });

  test("that was not made, because an earlier one may have gone through, is recorded as unknown and final", async () => {
    const { ledger, last } = openLedger();
    assert.equal(await ledger.giveUpUnsure(aMessage(1)), true);
    const { outcome, next, error, health } = last<FinishAttemptArgs>("finishAttempt");
    assert.deepEqual([outcome, next, health], ["unknown", { move: "giveUp" }, null]);
    assert.match(error ?? "", /may have been sent.*at_most_once/);
  });

  const place = { target: "email", extra: { chat_id: "a@example.com" }, lane: "email a", refusal: "Not there" };
  const last: typeof place = { ...place, target: "log", extra: { chat_id: "" } };
  const withFallback: Message = { ...aMessage(7), isUnsure: true, partsSent: 3, fallback: [place, last] };

  test("that was the last one hands on to the message that goes instead, with the rest of the fallback", async () => {
    for (const giveUp of [
      (ledger: Ledger) => ledger.failed(withFallback, refused, judgement),
      (ledger: Ledger) => ledger.giveUpUnsure(withFallback),
    ]) {
      const { ledger, last: asked, clock } = openLedger({ finishAttempt: "replaced" });
      clock.advance(5_000);
      const instead = await giveUp(ledger);
      const { next } = asked<FinishAttemptArgs>("finishAttempt");
      assert.ok(next.move === "giveUp" && next.successor && typeof instead === "object");
      assert.equal(next.successor.leaseUntil, noon + 35_000);
      assert.deepEqual(instead, {
        ...{ ...next.successor, fence: 1, failures: 0, partsSent: 0, isUnsure: false, readyAt: noon + 5_000 },
        ...{ target: "email", extra: { chat_id: "a@example.com" }, refusal: "Not there", fallback: [last] },
        ...{ text: "Hi", route: "r", eventType: "push" },
      });
    }
  });

  test("that was the last one ends there when the store knows better, or nobody has it any more", async () => {
    for (const answer of [true, false]) {
      const { ledger } = openLedger({ finishAttempt: answer });
      assert.equal(await ledger.failed(withFallback, refused, judgement), answer);
      assert.equal(await ledger.giveUpUnsure(withFallback), answer);
    }
  });

  test("that was not the last one uses no fallback", async () => {
    const { ledger, last: asked } = openLedger();
    assert.equal(await ledger.failed({ ...withFallback, failures: 0 }, refused, judgement), true);
    assert.equal(asked<FinishAttemptArgs>("finishAttempt").next.move, "retry");
  });

  test("for a waiting sender uses its fallback, but not when the gateway ends: it would go through it in vain", async () => {
    for (const isTargetsFault of [true, false]) {
      const { ledger, last: asked } = openLedger();
      await ledger.failed(withFallback, refused, { ...judgement, mayRetry: false, isTargetsFault });
      const { next } = asked<FinishAttemptArgs>("finishAttempt");
      assert.equal(next.move === "giveUp" && next.successor !== undefined, isTargetsFault);
    }
    const { ledger, last: asked } = openLedger();
    await ledger.failed(withFallback, refused, { ...judgement, isTargetsFault: false });
    const { next } = asked<FinishAttemptArgs>("finishAttempt");
    assert.ok(next.move === "giveUp" && next.successor, "nobody else would send this one");
  });

  test("that was not made, because the gateway stops, is given back to be made at once", async () => {
    const { ledger, last } = openLedger();
    assert.equal(await ledger.release(aMessage(1), "Given back"), true);
    const next = { move: "retry", dueAt: noon, leaveLane: false };
    const end = { outcome: "released", error: "Given back", reference: null, next, health: null };
    assert.deepEqual(last("finishAttempt"), { id: "m", fence: 2, now: noon, ...end });
  });

  test("that comes too late is not recorded, and the caller is told", async () => {
    const { ledger } = openLedger({ finishAttempt: false, recordPart: false });
    const message = aMessage();
    assert.equal(await ledger.sent(message, undefined), false);
    assert.equal(await ledger.failed(message, refused, judgement), false);
    assert.equal(await ledger.giveUpUnsure(message), false);
    assert.equal(await ledger.release(message, "Given back"), false);
    assert.equal(await ledger.partSent(message, 1), false);
  });
});

describe("a lease", () => {
  test("is taken for as long as it lasts from now, within the bounds that are named", async () => {
    const { ledger, last } = openLedger({ claimJobs: [], claimMessages: [] });
    await ledger.takeJobs({ limit: 3, active: [aJob()], limits: { ci: 2 } });
    await ledger.takeMessages({ limit: 4, active: [aMessage()], limits: { telegram: 8 } });
    const lease = { owner: "me", now: noon, leaseUntil: noon + 30_000, mayReclaim: true };
    const jobs = { limit: 3, active: ["j"], limits: { ci: 2 }, maxInterruptions: 10 };
    assert.deepEqual(last("claimJobs"), { ...lease, ...jobs });
    assert.deepEqual(last("claimMessages"), { ...lease, limit: 4, active: ["m"], limits: { telegram: 8 } });
  });

  test("is known to whoever holds it, from when it was asked for", async () => {
    const { leaseUntil: _job, ...job } = aJob();
    const { leaseUntil: _message, ...message } = aMessage();
    const claimed = {
      claimJobs: [{ ...job, plan: JSON.stringify(job.plan) }],
      claimMessages: [{ ...message, extra: "{}", fallback: null }],
    };
    const { ledger } = openLedger(claimed);
    assert.deepEqual(await ledger.takeJobs({ ...nothing, limit: 1 }), [aJob()]);
    assert.deepEqual(await ledger.takeMessages({ ...nothing, limit: 1 }), [aMessage()]);
  });

  test("moves on with each heartbeat, but not for those who have lost it", async () => {
    const { ledger, last, clock } = openLedger({ extendLeases: { lost: ["j"] } }, { isShared: true });
    const [job, message] = [aJob(), aMessage()];
    clock.advance(10_000);
    assert.deepEqual(await ledger.heartbeat([job], [message]), ["j"]);
    assert.deepEqual(last("extendLeases"), {
      jobs: [{ id: "j", fence: 3 }],
      messages: [{ id: "m", fence: 2 }],
      leaseUntil: noon + 40_000,
    });
    assert.deepEqual([ledger.holds(job), ledger.holds(message)], [false, true]);
    clock.advance(29_999);
    assert.equal(ledger.holds(message), true);
    clock.advance(1);
    assert.equal(ledger.holds(message), false);
  });

  test("does not move on when the ledger did not hear of the heartbeat", async () => {
    const { ledger } = openLedger({ extendLeases: away }, { isShared: true });
    const job = aJob();
    await assert.rejects(ledger.heartbeat([job], []), StoreUnavailable);
    assert.equal(job.leaseUntil, noon + 30_000);
    assert.equal(ledger.holds(job, 29_999), true);
    assert.equal(ledger.holds(job, 30_000), false);
  });

  test("always stands where nobody else may take over", () => {
    const { ledger, clock } = openLedger();
    clock.advance(3_600_000);
    assert.equal(ledger.holds(aJob(), 30_000), true);
  });

  test("is looked after without being moved", async () => {
    const { ledger, last } = openLedger({ lostLeases: { lost: ["j"] } });
    assert.deepEqual(await ledger.lost([aJob()], []), ["j"]);
    assert.deepEqual(last("lostLeases"), { jobs: [{ id: "j", fence: 3 }], messages: [] });
  });

  test("of a gateway that is gone is taken over at the start, but only where there is no other gateway", async () => {
    const claims = { claimJobs: [], claimMessages: [] };
    const alone = openLedger(claims);
    await alone.ledger.takeOver();
    assert.deepEqual(alone.last("expireLeases"), { owner: "me", now: noon });
    const { limit, mayReclaim } = alone.last<ClaimArgs>("claimMessages");
    assert.deepEqual([limit, mayReclaim, alone.count("claimJobs")], [0, true, 1]);
    const shared = openLedger(claims, { isShared: true });
    await shared.ledger.takeOver();
    assert.deepEqual(shared.asked, []);
  });
});

describe("calling other gateways dead", () => {
  /** A ledger whose store can be away. */
  function openShaky(isShared: boolean) {
    const state = { isAway: false };
    const nextDue = () => (state.isAway ? away() : { jobs: undefined, messages: [] });
    const opened = openLedger({ nextDue, claimJobs: [], claimMessages: [] }, { isShared });
    const mayReclaim = async () => {
      await opened.ledger.takeJobs(nothing);
      await opened.ledger.takeMessages(nothing);
      const [jobs, messages] = ["claimJobs", "claimMessages"].map((name) => opened.last<ClaimArgs>(name).mayReclaim);
      assert.equal(jobs, messages);
      return jobs;
    };
    return { ...opened, state, mayReclaim };
  }

  test("waits for a third of a lease after the store was away, so that they can report", async () => {
    const { ledger, state, clock, mayReclaim } = openShaky(true);
    assert.equal(await mayReclaim(), true);
    state.isAway = true;
    await assert.rejects(ledger.nextDue(), StoreUnavailable);
    state.isAway = false;
    clock.advance(60_000);
    assert.equal(await mayReclaim(), false);
    clock.advance(9_999);
    assert.equal(await mayReclaim(), false);
    clock.advance(1);
    assert.equal(await mayReclaim(), true);
  });

  test("does not wait where there are none", async () => {
    const { ledger, state, mayReclaim } = openShaky(false);
    state.isAway = true;
    await assert.rejects(ledger.nextDue(), StoreUnavailable);
    assert.equal(await mayReclaim(), true);
  });
});

test("a part has the same key in every try, and no other part has it", () => {
  const keys = [
    partKey(aMessage(0), 0),
    partKey(aMessage(5), 0),
    partKey(aMessage(), 1),
    partKey({ ...aMessage(), id: "m2" }, 0),
  ];
  assert.equal(keys[0], keys[1]);
  assert.equal(new Set(keys).size, 3);
  for (const key of keys) assert.match(key, /^[0-9a-f]{32}$/);
});
