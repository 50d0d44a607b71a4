import type { AttemptRecord, EventRecord, JobRecord, MessageRecord, RunRecord } from "../store/store.ts";

/** Texts are shown up to here when nothing else is asked for; `--json` has all of it. */
const usualLength = 2_000;

interface Entry {
  readonly at: number;
  readonly text: string;
  /** Shown below, indented. */
  readonly detail?: string;
}

/** An event's life in the order it happened, for a person. Prompts, answers and messages are cut at `longest` characters. */
export function timeline(event: EventRecord, longest = usualLength): string[] {
  const head = [
    `Event ${event.id}`,
    `  route ${event.route}, event ${event.type}, delivery ${event.deliveryId}`,
    `  state ${event.state}${event.reason ? `: ${event.reason}` : ""}`,
    "",
  ];
  const received = { at: event.receivedAt, text: `received and verified, ${event.body.byteLength} bytes` };
  const ignored = event.state === "ignored" ? [{ at: event.receivedAt, text: `ignored: ${event.reason}` }] : [];
  const entries = [received, ...ignored, ...event.jobs.flatMap(jobEntries)].sort((a, b) => a.at - b.at);
  return [...head, ...entries.flatMap((entry) => lines(entry, longest))];
}

function lines({ at, text, detail }: Entry, longest: number): string[] {
  const below = detail === undefined || detail === "" ? [] : shorten(detail, longest).split("\n");
  return [
    `  ${new Date(at).toISOString().slice(11, 23)}  ${text}`,
    ...below.map((line) => `                | ${line}`),
  ];
}

function shorten(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text;
}

function jobEntries(job: JobRecord): Entry[] {
  const { prompt } = JSON.parse(job.plan) as { prompt?: string };
  const accepted =
    job.kind === "agent"
      ? { at: job.createdAt, text: "accepted, and on disk; the prompt:", detail: prompt }
      : { at: job.createdAt, text: "accepted for direct delivery; the message:", detail: job.messages[0]?.text ?? "" };
  const waits = job.state === "waiting" ? [{ at: job.updatedAt, text: `waiting: ${job.reason}` }] : [];
  return [accepted, ...job.runs.flatMap(runEntries), ...job.messages.flatMap(messageEntries), ...waits];
}

function runEntries(run: RunRecord): Entry[] {
  const started = { at: run.startedAt, text: `run ${run.number} started` };
  if (run.endedAt === null) return [started];
  const tokens = run.inputTokens === null ? "" : `, ${run.inputTokens} tokens in, ${run.outputTokens} out`;
  const steps = (JSON.parse(run.transcript ?? "[]") as { role: string; text: string }[])
    .filter(({ role }) => role !== "assistant")
    .map(({ role, text }) => ({ at: run.startedAt, text: role.replace("-", " "), detail: text }));
  const reason = run.reason ? `: ${run.reason}` : "";
  const ended = { at: run.endedAt, text: `run ${run.number} ${run.outcome}${reason}${tokens}` };
  return [started, ...steps, run.answer === null ? ended : { ...ended, detail: run.answer }];
}

function messageEntries(message: MessageRecord): Entry[] {
  const address = Object.entries(JSON.parse(message.extra) as Record<string, string>)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");
  const name = `${message.target}${address && ` (${address})`}`;
  return message.attempts.flatMap((attempt) => attemptEntries(attempt, message, name));
}

function attemptEntries(attempt: AttemptRecord, message: MessageRecord, name: string): Entry[] {
  if (attempt.endedAt === null) return [{ at: attempt.startedAt, text: `sending to ${name}` }];
  if (attempt.outcome === "sent") {
    return [{ at: attempt.endedAt, text: `sent to ${name}${message.reference ? `: ${message.reference}` : ""}` }];
  }
  const isLast = attempt === message.attempts.at(-1);
  const next = isLast && message.state === "pending" ? `; next try ${new Date(message.dueAt).toISOString()}` : "";
  const end = isLast && message.state === "dead" ? "; given up" : "";
  const text = `try ${attempt.number} to ${name} ${attempt.outcome}: ${attempt.error ?? ""}${next}${end}`;
  return [{ at: attempt.endedAt, text }];
}
