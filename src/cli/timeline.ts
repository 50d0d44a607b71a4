import type { AttemptRecord, EventRecord, JobRecord, MessageRecord, RunRecord } from "../store/store.ts";
import { oneLine } from "../target/neutralise.ts";

/** Texts are shown up to here when nothing else is asked for; `--json` has all of it. */
const usualLength = 2_000;

interface Entry {
  readonly at: number;
  readonly text: string;
  /** Shown below, indented. */
  readonly detail?: string | null;
}

/**
 * An event's life in the order it happened, for a person; times are UTC. Prompts, answers and messages are cut at `longest`
 * characters.
 */
export function timeline(event: EventRecord, longest = usualLength): string[] {
  const head = [
    `Event ${event.id}`,
    `  route ${event.route}, event ${oneLine(event.type)}, delivery ${oneLine(event.deliveryId)}`,
    `  state ${event.state}${because(event.reason)}`,
    "",
  ];
  const received = { at: event.receivedAt, text: `received and verified, ${event.body.byteLength} bytes` };
  const ignored = event.ignored === null ? [] : [{ at: event.receivedAt, text: `ignored${because(event.ignored)}` }];
  const entries = event.jobs.flatMap((job) => jobEntries(job, event)).sort((a, b) => a.at - b.at);
  return [...head, ...[received, ...ignored, ...entries].flatMap((entry) => lines(entry, longest))];
}

function because(reason: string | null): string {
  return reason === null ? "" : `: ${oneLine(reason)}`;
}

function lines({ at, text, detail }: Entry, longest: number): string[] {
  const below = detail ? shorten(detail, longest).split("\n") : [];
  return [`  ${moment(at)}  ${text}`, ...below.map((line) => `                           | ${line}`)];
}

function moment(at: number): string {
  return new Date(at).toISOString().replace("T", " ").replace("Z", "");
}

function shorten(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text;
}

function jobEntries(job: JobRecord, event: EventRecord): Entry[] {
  return [
    beginning(job, event),
    ...job.runs.flatMap(runEntries),
    ...job.messages.flatMap((message) => messageEntries(message, job)),
    ...standing(job),
  ];
}

function beginning(job: JobRecord, event: EventRecord): Entry {
  const onto = job.route === event.route ? "" : `, onto route ${job.route}`;
  const how = job.origin === null ? "accepted" : `${oneLine(job.origin)}${onto}: accepted`;
  if (job.kind === "agent") {
    const { prompt } = JSON.parse(job.plan) as { prompt?: string };
    return { at: job.createdAt, text: `${how}, and on disk; the prompt:`, detail: prompt ?? null };
  }
  const what = job.kind === "direct" ? "accepted for direct delivery" : `${how} for delivery`;
  return { at: job.createdAt, text: `${what}; the message:`, detail: job.messages[0]?.text ?? null };
}

/** What the job waits for, or how it was stopped: the rest is told by its runs and messages. */
function standing(job: JobRecord): Entry[] {
  const { state, reason, updatedAt: at } = job;
  if (state === "waiting") return [{ at, text: `waiting${because(reason)}` }];
  if (state === "cancelled") return [{ at, text: `cancelled${because(reason)}` }];
  if (state === "queued" && job.runs.length > 0) return [{ at, text: `next run ${moment(job.runAt)}` }];
  const isSaid = [...job.runs, ...job.messages].some((part) => part.reason === reason);
  return (state === "dead" || state === "refused") && !isSaid ? [{ at, text: `${state}${because(reason)}` }] : [];
}

function runEntries(run: RunRecord): Entry[] {
  const started = { at: run.startedAt, text: `run ${run.number} started` };
  if (run.endedAt === null) return [started];
  const tokens = run.inputTokens === null ? "" : `, ${run.inputTokens} tokens in, ${run.outputTokens} out`;
  const steps = (JSON.parse(run.transcript ?? "[]") as { role: string; text: string }[])
    .filter(({ role }) => role !== "assistant")
    .map(({ role, text }) => ({ at: run.startedAt, text: oneLine(role.replace("-", " ")), detail: text }));
  const text = `run ${run.number} ${run.outcome ?? "ended"}${because(run.reason)}${tokens}`;
  return [started, ...steps, { at: run.endedAt, text, detail: run.answer }];
}

function messageEntries(message: MessageRecord, job: JobRecord): Entry[] {
  const name = nameOf(message);
  const end = endOf(message, job);
  const tries = message.attempts.flatMap((attempt) => attemptEntries(attempt, message, name, end));
  return [...tries, ...fate(message, job, name, end)];
}

/** How a message was given up: for good, or for another that goes instead. */
function endOf({ id, state }: MessageRecord, { messages }: JobRecord): string {
  if (state === "dead") return "given up";
  const next = state === "replaced" && messages.find(({ replaces }) => replaces === id);
  return next ? `given up, and goes to ${nameOf(next)} instead` : "";
}

function nameOf({ target, extra }: MessageRecord): string {
  const address = Object.entries(JSON.parse(extra) as Record<string, string>)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");
  return oneLine(`${target}${address && ` (${address})`}`);
}

function attemptEntries(attempt: AttemptRecord, message: MessageRecord, name: string, end: string): Entry[] {
  if (attempt.endedAt === null) return [{ at: attempt.startedAt, text: `sending to ${name}` }];
  if (attempt.outcome === "sent")
    return [{ at: attempt.endedAt, text: `sent to ${name}${because(message.reference)}` }];
  const isLast = attempt === message.attempts.at(-1);
  const next = isLast && message.state === "pending" ? `; next try ${moment(message.dueAt)}` : "";
  const last = isLast && end !== "" ? `; ${end}` : "";
  const text = `try ${attempt.number} to ${name} ${attempt.outcome ?? "ended"}${because(attempt.error)}${next}${last}`;
  return [{ at: attempt.endedAt, text }];
}

/** Where a message stands that its tries do not tell of. */
function fate(message: MessageRecord, job: JobRecord, name: string, end: string): Entry[] {
  const { state, reason, attempts } = message;
  const last = attempts.at(-1);
  const at = last?.endedAt ?? message.readyAt ?? job.updatedAt;
  if (state === "waiting") return [{ at, text: `${name} waits: an earlier message for the same place goes first` }];
  if (state === "pending" && !last) return [{ at, text: `${name} is due ${moment(message.dueAt)}` }];
  if (state === "kept") return [{ at: job.updatedAt, text: `nothing sent to ${name}: the answer is [SILENT]` }];
  if (state === "cancelled") return [{ at: job.updatedAt, text: `${name} will not be sent` }];
  // Its reason may say more than the last try does: after how many of them, or that nobody knows whether it arrived.
  const isSaid = reason === null || reason === last?.error || job.runs.some((run) => run.reason === reason);
  return end !== "" && !isSaid ? [{ at, text: `${name} ${end}${because(reason)}` }] : [];
}
