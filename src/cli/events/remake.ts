import type { Config } from "../../config/load.ts";
import { findTarget } from "../../config/platforms.ts";
import type { Route } from "../../config/route.ts";
import { UserError } from "../../core/errors.ts";
import { newId } from "../../core/id.ts";
import type { Event } from "../../core/types.ts";
import { laneOf, planOf, shape, whyHopeless } from "../../gateway/shape.ts";
import { type Draft, fallbackText, placesIn } from "../../ledger/fallback.ts";
import type { Plan } from "../../ledger/ledger.ts";
import { parse } from "../../receive/parse.ts";
import { finalJobStates, type JobState } from "../../store/states.ts";
import type { EventRecord, JobRecord, MessageRecord, NewJob, NewMessage, Place } from "../../store/store.ts";

/** Where a replay begins: with the event as it came in, with the agent's run, or with the text that was to be sent. */
export type Beginning = "start" | "run" | "delivery";

export const beginnings: readonly Beginning[] = ["start", "run", "delivery"];

export interface Remaking {
  readonly from: Beginning;
  /** Another route than the event's own, from the start only. */
  readonly route: string | undefined;
  /** From the delivery: also what was sent already. */
  readonly all: boolean;
  readonly config: Config;
  readonly now: number;
  findRoute(name: string): Promise<Route | undefined>;
}

/** The job that a replay adds to its event, or the clause of the route that declines the event now. */
export type Remade = { readonly job: NewJob } | { readonly ignored: string };

/**
 * Makes the job of a replay. Changes nothing, though a route's script runs.
 * @throws UserError when the event cannot be replayed so, with the reason; Rejection when it cannot be read any more.
 */
export function remake(record: EventRecord, remaking: Remaking): Promise<Remade> | Remade {
  const unfinished = record.jobs.find(({ state }) => !isFinal(state));
  if (unfinished) {
    throw new UserError(`It is ${unfinished.state}; wait until it has ended, or "postern events cancel ${record.id}"`);
  }
  if (remaking.from === "start") return fromStart(record, remaking);
  return { job: remaking.from === "run" ? fromRun(record, remaking) : fromDelivery(record, remaking) };
}

export function isFinal(state: JobState): boolean {
  return (finalJobStates as readonly JobState[]).includes(state);
}

async function fromStart(record: EventRecord, remaking: Remaking): Promise<Remade> {
  const route = await usableRoute(record, remaking);
  const shaped = await shape(route, rebuild(record, route.name), remaking.config);
  if ("ignored" in shaped) return shaped;
  const { text, drafts } = shaped;
  const common = { route: route.name, onCrash: route.onCrash, origin: "replay from start" };
  const messages = drafts.map((draft) => newMessage(draft, route.isDirect ? text : null, remaking));
  const plan = planOf(route, shaped, remaking.config);
  const job = route.isDirect
    ? ({ ...common, kind: "delivery", plan: "{}", messages } as const)
    : ({ ...common, kind: "agent", plan: JSON.stringify(plan), messages } as const);
  return { job: { id: idAfter(record, remaking.now), ...job } };
}

async function usableRoute(record: EventRecord, { route: other, findRoute }: Remaking): Promise<Route> {
  const name = other ?? record.route;
  const route = await findRoute(name);
  const where = other === undefined ? "name the route it is to take now with --route" : 'see "postern webhook list"';
  if (!route) throw new UserError(`There is no route "${name}"${other === undefined ? " any more" : ""}; ${where}`);
  if (!route.enabled) throw new UserError(`The route "${name}" is disabled; enable it, or name another with --route`);
  return route;
}

/** The event as it came in, but for the headers that were not worth keeping or held a secret. */
function rebuild({ id, headers, body, receivedAt, type, deliveryId }: EventRecord, route: string): Event {
  const kept = Object.entries(JSON.parse(headers) as Record<string, string>);
  const event = parse({
    headers: new Map(kept.map(([name, value]) => [name, [value]])),
    body: Buffer.from(body),
    route,
    nowMs: receivedAt,
    newId: () => id,
  });
  // Both were cut or made when it came in; what other commands show of it is what counts.
  return { ...event, deliveryId, type, typeNames: event.type === type ? event.typeNames : [type] };
}

function fromRun(record: EventRecord, remaking: Remaking): NewJob {
  const last = record.jobs.findLast(({ kind }) => kind === "agent");
  if (!last) throw new UserError(`No agent has worked on it, so there is no run to repeat; use --from start`);
  return {
    id: idAfter(record, remaking.now),
    kind: "agent",
    route: last.route,
    plan: JSON.stringify(planAgain(last, remaking)),
    onCrash: last.onCrash,
    origin: `replay from run of job ${last.id}`,
    messages: last.messages.filter(isFirst).map((message) => newMessage(draftOf(message), null, remaking)),
  };
}

/** What could go nowhere then may be able to now: a home channel may have been set since. */
function planAgain({ plan, messages }: JobRecord, { config }: Remaking): Plan {
  const { hopeless: _, ...rest } = JSON.parse(plan) as Plan;
  const hopeless = whyHopeless(messages.filter(isFirst).map(draftOf), config.platforms);
  return { ...rest, ...(hopeless !== undefined && { hopeless }) };
}

/** Whether it goes where its route says first, and not instead of another. */
function isFirst({ replaces }: MessageRecord): boolean {
  return replaces === null;
}

function draftOf({ target, extra, lane, refusal, fallback }: MessageRecord): Draft {
  const first = { target, extra: JSON.parse(extra) as Record<string, string>, lane, refusal };
  return { ...first, fallback: placesIn(fallback) };
}

function fromDelivery(record: EventRecord, remaking: Remaking): NewJob {
  const last = record.jobs.findLast(({ messages }) => messages.some(hasText));
  if (!last) throw new UserError(`No text for its targets is recorded; use --from ${beginningBefore(record)}`);
  const messages = last.messages.filter((one) => isFirst(one) && hasText(one) && one.state !== "kept");
  if (messages.length === 0)
    throw new UserError("The agent's answer was exactly [SILENT], so there is nothing to send");
  const wanted = messages.filter((message) => remaking.all || endOf(message, last).state !== "sent");
  if (wanted.length === 0) throw new UserError("All its messages were sent; add --all to send them again");
  return {
    id: idAfter(record, remaking.now),
    kind: "delivery",
    route: last.route,
    plan: "{}",
    onCrash: last.onCrash,
    origin: `replay from delivery of job ${last.id}`,
    messages: wanted.map((message) => newMessage(draftOf(message), message.text, remaking)),
  };
}

/** The last of the messages that went one instead of the other. */
function endOf(message: MessageRecord, job: JobRecord): MessageRecord {
  const next = job.messages.find(({ replaces }) => replaces === message.id);
  return next ? endOf(next, job) : message;
}

function hasText({ text }: MessageRecord): boolean {
  return text !== null;
}

function beginningBefore({ jobs }: EventRecord): Beginning {
  return jobs.some(({ kind }: JobRecord) => kind === "agent") ? "run" : "start";
}

/** A message that nobody waits for, so that it takes its place behind others for the same chat. */
function newMessage(draft: Draft, text: string | null, { config, now }: Remaking): NewMessage {
  const { target: name, extra, refusal } = draft;
  const target = findTarget(name);
  const platform = target && config.platforms.get(target.name);
  if (!target || !platform) throw new UserError(`This version has no target "${name}"; use --from start`);
  if ("unusable" in platform) throw new UserError(`The target "${name}" cannot be used: ${platform.unusable}`);
  const lane = laneOf(target, extra, config.platforms);
  const fallback = fallbackText(draft.fallback.map((place) => inLane(place, config)));
  return { id: newId(now), target: name, extra: JSON.stringify(extra), lane, text, refusal, fallback };
}

/** What cannot be used now may be set up again until it is needed. */
function inLane(place: Place, { platforms }: Config): Place {
  const target = findTarget(place.target);
  return target ? { ...place, lane: laneOf(target, place.extra, platforms) } : place;
}

/** An event stands as the job with the highest id does, also when a clock was set back since its last job. */
function idAfter({ jobs }: EventRecord, now: number): string {
  const times = jobs.map(({ id }) => Number.parseInt(id.replace("-", "").slice(0, 12), 16));
  return newId(Math.max(now, ...times.map((time) => time + 1)));
}
