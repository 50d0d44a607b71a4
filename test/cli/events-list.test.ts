import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { makeHome } from "../tools/home.ts";
import { aResult } from "../tools/rows.ts";
import { until } from "../tools/wait.ts";
import { run, runJson } from "./command.ts";
import { arrive, decline, makePast, type Past, refused, send, twoRoutes, work } from "./events.ts";

interface Row {
  readonly id: string;
  readonly state: string;
}

const hour = 3_600_000;

async function ids({ home }: Past, ...args: string[]): Promise<string[]> {
  return (await runJson<Row[]>(home, ["events", "list", ...args])).value.map(({ id }) => id);
}

test("events are listed by route, state and time, newest first", async (t) => {
  const past = await makePast(t);
  const old = await arrive(past, { agoMs: 50 * hour });
  await work(past);
  await send(past);
  const dead = await arrive(past, { agoMs: 5 * hour });
  await work(past);
  await send(past, refused);
  const waiting = await arrive(past, { agoMs: 2 * hour, route: "others" });
  const declined = await decline(past, "no", { agoMs: 60_000 });

  assert.deepEqual(await ids(past), [declined, waiting, dead, old]);
  assert.deepEqual(await ids(past, "--limit", "2"), [declined, waiting]);
  assert.deepEqual(await ids(past, "--route", "others"), [waiting]);
  assert.deepEqual(await ids(past, "--state", "dead"), [dead]);
  assert.deepEqual(await ids(past, "--state", "ignored"), [declined]);
  assert.deepEqual(await ids(past, "--since", "3h"), [declined, waiting]);
  assert.deepEqual(await ids(past, "--since", "150m", "--until", "30m"), [waiting]);
  assert.deepEqual(await ids(past, "--until", "1d"), [old]);
  const date = new Date(Date.now() - 24 * hour).toISOString();
  assert.deepEqual(await ids(past, "--until", date), [old]);
  assert.deepEqual(await ids(past, "--since", date.slice(0, 10), "--until", "4h"), [dead]);
  assert.deepEqual(await ids(past, "--since", date.slice(0, 16).replace("T", " "), "--state", "queued"), [waiting]);
});

for (const time of ["yesterday", "5", "1y", "2026-13-01", "2026-01-01T25:00", "-1h", ""]) {
  test(`"${time}" is no time: wrong usage that says what one looks like`, async (t) => {
    const { code, err } = await run(await makeHome(t), ["events", "list", "--since", time]);
    assert.equal(code, 2);
    assert.match(err, /Expected a time such as 30m, 1h, 7d/);
  });
}

test("--text finds what a person may remember an event by, in any case, and stops at the limit", async (t) => {
  const past = await makePast(t);
  const byBody = await arrive(past, { agoMs: 9000, payload: { sha: "Zebra" } });
  const byPrompt = await arrive(past, { agoMs: 8000, prompt: "Look at the zebra" });
  const byAnswer = await arrive(past, { agoMs: 7000 });
  for (const answer of ["nothing", "nothing", "A ZEBRA!"]) {
    await work(past, { result: aResult({ answer }) });
    await send(past);
  }
  const byError = await arrive(past, { agoMs: 6000 });
  await work(past);
  await send(past, { ...refused, error: "no zebra here" });
  const byRun = await arrive(past, { agoMs: 5000 });
  const failed = aResult({ outcome: "failed", reason: "the model ate the zebra", answer: null });
  await work(past, { result: failed, next: { move: "giveUp" } });
  const byText = await arrive(past, { agoMs: 4000, kind: "delivery", text: "zebra, striped" });
  const byDelivery = await arrive(past, { agoMs: 3000, deliveryId: "zebra-1" });
  const byType = await arrive(past, { agoMs: 2000, type: "zebra_event" });
  const byReason = await decline(past, "filters[0]: found zebra", { agoMs: 1000 });
  await arrive(past, { agoMs: 500 });

  const all = [byReason, byType, byDelivery, byText, byRun, byError, byAnswer, byPrompt, byBody];
  assert.deepEqual(await ids(past, "--text", "zebra"), all);
  assert.deepEqual(await ids(past, "--text", "zebra", "--limit", "2"), all.slice(0, 2));
  assert.deepEqual(await ids(past, "--text", "zebra", "--state", "dead"), [byRun, byError]);
  assert.deepEqual(await ids(past, "--text", byRun.slice(4)), [byRun]);
  assert.deepEqual(await ids(past, "--text", "no such thing"), []);
});

test("more events than are read at once are listed without a gap", async (t) => {
  const past = await makePast(t);
  const all: string[] = [];
  for (let index = 0; index < 450; index += 1) all.unshift(await decline(past, "no", { agoMs: 1000 - index }));
  assert.deepEqual(await ids(past, "--limit", "1000"), all);
  assert.deepEqual(await ids(past, "--limit", "401"), all.slice(0, 401));
  assert.deepEqual(await ids(past, "--limit", "1000", "--text", "NO"), all);
});

test("what a stranger wrote makes no line of its own in a list", async (t) => {
  const past = await makePast(t);
  await decline(past, "found \n\u001b[2Jx", { type: "push\nfake  row" });
  const { out } = await run(past.home, ["events", "list"]);
  assert.equal(out.trimEnd().split("\n").length, 2);
  assert.match(out, /push fake row +ignored +found \[2Jx\n$/);
});

/** `events list --follow` in this process. */
function follow(
  t: TestContext,
  past: Pick<Past, "home">,
  args: readonly string[],
  { isHeard = (): boolean => true, words = ["list", "--follow"] } = {},
) {
  const seen = { out: "", err: "" };
  let stop = () => {};
  const done = run(past.home, ["events", ...words, ...args], {
    isHeard,
    out: (text) => {
      seen.out += text;
    },
    err: (text) => {
      seen.err += text;
    },
    onStop: (listener) => {
      stop = listener;
    },
  });
  t.after(() => stop());
  return { seen, done, stop: () => stop(), rows: () => seen.out.trim().split("\n").filter(Boolean) };
}

test("--follow prints what is there, what comes and what changes, until it is stopped", async (t) => {
  const past = await makePast(t);
  const first = await arrive(past, { agoMs: 9000 });
  const second = await decline(past, "no", { agoMs: 8000 });
  const { rows, stop, done } = follow(t, past, ["--json"]);
  const stands = () =>
    rows()
      .map((line) => JSON.parse(line) as Row)
      .map(({ id, state }) => `${id} ${state}`);
  await until("the first two", () => rows().length === 2);
  assert.deepEqual(stands(), [`${first} queued`, `${second} ignored`]);

  await work(past);
  const third = await arrive(past, { agoMs: 0 });
  await until("the change and the new one", () => rows().length === 4);
  assert.deepEqual(stands().slice(2), [`${first} delivering`, `${third} queued`]);

  await send(past, refused);
  await until("the end of the first", () => rows().length === 5);
  assert.deepEqual(stands().slice(4), [`${first} dead`]);
  stop();
  assert.equal((await done).code, 0);
});

test("tail is another word for it", async (t) => {
  const past = await makePast(t);
  const first = await arrive(past, { agoMs: 9000 });
  const { rows, stop, done } = follow(t, past, ["--json"], { words: ["tail"] });
  await until("the first", () => rows().length === 1);
  assert.equal((JSON.parse(rows()[0]!) as Row).id, first);
  stop();
  assert.equal((await done).code, 0);
});

test("--follow keeps to its filters, and tells of an old event that is at work again", async (t) => {
  const past = await makePast(t);
  const old = await arrive(past, { agoMs: 60_000 });
  await work(past);
  await send(past, refused);
  for (let index = 0; index < 250; index += 1) await decline(past, "no", { agoMs: 1000 - index });
  const { rows, seen, stop, done } = follow(t, past, ["--route", "reviews", "--state", "queued", "--limit", "3"]);
  await arrive(past, { agoMs: 0, route: "others" });
  await run(past.home, ["events", "replay", old, "--from", "run"]);
  await until("the replay", () => rows().length === 1);
  assert.match(seen.out, new RegExp(`^\\S+Z  ${old}  reviews +pull_request +queued\n$`));
  stop();
  await done;
});

test("--follow waits for a ledger that is not there yet", async (t) => {
  const home = await makeHome(t, { "config.yaml": JSON.stringify(twoRoutes) });
  const { seen, rows, stop, done } = follow(t, { home }, []);
  const elsewhere = await makePast(t);
  const id = await arrive(elsewhere);
  const { out } = await run(elsewhere.home, ["events", "export"]);
  const imported = await run(home, ["events", "import", "-"], {
    async *input() {
      yield Buffer.from(out);
    },
  });
  assert.equal(imported.code, 0, imported.err);
  await until("the event", () => rows().length === 1);
  assert.ok(seen.out.includes(id));
  stop();
  await done;
});

test("--follow ends when nobody reads any more", async (t) => {
  const past = await makePast(t);
  await arrive(past);
  let isHeard = true;
  const { rows, done } = follow(t, past, [], { isHeard: () => isHeard });
  await until("the event", () => rows().length === 1);
  isHeard = false;
  assert.equal((await done).code, 0);
});

test("--follow tells nothing of events that ended long ago when newer ones are forgotten", async (t) => {
  const past = await makePast(t);
  for (let index = 0; index < 10; index += 1) {
    await arrive(past, { agoMs: 60_000 });
    await work(past);
    await send(past);
  }
  for (let index = 0; index < 200; index += 1) await decline(past, "no", { agoMs: 1000 - index });
  const { rows, stop, done } = follow(t, past, ["--limit", "1"]);
  await until("the first look", () => rows().length === 1);
  const { forgotten } = await past.store.prune({ after: "", limit: 1000, before: { ignored: Date.now() + 1 } });
  assert.equal(forgotten, 200);
  const id = await arrive(past, { agoMs: 0 });
  await until("the new one", () => rows().length > 1);
  assert.deepEqual(
    rows().map((row) => row.includes(id)),
    [false, true],
  );
  stop();
  await done;
});
