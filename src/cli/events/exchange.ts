import { z } from "zod";
import { UserError } from "../../core/errors.ts";
import {
  type EventState,
  eventStates,
  type JobState,
  jobStates,
  type MessageState,
  messageStates,
} from "../../store/states.ts";
import type { EventRecord } from "../../store/store.ts";

/**
 * The format of a line of `postern events export`: one event with all that became of it. Times are Unix milliseconds, the
 * body is in base64, texts of JSON are opened. A change that older versions would misread raises the number. Messages have a
 * fallback since 2.
 */
const format = 2;

/** An event as one line of JSON, without the line end. */
export function toLine({ body, headers, jobs, ...row }: EventRecord): string {
  return JSON.stringify({
    format,
    ...row,
    headers: JSON.parse(headers) as unknown,
    body: Buffer.from(body).toString("base64"),
    jobs: jobs.map(({ plan, runs, messages, ...job }) => ({
      ...job,
      plan: JSON.parse(plan) as unknown,
      runs: runs.map(({ transcript, ...run }) => ({ ...run, transcript: opened(transcript) })),
      messages: messages.map(({ extra, fallback, ...message }) => {
        return { ...message, extra: opened(extra), fallback: opened(fallback) };
      }),
    })),
  });
}

function opened(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}

const id = z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "Expected an id as Postern makes them");
const time = z.int().min(0);
const count = z.int().min(0);
const texts = z.record(z.string(), z.string());
const asText = (value: unknown) => JSON.stringify(value);

const attempt = z.object({
  number: count,
  startedAt: time,
  endedAt: time.nullable(),
  outcome: z.enum(["sent", "refused", "unknown", "released", "interrupted"]).nullable(),
  error: z.string().nullable(),
});

const place = z.object({
  target: z.string().min(1),
  extra: texts,
  lane: z.string().nullable(),
  refusal: z.string().nullable(),
});

const message = z.object({
  id,
  target: z.string().min(1),
  extra: texts.transform(asText),
  lane: z.string().nullable(),
  text: z.string().nullable(),
  refusal: z.string().nullable().default(null),
  fallback: z
    .array(place)
    .nullable()
    .default(null)
    .transform((list) => list && asText(list)),
  replaces: id.nullable().default(null),
  state: z.enum(Object.keys(messageStates) as [MessageState]),
  reason: z.string().nullable(),
  reference: z.string().nullable(),
  partsSent: count,
  readyAt: time.nullable(),
  dueAt: time,
  attempts: z.array(attempt),
});

const run = z.object({
  number: count,
  startedAt: time,
  endedAt: time.nullable(),
  outcome: z.enum(["completed", "failed", "timeout", "cancelled", "budget", "released", "interrupted"]).nullable(),
  reason: z.string().nullable(),
  answer: z.string().nullable(),
  transcript: z
    .array(z.object({ role: z.string(), text: z.string() }))
    .nullable()
    .transform((list) => list && asText(list)),
  inputTokens: count.nullable(),
  outputTokens: count.nullable(),
});

const runPlan = z.looseObject({ prompt: z.string(), skills: z.array(z.string()), tools: z.array(z.string()) });

const jobBase = z.object({
  id,
  route: z.string().min(1),
  origin: z.string().nullable(),
  onCrash: z.enum(["rerun", "fail"]),
  state: z.enum(Object.keys(jobStates) as [JobState]),
  reason: z.string().nullable(),
  createdAt: time,
  updatedAt: time,
  runAt: time,
  runs: z.array(run),
  messages: z.array(message),
});

const job = z.discriminatedUnion("kind", [
  jobBase.extend({ kind: z.literal("agent"), plan: runPlan.transform(asText) }),
  jobBase.extend({ kind: z.enum(["direct", "delivery"]), plan: z.looseObject({}).transform(asText) }),
]);

const event = z.object({
  id,
  route: z.string().min(1),
  type: z.string(),
  deliveryId: z.string().min(1),
  receivedAt: time,
  state: z.enum(eventStates as [EventState]),
  reason: z.string().nullable(),
  ignored: z.string().nullable(),
  headers: texts.transform(asText),
  body: z.base64().transform((text): Uint8Array => Buffer.from(text, "base64")),
  jobs: z.array(job),
});

/**
 * The event that a line holds.
 * @throws UserError that says what is wrong with the line and what to do.
 */
export function fromLine(line: string): EventRecord {
  const value = parsed(line);
  const found = z.object({ format: z.int() }).safeParse(value);
  if (!found.success) throw new UserError('It is no event; import what "postern events export" has written');
  if (found.data.format < 1 || found.data.format > format) {
    throw new UserError(
      `It is in format ${found.data.format}, and this version reads ${format}; import it with a newer Postern`,
    );
  }
  const result = event.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new UserError(`"${issue?.path.join(".")}": ${issue?.message}; export the event again, or leave the line out`);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new UserError("It is not JSON, perhaps because the file was cut off; export it again, or leave the line out");
  }
}
