import { existsSync, readFileSync } from "node:fs";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

/** A request as a server heard it. */
export interface HeardRequest {
  readonly method: string;
  readonly url: URL;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

/** An OpenAPI description that requests can be compared with. */
export interface ApiSchema {
  readonly name: string;
  /** What is wrong with a request: method, path, parameters, headers, body. Nothing when it fits. */
  problems(request: HeardRequest): string[];
}

type Node = Readonly<Record<string, unknown>>;

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly schema: Node;
  readonly isValid: ValidateFunction;
}

interface Operation {
  readonly method: string;
  readonly pattern: RegExp;
  readonly placeholders: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly isBodyNeeded: boolean;
  /** By media type. */
  readonly bodies: ReadonlyMap<string, ValidateFunction>;
}

const own = new URL("../vectors/apis/", import.meta.url);
/** The services' own descriptions are not the project's to give away; where they lie beside it they are used too. */
const official = new URL("../../../shared/apis/", import.meta.url);

/** A description of the project's own, from `test/vectors/apis`. */
export function ownSchema(name: string): ApiSchema {
  return compileSchema(name, new URL(`${name}.openapi.json`, own));
}

/** The description that the service itself publishes: in a list, which is empty where there is no copy beside the project. */
export function officialSchema(name: string): ApiSchema[] {
  const file = new URL(`${name}.openapi.json`, official);
  return existsSync(file) ? [compileSchema(`official ${name}`, file)] : [];
}

function compileSchema(name: string, file: URL): ApiSchema {
  const spec = modern(JSON.parse(readFileSync(file, "utf8"))) as Node;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  addFormats.default(ajv);
  ajv.addSchema(spec, "spec");
  const operations = Object.entries(spec.paths as Node).flatMap(([path, item]) => operationsOf(spec, ajv, path, item));
  const base = basePath(spec);
  return { name, problems: (request) => compare(operations, base, request).map((problem) => `${name}: ${problem}`) };
}

function basePath(spec: Node): string {
  const [server] = (spec.servers as Node[] | undefined) ?? [];
  const url = String(server?.url ?? "/").replaceAll(/\{[^}]+\}/g, "x");
  return new URL(url, "http://x").pathname.replace(/\/$/, "");
}

const methods = new Set(["get", "post", "put", "patch", "delete"]);

function operationsOf(spec: Node, ajv: Ajv2020, path: string, item: unknown): Operation[] {
  const shared = ((item as Node).parameters as Node[] | undefined) ?? [];
  return Object.entries(item as Node)
    .filter(([method]) => methods.has(method))
    .map(([method, operation]) => operationOf(spec, ajv, path, method, operation as Node, shared));
}

function operationOf(
  spec: Node,
  ajv: Ajv2020,
  path: string,
  method: string,
  operation: Node,
  shared: readonly Node[],
): Operation {
  const placeholders = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = ""]) => name);
  const source = path.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{[^}]+\}/g, "([^/]+)");
  const parameters = [...shared, ...((operation.parameters as Node[] | undefined) ?? [])].map((parameter) =>
    parameterOf(resolve(spec, parameter), ajv),
  );
  const body = resolve(spec, (operation.requestBody as Node | undefined) ?? {});
  const content = Object.entries((body.content as Node | undefined) ?? {});
  const bodies = new Map(content.map(([type, media]) => [type, ajv.compile(absolute((media as Node).schema))]));
  const isBodyNeeded = body.required === true;
  return {
    method: method.toUpperCase(),
    pattern: new RegExp(`^${source}$`),
    placeholders,
    parameters,
    isBodyNeeded,
    bodies,
  };
}

function parameterOf(parameter: Node, ajv: Ajv2020): Parameter {
  const schema = (parameter.schema as Node | undefined) ?? {};
  return {
    name: String(parameter.name),
    in: parameter.in as Parameter["in"],
    required: parameter.required === true,
    schema,
    isValid: ajv.compile(absolute(schema)),
  };
}

function resolve(spec: Node, node: Node): Node {
  if (typeof node.$ref !== "string") return node;
  const steps = node.$ref.slice(2).split("/");
  return steps.reduce<Node>((at, step) => at[step.replaceAll("~1", "/").replaceAll("~0", "~")] as Node, spec);
}

function compare(operations: readonly Operation[], base: string, request: HeardRequest): string[] {
  const { method, url } = request;
  const path = base !== "" && url.pathname.startsWith(base) ? url.pathname.slice(base.length) || "/" : url.pathname;
  const operation = operations.find((one) => one.method === method && one.pattern.test(path));
  if (!operation) return [`there is no ${method} ${path}`];
  const found = operation.pattern.exec(path)?.slice(1) ?? [];
  const inPath = new Map(operation.placeholders.map((name, index) => [name, decodeURIComponent(found[index] ?? "")]));
  const problems = operation.parameters.flatMap((parameter) => parameterProblems(parameter, inPath, request));
  return [...problems, ...bodyProblems(operation, request)];
}

function parameterProblems(parameter: Parameter, inPath: ReadonlyMap<string, string>, request: HeardRequest): string[] {
  const { name, required, schema, isValid } = parameter;
  const places = {
    path: inPath.get(name),
    query: request.url.searchParams.get(name) ?? undefined,
    header: request.headers[name.toLowerCase()],
  };
  const text = places[parameter.in];
  if (text === undefined) return required ? [`${parameter.in} ${name} is missing`] : [];
  const { type } = schema;
  const value = type === "integer" || type === "number" ? Number(text) : type === "boolean" ? text === "true" : text;
  return isValid(value) ? [] : [`${parameter.in} ${name}: ${errorsIn(isValid.errors)}`];
}

function bodyProblems({ bodies, isBodyNeeded }: Operation, { headers, body }: HeardRequest): string[] {
  if (bodies.size === 0 || (body === "" && !isBodyNeeded)) return [];
  const type = (headers["content-type"] ?? "").split(";")[0]?.trim() ?? "";
  const isValid = bodies.get(type);
  if (!isValid) return [`content-type ${type} is none of ${[...bodies.keys()].join(", ")}`];
  const value = parsed(type, body);
  if (value === undefined) return ["the body is not JSON"];
  return isValid(value) ? [] : [`body: ${errorsIn(isValid.errors)}`];
}

function parsed(type: string, body: string): unknown {
  if (type === "application/x-www-form-urlencoded") return Object.fromEntries(new URLSearchParams(body));
  if (type !== "application/json") return body;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

function errorsIn(errors: readonly ErrorObject[] | null | undefined): string {
  return (errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join("; ");
}

/** OpenAPI 3.0 in the words of JSON Schema 2020-12, which 3.1 uses. */
function modern(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(modern);
  if (typeof node !== "object" || node === null) return node;
  const entries = Object.entries(node).map(([key, value]) => [key, modern(value)] as const);
  const { nullable, ...rest } = Object.fromEntries(entries) as Record<string, unknown>;
  if (nullable === true && typeof rest.type === "string") rest.type = [rest.type, "null"];
  if (typeof rest.exclusiveMinimum === "boolean") delete rest.exclusiveMinimum;
  if (typeof rest.exclusiveMaximum === "boolean") delete rest.exclusiveMaximum;
  if (typeof rest.discriminator === "object") delete rest.discriminator;
  return rest;
}

/** References within the description, as a schema outside of it must write them. */
function absolute(node: unknown): object {
  return absoluteIn(node ?? {}) as object;
}

function absoluteIn(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(absoluteIn);
  if (typeof node !== "object" || node === null) return node;
  const entries = Object.entries(node).map(([key, value]) => {
    const isReference = key === "$ref" && typeof value === "string" && value.startsWith("#");
    return [key, isReference ? `spec${value}` : absoluteIn(value)];
  });
  return Object.fromEntries(entries);
}
