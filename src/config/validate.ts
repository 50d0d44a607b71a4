import type { Problem } from "../core/errors.ts";
import { type Source, schemaProblems } from "./problems.ts";
import { configSchema, type FileConfig } from "./schema.ts";

/** Validates the file. What is wrong is noted and left out, so that the rest can be checked in the same go. */
export function validate(source: Source, problems: Problem[]): FileConfig {
  let value: unknown = source.value ?? {};
  for (let round = 0; round < 5; round += 1) {
    const result = configSchema.safeParse(value, { reportInput: true });
    if (result.success) return result.data;
    problems.push(...schemaProblems(source, result.error, configSchema));
    const bad = result.error.issues.flatMap((issue) =>
      issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [issue.path],
    );
    value = without(value, bad);
  }
  return configSchema.parse({});
}

function without(value: unknown, paths: readonly (readonly PropertyKey[])[]): unknown {
  if (paths.some((path) => path.length === 0)) return {};
  if (Array.isArray(value)) {
    // A list with a bad item is bad as a whole: leaving one item out would move the others.
    return undefined;
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, item]) => {
    const inside = paths.filter(([first]) => first === key).map((path) => path.slice(1));
    if (inside.length === 0) return [[key, item]];
    return inside.some((path) => path.length === 0) ? [] : [[key, without(item, inside)]];
  });
  return Object.fromEntries(entries);
}
