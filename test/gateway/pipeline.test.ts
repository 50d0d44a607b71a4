import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { Rejection, type RejectionCode } from "../../src/core/errors.ts";
import { type Handled, handle, type Reply } from "../../src/gateway/pipeline.ts";
import type { EventRecord } from "../../src/store/store.ts";
import { type Request, type RequestParts, request, type Scene, type SceneOptions, setScene } from "../tools/scene.ts";
import { until } from "../tools/wait.ts";

function send(scene: Scene, incoming: Request | RequestParts = {}): Promise<Handled> {
  return handle("reads" in incoming ? incoming : request(incoming), scene.gateway);
}

async function reply(scene: Scene, incoming: Request | RequestParts = {}): Promise<Reply> {
  return (await send(scene, incoming)).reply;
}

async function refusal(scene: Scene, incoming: Request | RequestParts = {}): Promise<Rejection> {
  try {
    await send(scene, incoming);
  } catch (error) {
    assert.ok(error instanceof Rejection, `not a Rejection: ${error}`);
    return error;
  }
  throw new assert.AssertionError({ message: "the request was not refused" });
}

/** The code of the refusal, or the status of the reply. */
async function endOf(scene: Scene, incoming: Request | RequestParts = {}): Promise<RejectionCode | Reply["status"]> {
  try {
    return (await reply(scene, incoming)).status;
  } catch (error) {
    assert.ok(error instanceof Rejection, `not a Rejection: ${error}`);
    return error.code;
  }
}

/** How many of each end there were. */
async function tally(ends: readonly Promise<string>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const one of await Promise.all(ends)) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}

/** The event that was declined, as soon as it is on disk. */
function recorded(scene: Scene): Promise<readonly EventRecord[]> {
  return until("the record", async () => {
    const events = await scene.events();
    return events.length > 0 ? events : undefined;
  });
}

const direct = { ci: { prompt: "Build {what}", deliver: "telegram", deliver_only: true } };

function directScene(t: TestContext, options: SceneOptions = {}): Promise<Scene> {
  return setScene(t, { routes: direct, ...options });
}

describe("a request that is accepted", () => {
  test("is answered with its route, event and delivery id, and is in the ledger by then", async (t) => {
    const routes = {
      ci: {
        prompt: "Look at {what} of {__raw__}",
        skills: ["review"],
        deliver: [{ to: "telegram", chat_id: "{chat}" }, "log"],
      },
    };
    const scene = await setScene(t, { routes });
    const body = { what: "this", chat: "-7", type: "release" };
    const answer = await reply(scene, { id: "42", body });
    assert.deepEqual(answer, { status: "accepted", route: "ci", event: "release", delivery_id: "42" });
    assert.equal(scene.wakes(), 1);
    const [event, ...others] = await scene.events();
    assert.deepEqual(others, []);
    assert.equal(Buffer.from(event?.body ?? "").toString(), JSON.stringify(body));
    const [job] = event?.jobs ?? [];
    assert.deepEqual([event?.type, event?.receivedAt, job?.state], ["release", scene.clock.now(), "queued"]);
    assert.deepEqual(JSON.parse(job?.plan ?? ""), {
      prompt: `Look at this of ${JSON.stringify(body, undefined, 2)}`,
      skills: ["review"],
      tools: ["terminal"],
    });
    assert.deepEqual(
      job?.messages.map(({ target, extra, state }) => [target, extra, state]),
      [
        ["telegram", '{"chat_id":"-7"}', "held"],
        ["log", "{}", "held"],
      ],
    );
  });

  test("is worked on from what its script made of it", async (t) => {
    const files = { "scripts/shape.sh": `echo '{"what": "something else"}'\n` };
    const scene = await setScene(t, { routes: { ci: { prompt: "Look at {what}", script: "shape.sh" } }, files });
    assert.equal(await endOf(scene), "accepted");
    const [event] = await scene.events();
    assert.match(event?.jobs[0]?.plan ?? "", /Look at something else/);
    assert.equal(Buffer.from(event?.body ?? "").toString(), '{"what":"this"}', "the event stays as it was sent");
  });
});

describe("a request that is declined", () => {
  const routes = {
    ci: { events: ["push"], filters: [{ field: "action", equals: "opened" }], script: "mark.sh" },
  };
  const files = {
    "scripts/mark.sh": `touch mark\ncat > /dev/null\necho '{"__postern_ignore__": true}'\n`,
  };
  const opened = { event: "push", body: { action: "opened" } };

  test("because of its event type is told so, and recorded with the reason", async (t) => {
    const scene = await setScene(t, { routes, files });
    assert.deepEqual(await reply(scene, { ...opened, event: "ping" }), { status: "ignored", event: "ping" });
    const [event] = await recorded(scene);
    assert.deepEqual([event?.state, event?.type, event?.jobs], ["ignored", "ping", []]);
    assert.match(event?.reason ?? "", /events/);
  });

  test("by a filter is told so, and recorded with the clause and the value that did not match", async (t) => {
    const scene = await setScene(t, { routes, files });
    const answer = await reply(scene, { ...opened, body: { action: "closed" } });
    assert.deepEqual(answer, { status: "ignored", reason: "filter" });
    const [event] = await recorded(scene);
    assert.match(event?.reason ?? "", /action.*opened.*closed/s);
  });

  test("by its script is told so, and recorded with the script's reason", async (t) => {
    const scene = await setScene(t, { routes, files });
    assert.deepEqual(await reply(scene, opened), { status: "ignored", reason: "script" });
    const [event] = await recorded(scene);
    assert.match(event?.reason ?? "", /__postern_ignore__/);
    assert.equal(existsSync(join(scene.home.scripts, "mark")), true);
  });

  test("by its type reaches neither filter nor script, and by a filter no script", async (t) => {
    const scene = await setScene(t, { routes, files });
    assert.deepEqual(await reply(scene, { ...opened, event: "ping", body: {} }), { status: "ignored", event: "ping" });
    assert.deepEqual(await reply(scene, { ...opened, body: {} }), { status: "ignored", reason: "filter" });
    assert.equal(existsSync(join(scene.home.scripts, "mark")), false);
  });

  test("claims no delivery id", async (t) => {
    const scene = await setScene(t, { routes: { ci: { events: ["push"] } } });
    assert.equal(await endOf(scene, { id: "42", event: "ping" }), "ignored");
    assert.equal(await endOf(scene, { id: "42", event: "ping" }), "ignored");
    assert.equal(await endOf(scene, { id: "42", event: "push" }), "accepted");
    assert.equal(await endOf(scene, { id: "42", event: "push" }), "duplicate");
    assert.equal(await endOf(scene, { id: "42", event: "ping" }), "ignored");
  });

  test("does not wait for the disk: it is told so while the ledger is away, and the log has it", async (t) => {
    const scene = await setScene(t, { routes, files });
    scene.outage.failing.add("ignore");
    assert.equal(await endOf(scene, { ...opened, event: "ping" }), "ignored");
    await until("the warning", () =>
      scene.lines.some(({ level, msg }) => level === "warn" && /not recorded/.test(msg)),
    );
  });
});

describe("a request that is refused", () => {
  const routes = { ci: { prompt: "Look" }, off: { prompt: "Look", enabled: false } };
  const big = "x".repeat(200);
  const cases: [what: string, code: RejectionCode, parts: RequestParts, bodyIsRead: boolean][] = [
    ["a declared size above the limit", "payload_too_large", { headers: { "content-length": "101" } }, false],
    ["a huge declared size", "payload_too_large", { headers: { "content-length": "9".repeat(40) } }, false],
    ["a declared size that is no number", "bad_request", { headers: { "content-length": "1e1" } }, false],
    ["an unknown route", "unknown_route", { route: "nope" }, false],
    ["a route named like a property", "unknown_route", { route: "__proto__" }, false],
    ["another one", "unknown_route", { route: "constructor" }, false],
    ["a route in other letters", "unknown_route", { route: "CI" }, false],
    ["a disabled route", "route_disabled", { route: "off" }, false],
    ["a compressed body", "unsupported_encoding", { headers: { "content-encoding": "gzip" } }, false],
    ["a body above the limit", "payload_too_large", { body: { big } }, true],
    ["no signature", "invalid_signature", { secret: null }, true],
    ["another's signature", "invalid_signature", { secret: "another secret" }, true],
    ["broken JSON", "malformed_json", { body: '{"a":' }, true],
    ["no body", "malformed_json", { body: "" }, true],
    ["a JSON list", "not_an_object", { body: "[1]" }, true],
    ["a JSON null", "not_an_object", { body: "null" }, true],
  ];
  for (const [what, code, parts, bodyIsRead] of cases) {
    test(`for ${what} is "${code}", ${bodyIsRead ? "after" : "before"} its body is read, and leaves nothing behind`, async (t) => {
      const scene = await setScene(t, { routes, webhook: { max_body_bytes: 100 } });
      const incoming = request(parts);
      assert.equal((await refusal(scene, incoming)).code, code);
      assert.equal(incoming.reads(), bodyIsRead ? 1 : 0);
      assert.deepEqual([...scene.outage.asked.keys()], [], "the ledger was asked");
      assert.equal(scene.wakes(), 0);
    });
  }

  const precedence: [first: RejectionCode, over: RejectionCode, parts: RequestParts][] = [
    ["payload_too_large", "unknown_route", { route: "nope", headers: { "content-length": "101" } }],
    ["payload_too_large", "route_disabled", { route: "off", headers: { "content-length": "101" } }],
    ["unknown_route", "unsupported_encoding", { route: "nope", headers: { "content-encoding": "gzip" } }],
    ["route_disabled", "invalid_signature", { route: "off", secret: null }],
    ["payload_too_large", "invalid_signature", { body: { big }, secret: null }],
    ["invalid_signature", "malformed_json", { body: "{", secret: null }],
  ];
  for (const [first, over, parts] of precedence) {
    test(`is "${first}" rather than "${over}"`, async (t) => {
      const scene = await setScene(t, { routes, webhook: { max_body_bytes: 100 } });
      assert.equal(await endOf(scene, parts), first);
    });
  }

  test("gives its reason without secret, payload and expected signature", async (t) => {
    const scene = await setScene(t, { routes });
    for (const parts of [{ secret: "a guess" }, { body: '{"private": "payl' }, { body: '["payload"]' }]) {
      const { message, stack } = await refusal(scene, parts);
      assert.doesNotMatch(`${message} ${stack}`, /the secret of all|a guess|payl"|"payload"|[0-9a-f]{64}/);
    }
  });
});

describe("the budget of a route", () => {
  const limited = { webhook: { rate_limit: 3 } };

  test("lets through as many as it has in a minute, then says how long to wait, before the body is read", async (t) => {
    const scene = await setScene(t, limited);
    for (const wait of [0, 10_000, 5_500]) {
      scene.clock.advance(wait);
      assert.equal(await endOf(scene), "accepted");
    }
    const incoming = request();
    const { code, retryAfterSeconds } = await refusal(scene, incoming);
    assert.deepEqual([code, retryAfterSeconds, incoming.reads()], ["rate_limited", 45, 0]);
    scene.clock.advance(44_499);
    assert.equal((await refusal(scene)).retryAfterSeconds, 1);
    scene.clock.advance(1);
    assert.equal(await endOf(scene), "accepted");
  });

  test("is each route's own", async (t) => {
    const scene = await setScene(t, { routes: { ci: {}, other: {} }, webhook: { rate_limit: 1 } });
    assert.equal(await endOf(scene), "accepted");
    assert.equal(await endOf(scene), "rate_limited");
    assert.equal(await endOf(scene, { route: "other" }), "accepted");
  });

  test("holds for requests that come at the same time", async (t) => {
    const scene = await setScene(t, { webhook: { rate_limit: 10 } });
    const ends = await tally(Array.from({ length: 50 }, () => endOf(scene)));
    assert.deepEqual(ends, { accepted: 10, rate_limited: 40 });
  });

  test("is not touched by failed verifications, however many", async (t) => {
    const scene = await setScene(t, limited);
    const forged = await tally(Array.from({ length: 50 }, () => endOf(scene, { secret: "guess" })));
    assert.deepEqual(forged, { invalid_signature: 3, rate_limited: 47 });
    const { retryAfterSeconds, cause } = await refusal(scene, { secret: "guess" });
    assert.equal(retryAfterSeconds, 60);
    assert.ok(cause instanceof Rejection && cause.code === "invalid_signature", "the log can tell them apart");
    for (let turn = 0; turn < 3; turn += 1) assert.equal(await endOf(scene), "accepted");
    assert.equal(await endOf(scene), "rate_limited");
    scene.clock.advance(60_000);
    assert.equal(await endOf(scene, { secret: "guess" }), "invalid_signature");
  });

  test("is not spent by unknown names, which leave nothing in memory", async (t) => {
    const scene = await setScene(t, limited);
    for (let turn = 0; turn < 20; turn += 1)
      assert.equal(await endOf(scene, { route: `nope-${turn}` }), "unknown_route");
    assert.equal(await endOf(scene), "accepted");
  });

  test("is spent by a genuine request whose body is no JSON", async (t) => {
    const scene = await setScene(t, { webhook: { rate_limit: 1 } });
    assert.equal(await endOf(scene, { body: "{" }), "malformed_json");
    assert.equal(await endOf(scene), "rate_limited");
  });

  test("gets back what duplicates cost", async (t) => {
    const scene = await setScene(t, limited);
    assert.equal(await endOf(scene, { id: "42" }), "accepted");
    for (let turn = 0; turn < 10; turn += 1) assert.equal(await endOf(scene, { id: "42" }), "duplicate");
    assert.equal(await endOf(scene), "accepted");
    assert.equal(await endOf(scene), "accepted");
    assert.equal(await endOf(scene), "rate_limited");
  });

  test("gets back what could not be kept", async (t) => {
    const scene = await setScene(t, limited);
    scene.outage.failing.add("accept");
    for (let turn = 0; turn < 10; turn += 1) assert.equal(await endOf(scene), "unavailable");
    scene.outage.failing.clear();
    assert.deepEqual(await tally([1, 2, 3, 4].map(() => endOf(scene))), { accepted: 3, rate_limited: 1 });
  });
});

describe("a delivery id", () => {
  test("counts once, and the copy is told so", async (t) => {
    const scene = await setScene(t);
    assert.equal(await endOf(scene, { id: "42" }), "accepted");
    assert.deepEqual(await reply(scene, { id: "42", body: { what: "else" } }), {
      status: "duplicate",
      delivery_id: "42",
    });
    assert.equal((await scene.events()).length, 1);
    assert.equal(scene.wakes(), 1);
  });

  test("counts on each route for itself", async (t) => {
    const scene = await setScene(t, { routes: { ci: {}, other: {} } });
    assert.equal(await endOf(scene, { id: "42" }), "accepted");
    assert.equal(await endOf(scene, { id: "42", route: "other" }), "accepted");
    assert.equal(await endOf(scene, { id: "42", route: "other" }), "duplicate");
  });

  test("is made up where there is none, and then never taken for another", async (t) => {
    const scene = await setScene(t);
    const replies = await Promise.all(Array.from({ length: 20 }, () => reply(scene)));
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set(["accepted"]));
    const ids = replies.map((one) => ("delivery_id" in one ? one.delivery_id : ""));
    assert.equal(new Set(ids).size, 20);
    for (const id of ids) assert.match(id, new RegExp(`^${scene.clock.now()}`));
  });

  test("counts for an hour", async (t) => {
    const scene = await setScene(t);
    assert.equal(await endOf(scene, { id: "42" }), "accepted");
    scene.clock.advance(3_599_999);
    assert.equal(await endOf(scene, { id: "42" }), "duplicate");
    scene.clock.advance(1);
    assert.equal(await endOf(scene, { id: "42" }), "accepted");
  });

  test("counts after a restart", async (t) => {
    const first = await setScene(t);
    assert.equal(await endOf(first, { id: "42" }), "accepted");
    first.outage.kill();
    const second = await setScene(t, { after: first });
    assert.equal(await endOf(second, { id: "42" }), "duplicate");
  });

  test("sent fifty times at once has one effect", async (t) => {
    const scene = await setScene(t, { webhook: { rate_limit: 50 } });
    const ends = await tally(Array.from({ length: 50 }, () => endOf(scene, { id: "42" })));
    assert.deepEqual(ends, { accepted: 1, duplicate: 49 });
    assert.equal((await scene.events()).length, 1);
  });
});

describe("while the ledger cannot commit", () => {
  test("a request is told to come back, nothing is kept, and it ends without a restart", async (t) => {
    const scene = await setScene(t);
    scene.outage.failing.add("accept");
    const { code, retryAfterSeconds } = await refusal(scene, { id: "42" });
    assert.deepEqual([code, retryAfterSeconds], ["unavailable", 10]);
    assert.equal(scene.wakes(), 0);
    assert.deepEqual(await scene.events(), []);
    scene.outage.failing.clear();
    assert.equal(await endOf(scene, { id: "42" }), "accepted");
  });

  test("a direct delivery does not go out", async (t) => {
    const scene = await directScene(t);
    scene.outage.failing.add("accept");
    assert.equal(await endOf(scene, { id: "42" }), "unavailable");
    assert.equal(scene.telegram.tries, 0);
  });

  test("a direct delivery that went out is not answered before it is recorded, and goes out once", async (t) => {
    const scene = await directScene(t);
    scene.outage.failing.add("finishAttempt");
    const sending = endOf(scene, { id: "42" });
    await until("a second try to record", () => (scene.outage.asked.get("finishAttempt") ?? 0) >= 2);
    scene.outage.failing.clear();
    assert.equal(await sending, "delivered");
    assert.equal(scene.telegram.tries, 1);
    assert.equal(await endOf(scene, { id: "42" }), "duplicate");
  });
});

describe("a direct delivery", () => {
  test("is answered when the target has taken it, without an agent", async (t) => {
    const scene = await directScene(t);
    const answer = await reply(scene, { id: "42", body: { what: "7" } });
    assert.deepEqual(answer, { status: "delivered", route: "ci", target: "telegram", delivery_id: "42" });
    assert.deepEqual(
      scene.telegram.messages.map(({ text, chatId }) => [text, chatId]),
      [["Build 7", "42"]],
    );
    const [event] = await scene.events();
    const [job] = event?.jobs ?? [];
    assert.deepEqual([job?.kind, job?.state, job?.messages[0]?.state], ["direct", "done", "sent"]);
    assert.equal(job?.messages[0]?.reference, "1");
    assert.equal(scene.wakes(), 0);
  });

  test("to several is answered when all have taken it, and names each target once", async (t) => {
    const both = [
      { to: "telegram", chat_id: "1" },
      { to: "telegram", chat_id: "2" },
    ];
    const scene = await setScene(t, { routes: { ci: { prompt: "Hi", deliver: both, deliver_only: true } } });
    assert.equal(((await reply(scene)) as { target?: string }).target, "telegram");
    assert.deepEqual(scene.telegram.messages.map(({ chatId }) => chatId).sort(), ["1", "2"]);
  });

  for (const mode of ["refused", "limited", "broken", "lost", "garbage"] as const) {
    test(`that fails ("${mode}") is told as failed without the reason, and may be sent again under its id`, async (t) => {
      const scene = await directScene(t);
      scene.telegram.upcoming.push(mode);
      assert.deepEqual(await reply(scene, { id: "42" }), {
        status: "error",
        error: "Delivery failed",
        delivery_id: "42",
      });
      const [event] = await scene.events();
      assert.equal(event?.state, "refused");
      assert.ok((event?.reason ?? "").length > 10);
      assert.equal(await endOf(scene, { id: "42" }), "delivered");
      assert.equal(await endOf(scene, { id: "42" }), "duplicate");
    });
  }

  test("to several fails when one of them does not take it", async (t) => {
    const both = [
      { to: "telegram", chat_id: "1" },
      { to: "telegram", chat_id: "2" },
    ];
    const scene = await setScene(t, { routes: { ci: { prompt: "Hi", deliver: both, deliver_only: true } } });
    scene.telegram.upcoming.push("refused");
    assert.equal(await endOf(scene, { id: "42" }), "error");
    assert.equal((await scene.events())[0]?.state, "refused");
    assert.equal(await endOf(scene, { id: "42" }), "delivered");
  });

  test("whose address the payload does not resolve fails without being sent", async (t) => {
    const routes = {
      ci: { prompt: "Hi", deliver: "telegram", deliver_only: true, deliver_extra: { chat_id: "{chat}" } },
    };
    const scene = await setScene(t, { routes });
    assert.equal(await endOf(scene), "error");
    assert.equal(scene.telegram.tries, 0);
    assert.equal(await endOf(scene, { body: { chat: "@name" } }), "delivered");
  });

  test("sent fifty times at once reaches the target once", async (t) => {
    const scene = await directScene(t, { webhook: { rate_limit: 50 } });
    const ends = await tally(Array.from({ length: 50 }, () => endOf(scene, { id: "42" })));
    assert.deepEqual(ends, { delivered: 1, duplicate: 49 });
    assert.equal(scene.telegram.tries, 1);
  });

  test("whose first of fifty copies fails is never called a duplicate of what was not delivered", async (t) => {
    const scene = await directScene(t, { webhook: { rate_limit: 100 } });
    scene.telegram.upcoming.push("refused");
    const ends = await tally(Array.from({ length: 50 }, () => endOf(scene, { id: "42" })));
    assert.deepEqual(ends, { error: 50 });
    assert.equal(await endOf(scene, { id: "42" }), "delivered");
  });

  test("shares its fate with a copy that comes while it is being sent", async (t) => {
    const scene = await directScene(t);
    scene.telegram.mode = "hang";
    const answered: string[] = [];
    const note = async (name: string) => answered.push(`${name} ${await endOf(scene, { id: "42" })}`);
    const first = note("first");
    await until("the try", () => scene.telegram.tries === 1);
    const copy = note("copy");
    await until("the copy's accept", () => scene.outage.asked.get("accept") === 2);
    await scene.ledger.nextDue();
    assert.deepEqual(answered, []);
    await scene.telegram.close();
    await Promise.all([first, copy]);
    assert.deepEqual(answered.sort(), ["copy error", "first error"]);
    assert.equal(scene.telegram.tries, 1);
  });

  test("that is sent again in the moment of its failure is still waited for by the next copy", async (t) => {
    const scene = await directScene(t);
    scene.telegram.upcoming.push("refused", "hang");
    let second: Promise<string> = Promise.resolve("");
    // Accepted in the same commit that frees the claim.
    scene.outage.hooks.set("finishAttempt", () => {
      second = endOf(scene, { id: "42" });
    });
    const first = endOf(scene, { id: "42" });
    assert.equal(await first, "error");
    await until("the second try", () => scene.telegram.tries === 2);
    const third = endOf(scene, { id: "42" });
    await scene.telegram.close();
    assert.deepEqual(await Promise.all([second, third]), ["error", "error"]);
  });

  test("that failed while the copy's answer was on its way from the ledger is not called delivered", async (t) => {
    const scene = await directScene(t);
    scene.telegram.mode = "hang";
    const first = endOf(scene, { id: "42" });
    await until("the try", () => scene.telegram.tries === 1);
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.outage.delays.set("accept", promise);
    const copy = endOf(scene, { id: "42" });
    await until("the copy's accept", () => scene.outage.asked.get("accept") === 2);
    await scene.telegram.close();
    assert.equal(await first, "error");
    resolve();
    assert.equal(await copy, "error");
  });

  test("that was cut off by a crash may be sent again under its id", async (t) => {
    const first = await directScene(t);
    first.telegram.upcoming.push("hang");
    endOf(first, { id: "42" }).catch(() => {});
    await until("the try", () => first.telegram.tries === 1);
    first.outage.kill();
    const second = await setScene(t, { after: first });
    second.clock.advance(1);
    await second.ledger.takeOver();
    assert.deepEqual(await second.ledger.takeMessages({ limit: 10, active: [], limits: {} }), []);
    assert.equal(await endOf(second, { id: "42" }), "delivered");
    assert.deepEqual(
      (await second.events()).map(({ state }) => state),
      ["done", "refused"],
    );
  });

  test("leaves no secret in its message and none of the target's words in the reply", async (t) => {
    const scene = await directScene(t);
    assert.equal(await endOf(scene, { body: { what: "the secret of all routes" } }), "delivered");
    assert.equal(scene.telegram.messages[0]?.text, "Build [redacted]");
    // What the target would drop must not hide it.
    assert.equal(await endOf(scene, { body: { what: "the sec\u0007ret of all routes" } }), "delivered");
    assert.equal(scene.telegram.messages[1]?.text, "Build [redacted]");
    // Nor must marks that are gone when it is rendered.
    assert.equal(await endOf(scene, { body: { what: "the **sec**ret of *all* routes, *soon*" } }), "delivered");
    assert.equal(scene.telegram.messages[2]?.text, "Build [redacted], soon");
    scene.telegram.upcoming.push("refused");
    assert.doesNotMatch(JSON.stringify(await reply(scene)), /bot|blocked|403/);
  });
});
