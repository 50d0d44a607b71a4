import { isRawNumber } from "../core/json.ts";

/**
 * A text that is the same for two values exactly when they are equal in type and value, so that sets can hold them.
 * Numbers are compared digit by digit: `1` is `1.0`, and `12345678901234567890` is not `12345678901234567891`.
 * Also takes the `bigint` of a YAML file. `undefined` for lists, objects and everything JSON has no scalar for.
 */
export function scalarKey(value: unknown): string | undefined {
  if (typeof value === "string") return `s${value}`;
  if (value === null || typeof value === "boolean") return String(value);
  const digits = numberText(value);
  return digits === undefined ? undefined : numberKey(digits);
}

/** A scalar as text: strings as they are, the others in JSON form. `undefined` for everything else. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return value === null || typeof value === "boolean" ? String(value) : numberText(value);
}

function numberText(value: unknown): string | undefined {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : undefined;
  return isRawNumber(value) ? value.rawJSON : undefined;
}

const numberParts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Sign, digits without zeros at either end, and the power of ten of the last one. */
function numberKey(text: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] = numberParts.exec(text) ?? [];
  const all = whole + fraction;
  let start = 0;
  while (all.charCodeAt(start) === zero) start += 1;
  if (start === all.length) return "n0";
  let end = all.length;
  while (all.charCodeAt(end - 1) === zero) end -= 1;
  // An exponent of this length is nonsense: such numbers are equal only when they are written alike.
  if (exponent.length > 15) return `n${text}`;
  return `n${sign}${all.slice(start, end)}e${Number(exponent) - fraction.length + (all.length - end)}`;
}

const zero = 0x30;
