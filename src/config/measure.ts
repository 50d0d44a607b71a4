import { z } from "zod";

/* Times and sizes of the configuration: what may be written, what it means, and within which bounds. */

/** A number, or text of a number and a unit, that becomes a whole number of milliseconds or bytes. */
interface Measure {
  readonly noun: string;
  /** What may be written, as the end of a sentence. */
  readonly form: string;
  /** Of the text. */
  readonly pattern: string;
  readonly read: (written: number | string) => number;
  /** Smallest and largest, as they are written. */
  readonly from: string;
  readonly to: string;
}

function measured(measure: Measure) {
  return within(measure, measure.pattern, "").transform(measure.read);
}

/** `off` stands for no bound. */
function measuredOrOff(measure: Measure) {
  const written = within(measure, `off|${measure.pattern}`, ', or "off"');
  return written.transform((value) => (value === "off" ? "off" : measure.read(value)));
}

/** Looks at the bounds before anything is read, so that errors repeat what was written. */
function within({ noun, form, read, from, to }: Measure, pattern: string, alternative: string) {
  const error = { error: `Expected ${form}${alternative}` };
  return z
    .union([z.number(), z.string().regex(new RegExp(`^(${pattern})$`), { ...error, abort: true })], error)
    .refine((value) => value === "off" || (read(value) >= read(from) && read(value) <= read(to)), {
      error: `Expected a ${noun} from ${from} to ${to}${alternative}`,
    });
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function readMs(written: number | string): number {
  const [, amount = written, unit] = /^([\d.]+)([a-z]+)$/.exec(String(written)) ?? [];
  return Math.round(Number(amount) * (unitMs[unit ?? "s"] ?? Number.NaN));
}

/** What a timer waits for. Node's timers end at once when they are set for longer than 2^31 ms, which is 596 hours. */
const timer: Measure = {
  noun: "time",
  form: 'seconds as a number, or text such as "30s" or "10m"',
  pattern: String.raw`\d+(\.\d+)?(ms|s|m|h)?`,
  read: readMs,
  from: "1ms",
  to: "500h",
};

/** What is compared with a time in the ledger, so that it may be any time. */
const span: Measure = {
  ...timer,
  form: 'seconds as a number, or text such as "30s", "12h" or "7d"',
  pattern: String.raw`\d+(\.\d+)?(ms|s|m|h|d)?`,
  to: "3650d",
};

/** A time that something waits by a timer. */
export const duration = measured(timer).meta({
  id: "duration",
  title: "time",
  description: "Seconds as a number, or text such as 500ms, 30s, 10m, 2h",
});

/** A time that is compared with another one. */
export const longDuration = measured(span).meta({
  id: "longDuration",
  title: "time, also in days",
  description: "Seconds as a number, or text such as 500ms, 30s, 10m, 2h, 7d",
});

/** The same, or 0. */
export const longDurationOrNone = measured({ ...span, from: "0s" }).meta({
  id: "longDurationOrNone",
  title: "time, also in days",
  description: "Seconds as a number, or text such as 500ms, 30s, 10m, 2h, 7d; 0 for none",
});

/** Shorter ones would run out while a machine is busy. */
export const lease = measured({ ...timer, from: "1s", to: "10m" }).meta({
  id: "lease",
  title: "time",
  description: "Seconds as a number, or text such as 30s or 2m",
});

/** Days are meant, and a forgotten unit would make seconds of them: then nothing would be kept. */
export const age = measuredOrOff({ ...span, form: 'text such as "12h" or "30d"', from: "1h" }).meta({
  id: "age",
  title: 'time, also in days, or "off"',
  description: "Text such as 12h or 30d; off for no end",
});

const unitBytes: Readonly<Record<string, number>> = {
  ...{ KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 },
  ...{ KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 },
};

function readBytes(written: number | string): number {
  const [, amount = written, unit] = /^([\d.]+) ?([A-Za-z]+)$/.exec(String(written)) ?? [];
  return Math.round(Number(amount) * (unit === undefined ? 1 : (unitBytes[unit] ?? Number.NaN)));
}

/** Of what is stored. A forgotten unit would leave no room. */
export const size = measuredOrOff({
  noun: "size",
  form: 'bytes as a number, or text such as "500MB" or "2GiB"',
  pattern: String.raw`\d+(\.\d+)?( ?[KMGT]i?B)?`,
  read: readBytes,
  from: "1MiB",
  to: "1024TiB",
}).meta({
  id: "size",
  title: 'size, or "off"',
  description: "Bytes as a number, or text such as 500MB, 2GiB; off for no end",
});
