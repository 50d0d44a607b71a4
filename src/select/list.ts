import type { BigIntStats } from "node:fs";
import { readFile, realpath, stat } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { Rejection } from "../core/errors.ts";
import { isList, isObject, parseJson } from "../core/json.ts";
import type { Json } from "../core/types.ts";
import { isMissing, isShortage } from "../lib/file.ts";
import { scalarKey, scalarText } from "./scalar.ts";

/** Larger files are refused: every value of a list is kept in memory. */
const maxListBytes = 16 * 1024 * 1024;

/** A list of values in a file of the home (`in_file`), read again when the file changes. */
export interface FileList {
  /**
   * Reads the file if it is another than last time. A list that cannot be read is empty and warned about.
   * @throws Rejection `unavailable` when the machine is short of something: the filter has not decided then.
   */
  refresh(): Promise<void>;
  /** Whether the list, as it was last read, holds a value. */
  has(value: Json): boolean;
}

interface Entries {
  /** Of a JSON list: compared by type and value. */
  readonly keys: ReadonlySet<string>;
  /** Of lines and of the keys of a JSON object: these have no types, so that `7` is found by its digits. */
  readonly words: ReadonlySet<string>;
}

const nothing: Entries = { keys: new Set(), words: new Set() };

/** The absolute path of a file that a filter names, or `undefined` when it lies outside the home. */
export function pathInHome(home: string, path: string): string | undefined {
  const full = resolve(home, path);
  return isInside(resolve(home), full) ? full : undefined;
}

function isInside(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Watches a list at an absolute path inside the home. `warn` is called once until the list can be read again. */
export function watchList(path: string, home: string, warn: (message: string) => void): FileList {
  let last: ReadList = { entries: nothing };
  let hasWarned = false;
  const refresh = async () => {
    last = await readList(path, home, last);
    const isBad = last.problem !== undefined;
    if (isBad && !hasWarned)
      warn(`The list "${path}" of a filter ${last.problem}; it matches nothing until it can be read`);
    hasWarned = isBad;
  };
  return { refresh, has: (value) => holds(last.entries, value) };
}

interface ReadList {
  readonly entries: Entries;
  /** Differs when the file does. */
  readonly version?: string;
  readonly problem?: string;
}

async function readList(path: string, home: string, last: ReadList): Promise<ReadList> {
  try {
    const stats = await stat(path, { bigint: true });
    const version = versionOf(stats);
    if (version === last.version) return last;
    const problem = refusal(stats, await realpath(path), await realpath(home));
    if (problem !== undefined) return { entries: nothing, problem };
    return { entries: readEntries(await readFile(path, "utf8")), version };
  } catch (error) {
    const code = codeOf(error);
    if (isShortage(code))
      throw new Rejection("unavailable", `A filter's list cannot be read now (${code})`, { cause: error });
    return { entries: nothing, problem: isMissing(error) ? "is missing" : `cannot be read (${code})` };
  }
}

function versionOf({ mtimeNs, ctimeNs, size, ino }: BigIntStats): string {
  return `${mtimeNs} ${ctimeNs} ${size} ${ino}`;
}

function refusal(file: BigIntStats, realPath: string, realHome: string): string | undefined {
  if (!isInside(realHome, realPath)) return "leads outside the home";
  if (!file.isFile()) return "is not a file";
  return file.size > maxListBytes ? `is larger than ${maxListBytes} bytes` : undefined;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}

function readEntries(text: string): Entries {
  const value = jsonOrUndefined(text.trim());
  if (value !== undefined && isList(value)) {
    return { keys: new Set(value.map(scalarKey).filter((key) => key !== undefined)), words: nothing.words };
  }
  if (isObject(value)) return { keys: nothing.keys, words: new Set(Object.keys(value)) };
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.trim());
  return { keys: nothing.keys, words: new Set(lines.filter((line) => line !== "")) };
}

function jsonOrUndefined(text: string): Json | undefined {
  if (!text.startsWith("[") && !text.startsWith("{")) return undefined;
  try {
    return parseJson(text);
  } catch {
    // A line may begin with a bracket: then the file is lines of text.
    return undefined;
  }
}

function holds({ keys, words }: Entries, value: Json): boolean {
  const key = keys.size > 0 ? scalarKey(value) : undefined;
  if (key !== undefined && keys.has(key)) return true;
  const word = words.size > 0 && value !== null ? scalarText(value) : undefined;
  return word !== undefined && words.has(word);
}
