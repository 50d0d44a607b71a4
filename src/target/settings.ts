import { isObject } from "../core/json.ts";
import { suggestion } from "../core/nearest.ts";
import type { Environment } from "../core/types.ts";
import { homeThread, isThread, type KeyProblem, lowerFirst, matches } from "./address.ts";
import { quote } from "./failure.ts";
import type { AddressField, Setting, SettingValue, SettingValues, Target } from "./target.ts";
import { found, parseValue } from "./value.ts";

export type ReadSettings = { readonly values: SettingValues } | { readonly problems: readonly KeyProblem[] };

/** A target's section of the configuration file: `platforms.<name>`. */
type Section = Readonly<Record<string, unknown>>;

/** Keys of a section that are not the target's own: `enabled` belongs to whoever loads the configuration. */
const commonKeys = ["enabled", "extra"];

/**
 * Joins a target's settings: environment before file before default. In the file a key stands in the section itself or
 * under `extra` (the section wins). `home_channel` is text, a whole number, or a mapping of `chat_id`, `thread_id` and
 * `name`; the topic then is in the values as `home_thread_id`. Empty text counts as not set. Finds every problem.
 */
export function readSettings(target: Target, section: Section | undefined, env: Environment): ReadSettings {
  const problems: KeyProblem[] = [];
  const values: Record<string, SettingValue> = {};
  const given: string[] = [];
  const extra = extraOf(section ?? {}, problems);
  reportUnknown(target, section ?? {}, extra, problems);
  for (const [name, setting] of Object.entries(target.settings)) {
    const source = sourceOf(name, setting, section ?? {}, extra, env);
    if (source !== undefined) given.push(name);
    if (source === undefined) {
      if (setting.default !== undefined) values[name] = setting.default;
      if (setting.required) problems.push({ key: name, message: `Missing; ${whereToSet(setting)}` });
    } else if (name === "home_channel") readHome(target, withThread(source, env), values, problems);
    else readOne(name, setting, source, values, problems);
  }
  const way = missingWay(target, [...given, ...Object.keys(values)]);
  if (way !== undefined) problems.push(way);
  return problems.length > 0 ? { problems } : { values };
}

/** The first key of the first way in, when no way was set as a whole, be it with mistakes that are told of themselves. */
function missingWay({ ways = [], settings }: Target, set: readonly string[]): KeyProblem | undefined {
  if (ways.length === 0 || ways.some((way) => way.every((name) => set.includes(name)))) return undefined;
  // Somebody who set a part of one way wants that one.
  const begun = ways.filter((way) => way.some((name) => set.includes(name)));
  const wanted = (begun.length > 0 ? begun : ways).map((way) => way.filter((name) => !set.includes(name)));
  const [key = ""] = wanted[0] ?? [];
  const how = wanted.map((names) => names.map((name) => withVariables(name, settings[name])).join(" and "));
  return { key, message: `Missing; set ${how.join(", or ")}` };
}

function withVariables(name: string, setting: Setting | undefined): string {
  const variables = setting?.env?.join(" or ");
  return variables === undefined ? `"${name}"` : `"${name}" (or ${variables} in the environment)`;
}

/** Where a value came from: `key` for the person who must mend it. */
interface Source {
  readonly key: string;
  readonly raw: unknown;
  readonly variable?: string;
}

function sourceOf(
  name: string,
  setting: Setting,
  section: Section,
  extra: Section,
  env: Environment,
): Source | undefined {
  const variable = setting.env?.find((candidate) => isSet(env[candidate]));
  if (variable !== undefined) return { key: name, raw: env[variable], variable };
  for (const key of [name, ...(setting.alternatives ?? [])]) {
    const direct = own(section, key);
    if (isSet(direct)) return { key, raw: direct };
    const inner = own(extra, key);
    if (isSet(inner)) return { key: `extra.${key}`, raw: inner };
  }
  return undefined;
}

function isSet(raw: unknown): boolean {
  return raw !== undefined && raw !== null && !(typeof raw === "string" && raw.trim() === "");
}

function own(map: Section, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

function whereToSet(setting: Setting): string {
  const variables = setting.env?.map((variable) => `"${variable}"`).join(" or ");
  return variables === undefined ? "set it here" : `set it here or in the environment variable ${variables}`;
}

function readOne(
  name: string,
  setting: Setting,
  source: Source,
  values: Record<string, SettingValue>,
  problems: KeyProblem[],
): void {
  const parsed = parseValue(setting, source.raw);
  if ("value" in parsed) {
    values[name] = parsed.value;
    return;
  }
  const shown = setting.kind === "secret" && typeof source.raw === "string" ? "other text" : parsed.found;
  problems.push(problem(source, `Expected ${parsed.expected}, found ${shown}`));
}

function problem(source: Source, message: string, key = source.key): KeyProblem {
  return { key, message: source.variable ? `${message} in the environment variable "${source.variable}"` : message };
}

function extraOf(section: Section, problems: KeyProblem[]): Section {
  const extra = own(section, "extra");
  if (extra === undefined || extra === null) return {};
  if (isObject(extra)) return extra;
  problems.push({ key: "extra", message: `Expected a mapping, found ${found(extra)}` });
  return {};
}

function reportUnknown(target: Target, section: Section, extra: Section, problems: KeyProblem[]): void {
  const names = Object.entries(target.settings).flatMap(([name, { alternatives = [] }]) => [name, ...alternatives]);
  const unknown = [
    ...Object.keys(section).filter((key) => !names.includes(key) && !commonKeys.includes(key)),
    ...Object.keys(extra)
      .filter((key) => !names.includes(key))
      .map((key) => `extra.${key}`),
  ];
  for (const key of unknown) {
    const written = key.replace(/^extra\./, "");
    const valid = key === written ? [...names, ...commonKeys] : names;
    problems.push({ key, message: `Not a setting of "${target.name}"; ${suggestion(written, valid)}` });
  }
}

/** A home channel of the environment may name its topic beside it: `TELEGRAM_HOME_CHANNEL_THREAD_ID`. */
function withThread(source: Source, env: Environment): Source {
  const thread = source.variable === undefined ? undefined : env[`${source.variable}_THREAD_ID`];
  return isSet(thread) ? { ...source, raw: { chat_id: source.raw, thread_id: thread } } : source;
}

function readHome(target: Target, source: Source, values: Record<string, SettingValue>, problems: KeyProblem[]): void {
  const whole = isObject(source.raw) ? (source.raw as Section) : { chat_id: source.raw };
  const within = whole === source.raw ? ".chat_id" : "";
  // `platform` says again what the section says: others write it there.
  const keys = ["chat_id", "thread_id", "name", "platform"];
  for (const key of Object.keys(whole).filter((key) => !keys.includes(key))) {
    problems.push({ key: `${source.key}.${key}`, message: `Not a key of a home channel; ${suggestion(key, keys)}` });
  }
  const chat = homeFields(target).chat;
  values.home_channel = homePart(source, `${source.key}${within}`, own(whole, "chat_id"), chat, problems);
  const thread = own(whole, "thread_id");
  if (!isSet(thread)) return;
  values[homeThread] = homePart(source, `${source.key}.thread_id`, thread, homeFields(target).thread, problems);
}

/** Digits are kept as they are: a chat's id may have more of them than a number holds. */
function homePart(
  source: Source,
  key: string,
  raw: unknown,
  field: AddressField | undefined,
  problems: KeyProblem[],
): string | undefined {
  const isWhole = typeof raw === "bigint" || Number.isSafeInteger(raw);
  const text = typeof raw === "string" ? raw.trim() : isWhole ? String(raw) : undefined;
  if (text === undefined) {
    problems.push(problem(source, `Expected text or a whole number, found ${found(raw)}; put it in quotes`, key));
  } else if (field !== undefined && !matches(field, text)) {
    problems.push(problem(source, `Expected ${lowerFirst(field.help)}, found ${quote(text, 100)}`, key));
  }
  return text;
}

/** The address fields that a home channel fills. */
function homeFields(target: Target): { chat: AddressField | undefined; thread: AddressField | undefined } {
  const fields = Object.entries(target.address);
  return {
    chat: fields.find(([, field]) => field.homeChannel)?.[1],
    thread: fields.find(([name, field]) => isThread(name, field))?.[1],
  };
}
