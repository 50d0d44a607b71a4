import type { EventRecord, EventRow, JobRecord, MessageRecord, RunRecord } from "../../store/store.ts";

/** One line of a list of events, as `--json` prints it: times in ISO 8601. */
export function rowForMachines({ id, route, type, deliveryId, receivedAt, state, reason }: EventRow) {
  return { id, route, type, deliveryId, receivedAt: isoTime(receivedAt), state, reason };
}

/** Everything that is known of an event, as `--json` prints it: texts of JSON opened, times in ISO 8601. */
export function recordForMachines(record: EventRecord) {
  return {
    ...rowForMachines(record),
    ignored: record.ignored,
    headers: JSON.parse(record.headers) as unknown,
    body: Buffer.from(record.body).toString("utf8"),
    jobs: record.jobs.map(jobForMachines),
  };
}

function jobForMachines(job: JobRecord) {
  return {
    ...job,
    plan: JSON.parse(job.plan) as unknown,
    createdAt: isoTime(job.createdAt),
    updatedAt: isoTime(job.updatedAt),
    runAt: isoTime(job.runAt),
    runs: job.runs.map(runForMachines),
    messages: job.messages.map(messageForMachines),
  };
}

function runForMachines(run: RunRecord) {
  return { ...withIsoTimes(run), transcript: JSON.parse(run.transcript ?? "[]") as unknown };
}

function messageForMachines(message: MessageRecord) {
  return {
    ...message,
    extra: JSON.parse(message.extra) as unknown,
    fallback: JSON.parse(message.fallback ?? "null") as unknown,
    readyAt: isoTime(message.readyAt),
    dueAt: isoTime(message.dueAt),
    attempts: message.attempts.map(withIsoTimes),
  };
}

function withIsoTimes<Row extends { readonly startedAt: number; readonly endedAt: number | null }>(row: Row) {
  return { ...row, startedAt: isoTime(row.startedAt), endedAt: isoTime(row.endedAt) };
}

/** `null` too for a number that is no time. */
function isoTime(ms: number | null): string | null {
  const date = new Date(ms ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}
