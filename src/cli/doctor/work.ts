import { truncate } from "../../core/text.ts";
import type { EventRow, TargetTrouble } from "../../store/store.ts";
import { type Check, type Finding, findings } from "./finding.ts";

const dead = findings("dead events");
const waiting = findings("waiting jobs");
const paused = findings("paused targets");

/** Dead events that are shown, and those that are counted. */
const shown = 5;
const mostCounted = 1_000;

/** Events that were given up. */
export const checkDead: Check = async ({ store }) => {
  if (!store) return [];
  const events = await store.listEvents({ state: "dead", limit: mostCounted + 1 });
  if (events.length === 0) return [dead.ok("None")];
  const count = events.length > mostCounted ? `More than ${mostCounted}` : String(events.length);
  const ids = events.slice(0, shown).map(({ id }) => id);
  const next = `When the cause is mended: postern events replay ${ids.join(" ")}`;
  return [dead.warning(`${count}, the newest first:`, next, events.slice(0, shown).map(line))];
};

function line({ id, receivedAt, route, reason }: EventRow): string {
  return `${id}  ${isoTime(receivedAt)}  ${route}: ${onOneLine(reason ?? "no reason is known")}`;
}

/** Services answer at length. */
function onOneLine(reason: string): string {
  return truncate(reason.replaceAll(/\s+/g, " "), 200);
}

/** Jobs that wait for somebody to set something up. */
export const checkWaiting: Check = async ({ store }) => {
  if (!store) return [];
  const { waiting: count = 0 } = await store.tallyJobs({});
  if (count === 0) return [waiting.ok("None")];
  const [newest] = await store.listEvents({ state: "waiting", limit: 1 });
  const reason = onOneLine(newest?.reason ?? "no reason is known");
  return [waiting.warning(`${count} wait: ${reason}`, "They go on by themselves when that is mended")];
};

/** Targets that are left alone for a while because they keep failing. */
export const checkPauses: Check = async ({ store }) => {
  if (!store) return [];
  const now = store.now();
  const troubles = (await store.listTroubles({})).filter(({ pausedUntil }) => pausedUntil > now);
  return troubles.length === 0 ? [paused.ok("None")] : troubles.map(pause);
};

function pause({ target, pausedUntil, failures, reason }: TargetTrouble): Finding {
  const why = onOneLine(reason ?? `${failures} messages in a row failed`);
  const text = `"${target}" gets nothing until ${isoTime(pausedUntil)}: ${why}`;
  return paused.warning(text, "Its messages wait without using up tries; then one goes first to see how it is");
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
