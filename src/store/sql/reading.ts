import type { AttemptRecord, EventRecord, JobRecord, MessageRecord, RunRecord } from "../store.ts";
import { unpack } from "./body.ts";
import type { Work } from "./statement.ts";
import { idsOf, type Statements, type Works } from "./statements.ts";

/** Looking at what is kept. */
export function reading(sql: Statements): Pick<Works, "listEvents" | "readEvent" | "tallyJobs" | "listTroubles"> {
  return {
    listEvents: sql.listEvents,
    *readEvent({ id: wanted }) {
      const found = yield* sql.findEvents({ id: wanted });
      const exact = found.find(({ id }) => id === wanted) ?? (found.length === 1 ? found[0] : undefined);
      const stored = exact && (yield* sql.readEvent({ id: exact.id }));
      if (!stored) return undefined;
      const { codec, ...event } = stored;
      return { ...event, body: unpack(event.body, codec), jobs: yield* readJobs(sql, event.id) };
    },
    *tallyJobs() {
      return Object.fromEntries((yield* sql.tallyJobs({})).map(({ state, count }) => [state, count]));
    },
    *listTroubles() {
      return (yield* sql.listTroubles({})).map(({ lastMessage: _, busyUntil: __, ...trouble }) => trouble);
    },
  };
}

function* readJobs(sql: Statements, eventId: string): Work<EventRecord["jobs"]> {
  const jobs = yield* sql.readJobs({ eventId });
  if (jobs.length === 0) return [];
  const ids = idsOf(jobs.map(({ id }) => id));
  const runs = yield* sql.readRuns({ jobs: ids });
  const messages = yield* sql.readMessages({ jobs: ids });
  const attempts = yield* sql.readAttempts({ messages: idsOf(messages.map(({ id }) => id)) });
  return jobs.map(
    (job): JobRecord => ({
      ...job,
      runs: runs.filter(({ jobId }) => jobId === job.id).map(({ jobId: _, ...run }): RunRecord => run),
      messages: messages
        .filter(({ jobId }) => jobId === job.id)
        .map(({ jobId: _, ...message }): MessageRecord => ({ ...message, attempts: attemptsOf(message.id, attempts) })),
    }),
  );
}

function attemptsOf(id: string, attempts: readonly (AttemptRecord & { readonly messageId: string })[]) {
  return attempts.filter(({ messageId }) => messageId === id).map(({ messageId: _, ...attempt }) => attempt);
}
