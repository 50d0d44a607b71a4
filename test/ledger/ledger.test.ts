import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Outcome } from "../../src/agent/agent.ts";
import { DeliveryError } from "../../src/core/errors.ts";
import { type Draft, type Job, Ledger, type Message, partKey } from "../../src/ledger/ledger.ts";
import type { AcceptArgs, FinishAttemptArgs, FinishRunArgs, NewEvent, Store } from "../../src/store/store.ts";
import { eventOf, headersOf } from "../core/event.ts";
import { noon } from "../tools/rows.ts";

/** A ledger on a store that notes what it is asked, and answers as told. */
function openLedger(answers: Readonly<Record<string, unknown>> = {}, random = 0) {
  const asked: { name: string; args: unknown }[] = [];
  const store = new Proxy({} as Store, {
    get: (_target, name: string) => async (args: unknown) => {
      asked.push({ name, args });
      return name in answers ? answers[name] : true;
    },
  });
  const ledger = new Ledger({
    ...{ store, now: () => noon, random: () => random, owner: "me", leaseMs: 30_000, claimMs: 3_600_000 },
  });
  const last = <Args>(name: string): Args => {
    const call = asked.findLast((one) => one.name === name);
    assert.ok(call, `the store was not asked for ${name}`);
    return call.args as Args;
  };
  return { ledger, asked, last };
}

function aJob(failures = 0): Job {
  const plan = { prompt: "Look", skills: [], tools: [] };
  return { id: "j", fence: 3, eventId: "e", route: "r", eventType: "push", deliveryId: "42", plan, failures };
}

function aMessage(failures = 0): Message {
  const parts = { target: "telegram", extra: {}, text: "Hi", partsSent: 0, route: "r", eventType: "push" };
  return { id: "m", fence: 2, failures, ...parts };
}

const transcript = [{ role: "assistant", text: "Hm" }] as const;

function failure(parts: Partial<Extract<Outcome, { reason: string }>> = {}): Outcome {
  return { status: "failed", reason: "The model is down", transient: true, transcript, ...parts };
}

describe("accepting an event", () => {
  const event = eventOf({ deliveryId: "42", receivedAt: noon, body: Buffer.from("{}") });
  const plan = { prompt: "Look", skills: ["review"], tools: ["terminal"] };
  const drafts: Draft[] = [
    { target: "telegram", extra: { chat_id: "1" } },
    { target: "log", extra: {} },
  ];

  test("promises a run, with the claim and the lease counted from its arrival", async () => {
    const { ledger, last } = openLedger({ accept: { duplicate: false } });
    assert.equal(await ledger.acceptRun(event, plan, drafts), true);
    const args = last<AcceptArgs>("accept");
    assert.deepEqual([args.claimUntil, args.leaseUntil, args.owner], [noon + 3_600_000, noon + 30_000, "me"]);
    assert.deepEqual([args.job.kind, JSON.parse(args.job.plan)], ["agent", plan]);
    assert.deepEqual(
      args.job.messages.map(({ target, extra, text }) => [target, extra, text]),
      [
        ["telegram", '{"chat_id":"1"}', null],
        ["log", "{}", null],
      ],
    );
    assert.equal(new Set(args.job.messages.map(({ id }) => id)).size, 2);
  });

  test("hands the messages of a direct delivery to whoever asked", async () => {
    const { ledger, last } = openLedger({ accept: { duplicate: false } });
    const messages = await ledger.acceptDirect(event, "Hello", drafts);
    const kept = last<AcceptArgs>("accept").job;
    assert.equal(kept.kind, "direct");
    assert.deepEqual(
      kept.messages.map(({ text }) => text),
      ["Hello", "Hello"],
    );
    assert.deepEqual(
      messages?.map(({ id, fence, target, extra, text }) => ({ id, fence, target, extra, text })),
      kept.messages.map(({ id, target }, index) => ({
        id,
        fence: 1,
        target,
        extra: drafts[index]?.extra,
        text: "Hello",
      })),
    );
  });

  test("says when the delivery id is claimed", async () => {
    const { ledger } = openLedger({ accept: { duplicate: true } });
    assert.equal(await ledger.acceptRun(event, plan, drafts), false);
    assert.equal(await ledger.acceptDirect(event, "Hello", drafts), undefined);
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
});

describe("the end of a run", () => {
  async function ended(outcome: Outcome, failures = 0, random = 0): Promise<FinishRunArgs> {
    const { ledger, last } = openLedger({}, random);
    assert.equal(await ledger.ran(aJob(failures), outcome), true);
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
    assert.deepEqual((await ended(failure(), 0, 1)).next, { move: "retry", runAt: noon + 2_500 });
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
  });

  test("that is given back says so, whatever its outcome was", async () => {
    const { ledger, last } = openLedger();
    await ledger.giveBackJob(aJob(1), failure({ status: "cancelled" }));
    const { next, result } = last<FinishRunArgs>("finishRun");
    assert.deepEqual([next, result.outcome], [{ move: "release" }, "released"]);
    assert.match(result.reason ?? "", /^Given back/);
  });
});

describe("the end of a try to send", () => {
  async function failed(error: DeliveryError, failures = 0, mayRetry = true): Promise<FinishAttemptArgs> {
    const { ledger, last } = openLedger();
    await ledger.failed(aMessage(failures), error, mayRetry);
    return last<FinishAttemptArgs>("finishAttempt");
  }

  test("that the target took is recorded with its reference", async () => {
    const { ledger, last } = openLedger();
    await ledger.sent(aMessage(), "https://example.com/1");
    const taken = { outcome: "sent", error: null, reference: "https://example.com/1", next: { move: "take" } };
    assert.deepEqual(last("finishAttempt"), { id: "m", fence: 2, now: noon, ...taken });
    await ledger.sent(aMessage(), undefined);
    assert.equal(last<FinishAttemptArgs>("finishAttempt").reference, null);
  });

  const waits: [what: string, asked: number | "never" | undefined, failures: number, next: object][] = [
    ["follows the rule where the service names no time", undefined, 0, { move: "retry", dueAt: noon + 2_000 }],
    ["follows the rule the second time too", undefined, 1, { move: "retry", dueAt: noon + 10_000 }],
    ["waits as long as the service says, if longer", 7_000, 0, { move: "retry", dueAt: noon + 7_000 }],
    ["waits as long as the service says, if shorter", 500, 3, { move: "retry", dueAt: noon + 500 }],
    ["waits a moment when the service says none", 0, 0, { move: "retry", dueAt: noon + 250 }],
    ["waits no longer than a day", 365 * 86_400_000, 0, { move: "retry", dueAt: noon + 86_400_000 }],
    ["is given up when the service will never take it", "never", 0, { move: "giveUp" }],
    ["is given up after eight tries", undefined, 7, { move: "giveUp" }],
    ["is given up after eight tries, whatever the service says", 7_000, 7, { move: "giveUp" }],
  ];
  for (const [what, retryAfterMs, failures, next] of waits) {
    test(`that failed ${what}`, async () => {
      const args = await failed(new DeliveryError("It said no", { sent: "no", retryAfterMs: retryAfterMs! }), failures);
      assert.deepEqual([args.next, args.error, args.outcome], [next, "It said no", "refused"]);
    });
  }

  test("whose answer was lost is recorded as unknown, and made again", async () => {
    const args = await failed(new DeliveryError("No answer", { sent: "maybe" }));
    assert.deepEqual([args.outcome, args.next], ["unknown", { move: "retry", dueAt: noon + 2_000 }]);
  });

  test("for a waiting sender is final, whatever the service says", async () => {
    const args = await failed(new DeliveryError("Later", { sent: "no", retryAfterMs: 1_000 }), 0, false);
    assert.deepEqual(args.next, { move: "giveUp" });
  });
});

test("leases are taken and extended for as long as they last from now", async () => {
  const { ledger, last } = openLedger({ claimJobs: [], claimMessages: [], extendLeases: { lost: ["j"] } });
  await ledger.takeJobs(3);
  await ledger.takeMessages(4);
  const lease = { owner: "me", now: noon, leaseUntil: noon + 30_000 };
  assert.deepEqual(last("claimJobs"), { ...lease, limit: 3, maxInterruptions: 10 });
  assert.deepEqual(last("claimMessages"), { ...lease, limit: 4 });
  assert.deepEqual(await ledger.heartbeat([aJob()], [aMessage()]), ["j"]);
  assert.deepEqual(last("extendLeases"), {
    jobs: [{ id: "j", fence: 3 }],
    messages: [{ id: "m", fence: 2 }],
    leaseUntil: noon + 30_000,
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
