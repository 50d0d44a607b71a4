import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobRecord, NewJob } from "../../src/store/store.ts";
import { makeHome } from "../tools/home.ts";
import { aResult } from "../tools/rows.ts";
import { keys, run, runJson, typist } from "./command.ts";
import {
  arrive,
  decline,
  elsewhere,
  makePast,
  type Past,
  refused,
  replaced,
  send,
  sendDirectly,
  twoRoutes,
  work,
} from "./events.ts";

/** An event whose message the target refused for good. */
async function aDeadEvent(past: Past, arrival: Parameters<typeof arrive>[1] = {}): Promise<string> {
  const id = await arrive(past, arrival);
  await work(past);
  await send(past, refused);
  return id;
}

async function lastJob(past: Past, id: string): Promise<JobRecord> {
  const job = (await past.read(id)).jobs.at(-1);
  if (!job) throw new Error("No job");
  return job;
}

const lane = (chat: string) => JSON.stringify(["telegram", { chat_id: chat }]);

test("from the start: the event is decided on and composed anew, by its route as it is now", async (t) => {
  const past = await makePast(t);
  const id = await aDeadEvent(past, { prompt: "the prompt of then", onCrash: "fail" });
  const { code, out } = await run(past.home, ["events", "replay", id]);
  const job = await lastJob(past, id);
  assert.deepEqual([code, out], [0, `${id}  replayed as an agent run of route "reviews", job ${job.id}\n`]);
  assert.deepEqual(
    [job.kind, job.route, job.state, job.origin, job.onCrash],
    ["agent", "reviews", "queued", "replay from start", "rerun"],
  );
  assert.deepEqual(JSON.parse(job.plan), { prompt: "Review a fix", skills: ["careful"], tools: ["terminal"] });
  assert.deepEqual(
    job.messages.map((message) => [message.target, message.extra, message.lane, message.text, message.state]),
    [["telegram", '{"chat_id":"7"}', lane("7"), null, "held"]],
  );
  assert.equal((await past.read(id)).state, "queued");
});

test("from the start, on a route without an agent: its message is a delivery that nobody waits for", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { route: "alerts", kind: "direct", text: "old" });
  await sendDirectly(past, id, refused);
  assert.equal((await past.read(id)).state, "refused");
  await run(past.home, ["events", "replay", id]);
  const job = await lastJob(past, id);
  assert.deepEqual([job.kind, job.state, job.plan], ["delivery", "delivering", "{}"]);
  assert.deepEqual(
    job.messages.map(({ extra, lane, text, state }) => [extra, lane, text, state]),
    // The home channel.
    [["{}", lane("42"), "Alert: a fix", "pending"]],
  );
});

test("from the start onto another route: that one's rules hold", async (t) => {
  const past = await makePast(t);
  const id = await aDeadEvent(past);
  const { out } = await run(past.home, ["events", "replay", id, "--route", "alerts"]);
  assert.match(out, /replayed as a delivery of route "alerts"/);
  const job = await lastJob(past, id);
  assert.deepEqual([job.route, job.messages[0]?.text], ["alerts", "Alert: a fix"]);
  assert.equal((await past.read(id)).route, "reviews");
});

test("a form is read as it was when it came in", async (t) => {
  const past = await makePast(t);
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const payload = new URLSearchParams({ title: "from a form" }).toString();
  const id = await aDeadEvent(past, { route: "alerts", headers, payload });
  await run(past.home, ["events", "replay", id]);
  assert.equal((await lastJob(past, id)).messages[0]?.text, "Alert: from a form");
});

test("what its route declines now is ignored with the clause, and gets no job", async (t) => {
  const past = await makePast(t);
  const byFilter = await aDeadEvent(past, { payload: { action: "closed" } });
  const byType = await aDeadEvent(past, { type: "push" });
  const { code, value } = await runJson<{ result: string; reason: string }[]>(past.home, [
    ...["events", "replay", byFilter, byType],
  ]);
  assert.equal(code, 0);
  assert.deepEqual(
    value.map(({ result }) => result),
    ["ignored", "ignored"],
  );
  assert.match(value[0]?.reason ?? "", /action.*opened.*closed/);
  assert.equal(value[1]?.reason, 'the event type is not in "events"');
  assert.equal((await past.read(byFilter)).jobs.length, 1);
});

test("an event that was ignored is replayed once its route takes it", async (t) => {
  const past = await makePast(t);
  const id = await decline(past, "filters[0]: no");
  await run(past.home, ["events", "replay", id]);
  assert.equal((await past.read(id)).state, "queued");
  assert.equal((await lastJob(past, id)).origin, "replay from start");
});

test("a subscription is a route like any other, and a broken one is told", async (t) => {
  const past = await makePast(t);
  const sub = { secret: "0123456789abcdef", prompt: "Subscribed: {title}" };
  await past.home.write("webhook_subscriptions.json", JSON.stringify({ sub, broken: { ...sub, deliver: "nowhere" } }));
  const [id, other] = [await aDeadEvent(past), await aDeadEvent(past)];
  await run(past.home, ["events", "replay", id, "--route", "sub"]);
  assert.match((await lastJob(past, id)).plan, /"Subscribed: a fix"/);
  const { code, out } = await run(past.home, ["events", "replay", other, "--route", "broken"]);
  assert.equal(code, 1);
  assert.match(out, /failed: The subscription "broken" is skipped: .*Unknown target "nowhere"/);
});

test("from the start: messages have the fallback of the route as it is now", async (t) => {
  const past = await makePast(t);
  const routes = { reviews: { deliver: "telegram", fallback: [{ to: "telegram", chat_id: "{chat}9" }, "log"] } };
  const webhook = { ...twoRoutes.platforms.webhook, routes };
  await past.home.write("config.yaml", JSON.stringify({ platforms: { ...twoRoutes.platforms, webhook } }));
  const id = await aDeadEvent(past);
  const { out } = await run(past.home, ["events", "replay", id, "--dry-run"]);
  assert.match(out, /\n {2}to telegram \(chat_id=42\), else to telegram \(chat_id=79\), else to log\n$/);
  const { value } = await runJson<{ job: NewJob }[]>(past.home, ["events", "replay", id]);
  const places = [elsewhere("79"), { target: "log", extra: {}, lane: null, refusal: null }];
  assert.deepEqual(value[0]?.job.messages[0]?.fallback, places);
  const [message] = (await lastJob(past, id)).messages;
  assert.deepEqual(JSON.parse(message?.fallback ?? ""), places);
});

/** An event whose message went on along its fallback, and was refused everywhere, or taken in the end. */
async function anEventWithFallback(past: Past, end: typeof refused | object): Promise<string> {
  const id = await arrive(past, { chats: ["7", "6"], fallback: [elsewhere("8")] });
  await work(past);
  await send(past, replaced());
  await send(past);
  await send(past, end);
  return id;
}

test("from the run, or from the delivery: a message begins with the first of its targets again", async (t) => {
  const past = await makePast(t);
  for (const from of ["run", "delivery"]) {
    const id = await anEventWithFallback(past, refused);
    assert.equal((await run(past.home, ["events", "replay", id, "--from", from])).code, 0);
    const { messages } = await lastJob(past, id);
    const first = ["7", JSON.stringify([elsewhere("8")]), null];
    const second = ["6", JSON.stringify([elsewhere("8")]), null];
    assert.deepEqual(
      messages.map(({ extra, fallback, replaces }) => [JSON.parse(extra).chat_id, fallback, replaces]),
      from === "run" ? [first, second] : [first],
    );
    if (from === "run") await work(past);
    for (const _ of messages) await send(past);
    assert.equal((await past.read(id)).state, "done");
  }
});

test("from the delivery: what was taken in place of another is not sent again, unless all are", async (t) => {
  const past = await makePast(t);
  const id = await anEventWithFallback(past, {});
  assert.equal((await past.read(id)).state, "done");
  const { code, out } = await run(past.home, ["events", "replay", id, "--from", "delivery"]);
  assert.deepEqual([code, out], [1, `${id}  failed: All its messages were sent; add --all to send them again\n`]);
  await run(past.home, ["events", "replay", id, "--from", "delivery", "--all"]);
  assert.equal((await lastJob(past, id)).messages.length, 2);
});

test("from the run: whether the answer can go anywhere is decided anew", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { plan: { hopeless: "There was no home channel" } });
  await work(past, { result: aResult({ outcome: "failed", reason: "x", answer: null }), next: { move: "giveUp" } });
  await run(past.home, ["events", "replay", id, "--from", "run"]);
  assert.equal(JSON.parse((await lastJob(past, id)).plan).hopeless, undefined);
  const other = await arrive(past, { chats: ["no chat"] });
  await work(past, { result: aResult({ outcome: "failed", reason: "x", answer: null }), next: { move: "giveUp" } });
  await run(past.home, ["events", "replay", other, "--from", "run"]);
  assert.match(JSON.parse((await lastJob(past, other)).plan).hopeless, /"no chat", which is not/);
});

test("from the run: the plan and the addresses of then, and a new run", async (t) => {
  const past = await makePast(t);
  const id = await aDeadEvent(past, { prompt: "the prompt of then", onCrash: "fail", chats: ["8"] });
  const before = await lastJob(past, id);
  assert.equal((await run(past.home, ["events", "replay", id, "--from", "run"])).code, 0);
  const job = await lastJob(past, id);
  assert.deepEqual([job.kind, job.state, job.onCrash, job.plan], ["agent", "queued", "fail", before.plan]);
  assert.equal(job.origin, `replay from run of job ${before.id}`);
  assert.deepEqual(
    job.messages.map(({ extra, lane, text }) => [extra, lane, text]),
    [['{"chat_id":"8"}', lane("8"), null]],
  );
  await work(past);
  await send(past);
  assert.equal((await past.read(id)).state, "done");
});

test("from the delivery of a direct one: the text of then", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { route: "alerts", kind: "direct", text: "old" });
  await sendDirectly(past, id, refused);
  await run(past.home, ["events", "replay", id, "--from", "delivery"]);
  const { kind, messages } = await lastJob(past, id);
  assert.deepEqual([kind, messages[0]?.text, messages[0]?.lane], ["delivery", "old", lane("7")]);
  await send(past);
  assert.equal((await past.read(id)).state, "done");
});

test("from the delivery: only what was not sent, or all of it with --all", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { chats: ["1", "2"] });
  await work(past, { result: aResult({ answer: "the answer" }) });
  await send(past);
  await send(past, refused);
  const first = await lastJob(past, id);

  assert.equal((await run(past.home, ["events", "replay", id, "--from", "delivery"])).code, 0);
  const second = await lastJob(past, id);
  assert.deepEqual([second.kind, second.origin], ["delivery", `replay from delivery of job ${first.id}`]);
  const parts = (job: JobRecord) => job.messages.map(({ extra, text, lane }) => [extra, text, lane]);
  assert.deepEqual(parts(second), [['{"chat_id":"2"}', "the answer", lane("2")]]);
  await send(past);

  const again = await run(past.home, ["events", "replay", id, "--from", "delivery"]);
  assert.deepEqual(
    [again.code, again.out],
    [1, `${id}  failed: All its messages were sent; add --all to send them again\n`],
  );
  await run(past.home, ["events", "replay", id, "--from", "delivery", "--all"]);
  assert.deepEqual(parts(await lastJob(past, id)), parts(second));
});

const failures: [what: string, args: string[], make: (past: Past) => Promise<string>, why: RegExp][] = [
  [
    "a route that is gone",
    [],
    (past) => aDeadEvent(past, { route: "gone" }),
    /no route "gone" any more; name the .*--route/,
  ],
  ["a route that there is not", ["--route", "nosuch"], aDeadEvent, /There is no route "nosuch"; see/],
  ["a disabled route", ["--route", "off"], aDeadEvent, /The route "off" is disabled; enable it/],
  ["a job that is under way", [], arrive, /It is queued; wait until it has ended, or "postern events cancel /],
  ["no agent's run", ["--from", "run"], (past) => decline(past, "no"), /no run to repeat; use --from start/],
  ["no text for an ignored one", ["--from", "delivery"], (past) => decline(past, "no"), /No text .*use --from start/],
  [
    "no answer",
    ["--from", "delivery"],
    async (past) => {
      const id = await arrive(past);
      await work(past, { result: aResult({ outcome: "failed", answer: null, reason: "x" }), next: { move: "giveUp" } });
      return id;
    },
    /No text for its targets is recorded; use --from run/,
  ],
  [
    "an answer that was kept back",
    ["--from", "delivery", "--all"],
    async (past) => {
      const id = await arrive(past);
      await work(past, { result: aResult({ answer: "[SILENT]" }), next: { move: "answer", silent: true } });
      return id;
    },
    /exactly \[SILENT\]|No text/,
  ],
  ["an unreadable body", [], (past) => aDeadEvent(past, { payload: "{" }), /The body is not JSON/],
  ["an id of no event", [], async () => "ffff", /No single event begins with "ffff"/],
];

for (const [what, args, make, why] of failures) {
  test(`an event cannot be replayed with ${what}: told why, exit 1, and nothing is added`, async (t) => {
    const past = await makePast(t);
    const id = await make(past);
    const jobs = async () => (await past.store.readEvent({ id }))?.jobs.length;
    const before = await jobs();
    const { code, out } = await run(past.home, ["events", "replay", id, ...args]);
    assert.equal(code, 1);
    assert.ok(out.startsWith(`${id}  failed: `), out);
    assert.match(out, why);
    assert.equal(await jobs(), before);
  });
}

test("a target that is not set up any more is told before an agent works for it", async (t) => {
  const past = await makePast(t);
  const id = await aDeadEvent(past);
  const { telegram: _, ...platforms } = twoRoutes.platforms;
  const routes = { alerts: { prompt: "x", deliver: "log" } };
  const webhook = { ...platforms.webhook, routes };
  await past.home.write("config.yaml", JSON.stringify({ ...twoRoutes, platforms: { webhook } }));
  const { code, out } = await run(past.home, ["events", "replay", id, "--from", "run"]);
  assert.equal(code, 1);
  assert.match(out, /The target "telegram" cannot be used: /);
});

test("of several each has its line, and one that fails makes the exit code 1", async (t) => {
  const past = await makePast(t);
  const good = await aDeadEvent(past, { agoMs: 2000 });
  const queued = await arrive(past, { agoMs: 1000 });
  const { code, out } = await run(past.home, ["events", "replay", queued, good.slice(0, -1)]);
  assert.equal(code, 1);
  assert.match(out, new RegExp(`^${queued}  failed: .*\n${good}  replayed as .*\n$`));
});

test("--dry-run changes nothing and shows prompt, addresses and what would be declined", async (t) => {
  const past = await makePast(t);
  const id = await aDeadEvent(past, { payload: { action: "opened", title: "a\u001b[2J\nfix", chat: "7" } });
  const badChat = await aDeadEvent(past, { payload: { action: "opened", title: "x" } });
  const closed = await aDeadEvent(past, { payload: { action: "closed" } });
  const args = ["events", "replay", id, badChat, closed, "--dry-run"];
  const { code, out } = await run(past.home, args);
  assert.equal(code, 0);
  const lines = out.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 5), [
    `${id}  would be replayed as an agent run of route "reviews"`,
    "  the prompt:",
    "    | Review a[2J",
    "    | fix",
    "  to telegram (chat_id=7)",
  ]);
  assert.match(lines[8] ?? "", /^ {2}to telegram, which will not take it: .*"\{chat\}"/);
  assert.match(lines[9] ?? "", new RegExp(`^${closed}  would be ignored: .*closed`));
  for (const one of [id, badChat, closed]) assert.equal((await past.read(one)).jobs.length, 1);

  const home = await run(past.home, ["events", "replay", id, "--route", "alerts", "--dry-run"]);
  assert.match(home.out, /the message:\n.*\n.*\n {2}to telegram \(chat_id=42\)\n$/);
  const { value } = await runJson<{ result: string; job?: { plan: unknown } }[]>(past.home, args);
  assert.deepEqual(
    value.map(({ result }) => result),
    ["would be replayed", "would be replayed", "would be ignored"],
  );
  assert.deepEqual(value[0]?.job?.plan, { prompt: "Review a\u001b[2J\nfix", skills: ["careful"], tools: ["terminal"] });
});

test("many by filter: their number is asked first, and the oldest goes first", async (t) => {
  const past = await makePast(t);
  const dead = [await aDeadEvent(past, { agoMs: 3000 }), await aDeadEvent(past, { agoMs: 2000 })];
  await aDeadEvent(past, { agoMs: 1000, route: "others" });
  const all = ["events", "replay", "--state", "dead", "--of-route", "reviews", "--since", "1h", "--from", "run"];
  const jobs = () => Promise.all(dead.map(async (id) => (await past.read(id)).jobs.length));

  const nobody = await run(past.home, all);
  assert.equal(nobody.code, 2);
  assert.match(nobody.err, /Replay 2 events\? There is no terminal to ask at; add --yes/);
  const no = typist([["Replay 2 events?", keys.enter]]);
  assert.equal((await run(past.home, all, no)).code, 1);
  assert.deepEqual(await jobs(), [1, 1]);
  const yes = typist([["Replay 2 events?", "y"]]);
  const { code, out } = await run(past.home, all, yes);
  assert.equal(code, 0);
  assert.deepEqual(
    out.split("\n").map((line) => line.split("  ")[0]),
    [...dead, ""],
  );
  assert.deepEqual(await jobs(), [2, 2]);
  const other = await run(past.home, ["events", "replay", "--of-route", "others", "--route", "alerts", "--yes"]);
  assert.equal(other.err, "1 event\n");
  assert.match(other.out, /replayed as a delivery of route "alerts"/);
});

test("a replay stands for its event also when the clock was set back since", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { agoMs: -3_600_000 });
  await run(past.home, ["events", "cancel", id]);
  assert.equal((await run(past.home, ["events", "replay", id])).code, 0);
  assert.equal((await past.read(id)).state, "queued");
});

for (const [what, args] of [
  ["nothing to replay", []],
  ["ids and filters", ["019a", "--state", "dead"]],
  ["a step that there is not", ["019a", "--from", "middle"]],
  ["another route from the run", ["019a", "--from", "run", "--route", "x"]],
  ["--all from the start", ["019a", "--all"]],
] as const) {
  test(`replay with ${what} is wrong usage`, async (t) => {
    const { code, out } = await run(await makeHome(t), ["events", "replay", ...args]);
    assert.deepEqual([code, out], [2, ""]);
  });
}

test("on a home without a ledger there is nothing to replay; a wrong configuration is exit 78", async (t) => {
  const home = await makeHome(t);
  assert.equal((await run(home, ["events", "replay", "019a"])).code, 1);
  assert.deepEqual((await runJson(home, ["events", "replay", "--state", "dead"])).value, []);
  await home.write("config.yaml", "platforms: 5");
  assert.equal((await run(home, ["events", "replay", "019a"])).code, 78);
});
