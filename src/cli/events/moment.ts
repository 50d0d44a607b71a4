import { InvalidArgumentError } from "commander";

/** A time that a person gave: in Unix milliseconds, once it is known what time it is now. */
export type Moment = (nowMs: number) => number;

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

const isoTime = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?) ?(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * Reads `30m`, `1h`, `7d` (so long ago), or a date or date and time as ISO 8601 writes them. Without a zone it is UTC, in
 * which all times are shown.
 */
export function parseMoment(text: string): Moment {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (count !== undefined) return (nowMs) => nowMs - Number(count) * unitMs[unit as keyof typeof unitMs];
  const [, day, time = "00:00", zone = "Z"] = isoTime.exec(text) ?? [];
  const at = day === undefined ? Number.NaN : Date.parse(`${day}T${time}${zone}`);
  if (!Number.isNaN(at)) return () => at;
  throw new InvalidArgumentError("Expected a time such as 30m, 1h, 7d (ago), 2026-01-31 or 2026-01-31T08:30Z");
}
