import { isList, isObject } from "../core/json.ts";
import { absent } from "../core/path.ts";
import type { Json } from "../core/types.ts";
import type { FileList } from "./list.ts";
import { compilePattern } from "./pattern.ts";
import { scalarKey, scalarText } from "./scalar.ts";

/** What a field path led to. */
export type Found = Json | typeof absent;

/** Whether a value passes. */
export type Test = (value: Found) => boolean;

/** What operators need from outside. */
export interface OperatorTools {
  /** Watches a file of the home; a text says why it may not be read. */
  readonly watch: (path: string) => FileList | string;
}

/** One way to look at a field (specification section 2.3). */
export interface Operator {
  /** `every`: a field with several names (the event type) passes when all of them do. Else one is enough. */
  readonly over?: "every";
  /** Makes the test for what stands behind the operator; a text says what belongs there instead. */
  compile(operand: unknown, tools: OperatorTools): Test | string;
}

/** All operators by the word that names them in a filter. */
export const operators: Readonly<Record<string, Operator>> = {
  exists: {
    compile(operand) {
      if (typeof operand !== "boolean") return 'Write "true" or "false" behind "exists"';
      return (value) => (value !== absent) === operand;
    },
  },
  missing: {
    compile(operand) {
      if (operand !== true)
        return 'Only "missing: true" has a meaning, write "exists: true" for a field that must be there';
      return (value) => value === absent;
    },
  },
  equals: { compile: equality },
  not_equals: {
    over: "every",
    compile(operand) {
      const equals = equality(operand);
      return typeof equals === "string" ? equals : (value) => !equals(value);
    },
  },
  contains: {
    compile(operand) {
      const key = scalarKey(operand);
      const word = scalarText(operand);
      if (key === undefined || word === undefined) return `${wantsScalar} behind "contains"`;
      return present((value) => {
        // `null` has no place in a text, though it may be a member of a list.
        if (typeof value === "string") return operand !== null && value.includes(word);
        if (isList(value)) return value.some((item) => scalarKey(item) === key);
        return isObject(value) && Object.hasOwn(value, word);
      });
    },
  },
  in: {
    compile(operand) {
      if (!Array.isArray(operand)) return 'Write a list behind "in", for example ["opened", "reopened"]';
      const keys = new Set(operand.map(scalarKey));
      if (keys.has(undefined)) return `${wantsScalar} at each place of the list behind "in"`;
      return present((value) => {
        const key = scalarKey(value);
        return key !== undefined && keys.has(key);
      });
    },
  },
  in_file: {
    compile(operand, { watch }) {
      if (typeof operand !== "string" || operand.trim() === "") return 'Write the path of a file behind "in_file"';
      const list = watch(operand);
      return typeof list === "string" ? list : present((value) => list.has(value));
    },
  },
  regex: {
    compile(operand) {
      if (typeof operand !== "string") return 'Write a pattern in quotes behind "regex"';
      try {
        const pattern = compilePattern(operand);
        return present((value) => pattern(typeof value === "string" ? value : JSON.stringify(value)));
      } catch (error) {
        return `The pattern cannot be used: ${reasonOf(error)} (RE2 syntax, without lookaround and backreferences)`;
      }
    },
  },
};

const wantsScalar = "Write a text, a number, true, false or null";

function equality(operand: unknown): Test | string {
  const key = scalarKey(operand);
  if (key === undefined) return `${wantsScalar} behind "equals" and "not_equals"`;
  if (typeof operand === "string") return (value) => value === operand;
  return present((value) => scalarKey(value) === key);
}

function present(test: (value: Json) => boolean): Test {
  return (value) => value !== absent && test(value);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.replace("error parsing regexp: ", "") : String(error);
}
