import { dirname } from "node:path";
import { UserError } from "../core/errors.ts";
import { isList, isObject, isRawNumber, parseJson } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { makePrivateFolder, readTextIfThere, writeAtomic } from "../lib/file.ts";
import { takeLock } from "../lib/lock.ts";
import type { Home } from "./home.ts";
import { readYaml, schemaProblems } from "./problems.ts";
import { buildRoute, type Route, type RouteContext } from "./route.ts";
import { type RouteConfig, subscriptionSchema } from "./schema.ts";

/** Entries of `webhook_subscriptions.json` as they stand there, digits and all: name to route with its secret. */
export type Entries = JsonObject;

/** What a subscriptions file gives: the routes that can be used, and why the others cannot. */
export interface Subscribed {
  readonly routes: ReadonlyMap<string, Route>;
  readonly errors: readonly string[];
}

/**
 * Turns the text of a subscriptions file into routes. One bad entry does not harm the others.
 * @throws SyntaxError when the text as a whole is no JSON object.
 */
export function buildSubscriptions(text: string, home: Home, context: RouteContext): Subscribed {
  const routes = new Map<string, Route>();
  const errors: string[] = [];
  for (const [name, entry] of Object.entries(parseEntries(text))) {
    const built = buildSubscription(name, entry, home, context);
    if ("route" in built) routes.set(name, built.route);
    else errors.push(`The subscription "${name}" is skipped: ${built.why}`);
  }
  return { routes, errors };
}

function buildSubscription(name: string, json: Json, home: Home, context: RouteContext) {
  const entry = plainNumbers(json);
  const parsed = subscriptionSchema.safeParse(entry, { reportInput: true });
  if (!parsed.success) {
    const source = { ...readYaml(home.subscriptions, ""), value: entry };
    const problems = schemaProblems(source, parsed.error, subscriptionSchema);
    return { why: problems.map(({ key, message }) => (key === "(file)" ? message : `${key}: ${message}`)).join("; ") };
  }
  const built = buildRoute(name, parsed.data as RouteConfig, "subscription", context);
  if ("route" in built) return built;
  return {
    why: built.problems
      .map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`))
      .join("; "),
  };
}

/** Numbers as the schema reads them from YAML too: large whole ones as `bigint`. */
function plainNumbers(value: Json): unknown {
  if (isRawNumber(value)) {
    const { rawJSON } = value;
    return /^-?\d+$/.test(rawJSON) ? BigInt(rawJSON) : Number(rawJSON);
  }
  if (isList(value)) return value.map(plainNumbers);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainNumbers(item)]));
}

function parseEntries(text: string): Entries {
  if (text.trim() === "") return {};
  const value = parseSafely(text);
  if (!isObject(value)) throw new SyntaxError("it is not a JSON object of names and subscriptions");
  return value;
}

/** The parser's own message would quote what stands around the mistake, and that may be a secret. */
function parseSafely(text: string): Json {
  try {
    return parseJson(text);
  } catch (error) {
    const place = /\(line \d+ column \d+\)/.exec((error as Error).message)?.[0];
    throw new SyntaxError(`it is not JSON${place ? `, ${place.slice(1, -1)}` : ""}`);
  }
}

/** The entries on disk; none when there is no file. */
export async function readEntries(home: Home): Promise<Entries> {
  const text = (await readTextIfThere(home.subscriptions)) ?? "";
  try {
    return parseEntries(text);
  } catch (cause) {
    throw new UserError(
      `The subscriptions file "${home.subscriptions}" is damaged (${(cause as Error).message}); mend it or restore a copy`,
      { cause },
    );
  }
}

/**
 * Changes the subscriptions file: reads, lets `change` make the new entries, writes, all under a lock that other commands
 * wait for, so that none of them loses another's change.
 */
export async function changeEntries(home: Home, change: (entries: Entries) => Entries): Promise<void> {
  await makePrivateFolder(dirname(home.subscriptions));
  const lock = takeLock(`${home.subscriptions}.lock`, 10_000);
  if (!lock) throw new UserError(`"${home.subscriptions}" is being changed by another command; try again`);
  try {
    const entries = change(await readEntries(home));
    await writeAtomic(home.subscriptions, `${JSON.stringify(entries, null, 2)}\n`);
  } finally {
    lock.release();
  }
}

/** What to tell someone who named a subscription that is not there. */
export function unknownSubscription(name: string, names: readonly string[]): UserError {
  const known = names.length > 0 ? `there are: ${names.join(", ")}` : "there are none yet";
  return new UserError(`There is no subscription "${name}"; ${known}`);
}
