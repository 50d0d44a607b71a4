import { z } from "zod";
import * as agents from "../agent/registry.ts";
import * as tools from "../agent/tools/registry.ts";
import * as sandboxes from "../sandbox/registry.ts";
import { operators } from "../select/operators.ts";
import * as targets from "../target/registry.ts";
import type { AddressField, Setting, Target } from "../target/target.ts";
import { addressKeys } from "./outlets.ts";
import { configSchema } from "./schema.ts";

/** The part of JSON Schema 2020-12 that is used here. `x-env` names the environment variables that win over a key. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly title?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly propertyNames?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly required?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly "x-env"?: readonly string[];
}

type Schemas = Readonly<Record<string, JsonSchema>>;

const all: readonly Target[] = Object.values(targets);

/**
 * The JSON Schema of `config.yaml` for editors. It is stricter than the program in two ways: it does not know numbers in
 * quotes, and mistakes in sections that are switched off.
 */
export function configJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(configSchema, { io: "input" }) as JsonSchema;
  const { platforms, ...sections } = schema.properties ?? {};
  const properties = { ...platforms?.properties, ...platformSections() };
  return tidy({
    ...schema,
    properties: { platforms: { ...platforms, properties, additionalProperties: false }, ...sections },
    $defs: {
      ...schema.$defs,
      ...registryDefinitions(),
      ...platformDefinitions(),
      targetRetry: targetRetry(schema.$defs?.routeRetry),
    },
  });
}

/** Definitions whose content the registries know; `schema.ts` refers to them by their ids. */
function registryDefinitions(): Schemas {
  const names = all.flatMap(namesOf);
  return {
    agentBackend: { title: "name", enum: Object.keys(agents) },
    terminalBackend: { title: "name", enum: Object.keys(sandboxes) },
    tool: { title: "name", enum: Object.keys(tools) },
    destination: { anyOf: [{ title: "target", type: "string", enum: names }, ...all.map((one) => deliveryTo(one))] },
    delivery: {
      anyOf: [{ title: "target", type: "string", enum: names }, ...all.map((one) => deliveryTo(one, { fallback }))],
    },
    deliverExtra: { title: "mapping", ...strict(addressProperties(all)) },
    ...filterDefinitions(),
  };
}

function namesOf({ name, neutralName }: Target): string[] {
  return neutralName === undefined ? [name] : [name, neutralName];
}

const fallback: JsonSchema = {
  $ref: "#/$defs/fallback",
  description: "Where a message goes that is given up: to the first of these, to the next when that gives it up too",
};

/** `{to: name, …}` in a list of targets. */
function deliveryTo(target: Target, others: Schemas = {}): JsonSchema {
  // Last: a target may have a key "to" in its address, which only deliver_extra can hold.
  const to = { type: "string", enum: namesOf(target), description: "The target" };
  return { title: target.name, ...strict({ ...addressProperties([target]), ...others, to }), required: ["to"] };
}

function strict(properties: Schemas): JsonSchema {
  return { type: "object", properties, additionalProperties: false };
}

/** The keys of `deliver_extra` that one of these targets knows. */
function addressProperties(some: readonly Target[]): Schemas {
  const keys = [...new Set(some.flatMap(addressKeys))];
  const entries = keys.map((key) => {
    const meanings = some.flatMap((target) => {
      const field = fieldOf(target, key);
      return field ? [`${target.name}: ${field.help}`] : [];
    });
    return [key, { type: ["string", "number", "boolean"], description: meanings.join("; ") }];
  });
  return Object.fromEntries(entries);
}

function fieldOf({ address }: Target, key: string): AddressField | undefined {
  return Object.entries(address).find(([name, field]) => name === key || field.alternatives?.includes(key))?.[1];
}

function platformDefinitions(): Schemas {
  return Object.fromEntries(all.map((target) => [definitionOf(target), platformSection(target)]));
}

/** Each section by its real and by its neutral name. */
function platformSections(): Schemas {
  const entries = all.flatMap((target) => {
    const section = { title: target.name, $ref: `#/$defs/${definitionOf(target)}` };
    return namesOf(target).map((name) => [name, { ...section, description: `Settings of the target ${target.name}` }]);
  });
  return Object.fromEntries(entries);
}

function definitionOf({ name }: Target): string {
  return `platform_${name}`;
}

function platformSection({ settings, isPlatform }: Target): JsonSchema {
  const keys = Object.fromEntries(
    Object.entries(settings).flatMap(([name, setting]) =>
      [name, ...(setting.alternatives ?? [])].map((key) => [key, settingSchema(name, setting)]),
    ),
  );
  const need = isPlatform ? "Must be true where there is a section" : "Has no effect: the target is always there";
  const enabled = { $ref: "#/$defs/flag", description: need };
  const retry = { $ref: "#/$defs/targetRetry", description: "Rules of retry for this target, over the global ones" };
  const extra = { title: "mapping", ...strict(keys), description: "Any of the keys beside it but enabled and retry" };
  const hasKeys = Object.keys(keys).length > 0;
  return { ...strict({ enabled, ...keys, retry, ...(hasKeys ? { extra } : {}) }), type: ["object", "null"] };
}

/** A target says the same of retries as a route, but for the runs, which are not its own. */
function targetRetry(routeRetry: JsonSchema = {}): JsonSchema {
  const { run_tries: _, ...keys } = routeRetry.properties ?? {};
  return { title: "mapping", ...strict(keys) };
}

const kinds: Readonly<Record<Setting["kind"], JsonSchema>> = {
  string: { title: "text", type: ["string", "null"] },
  secret: { title: "secret", type: ["string", "null"] },
  integer: { title: "whole number", type: ["integer", "string", "null"], pattern: "^\\s*-?\\d{1,15}\\s*$" },
  boolean: { $ref: "#/$defs/flag" },
  url: { title: "address", type: ["string", "null"], pattern: "^\\s*[hH][tT][tT][pP][sS]?://" },
  secret_url: { title: "secret address", type: ["string", "null"], pattern: "^\\s*[hH][tT][tT][pP][sS]?://" },
  choice: { title: "choice", type: ["string", "null"] },
  list: { title: "list of texts", type: ["array", "string", "null"], items: { type: "string", minLength: 1 } },
};

const id: JsonSchema = { type: ["string", "integer"] };

/** Text, a whole number, or a mapping that can name a topic too. */
const homeChannel: JsonSchema = {
  title: "text, number or mapping",
  anyOf: [
    { type: ["string", "integer", "null"] },
    strict({
      chat_id: { ...id, description: "The chat" },
      thread_id: { ...id, description: "A topic in it" },
      name: { type: "string", description: "What it is, for people" },
      platform: { type: "string", description: "Has no effect: the section says it" },
    }),
  ],
};

function settingSchema(name: string, setting: Setting): JsonSchema {
  const { kind, choices, pattern, help, env, required, default: preset } = setting;
  return {
    ...(name === "home_channel" ? homeChannel : kinds[kind]),
    // Blank text counts as not set.
    ...(pattern === undefined || pattern.flags.includes("i") ? {} : { pattern: `^(?:\\s*|${pattern.source})$` }),
    ...(choices === undefined ? {} : { enum: [...choices, null] }),
    description: required ? `${help} (needed)` : help,
    ...(preset === undefined ? {} : { default: preset }),
    ...(env === undefined ? {} : { "x-env": env }),
  };
}

const scalar: JsonSchema = { type: ["string", "number", "boolean", "null"] };

/** What stands behind each operator of a filter. */
const operands: Schemas = {
  exists: { type: "boolean", description: "The field is there (true) or not (false)" },
  missing: { const: true, description: "The field is not there" },
  equals: { ...scalar, description: "The field is this, in type and value" },
  not_equals: { ...scalar, description: "The field is something else, or not there" },
  contains: { ...scalar, description: "Part of a text, item of a list, or key of a mapping" },
  in: { type: "array", items: scalar, description: "The field is one of these" },
  in_file: { type: "string", description: "The field is one of those in a file of the home" },
  regex: { type: "string", description: "The pattern (RE2 syntax) is found in the field" },
};

function filterDefinitions(): Schemas {
  const filters: JsonSchema = { type: "array", items: { $ref: "#/$defs/filter" } };
  const group: JsonSchema = { ...filters, minItems: 1 };
  const field = { type: "string", minLength: 1, description: "Path in the payload, event, or headers.NAME" };
  const leaf = (name: string) => ({
    ...strict({ field, [name]: operands[name] ?? {} }),
    required: ["field", name],
  });
  const only = (name: string, inside: JsonSchema, description: string) => ({
    ...strict({ [name]: { ...inside, description } }),
    required: [name],
  });
  return {
    filters: { title: "list of filters", anyOf: [filters, { type: "null" }] },
    filter: {
      title: "filter",
      anyOf: [
        ...Object.keys(operators).map(leaf),
        only("all", group, "Each of these holds"),
        only("any", group, "At least one of these holds"),
        only("not", { anyOf: [{ $ref: "#/$defs/filter" }, group] }, "This does not hold, or not all of these"),
      ],
    },
  };
}

/**
 * `x-default` becomes `default` (see `schema.ts`). Sections that may be left out have an empty default, which says nothing to
 * a reader.
 */
function tidy<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(tidy) as Value;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value)
    .filter(([key, item]) => key !== "default" || JSON.stringify(item) !== "{}")
    .map(([key, item]) => [key === "x-default" ? "default" : key, tidy(item)]);
  return Object.fromEntries(entries) as Value;
}
