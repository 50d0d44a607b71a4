import { InvalidArgumentError } from "commander";

// What commander makes of the words behind an option. A word that will not do is wrong usage: exit 2.

/** A TCP port in digits. */
export function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("Expected a whole number from 0 to 65535");
}

/** A time in seconds, at most an hour. */
export function parseSeconds(text: string): number {
  if (/^\d{1,4}(\.\d+)?$/.test(text) && Number(text) <= 3600) return Number(text);
  throw new InvalidArgumentError("Expected a number of seconds from 0 to 3600");
}

/** Words with commas between. */
export function parseList(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** One more of an option that may be repeated. */
export function append(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** One more `key=value`. */
export function appendPair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new InvalidArgumentError("Expected key=value");
  return { ...before, [key]: value };
}

/** One more JSON text: an object, or a list. It stays text, because reading it here would cost digits of its numbers. */
export function appendJson(text: string, before: readonly string[] = []): string[] {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return [...before, text];
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError(
    'Expected a JSON object or a list of them, for example {"field":"action","equals":"opened"}',
  );
}
