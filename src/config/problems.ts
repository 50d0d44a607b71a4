import { type Document, isMap, isPair, isScalar, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import type { Problem } from "../core/errors.ts";
import { suggestion } from "../core/nearest.ts";

type Path = readonly PropertyKey[];

/** A parsed YAML (or JSON) file that can say where each key stands. */
export interface Source {
  readonly file: string;
  readonly value: unknown;
  /** The file's own mistakes: syntax, a key given twice. */
  readonly problems: readonly Problem[];
  /** Line and column, counting from 1, of the key at a path or of the nearest key above it that is there. */
  position(path: Path): { readonly line: number; readonly column: number } | undefined;
}

/** Reads YAML with whole numbers of any size (chat ids keep their digits) and with `<<` merges. */
export function readYaml(file: string, text: string): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, intAsBigInt: true, merge: true, prettyErrors: false });
  const problems = document.errors.map((error): Problem => {
    const { line, col } = lines.linePos(error.pos[0]);
    return { file, line, column: col, key: "(file)", message: `YAML: ${error.message.replace(/\.$/, "")}` };
  });
  return {
    file,
    value: problems.length > 0 ? undefined : smallNumbers(document.toJS({ maxAliasCount: 100 })),
    problems,
    position(path) {
      const offset = offsetOf(document, path);
      if (offset === undefined) return undefined;
      const { line, col } = lines.linePos(offset);
      return { line, column: col };
    },
  };
}

/** Integers a number can hold exactly become numbers; the others stay `bigint` with all their digits. */
function smallNumbers(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(smallNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, smallNumbers(item)]));
}

function offsetOf(document: Document, path: Path): number | undefined {
  let node: unknown = document.contents;
  let offset: number | undefined;
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === step);
      if (!pair || !isScalar(pair.key)) break;
      offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else {
      const item =
        typeof step === "number" ? document.getIn([...path.slice(0, path.indexOf(step) + 1)], true) : undefined;
      if (!item) break;
      node = item;
      offset = (item as { range?: [number, number, number] }).range?.[0] ?? offset;
    }
  }
  return offset;
}

/** A mistake found at a path of a source. */
export function problemAt(source: Source, path: Path, message: string): Problem {
  return { file: source.file, ...source.position(path), key: path.map(String).join(".") || "(file)", message };
}

/** The schema's complaints as problems, each unknown key on its own with the key that was most likely meant. */
export function schemaProblems(source: Source, error: z.ZodError, schema: z.ZodType): Problem[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      const known = keysAt(schema, issue.path);
      return issue.keys.map((key) =>
        problemAt(source, [...issue.path, key], `unknown key "${key}"; ${suggestion(key, known)}`),
      );
    }
    return [problemAt(source, issue.path, explain(issue))];
  });
}

function explain(issue: z.core.$ZodIssue): string {
  // What stands where a secret should is not repeated.
  const isSecret = issue.path.some((step) => /secret|token|password|key/i.test(String(step)));
  const found = issue.input === undefined || isSecret ? "" : `, found ${short(issue.input)}`;
  switch (issue.code) {
    case "invalid_type":
      return issue.message.startsWith("Invalid input")
        ? `expected ${issue.expected}${found}`
        : `${issue.message}${found}`;
    case "invalid_value":
      return `expected one of: ${issue.values.join(", ")}${found}`;
    case "too_small":
      return `expected at least ${issue.minimum}${found}`;
    case "too_big":
      return `expected at most ${issue.maximum}${found}`;
    default:
      return `${issue.message.replace(/^Invalid input: /, "")}${found}`;
  }
}

function short(value: unknown): string {
  const text = typeof value === "bigint" ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/** Keys that the schema knows at a path, by walking its objects, records and wrappers. */
function keysAt(schema: z.ZodType, path: Path): string[] {
  let here: unknown = unwrap(schema);
  for (const step of path) {
    const { shape, valueType, catchall } = definition(here);
    here = unwrap(shape?.[String(step)] ?? valueType ?? catchall);
  }
  return Object.keys(definition(here).shape ?? {});
}

interface Definition {
  readonly type?: string;
  readonly shape?: Record<string, unknown>;
  readonly valueType?: unknown;
  readonly catchall?: unknown;
  readonly innerType?: unknown;
  readonly in?: unknown;
}

function definition(schema: unknown): Definition {
  return (schema as { def?: Definition } | undefined)?.def ?? {};
}

function unwrap(schema: unknown): unknown {
  const { innerType, in: input, type } = definition(schema);
  if (innerType !== undefined) return unwrap(innerType);
  return type === "pipe" ? unwrap(input) : schema;
}
