import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { inBytes } from "../ledger/bytes.ts";
import { type Check, type Finding, findings } from "./finding.ts";

const disk = findings("disk");
const clock = findings("clock");

const leastBytes = 100 * 1024 * 1024;
const leastShare = 0.1;

/** Free space where the ledger, or at least the home, is. */
export const checkDisk: Check = async ({ home }) => {
  const folder = [home.data, home.folder, dirname(home.folder), "/"].find(existsSync) ?? ".";
  const { bavail, blocks, bsize } = await statfs(folder);
  return [judgeSpace({ folder, free: bavail * bsize, all: blocks * bsize })];
};

/** Whether this much is enough, in bytes. */
export function judgeSpace(space: { readonly folder: string; readonly free: number; readonly all: number }): Finding {
  const { folder, free, all } = space;
  const text = `${inBytes(free)} of ${inBytes(all)} are free at "${folder}"`;
  if (free >= leastBytes && free >= all * leastShare) return disk.ok(text);
  const next =
    'Free some, or keep less: "retention.max_size", then "postern ledger compact"; when it is full, senders get 503';
  return disk.warning(text, next);
}

const minuteMs = 60_000;
const yearMs = 365 * 24 * 60 * minuteMs;
/** Before this the program was not written. */
const earliest = Date.UTC(2025, 0, 1);

/** Whether this machine's time can be right. */
export const checkClock: Check = async ({ store }) => {
  const [newest] = store ? await store.listEvents({ limit: 1 }) : [];
  return [judgeTime({ now: Date.now(), storeNow: store?.now(), newest: newest?.receivedAt })];
};

/** All in Unix milliseconds: this machine's time, the store's, and when the newest event came. */
export function judgeTime(times: {
  readonly now: number;
  readonly storeNow?: number | undefined;
  readonly newest?: number | undefined;
}): Finding {
  const { now, storeNow, newest } = times;
  const here = new Date(now).toISOString();
  const next = "Set the clock, best by NTP: what is due, and what is old, is told by it";
  if (now < earliest) return clock.warning(`It says ${here}, which is long past`, next);
  if (storeNow !== undefined && Math.abs(storeNow - now) > minuteMs) {
    return clock.warning(`It says ${here}, and the database's ${new Date(storeNow).toISOString()}`, next);
  }
  const newestText = newest === undefined ? "" : new Date(newest).toISOString();
  if (newest !== undefined && newest > now + 5 * minuteMs) {
    return clock.warning(`It says ${here}, but the newest event came at ${newestText}`, next);
  }
  if (newest !== undefined && newest < now - yearMs) {
    return clock.warning(`It says ${here}, more than a year after the newest event (${newestText})`, next);
  }
  return clock.ok(`It says ${here}`);
}
