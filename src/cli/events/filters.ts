import { type Command, InvalidArgumentError, Option } from "commander";
import { eventStates } from "../../store/states.ts";
import type { EventRecord, EventRow, Store } from "../../store/store.ts";
import { type Moment, parseMoment } from "./moment.ts";

/** Which events a command is about. */
export interface Filters {
  readonly route?: string;
  readonly state?: string;
  readonly since?: Moment;
  readonly until?: Moment;
  /** Somewhere in the event, in upper or lower case. */
  readonly text?: string;
  /** The newest so many of them. */
  readonly limit?: number;
}

/** Rows that are read at once while all are gone through. */
const pageSize = 200;

/** Gives a command the options that `Filters` are. `routeFlag` is the name of the one for the route. */
export function addFilters(command: Command, routeFlag: "--route" | "--of-route", limit?: number): Command {
  return command
    .option(`${routeFlag} <name>`, "only events of this route")
    .addOption(new Option("--state <state>", "only events in this state").choices(eventStates))
    .option("--since <time>", "received since then: 30m, 1h, 7d (ago), 2026-01-31, 2026-01-31T08:30Z", parseMoment)
    .option("--until <time>", "received before then", parseMoment)
    .option("--text <text>", "only events with this in their ids, body, prompt, answers, messages or errors")
    .option("--limit <number>", "the newest so many", parseCount, limit);
}

function parseCount(text: string): number {
  if (/^\d{1,9}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError("Expected a whole number above 0");
}

/** Whether anything but a number of events narrows the choice. */
export function areGiven({ route, state, since, until, text, limit }: Filters): boolean {
  return [route, state, since, until, text, limit].some((value) => value !== undefined);
}

/** The events that pass the filters, newest first, read page by page. */
export async function* findEvents(store: Store, filters: Filters): AsyncGenerator<EventRow> {
  const { route, state, text, limit = Number.POSITIVE_INFINITY } = filters;
  const now = store.now();
  const asked = { route, state, since: filters.since?.(now), until: filters.until?.(now) };
  let before: string | undefined;
  for (let count = 0; count < limit; ) {
    const size = text === undefined ? Math.min(pageSize, limit - count) : pageSize;
    const page = await store.listEvents({ ...asked, before, limit: size });
    for (const row of page) {
      if (text !== undefined && !(await mentions(row, text, store))) continue;
      yield row;
      count += 1;
      if (count >= limit) return;
    }
    if (page.length < size) return;
    before = page.at(-1)?.id;
  }
}

/** Whether the text stands anywhere in the event that a person might remember it from. */
export async function mentions(row: EventRow, text: string, store: Store): Promise<boolean> {
  const wanted = text.toLowerCase();
  const has = (words: Words) => words.some((word) => word?.toLowerCase().includes(wanted));
  if (has([row.id, row.deliveryId, row.type, row.reason])) return true;
  const record = await store.readEvent({ id: row.id });
  return record !== undefined && has(wordsOf(record));
}

type Words = readonly (string | null | undefined)[];

function wordsOf({ body, ignored, jobs }: EventRecord): Words {
  return [
    ignored,
    Buffer.from(body).toString("utf8"),
    ...jobs.flatMap(({ reason, plan, runs, messages }) => [
      reason,
      (JSON.parse(plan) as { prompt?: string }).prompt,
      ...runs.flatMap((run) => [run.answer, run.reason]),
      ...messages.flatMap((message) => [
        ...[message.text, message.reason, message.reference],
        ...message.attempts.map(({ error }) => error),
      ]),
    ]),
  ];
}
