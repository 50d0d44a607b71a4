import { isList, isObject, jsonHead } from "../core/json.ts";
import { absent, valueAtKeys } from "../core/path.ts";
import type { Event, Json } from "../core/types.ts";

/** What tokens are looked up in: an event, or the part of one whose payload a script replaced. */
export type Scope = Pick<Event, "payload" | "type">;

/** A rendered `deliver_extra`. */
export interface RenderedMap {
  readonly [key: string]: string | RenderedMap;
}

/** Longest text of a list or object in a template, and of a whole payload, in UTF-16 code units (specification section 2.5). */
const longestNested = 2000;
const longestPayload = 4000;

interface Token {
  /** With its braces, as it stays when the payload lacks the path. */
  readonly literal: string;
  readonly keys: readonly string[];
}

/** A dotted path of letters, digits and `_ @ $ : . -` between braces. All else is text. */
const tokens = /\{([\p{L}\p{M}\p{N}_@$:.-]+)\}/gu;

/** Splits a template into texts and tokens, in one pass over it. */
function split(template: string): (string | Token)[] {
  const parts: (string | Token)[] = [];
  let end = 0;
  for (const { index, 0: literal, 1: path = "" } of template.matchAll(tokens)) {
    parts.push(template.slice(end, index), { literal, keys: path.split(".") });
    end = index + literal.length;
  }
  return [...parts, template.slice(end)];
}

/**
 * Compiles a template (specification section 2.5, contract section 5): `{a.b.c}` is a value of the payload, `{__raw__}` all of
 * it. What is put in is never looked at again, so a stranger's braces stay braces. A path that is not there stays as it is.
 */
export function compileTemplate(template: string): (scope: Scope) => string {
  const parts = split(template);
  return (scope) => {
    let text = "";
    for (const part of parts) text += typeof part === "string" ? part : (resolve(part, scope) ?? part.literal);
    return text;
  };
}

/** Renders a template that is used once. */
export function render(template: string, scope: Scope): string {
  return compileTemplate(template)(scope);
}

/**
 * Renders the texts of a `deliver_extra`, also in maps inside it. Other values become their text, lists their JSON; a value
 * that is nothing (`key:` in YAML) is left out.
 */
export function renderMap(map: Readonly<Record<string, unknown>>, scope: Scope): RenderedMap {
  const entries = Object.entries(map).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries.map(([key, value]) => [key, renderValue(value, scope)]));
}

function renderValue(value: unknown, scope: Scope): string | RenderedMap {
  if (typeof value === "string") return render(value, scope);
  if (Array.isArray(value)) return JSON.stringify(value.map((item) => renderValue(item, scope)));
  if (isObject(value)) return renderMap(value, scope);
  return String(value);
}

/** The whole payload as indented JSON, truncated to 4000 UTF-16 code units. */
export function wholePayload({ payload }: Pick<Scope, "payload">): string {
  return jsonHead(payload, { indent: 2, max: longestPayload });
}

function resolve({ literal, keys }: Token, scope: Scope): string | undefined {
  if (literal === "{__raw__}") return wholePayload(scope);
  const value = valueAtKeys(scope.payload, keys);
  if (value !== absent) return textOf(value);
  return literal === "{event_type}" ? scope.type : undefined;
}

function textOf(value: Json): string {
  if (typeof value === "string") return value;
  return isList(value) || isObject(value) ? jsonHead(value, { max: longestNested }) : JSON.stringify(value);
}
