import { quote } from "./failure.ts";
import type { Setting } from "./target.ts";

/** A setting's value in its kind, or what was expected and what was found. */
export type ParsedValue =
  | { readonly value: string | number | boolean }
  | { readonly expected: string; readonly found: string };

/**
 * Reads a value of a configuration file or of an environment variable (always text there). What stands in a secret is
 * never in the answer of a failure.
 */
export function parseValue(kind: Setting["kind"], raw: unknown): ParsedValue {
  return parsers[kind](raw);
}

const parsers: Record<Setting["kind"], (raw: unknown) => ParsedValue> = {
  string: text,
  // A number would lose its leading zeros before anybody sees it.
  secret: (raw) => (typeof raw === "string" ? text(raw) : { expected: "text in quotes", found: kindOf(raw) }),
  integer,
  boolean,
  url,
};

function text(raw: unknown): ParsedValue {
  if (typeof raw === "string") return { value: raw };
  return { expected: "text; put it in quotes", found: found(raw) };
}

function integer(raw: unknown): ParsedValue {
  const digits = typeof raw === "number" || typeof raw === "bigint" ? String(raw) : raw;
  if (typeof digits === "string" && /^\s*-?\d{1,15}\s*$/.test(digits)) return { value: Number(digits) };
  return { expected: "a whole number", found: found(raw) };
}

function boolean(raw: unknown): ParsedValue {
  if (typeof raw === "boolean") return { value: raw };
  const word = typeof raw === "string" ? raw.trim().toLowerCase() : "";
  if (/^(true|yes|on|1)$/.test(word)) return { value: true };
  if (/^(false|no|off|0)$/.test(word)) return { value: false };
  return { expected: "true or false", found: found(raw) };
}

/** Without its last slashes, so that a path can be put behind it. */
function url(raw: unknown): ParsedValue {
  const expected = "an address that begins with http:// or https://";
  const parsed = typeof raw === "string" ? URL.parse(raw.trim()) : null;
  // An address may hold a password before its "@" or in its query: such a one is not repeated.
  if (parsed?.username || parsed?.password || parsed?.search || parsed?.hash) {
    return { expected: `${expected}, without user, password, query and fragment`, found: "one that has them" };
  }
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return { expected, found: found(raw) };
  return { value: (raw as string).trim().replace(/\/+$/, "") };
}

/** What a person wrote, in words short enough for a message. */
export function found(raw: unknown): string {
  if (typeof raw === "string") return quote(raw, 100);
  if (typeof raw === "number" || typeof raw === "bigint" || typeof raw === "boolean") return `${kindOf(raw)} ${raw}`;
  return kindOf(raw);
}

function kindOf(raw: unknown): string {
  if (raw === null || raw === undefined) return "nothing";
  if (Array.isArray(raw)) return "a list";
  if (typeof raw === "object") return "a mapping";
  return typeof raw === "string" ? "text" : `the ${typeof raw === "boolean" ? "word" : "number"}`;
}
