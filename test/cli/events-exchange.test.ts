import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { EventRecord } from "../../src/store/store.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { readLedger } from "../tools/ledger.ts";
import { aClaim, aResult } from "../tools/rows.ts";
import { run, runJson } from "./command.ts";
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
  work,
} from "./events.ts";

/** Events in every final state, with runs, tries and a replay. */
async function fill(past: Past): Promise<void> {
  await decline(past, 'filters[0]: found "\u2028\n"', { payload: { text: "ä\u2028\u0000😀", number: 1 } });
  await arrive(past, { chats: ["1", "2"] });
  await work(past, {
    result: aResult({ outcome: "failed", reason: "x", answer: null }),
    next: { move: "retry", runAt: 0 },
  });
  await work(past, {
    result: aResult({ transcript: '[{"role":"tool-call","text":"ls"}]', inputTokens: 3, outputTokens: 4 }),
  });
  await send(past, { reference: "99" });
  await send(past, { outcome: "unknown", error: "cut", next: { move: "retry", dueAt: 0, leaveLane: true } });
  await send(past);
  await arrive(past, { fallback: [elsewhere("8"), { ...elsewhere("9"), refusal: "Not there" }] });
  await work(past);
  await send(past, replaced());
  await send(past, refused);
  await arrive(past, { onCrash: "fail" });
  await work(past, { next: { move: "answer", silent: true } });
  const direct = await arrive(past, { route: "alerts", kind: "direct" });
  await sendDirectly(past, direct, refused);
  const replayed = await arrive(past, { route: "alerts", kind: "direct" });
  await sendDirectly(past, replayed, refused);
  await run(past.home, ["events", "replay", replayed]);
  await send(past);
  const declined = await decline(past, "filters[0]: then", { agoMs: 30_000 });
  await run(past.home, ["events", "replay", declined]);
  await work(past);
  await send(past);
  const stopped = await arrive(past);
  await run(past.home, ["events", "cancel", stopped]);
}

/** `import -` of this text, in pieces of no size in particular. */
function importing(text: string, pieceBytes = 1000) {
  return {
    async *input() {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
    },
  };
}

async function records(home: TestHome): Promise<EventRecord[]> {
  return readLedger(home.ledger);
}

test("what was exported is the same after it was imported into another home", async (t) => {
  const past = await makePast(t);
  await fill(past);
  const before = await records(past.home);
  assert.deepEqual(
    new Set(before.map(({ state }) => state)),
    new Set(["ignored", "done", "dead", "refused", "cancelled"]),
  );
  const file = join(past.home.folder, "events.jsonl");
  const exported = await run(past.home, ["events", "export", "--output", file]);
  assert.deepEqual(exported, { code: 0, out: `Exported 8 events to "${file}"\n`, err: "" });

  const home = await makeHome(t);
  assert.deepEqual(await run(home, ["events", "import", file]), { code: 0, out: "Imported 8 events\n", err: "" });
  assert.deepEqual(await records(home), before);
  assert.equal((await run(home, ["events", "export"])).out, await past.home.read("events.jsonl"));

  const again = await runJson(home, ["events", "import", "-"], importing(await past.home.read("events.jsonl")));
  assert.deepEqual(again.value, { imported: 0, skipped: 8, failed: 0, unfinished: 0 });
  assert.deepEqual(await records(home), before);
});

test("each line of an export is one JSON object, with the number of its format and the body in base64", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { payload: { text: "one\u2028two" } });
  await arrive(past, { route: "others" });
  const { out } = await run(past.home, ["events", "export", "--route", "reviews"]);
  const [line = "", ...rest] = out.split("\n");
  assert.deepEqual(rest, [""]);
  const event = JSON.parse(line) as Record<string, unknown> & { jobs: { plan: unknown }[] };
  assert.deepEqual([event.format, event.id, event.state], [2, id, "queued"]);
  assert.deepEqual(JSON.parse(Buffer.from(String(event.body), "base64").toString()), { text: "one\u2028two" });
  assert.deepEqual(event.jobs[0]?.plan, { prompt: "Review a fix", skills: ["careful"], tools: ["terminal"] });
});

test("the file of an export is private, is replaced as a whole, and is left alone when the export fails", async (t) => {
  const past = await makePast(t);
  await arrive(past);
  await past.home.write("out/events.jsonl", "the one before\n");
  const file = join(past.home.folder, "out", "events.jsonl");
  await past.home.write("config.yaml", "store: 5");
  assert.equal((await run(past.home, ["events", "export", "--output", file])).code, 78);
  assert.equal(await past.home.read("out/events.jsonl"), "the one before\n");
  await past.home.write("config.yaml", "{}");
  const { value } = await runJson(past.home, ["events", "export", "--output", file]);
  assert.deepEqual(value, { exported: 1, file });
  assert.match(await past.home.read("out/events.jsonl"), /^\{"format":2,/);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(join(past.home.folder, "out")), ["events.jsonl"]);
  const missing = await run(past.home, ["events", "export", "--output", join(past.home.folder, "no", "x.jsonl")]);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /ENOENT/);
});

/** One event that waits, one that runs, one that is being sent and one that waits for it, exported. */
async function anUnfinishedExport(past: Past): Promise<string> {
  await arrive(past, { agoMs: 4000 });
  await arrive(past, { agoMs: 3000 });
  await work(past);
  await work(past);
  await arrive(past, { agoMs: 2000 });
  const now = Date.now();
  const claim = aClaim({ now, limit: 1, leaseUntil: now + 60_000 });
  await past.store.claimJobs(claim);
  await past.store.claimMessages(claim);
  await arrive(past, { agoMs: 1000, deliveryId: "the newest" });
  return (await run(past.home, ["events", "export"])).out;
}

test("what had not ended is cancelled where it is imported", async (t) => {
  const text = await anUnfinishedExport(await makePast(t));
  const home = await makeHome(t);
  const { code, out } = await run(home, ["events", "import", "-"], importing(text));
  const fate = "are cancelled: replay them to do them here, or import with --resume";
  assert.deepEqual([code, out], [0, `Imported 4 events; 4 unfinished, which ${fate}\n`]);
  for (const { state, reason } of await records(home)) {
    assert.deepEqual([state, reason], ["cancelled", "Imported unfinished; replay it to do it here"]);
  }
});

test("with --resume it goes on where it is imported, in the same order", async (t) => {
  const text = await anUnfinishedExport(await makePast(t));
  const past = await makePast(t);
  const { out } = await run(past.home, ["events", "import", "-", "--resume"], importing(text));
  assert.equal(out, "Imported 4 events; 4 unfinished, which go on here\n");
  const states = async () => (await records(past.home)).map(({ state }) => state).reverse();
  assert.deepEqual(await states(), ["delivering", "delivering", "queued", "queued"]);
  await work(past);
  await work(past);
  for (let count = 0; count < 4; count += 1) await send(past);
  assert.deepEqual(await states(), ["done", "done", "done", "done"]);
});

test("the delivery id of an imported event counts as taken for the rest of its hour", async (t) => {
  const text = await anUnfinishedExport(await makePast(t));
  const past = await makePast(t);
  await run(past.home, ["events", "import", "-"], importing(text));
  await arrive(past, { agoMs: 0, deliveryId: "the newest" });
  assert.equal((await records(past.home)).length, 4);
});

test("a line that is no event is told with its number and what to do; the others are imported", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past);
  const line = (await run(past.home, ["events", "export"])).out.trimEnd();
  const change = (name: string, value: unknown) => JSON.stringify({ ...JSON.parse(line), [name]: value });
  const { jobs } = JSON.parse(line) as { jobs: object[] };
  const lines = [
    line.slice(0, 100),
    '{"hello":"there"}',
    change("format", 3),
    change("jobs", [{ ...jobs[0], state: "asleep" }]),
    change("body", "not base64!"),
    change("id", "1\n2"),
    change("jobs", [{ ...jobs[0], plan: {} }]),
    "",
    line,
  ];
  const home = await makeHome(t);
  const { code, out, err } = await run(home, ["events", "import", "-"], importing(lines.join("\n")));
  assert.equal(code, 1);
  assert.equal(
    out,
    "Imported 1 event; 1 unfinished, which are cancelled: replay them to do them here, or import with --resume; 7 lines could not be read\n",
  );
  const told = err.trimEnd().split("\n");
  const expected = [
    /^Line 1: It is not JSON, perhaps because the file was cut off; export it again/,
    /^Line 2: It is no event; import what "postern events export" has written$/,
    /^Line 3: It is in format 3, and this version reads 2; import it with a newer Postern$/,
    /^Line 4: "jobs\.0\.state": Invalid option.*; export the event again/,
    /^Line 5: "body": /,
    /^Line 6: "id": Expected an id/,
    /^Line 7: "jobs\.0\.plan\.prompt": /,
  ];
  assert.equal(told.length, expected.length, err);
  for (const [index, pattern] of expected.entries()) assert.match(told[index] ?? "", pattern);
  assert.deepEqual(
    (await records(home)).map((record) => record.id),
    [id],
  );
});

test("an export of a version that knew no fallbacks is imported, and its messages have none", async (t) => {
  const past = await makePast(t);
  await arrive(past);
  const lines = (await run(past.home, ["events", "export"])).out;
  const old = lines.replace('"format":2', '"format":1').replace(/,"(?:refusal|replaces|fallback)":null/g, "");
  assert.doesNotMatch(old, /refusal|replaces|fallback/);
  const home = await makeHome(t);
  assert.equal((await run(home, ["events", "import", "-", "--resume"], importing(old))).code, 0);
  const [message] = (await records(home))[0]?.jobs[0]?.messages ?? [];
  assert.deepEqual([message?.refusal, message?.replaces, message?.fallback], [null, null, null]);
});

test("of a file that is no export at all, only the first lines are told", async (t) => {
  const home = await makeHome(t, { "notes.txt": "a line\n".repeat(1000) });
  const { code, out, err } = await run(home, ["events", "import", join(home.folder, "notes.txt")]);
  assert.equal(code, 1);
  assert.equal(out, "Imported 0 events; 1000 lines could not be read\n");
  assert.equal(err.trimEnd().split("\n").length, 20);
  const missing = await run(home, ["events", "import", join(home.folder, "nowhere")]);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /ENOENT/);
});

test("an export of a home without a ledger is empty", async (t) => {
  const home = await makeHome(t);
  assert.deepEqual(await run(home, ["events", "export"]), { code: 0, out: "", err: "" });
  const { value } = await runJson(home, ["events", "export", "--output", join(home.folder, "x.jsonl")]);
  assert.deepEqual(value, { exported: 0, file: join(home.folder, "x.jsonl") });
});
