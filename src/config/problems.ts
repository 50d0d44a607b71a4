import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from "yaml";
import type { z } from "zod";
import type { Problem } from "../core/errors.ts";
import { suggestion } from "../core/nearest.ts";

type Path = readonly PropertyKey[];

/** A parsed YAML (or JSON) file that can say where each key stands. */
export interface Source {
  readonly file: string;
  /** `undefined` when the file's mistakes leave nothing to read. */
  readonly value: unknown;
  /** The file's own mistakes: syntax, a key given twice. They hold no value of the file, it may be a secret. */
  readonly problems: readonly Problem[];
  /** Line and column, counting from 1, of the key at a path or of the nearest key above it that is there. */
  position(path: Path): { readonly line: number; readonly column: number } | undefined;
}

/** Reads YAML with whole numbers of any size (chat ids keep their digits) and with `<<` merges. */
export function readYaml(file: string, text: string): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, intAsBigInt: true, merge: true, prettyErrors: false });
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const mistakes = [...document.errors, ...document.warnings];
  const problems = [
    ...mistakes.map(({ code, message, pos: [start] }) => ({
      offset: start,
      message: mend(code, message, text, start),
    })),
    ...aliasMistakes(document),
  ].map(({ offset, message }): Problem => ({ file, ...at(offset), key: "(file)", message }));
  const isReadable = mistakes.every(({ code }) => code === "DUPLICATE_KEY") && problems.length === mistakes.length;
  const read = isReadable ? toValue(document, file) : {};
  return {
    file,
    value: read.value,
    problems: [...problems, ...(read.problem ? [read.problem] : [])],
    position(path) {
      const offset = offsetOf(document, path);
      return offset === undefined ? undefined : at(offset);
    },
  };
}

/** What to do about the parser's complaints. Its own words may repeat what stands in the file. */
const remedies: Readonly<Record<string, string>> = {
  BAD_DQ_ESCAPE: 'Unknown escape in double quotes; write "\\\\" for a backslash, or use single quotes',
  BAD_SCALAR_START: "A text cannot begin with this character; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: "A second colon in one line; put the text in quotes, or the key on its own line",
  MISSING_CHAR: "A closing quote, bracket or colon is missing here or above",
  MULTIPLE_DOCS: 'A second document begins here; remove the "---"',
  TAB_AS_INDENT: "A tab cannot indent; use spaces",
  TAG_RESOLVE_FAILED: 'Unknown tag; put a text that begins with "!" in quotes',
  UNEXPECTED_TOKEN: "Unexpected text; check the indentation, the quotes and the brackets",
};

function mend(code: string, message: string, text: string, offset: number): string {
  if (code === "DUPLICATE_KEY")
    return `The key "${/^[\w.-]*/.exec(text.slice(offset))?.[0]}" stands here again; keep one`;
  return `YAML: ${remedies[code] ?? message.replace(/(:? *["!%\\]|\.$).*$/s, "")}`;
}

/** An alias without its anchor, or inside of what it stands for. */
function aliasMistakes(document: Document): { offset: number; message: string }[] {
  const found: { offset: number; message: string }[] = [];
  visit(document, {
    Alias(_key, alias, above) {
      const offset = alias.range?.[0] ?? 0;
      const target = alias.resolve(document);
      if (!target) found.push({ offset, message: `YAML: There is no anchor "&${alias.source}" above` });
      else if (above.some((node) => node === target)) {
        found.push({ offset, message: `YAML: The alias "*${alias.source}" stands inside of what it stands for` });
      }
    },
  });
  return found;
}

function toValue(document: Document, file: string): { value?: unknown; problem?: Problem } {
  try {
    return { value: smallNumbers(document.toJS({ maxAliasCount: 100 })) };
  } catch (error) {
    // The parser throws here for aliases that multiply, and for a "<<" that merges something else than mappings.
    const isBomb = error instanceof ReferenceError;
    const message = isBomb ? "Aliases multiply beyond 100; write the values out" : 'A "<<" must name a mapping';
    return { problem: { file, key: "(file)", message: `YAML: ${message}` } };
  }
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
    const here = isAlias(node) ? node.resolve(document) : node;
    if (isMap(here)) {
      const wanted = String(step);
      const pair = here.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === wanted);
      if (!pair || !isScalar(pair.key)) break;
      offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else {
      const item = isSeq(here) ? here.items[Number(step)] : undefined;
      if (!isNode(item)) break;
      offset = item.range?.[0] ?? offset;
      node = item;
    }
  }
  return offset;
}

/** A mistake found at a path of a source. */
export function problemAt(source: Source, path: Path, message: string): Problem {
  return { file: source.file, ...source.position(path), key: masked(path.map(String).join(".")) || "(file)", message };
}

/** An address may hold a password, also one that was written where a key belongs. */
function masked(text: string): string {
  return text.replaceAll(/:\/\/[^\s"]*@/g, "://…@");
}

/** The schema's complaints as problems, each unknown key on its own with the key that was most likely meant. */
export function schemaProblems(source: Source, error: z.ZodError, schema: z.ZodType): Problem[] {
  return schemaMistakes(error, schema).map(({ path, message }) => problemAt(source, path, message));
}

/** The same, with the path of each inside what was validated. */
export function schemaMistakes(error: z.ZodError, schema: z.ZodType): { path: PropertyKey[]; message: string }[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      const known = keysAt(schema, issue.path);
      return issue.keys.map((key) => ({
        path: [...issue.path, key],
        message: `Unknown key "${masked(key)}"; ${suggestion(key, known)}`,
      }));
    }
    return [{ path: issue.path, message: explain(issue) }];
  });
}

function explain(issue: z.core.$ZodIssue): string {
  const found = foundAt(issue);
  const isOurs = !/^(Invalid|Too (small|big)|Unrecognized)\b/.test(issue.message);
  if (isOurs) return `${issue.message}${found}`;
  if (issue.code === "invalid_type") return `Expected ${kinds[issue.expected] ?? issue.expected}${found}`;
  if (issue.code === "invalid_value") return `Expected one of: ${issue.values.join(", ")}${found}`;
  return `${issue.message}${found}`;
}

const kinds: Readonly<Record<string, string>> = {
  array: "a list",
  object: "a mapping of keys to values",
  record: "a mapping of keys to values",
  string: "text",
};

/** `, found …`, or nothing where there is nothing. What may be, or hold, a secret is not repeated. */
function foundAt({ input, path, code, ...issue }: z.core.$ZodIssue): string {
  const isSecret = path[0] === "store" || path.some((step) => /secret|token|password|key/i.test(String(step)));
  if (input === undefined || isSecret) return "";
  if (Array.isArray(input)) return ", found a list";
  if (typeof input === "object" && input !== null) return ", found a mapping";
  // Whole lines of a `.env` end up where a mapping should be.
  const isSection = code === "invalid_type" && "expected" in issue && ["object", "record"].includes(issue.expected);
  if (typeof input === "string" && isSection) return ", found text";
  return `, found ${short(input)}${typeof input === "string" || input === null ? "" : hint(code, issue)}`;
}

function hint(code: string, issue: object): string {
  const wantsText = code === "invalid_type" && "expected" in issue && issue.expected === "string";
  return wantsText ? "; put it in quotes" : "";
}

function short(value: unknown): string {
  const text = masked(typeof value === "bigint" ? String(value) : (JSON.stringify(value) ?? String(value)));
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

/** Whether the file itself has something at a path. */
export function isThere(source: Source, path: readonly PropertyKey[]): boolean {
  let here: unknown = source.value;
  for (const step of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, step)) return false;
    here = (here as Record<PropertyKey, unknown>)[step];
  }
  return here !== undefined;
}
