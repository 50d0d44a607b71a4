import { toleranceSeconds } from "./scheme.ts";

/** `undefined` when a header's Unix time in seconds is close enough to our clock, else the reason. */
export function differsFromNow(timestamp: string, nowMs: number): string | undefined {
  if (!/^\d{1,12}$/.test(timestamp)) return "its timestamp is not a Unix time in seconds";
  const ageSeconds = Math.floor(nowMs / 1000) - Number(timestamp);
  if (Math.abs(ageSeconds) <= toleranceSeconds) return undefined;
  const direction = ageSeconds > 0 ? "old" : "ahead of our clock";
  return `its timestamp is ${Math.abs(ageSeconds)} s ${direction}, more than the ${toleranceSeconds} s allowed`;
}
