import { isDeepStrictEqual } from "node:util";
import { isCollection, isMap, isNode, isScalar, type Pair, parseDocument, stringify, type YAMLMap } from "yaml";
import { UserError } from "../../core/errors.ts";

/** What the wizard writes into `config.yaml`. */
export type YamlValue = string | number | boolean | readonly string[];

type Path = readonly string[];

/**
 * Sets one value in YAML and leaves everything else as it stands: comments, order, indentation, quotes, line ends. The new
 * text is used only when it reads as the old one with this one value changed.
 * @throws UserError when that cannot be done, for example because the section is an alias of another one.
 */
export function setInYaml(text: string, path: Path, value: YamlValue): string {
  const wanted = withValue(contentOf(text), path, value);
  for (const edit of [spliced, rewritten]) {
    const result = edit(text, path, value);
    if (result !== undefined && isDeepStrictEqual(contentOf(result), wanted)) return result;
  }
  throw new UserError(
    `"${path.join(".")}" cannot be set in config.yaml without changing more than that; write it there yourself: ${inline(value)}`,
  );
}

function parse(text: string) {
  return parseDocument(text, { intAsBigInt: true, merge: true });
}

/** `undefined` for text that is no YAML. */
function contentOf(text: string): unknown {
  const document = parse(text);
  if (document.errors.length > 0) return undefined;
  return document.toJS() ?? {};
}

function withValue(here: unknown, path: Path, value: YamlValue): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return typeof value === "number" ? BigInt(value) : value;
  const map = (here ?? {}) as Record<string, unknown>;
  return { ...map, [key]: withValue(map[key], rest, value) };
}

/** The innermost mapping on the way, what it has at the next key, and the keys that are not there yet. */
interface Spot {
  readonly map: YAMLMap;
  readonly pair: Pair | undefined;
  readonly rest: Path;
}

function findSpot(map: YAMLMap, path: Path): Spot | undefined {
  const [key, ...rest] = path;
  const pair = map.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
  if (!pair) return { map, pair: undefined, rest: path };
  if (rest.length === 0 || isNothing(pair.value)) return { map, pair, rest };
  return isMap(pair.value) ? findSpot(pair.value, rest) : undefined;
}

function isNothing(node: unknown): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

/** Changes the text only where the value stands, or where a new line for it belongs. */
function spliced(text: string, path: Path, value: YamlValue): string | undefined {
  const { contents } = parse(text);
  if (isNothing(contents)) return insertLine(text, text.length, lines(path, value, "", text));
  const spot = isMap(contents) ? findSpot(contents, path) : undefined;
  if (!spot) return undefined;
  const { map, pair, rest } = spot;
  if (pair && rest.length === 0) return replaceValue(text, pair, value);
  return map.flow ? intoFlow(text, spot, value) : intoBlock(text, spot, value);
}

function replaceValue(text: string, pair: Pair, value: YamlValue): string | undefined {
  const { value: node } = pair;
  if (!isNode(node) || !node.range || (isCollection(node) && !node.flow)) return undefined;
  const [start, end] = node.range;
  return `${text.slice(0, start)}${start === end ? " " : ""}${inline(value)}${text.slice(end)}`;
}

function intoFlow(text: string, { map, pair, rest }: Spot, value: YamlValue): string | undefined {
  const last = pair ?? map.items.at(-1);
  const end = last && endOf(last);
  if (end === undefined) return undefined;
  const [first = "", ...inner] = rest;
  const nested = inner.reduceRight((text, key) => `{ ${inline(key)}: ${text} }`, inline(value));
  const entry = `${inline(first)}: ${nested}`;
  return text.slice(0, end) + (pair ? ` { ${entry} }` : `, ${entry}`) + text.slice(end);
}

function intoBlock(text: string, { map, pair, rest }: Spot, value: YamlValue): string | undefined {
  const indent = indentOf(text, map.items[0]);
  const last = pair ?? map.items.at(-1);
  const end = last && endOf(last);
  if (indent === undefined || end === undefined) return undefined;
  return insertLine(text, end, lines(rest, value, pair ? indent + step(text) : indent, text));
}

/** What stands before the mapping's first key, when that is blanks only. */
function indentOf(text: string, first: Pair | undefined): string | undefined {
  const start = isNode(first?.key) ? first.key.range?.[0] : undefined;
  if (start === undefined) return undefined;
  const before = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  return /^ *$/.test(before) ? before : undefined;
}

/** Where the last thing of an entry ends, comments behind it not counted. */
function endOf(pair: Pair): number | undefined {
  const { key, value } = pair;
  if (isCollection(value) && !value.flow) {
    const last: unknown = value.items.at(-1);
    return isNode(last) ? last.range?.[1] : last ? endOf(last as Pair) : undefined;
  }
  if (isNode(value)) return value.range?.[1];
  return isNode(key) ? key.range?.[1] : undefined;
}

/** Inserts whole lines after the line in which `at` stands. */
function insertLine(text: string, at: number, added: string): string {
  // The end of a block of text lies behind its last line end.
  const from = at > 0 && text[at - 1] === "\n" ? at - 1 : at;
  const next = text.indexOf("\n", from) + 1;
  if (next > 0) return text.slice(0, next) + added + text.slice(next);
  return text === "" || text.endsWith("\n") ? text + added : text + newline(text) + added;
}

function lines(path: Path, value: YamlValue, indent: string, text: string): string {
  const last = path.length - 1;
  const all = path.map((key, depth) => {
    const line = `${indent}${step(text).repeat(depth)}${inline(key)}:`;
    return (depth === last ? `${line} ${inline(value)}` : line) + newline(text);
  });
  return all.join("");
}

/** One level of indentation, as the file has it. */
function step(text: string): string {
  return /^[^\s#-][^\n]*:[ \t]*(?:#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*( +)[^\s#-]/m.exec(text)?.[1] ?? "  ";
}

function newline(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** A value on one line, for block and flow mappings alike. */
function inline(value: YamlValue): string {
  if (typeof value !== "string") return JSON.stringify(value).replaceAll('","', '", "');
  const isPlain = /^[A-Za-z0-9][\w./@-]*$/.test(value) && stringify(value).trimEnd() === value;
  return isPlain ? value : JSON.stringify(value);
}

/** For what no splice fits: the library prints the whole document anew, which keeps comments and order. */
function rewritten(text: string, path: Path, value: YamlValue): string | undefined {
  const document = parse(text);
  const parents = path.slice(0, -1).map((_, index) => path.slice(0, index + 1));
  try {
    // The library puts nothing below a `null`.
    for (const parent of parents) if (isNothing(document.getIn(parent, true))) document.deleteIn(parent);
    document.setIn(path, document.createNode(value));
  } catch {
    // There is no mapping to put it into, only an alias of one; the caller says so.
    return undefined;
  }
  return document.toString({ lineWidth: 0, indent: step(text).length });
}
