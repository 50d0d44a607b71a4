import { isObject } from "../core/json.ts";
import { suggestion } from "../core/nearest.ts";
import { checkAddress, placed } from "../target/address.ts";
import type { Target } from "../target/target.ts";
import { findTarget, type Platforms, targetNames } from "./platforms.ts";
import type { RouteConfig } from "./schema.ts";

/** A target, with the templates of its address. */
export interface Destination {
  readonly target: Target;
  readonly extra: Readonly<Record<string, string>>;
}

/** One entry of a route's `deliver`. */
export interface Outlet extends Destination {
  /** Where a message goes instead, one after the other, when it is given up. */
  readonly fallback: readonly Destination[];
}

/** Everything that messages of a route may go to. */
export function destinationsOf({ outlets }: { readonly outlets: readonly Outlet[] }): Destination[] {
  return outlets.flatMap(({ fallback, ...first }) => [first, ...fallback]);
}

/** A mistake at a path inside the route. */
export interface RouteProblem {
  readonly path: Path;
  readonly message: string;
}

type Path = readonly (string | number)[];
type Config = Pick<RouteConfig, "deliver" | "deliver_extra" | "deliver_only" | "fallback">;
type Extra = Readonly<Record<string, unknown>>;

/** What is known where a destination is read. */
interface Reading {
  readonly config: Config;
  readonly platforms: Platforms;
  readonly problems: RouteProblem[];
}

/** Where a destination stands, and what of its address stands elsewhere, under `elsewhere`. */
interface Written {
  readonly to: string;
  readonly own: Extra;
  readonly path: Path;
  readonly shared: (target: Target) => Extra;
  readonly elsewhere: Path;
}

/** Reads `deliver` with its addresses and fallbacks; what is wrong is added to `problems`. */
export function readOutlets(config: Config, platforms: Platforms, problems: RouteProblem[]): Outlet[] {
  const reading = { config, platforms, problems };
  const isOne = config.deliver.length === 1;
  // Keys that several targets share may be unknown to one of them.
  const shared = (target: Target) => (isOne ? config.deliver_extra : knownKeys(config.deliver_extra, target));
  const common = readFallback(config.fallback, ["fallback"], reading);
  const outlets = config.deliver.flatMap((delivery, index): Outlet[] => {
    const path = ["deliver", ...(isOne ? [] : [index])];
    const { to, fallback, ...own } = typeof delivery === "string" ? { to: delivery } : delivery;
    const destination = readDestination({ to, own, path, shared, elsewhere: ["deliver_extra"] }, reading);
    const instead = fallback && readFallback(fallback, [...path, "fallback"], reading);
    return destination ? [{ ...destination, fallback: instead ?? without(common, destination, platforms) }] : [];
  });
  if (!isOne && outlets.length === config.deliver.length) problems.push(...sharedByNone(config, outlets));
  return outlets;
}

/** Who gave a message up is not asked again. */
function without(common: readonly Destination[], first: Destination, platforms: Platforms): Destination[] {
  return common.filter((one) => placeOf(one, platforms) !== placeOf(first, platforms));
}

/** The same text for destinations that are the same place, by whichever key it is named, or as the home channel. */
export function placeOf({ target, extra }: Destination, platforms: Platforms): string {
  const platform = platforms.get(target.name);
  const values = platform && "values" in platform ? platform.values : {};
  return JSON.stringify([target.name, Object.entries(placed(target, extra, values)).filter(isOfPlace)]);
}

/** How a text is read does not say where it goes. */
function isOfPlace([key, text]: [string, string | undefined]): boolean {
  return key !== "format" && text !== undefined;
}

/** The address of a fallback stands beside its name: `deliver_extra` is that of `deliver`. */
function readFallback(entries: Config["fallback"], path: Path, reading: Reading): Destination[] {
  return entries.flatMap((entry, index): Destination[] => {
    const place = entries.length === 1 ? path : [...path, index];
    const { to, fallback, ...own } = typeof entry === "string" ? { to: entry } : entry;
    if (fallback !== undefined) {
      const message = "A fallback has none of its own; write them as one list, each stands in for the one before it";
      reading.problems.push({ path: [...place, "fallback"], message });
    }
    const destination = readDestination({ to, own, path: place, shared: () => ({}), elsewhere: place }, reading);
    return destination ? [destination] : [];
  });
}

type Place = (key: string) => Path;

function readDestination(written: Written, { config, platforms, problems }: Reading): Destination | undefined {
  const { to, own, path, elsewhere } = written;
  const target = findTarget(to);
  if (!target) {
    problems.push({ path, message: `Unknown target "${to}"; ${suggestion(to, targetNames)}` });
    return undefined;
  }
  const misplaced = misplacedExtra(written);
  if (misplaced !== undefined) {
    problems.push(misplaced);
    return undefined;
  }
  const place = (key: string) => (Object.hasOwn(own, key) ? [...path, key] : [...elsewhere, key]);
  const extra = asTexts({ ...written.shared(target), ...own }, place, problems);
  const seen = new Set(problems.map((problem) => problem.path.join(".")));
  const found = destinationProblems({ target, extra }, config.deliver_only, platforms, path, place);
  problems.push(...found.filter((problem) => !seen.has(problem.path.join("."))));
  return { target, extra };
}

/** `deliver_extra` beside "to": it says what was meant, and is not read. */
function misplacedExtra({ to, own: { deliver_extra: inner }, path }: Written): RouteProblem | undefined {
  if (inner === undefined) return undefined;
  const keys = isObject(inner) ? Object.keys(inner).map((key) => `, ${key}: …`) : [];
  const message = `The keys of an address stand beside "to"; write { to: ${to}${keys.join("") || ", chat_id: …"} }`;
  return { path: [...path, "deliver_extra"], message };
}

function destinationProblems(
  { target, extra }: Destination,
  isDirect: boolean,
  platforms: Platforms,
  path: Path,
  place: Place,
): RouteProblem[] {
  if (isDirect && target.name === "log") {
    const key = path.includes("fallback") ? "fallback" : "deliver";
    const message = `deliver_only needs a real target in "${key}", not "log"; name one, or remove deliver_only`;
    return [{ path, message }];
  }
  const platform = platforms.get(target.name);
  if (!platform || "unusable" in platform) {
    const why = platform?.unusable ?? "it is not set up";
    return [{ path, message: `The target "${target.name}" cannot be used: ${why}` }];
  }
  return checkAddress(target, extra, platform.values).map(({ key, message }) => ({ path: place(key), message }));
}

/** Addresses are texts; YAML may have read an id as a number. */
function asTexts(extra: Extra, place: Place, problems: RouteProblem[]): Record<string, string> {
  const texts = Object.entries(extra).flatMap(([key, value]): [string, string][] => {
    if (typeof value === "string") return [[key, value]];
    if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
      return [[key, String(value)]];
    problems.push({ path: place(key), message: "Expected text or a number" });
    return [];
  });
  return Object.fromEntries(texts);
}

function knownKeys(extra: Extra, target: Target): Extra {
  const known = addressKeys(target);
  return Object.fromEntries(Object.entries(extra).filter(([key]) => known.includes(key)));
}

/** Keys of `deliver_extra` that a target understands. */
export function addressKeys(target: Target): string[] {
  return Object.entries(target.address).flatMap(([key, field]) => [key, ...(field.alternatives ?? [])]);
}

/** Keys of `deliver_extra` that none of several targets knows. */
function sharedByNone(config: Config, outlets: readonly Outlet[]): RouteProblem[] {
  const known = [...new Set(outlets.flatMap(({ target }) => addressKeys(target)))];
  return Object.keys(config.deliver_extra)
    .filter((key) => !known.includes(key))
    .map((key) => ({
      path: ["deliver_extra", key],
      message: `Not a key of any target in "deliver"; ${suggestion(key, known)}`,
    }));
}
