import type { JsonObject } from "../core/types.ts";

/** The fields of an `application/x-www-form-urlencoded` text by name; one that is repeated is a list of its values. */
export function formFields(text: string): JsonObject {
  const fields = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const values = fields.get(name);
    if (values === undefined) fields.set(name, [value]);
    else values.push(value);
  }
  // `fromEntries` makes own properties, also of a field named `__proto__`.
  return Object.fromEntries([...fields].map(([name, values]) => [name, values.length === 1 ? values[0]! : values]));
}
