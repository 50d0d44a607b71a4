import { rawNumber } from "../core/json.ts";
import { suggestion } from "../core/nearest.ts";
import { truncate } from "../core/text.ts";
import type { Event } from "../core/types.ts";
import { compileField, type Field } from "./field.ts";
import { type FileList, pathInHome, watchList } from "./list.ts";
import { type Operator, type OperatorTools, operators, type Test } from "./operators.ts";

/** The compiled filters of one route, made by `compileFilters`. */
export interface Filter {
  readonly root: Clause;
  /** Files that the filters look into (`in_file`). */
  readonly lists: readonly FileList[];
}

/** A mistake in a route's `filters`. */
export interface FilterProblem {
  /** Where, for example `filters.1.any.0.regex`. */
  readonly path: string;
  /** What is wrong and what to write instead. */
  readonly message: string;
}

/** Why an event did not pass. */
export interface Mismatch {
  /** The clause that failed, for example `filters.1.any.0: action in ["opened"]`. */
  readonly clause: string;
  /** The value it looked at, as JSON of at most 200 characters, or `absent`. */
  readonly value: string;
}

export interface FilterOptions {
  /** Called once for each `in_file` list that cannot be read, and again when it was readable in between. */
  readonly warn?: (message: string) => void;
}

/** One condition or group. */
interface Clause {
  /** In words, for the log. */
  readonly text: string;
  holds(event: Event): boolean;
  /** Called only when it does not hold. */
  explain(event: Event): Mismatch;
  /** The first value it looks at. */
  show(event: Event): string;
}

/**
 * `undefined` when the event passes, else the first clause that failed. A promise only when the filters look into files, which
 * are read again when they changed; awaiting the result works for both.
 * @throws Rejection `unavailable` (in the promise) when a file cannot be read now though nothing is wrong with it.
 */
export function matches(filter: Filter, event: Event): Mismatch | undefined | Promise<Mismatch | undefined> {
  const judge = () => (filter.root.holds(event) ? undefined : filter.root.explain(event));
  if (filter.lists.length === 0) return judge();
  return Promise.all(filter.lists.map((list) => list.refresh())).then(judge);
}

/**
 * Compiles a route's `filters` (specification section 2.3) as they stand in YAML or JSON; numbers may be `bigint`. Nothing at
 * all is a filter that everything passes. Returns every mistake at once, never only the first.
 */
export function compileFilters(
  raw: unknown,
  home: string,
  options: FilterOptions = {},
): { filter: Filter } | { problems: FilterProblem[] } {
  const lists: FileList[] = [];
  const problems: FilterProblem[] = [];
  const watch = (path: string) => {
    const full = pathInHome(home, path);
    if (full === undefined)
      return `The file "${path}" lies outside the home, move it there and name it by its path inside`;
    const list = watchList(full, home, options.warn ?? (() => {}));
    lists.push(list);
    return list;
  };
  const root = compileList(raw ?? [], "filters", { problems, tools: { watch }, depth: 0 });
  return problems.length > 0 ? { problems } : { filter: { root, lists } };
}

interface Compilation {
  readonly problems: FilterProblem[];
  readonly tools: OperatorTools;
  readonly depth: number;
}

/** Deeper nesting is a mistake, or a YAML alias that holds itself. */
const deepestGroup = 20;

const shape = 'Write a mapping with "field" and one operator, or with one of "all", "any" and "not"';

/** Stands in for what has a problem, so that compiling can go on and find the others. */
const broken: Clause = {
  text: "",
  holds: () => false,
  explain: () => ({ clause: "", value: "" }),
  show: () => "",
};

function compileList(raw: unknown, path: string, work: Compilation): Clause {
  if (!Array.isArray(raw)) return refuse(work, path, "Write a list of filters here, each with a dash before it");
  const clauses = raw.map((item, index) => compileClause(item, `${path}.${index}`, work));
  return {
    text: joined(clauses, " and "),
    holds: (event) => clauses.every((clause) => clause.holds(event)),
    explain: (event) => clauses.find((clause) => !clause.holds(event))!.explain(event),
    show: (event) => clauses[0]?.show(event) ?? "absent",
  };
}

function refuse({ problems }: Compilation, path: string, message: string): Clause {
  problems.push({ path, message });
  return broken;
}

function joined(clauses: readonly Clause[], word: string): string {
  const texts = clauses.map(({ text }) => text);
  return texts.length > 1 ? `(${texts.join(word)})` : (texts[0] ?? "");
}

function compileClause(raw: unknown, path: string, work: Compilation): Clause {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return refuse(work, path, shape);
  if (work.depth > deepestGroup) return refuse(work, path, `Groups are nested deeper than ${deepestGroup} levels`);
  const clause = raw as Readonly<Record<string, unknown>>;
  const keys = Object.keys(clause);
  const group = keys.find((key) => Object.hasOwn(groups, key));
  if (group === undefined) return compileLeaf(clause, path, work);
  const others = keys.filter((key) => key !== group);
  for (const other of others) {
    refuse(work, `${path}.${other}`, `The group "${group}" stands alone, move "${other}" to a filter of its own`);
  }
  return groups[group]!(clause[group], `${path}.${group}`, { ...work, depth: work.depth + 1 });
}

type Group = (raw: unknown, path: string, work: Compilation) => Clause;

const groups: Readonly<Record<string, Group>> = {
  all: (raw, path, work) => refuseEmpty(raw, path, work) ?? compileList(raw, path, work),
  any: (raw, path, work) => refuseEmpty(raw, path, work) ?? compileAny(raw, path, work),
  not: (raw, path, work) => refuseEmpty(raw, path, work) ?? compileNot(raw, path, work),
};

function refuseEmpty(raw: unknown, path: string, work: Compilation): Clause | undefined {
  const isEmpty = raw === null || raw === undefined || (Array.isArray(raw) && raw.length === 0);
  return isEmpty ? refuse(work, path, "The group is empty, put a filter into it or remove it") : undefined;
}

function compileAny(raw: unknown, path: string, work: Compilation): Clause {
  if (!Array.isArray(raw)) return refuse(work, path, "Write a list of filters here, each with a dash before it");
  const clauses = raw.map((item, index) => compileClause(item, `${path}.${index}`, work));
  const [first = broken] = clauses;
  const others = clauses.length > 1 ? ` (nor the ${clauses.length - 1} other of its group)` : "";
  return {
    text: joined(clauses, " or "),
    holds: (event) => clauses.some((clause) => clause.holds(event)),
    explain: (event) => {
      const { clause, value } = first.explain(event);
      // Groups within groups would each add to it; what is cut is an inner one's end.
      return { clause: truncate(clause, longestClause) + others, value };
    },
    show: first.show,
  };
}

function compileNot(raw: unknown, path: string, work: Compilation): Clause {
  const inner = Array.isArray(raw) ? compileList(raw, path, work) : compileClause(raw, path, work);
  const text = `not ${inner.text}`;
  return {
    text,
    holds: (event) => !inner.holds(event),
    explain: (event) => ({ clause: described(path, text), value: inner.show(event) }),
    show: inner.show,
  };
}

/** Most characters of a clause, before a group says how many others failed with it. */
const longestClause = 200;

function described(path: string, text: string): string {
  return truncate(`${path}: ${text}`, longestClause);
}

function compileLeaf(raw: Readonly<Record<string, unknown>>, path: string, work: Compilation): Clause {
  const field = readField(raw, path, work);
  const named = Object.keys(raw).filter((key) => key !== "field");
  const tests = named.map((name) => compileOperator(name, raw[name], path, work));
  const known = named.filter((name) => Object.hasOwn(operators, name));
  if (known.length > 1) return refuse(work, path, tooMany(known));
  if (named.length === 0) return refuse(work, path, `Add one operator: ${Object.keys(operators).join(", ")}`);
  const [operator = "", test] = [named[0], tests[0]];
  if (field === undefined || test === undefined) return broken;
  return leaf(field, operators[operator]!, test, path, `${raw.field} ${operator} ${written(raw[operator])}`);
}

function tooMany(names: readonly string[]): string {
  const list = names.map((name) => `"${name}"`).join(" and ");
  return `A filter has one operator, this one has ${list}; put each in a filter of its own`;
}

function readField(raw: Readonly<Record<string, unknown>>, path: string, work: Compilation): Field | undefined {
  if (!Object.hasOwn(raw, "field")) return void refuse(work, path, `There is no "field". ${shape}`);
  const name = raw.field;
  if (typeof name !== "string" || name.trim() === "") {
    return void refuse(work, `${path}.field`, "Write the path of a field, for example pull_request.draft");
  }
  const field = compileField(name);
  return typeof field === "string" ? void refuse(work, `${path}.field`, field) : field;
}

function compileOperator(name: string, operand: unknown, path: string, work: Compilation): Test | undefined {
  if (!Object.hasOwn(operators, name)) {
    const known = [...Object.keys(operators), "field", ...Object.keys(groups)];
    return void refuse(work, `${path}.${name}`, `There is no operator "${name}"; ${suggestion(name, known)}`);
  }
  const test = operators[name]!.compile(operand, work.tools);
  return typeof test === "string" ? void refuse(work, `${path}.${name}`, test) : test;
}

function leaf(field: Field, { over }: Operator, test: Test, path: string, text: string): Clause {
  return {
    text,
    holds: (event) => (over === "every" ? field.read(event).every(test) : field.read(event).some(test)),
    explain: (event) => ({ clause: described(path, text), value: field.show(event) }),
    show: field.show,
  };
}

function written(operand: unknown): string {
  const digits = (_key: string, value: unknown) => (typeof value === "bigint" ? rawNumber(String(value)) : value);
  return truncate(JSON.stringify(operand, digits) ?? String(operand), 120);
}
