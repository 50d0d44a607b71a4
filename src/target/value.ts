import { lowerFirst, matches } from "./address.ts";
import { quote } from "./failure.ts";
import type { Setting, SettingValue } from "./target.ts";

/** A setting's value in its kind, or what was expected and what was found. */
export type ParsedValue =
  | { readonly value: Exclude<SettingValue, undefined> }
  | { readonly expected: string; readonly found: string };

/**
 * Reads a value of a configuration file or of an environment variable (always text there). What stands in a secret is
 * never in the answer of a failure.
 */
export function parseValue(setting: Pick<Setting, "kind" | "choices" | "pattern" | "help">, raw: unknown): ParsedValue {
  const parsed = parsers[setting.kind](raw, setting);
  const { pattern, kind, help } = setting;
  if (!("value" in parsed) || pattern === undefined || matches({ pattern }, String(parsed.value))) return parsed;
  return { expected: lowerFirst(help), found: kind === "secret" || kind === "secret_url" ? "other text" : found(raw) };
}

const parsers: Record<Setting["kind"], (raw: unknown, setting: Pick<Setting, "choices">) => ParsedValue> = {
  string: text,
  // A number would lose its leading zeros before anybody sees it.
  secret: (raw) => (typeof raw === "string" ? text(raw) : { expected: "text in quotes", found: kindOf(raw) }),
  integer,
  boolean,
  url,
  secret_url: secretUrl,
  choice,
  list,
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

/** Kept as it is, with its query; never shown. No client sends a user and password that stand in an address. */
function secretUrl(raw: unknown): ParsedValue {
  const parsed = typeof raw === "string" ? URL.parse(raw.trim()) : null;
  const isOne = parsed !== null && /^https?:$/.test(parsed.protocol);
  if (isOne && parsed.username === "" && parsed.password === "") return { value: (raw as string).trim() };
  const expected = "an address that begins with http:// or https://, without user and password";
  return { expected, found: typeof raw === "string" ? "other text" : kindOf(raw) };
}

function choice(raw: unknown, { choices = [] }: Pick<Setting, "choices">): ParsedValue {
  const word = typeof raw === "string" ? raw.trim().toLowerCase() : undefined;
  if (word !== undefined && choices.includes(word)) return { value: word };
  return { expected: choices.map((one) => `"${one}"`).join(" or "), found: found(raw) };
}

/** A list of texts; one text counts as a list of what stands between its commas, as environment variables write it. */
function list(raw: unknown): ParsedValue {
  const items = typeof raw === "string" ? raw.split(",") : raw;
  const expected = "a list of texts";
  if (!Array.isArray(items)) return { expected, found: found(raw) };
  const strange = items.find((item) => typeof item !== "string" || item.trim() === "");
  if (items.length === 0 || strange !== undefined) return { expected, found: found(strange ?? null) };
  return { value: items.map((item: string) => item.trim()) };
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
