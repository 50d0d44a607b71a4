import assert from "node:assert/strict";
import { test } from "node:test";
import { aResult } from "../tools/rows.ts";
import { run, runJson } from "./command.ts";
import { arrive, decline, elsewhere, makePast, type Past, refused, replaced, send, work } from "./events.ts";

/** The lines of an event's timeline, without the heading and the times. */
async function shown({ home }: Past, id: string): Promise<string[]> {
  const { code, out, err } = await run(home, ["events", "show", id]);
  assert.equal(code, 0, err);
  const [, ...lines] = out.trimEnd().split("\n\n");
  return lines
    .join("\n\n")
    .split("\n")
    .map((line) => line.replace(/^ {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} {2}/, ""))
    .map((line) => line.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}/g, "TIME"));
}

const tab = " ".repeat(27);

test("the timeline of an ignored event names the clause that declined it", async (t) => {
  const past = await makePast(t);
  const id = await decline(past, 'filters[0]: action equals "opened", found "closed"', { payload: {} });
  assert.deepEqual(await shown(past, id), [
    "received and verified, 2 bytes",
    'ignored: filters[0]: action equals "opened", found "closed"',
  ]);
});

test("the timeline of a run shows prompt, steps, tokens, answer and what was sent", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past);
  const transcript = JSON.stringify([
    { role: "assistant", text: "I shall look" },
    { role: "tool-call", text: "ls" },
    { role: "tool-result", text: "a\nb" },
  ]);
  const failed = aResult({ outcome: "failed", reason: "the model is away", answer: null });
  await work(past, { result: failed, next: { move: "retry", runAt: Date.now() } });
  await work(past, { result: aResult({ transcript, inputTokens: 12, outputTokens: 3 }) });
  await send(past, { reference: "99" });
  assert.deepEqual(await shown(past, id), [
    "received and verified, 46 bytes",
    "accepted, and on disk; the prompt:",
    `${tab}| Review a fix`,
    "run 1 started",
    "run 1 failed: the model is away",
    "run 2 started",
    "tool call",
    `${tab}| ls`,
    "tool result",
    `${tab}| a`,
    `${tab}| b`,
    "run 2 completed, 12 tokens in, 3 out",
    `${tab}| All is well`,
    "sent to telegram (chat_id=7): 99",
  ]);
});

test("the timeline of messages shows each try with the target's words, the next one, and what waits behind it", async (t) => {
  const past = await makePast(t);
  const first = await arrive(past, { agoMs: 9000 });
  const second = await arrive(past, { agoMs: 8000 });
  await work(past);
  await work(past);
  const error = "Telegram: 502 Bad Gateway";
  const later = Date.now() + 60_000;
  await send(past, { outcome: "refused", error, next: { move: "retry", dueAt: later, leaveLane: false } });
  assert.deepEqual((await shown(past, first)).slice(-1), [
    `try 1 to telegram (chat_id=7) refused: ${error}; next try TIME`,
  ]);
  const { out } = await run(past.home, ["events", "show", first]);
  assert.ok(out.includes(`next try ${new Date(later).toISOString().replace("T", " ").replace("Z", "")}`));
  assert.deepEqual((await shown(past, second)).slice(-1), [
    "telegram (chat_id=7) waits: an earlier message for the same place goes first",
  ]);
});

test("the timeline tells what was given up, kept back and stopped", async (t) => {
  const past = await makePast(t);
  const dead = await arrive(past, { agoMs: 9000 });
  await work(past);
  await send(past, refused);
  const silent = await arrive(past, { agoMs: 8000 });
  await work(past, { result: aResult({ answer: "[SILENT]" }), next: { move: "answer", silent: true } });
  const failed = await arrive(past, { agoMs: 7000 });
  const reason = "the budget is spent";
  await work(past, { result: aResult({ outcome: "budget", reason, answer: null }), next: { move: "giveUp" } });
  const stopped = await arrive(past, { agoMs: 6000 });
  await run(past.home, ["events", "cancel", stopped]);
  const parked = await arrive(past, { agoMs: 5000 });
  await past.store.park({ reason: "no model configured", now: Date.now() });

  const said = "try 1 to telegram (chat_id=7) refused: Telegram: chat not found; given up";
  assert.deepEqual((await shown(past, dead)).slice(-1), [said]);
  assert.deepEqual((await shown(past, silent)).slice(-1), [
    "nothing sent to telegram (chat_id=7): the answer is [SILENT]",
  ]);
  assert.deepEqual((await shown(past, failed)).slice(-1), ["run 1 budget: the budget is spent"]);
  assert.deepEqual((await shown(past, stopped)).slice(-2), [
    "telegram (chat_id=7) will not be sent",
    'cancelled: Stopped with "postern events cancel"',
  ]);
  assert.deepEqual((await shown(past, parked)).slice(-1), ["waiting: no model configured"]);
});

test("the timeline of a replayed event shows both jobs and what the second came from", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past);
  await work(past);
  await send(past, refused);
  const [first] = (await past.read(id)).jobs;
  assert.equal((await run(past.home, ["events", "replay", id, "--from", "delivery"])).code, 0);
  await send(past);
  assert.deepEqual((await shown(past, id)).slice(-4), [
    "try 1 to telegram (chat_id=7) refused: Telegram: chat not found; given up",
    `replay from delivery of job ${first?.id}: accepted for delivery; the message:`,
    `${tab}| All is well`,
    "sent to telegram (chat_id=7)",
  ]);
});

test("the timeline of an event that was ignored first, and replayed, still tells why it was ignored", async (t) => {
  const past = await makePast(t);
  const id = await decline(past, "filters[0]: then");
  await run(past.home, ["events", "replay", id, "--route", "alerts"]);
  await send(past);
  assert.equal((await past.read(id)).reason, null);
  assert.deepEqual(await shown(past, id), [
    "received and verified, 46 bytes",
    "ignored: filters[0]: then",
    "replay from start, onto route alerts: accepted for delivery; the message:",
    `${tab}| Alert: a fix`,
    "sent to telegram",
  ]);
});

test("the timeline of a message that was given up tells what goes instead", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { fallback: [elsewhere("8"), elsewhere("9")] });
  await work(past);
  await send(past, replaced());
  await send(past, { ...replaced(), error: "Given up after 8 tries: Down" });
  assert.equal((await shown(past, id)).at(-1), "telegram (chat_id=9) is due TIME");
  await send(past, { ...replaced(), error: "Telegram: blocked" });
  const lines = await shown(past, id);
  assert.deepEqual(lines.slice(-3), [
    "try 1 to telegram (chat_id=7) refused: Telegram: chat not found; given up, and goes to telegram (chat_id=8) instead",
    "try 1 to telegram (chat_id=8) refused: Given up after 8 tries: Down; given up, and goes to telegram (chat_id=9) instead",
    "try 1 to telegram (chat_id=9) refused: Telegram: blocked; given up",
  ]);
  assert.equal((await past.read(id)).state, "dead");
});

test("what a stranger wrote makes no line of a timeline's own", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { type: "push\n  state done", deliveryId: "1\n2", chats: ["7\n8"] });
  await work(past);
  await send(past, { ...refused, error: "no\n  sent to telegram" });
  const { out } = await run(past.home, ["events", "show", id]);
  assert.match(out, /event push state done, delivery 1 2\n {2}state dead/);
  assert.match(out, /try 1 to telegram \(chat_id=7 8\) refused: no sent to telegram; given up\n$/);
});

test("--json shows everything, its times in ISO 8601 and its texts of JSON opened", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { payload: { a: "ä" }, fallback: [elsewhere("8")] });
  await work(past, { result: aResult({ inputTokens: 5, outputTokens: 6 }) });
  await send(past, { reference: "99" });
  const record = await past.read(id);
  const [job] = record.jobs;
  const [message] = job?.messages ?? [];
  const iso = (ms: number | null | undefined) => new Date(ms ?? Number.NaN).toISOString();
  const { value } = await runJson<Record<string, unknown>>(past.home, ["events", "show", id]);
  assert.deepEqual(value, {
    ignored: null,
    ...{ id, route: "reviews", type: "pull_request", deliveryId: record.deliveryId, state: "done", reason: null },
    receivedAt: iso(record.receivedAt),
    headers: { "x-github-event": "pull_request", "content-type": "application/json" },
    body: '{"a":"ä"}',
    jobs: [
      {
        ...job,
        plan: { prompt: "Review a fix", skills: ["careful"], tools: ["terminal"] },
        ...{ createdAt: iso(job?.createdAt), updatedAt: iso(job?.updatedAt), runAt: iso(job?.runAt) },
        runs: job?.runs.map((one) => ({
          ...one,
          ...{ startedAt: iso(one.startedAt), endedAt: iso(one.endedAt), transcript: [] },
        })),
        messages: [
          {
            ...message,
            ...{
              extra: { chat_id: "7" },
              fallback: [elsewhere("8")],
              readyAt: iso(message?.readyAt),
              dueAt: iso(message?.dueAt),
            },
            attempts: message?.attempts.map((one) => ({
              ...one,
              ...{ startedAt: iso(one.startedAt), endedAt: iso(one.endedAt) },
            })),
          },
        ],
      },
    ],
  });
});
