import { dirname } from "node:path";
import { UserError } from "../core/errors.ts";
import { isList, isObject, isRawNumber, parseJson } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { fileSignature, makePrivateFolder, readTextIfThere, writeAtomic } from "../lib/file.ts";
import { takeLock } from "../lib/lock.ts";
import type { Store } from "../store/store.ts";
import type { Home } from "./home.ts";
import { readYaml, schemaProblems } from "./problems.ts";
import { buildRoute, type Route, type RouteContext } from "./route.ts";
import { type RouteConfig, subscriptionSchema } from "./schema.ts";

/** Subscriptions as they stand in their place, digits and all: name to route with its secret. */
export type Entries = JsonObject;

/** What the text of the subscriptions gives: the routes that can be used, and why the others cannot. */
export interface Subscribed {
  readonly routes: ReadonlyMap<string, Route>;
  readonly errors: readonly string[];
}

/**
 * Turns the text of the subscriptions into routes. One bad entry does not harm the others.
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

/** Where the subscriptions of a home are kept: a file of the home, or the database that several gateways share. */
export interface SubscriptionsPlace {
  /** For people, for example `The subscriptions file "…"`. */
  readonly name: string;
  /** True when others may be far away: a look costs a round trip, and may fail while the text is good. */
  readonly isShared: boolean;
  /** The whole text, empty when there is none yet, and a version that is no newer than it. */
  read(): Promise<{ readonly text: string; readonly version: string }>;
  /** A text that changes whenever the subscriptions do. */
  version(): Promise<string>;
  /**
   * Reads, lets `change` make the new entries, writes; none of several that do so at the same time loses another's change.
   * `change` may be called more than once.
   */
  change(change: (entries: Entries) => Entries): Promise<void>;
}

/** The subscriptions in a file; changes are made under a lock that other commands wait for. */
export function filePlace(path: string): SubscriptionsPlace {
  const name = `The subscriptions file "${path}"`;
  return {
    name,
    isShared: false,
    version: () => fileSignature(path),
    async read() {
      // Looked at first: what is written in between is then seen as a change.
      const version = await fileSignature(path);
      return { version, text: (await readTextIfThere(path)) ?? "" };
    },
    async change(change) {
      await makePrivateFolder(dirname(path));
      const lock = takeLock(`${path}.lock`, 10_000);
      if (!lock) throw new UserError(`"${path}" is being changed by another command; try again`);
      try {
        const entries = change(entriesOf((await readTextIfThere(path)) ?? "", name));
        await writeAtomic(path, textOf(entries));
      } finally {
        lock.release();
      }
    },
  };
}

/** What of a store the subscriptions need. */
export type DocumentStore = Pick<Store, "readDocument" | "writeDocument" | "announce">;

const documentName = "subscriptions";
/** Each time one of those who change it at once gets through, so this many must have been before us. */
const mostTries = 200;

/** The subscriptions in a database: one document, and whoever changes it tells the gateways. */
export function storePlace(store: DocumentStore): SubscriptionsPlace {
  const name = "The list of subscriptions in the database";
  const read = async () => (await store.readDocument({ name: documentName })) ?? { version: 0, text: "" };
  return {
    name,
    isShared: true,
    version: async () => String((await read()).version),
    async read() {
      const { version, text } = await read();
      return { version: String(version), text };
    },
    async change(change) {
      for (let tries = 0; tries < mostTries; tries += 1) {
        const { version, text } = await read();
        const changed = textOf(change(entriesOf(text, name)));
        if (await store.writeDocument({ name: documentName, seen: version, text: changed })) {
          store.announce("subscriptions");
          return;
        }
      }
      throw new UserError(`${name} is changed by others again and again; try again`);
    },
  };
}

/**
 * The entries in a place; none when there is nothing yet.
 * @throws UserError when it is damaged.
 */
export async function readEntries(place: SubscriptionsPlace): Promise<Entries> {
  return entriesOf((await place.read()).text, place.name);
}

function entriesOf(text: string, place: string): Entries {
  try {
    return parseEntries(text);
  } catch (cause) {
    throw new UserError(`${place} is damaged (${(cause as Error).message}); mend it or restore a copy`, { cause });
  }
}

function textOf(entries: Entries): string {
  return `${JSON.stringify(entries, null, 2)}\n`;
}

/** What to tell someone who named a subscription that is not there. */
export function unknownSubscription(name: string, names: readonly string[]): UserError {
  const known = names.length > 0 ? `there are: ${names.join(", ")}` : "there are none yet";
  return new UserError(`There is no subscription "${name}"; ${known}`);
}
