import { isObject } from "../core/json.ts";
import { suggestion } from "../core/nearest.ts";
import type { Environment } from "../core/types.ts";
import { permanent, quote } from "./failure.ts";
import type { Address, AddressField, Setting, SettingValues, Target } from "./target.ts";
import { found, parseValue } from "./value.ts";

/**
 * One mistake in a target's settings or address. `key` is relative to the section (`token`, `extra.base_url`,
 * `home_channel.chat_id`) or to `deliver_extra`; whoever loads the file puts the path before it.
 */
export interface KeyProblem {
  readonly key: string;
  readonly message: string;
}

export type ReadSettings = { readonly values: SettingValues } | { readonly problems: readonly KeyProblem[] };

/** A target's section of the configuration file: `platforms.<name>`. */
type Section = Readonly<Record<string, unknown>>;

/** Keys of a section that are not the target's own: `enabled` belongs to whoever loads the configuration. */
const commonKeys = ["enabled", "extra"];
/** The forum topic of the home channel, kept beside it in the values; `readAddress` puts it into the address. */
const homeThread = "home_thread_id";

/**
 * Joins a target's settings: environment before file before default. In the file a key stands in the section itself or
 * under `extra` (the section wins). `home_channel` is text, a whole number, or a mapping of `chat_id`, `thread_id` and
 * `name`; the topic then is in the values as `home_thread_id`. Empty text counts as not set. Finds every problem.
 */
export function readSettings(target: Target, section: Section | undefined, env: Environment): ReadSettings {
  const problems: KeyProblem[] = [];
  const values: Record<string, string | number | boolean | undefined> = {};
  const extra = extraOf(section ?? {}, problems);
  reportUnknown(target, section ?? {}, extra, problems);
  for (const [name, setting] of Object.entries(target.settings)) {
    const source = sourceOf(name, setting, section ?? {}, extra, env);
    if (source === undefined) {
      if (setting.default !== undefined) values[name] = setting.default;
      if (setting.required) problems.push({ key: name, message: `Missing; ${whereToSet(setting)}` });
    } else if (name === "home_channel") readHome(target, source, values, problems);
    else readOne(name, setting, source, values, problems);
  }
  return problems.length > 0 ? { problems } : { values };
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
  const direct = own(section, name);
  if (isSet(direct)) return { key: name, raw: direct };
  const inner = own(extra, name);
  return isSet(inner) ? { key: `extra.${name}`, raw: inner } : undefined;
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
  values: Record<string, string | number | boolean | undefined>,
  problems: KeyProblem[],
): void {
  const parsed = parseValue(setting.kind, source.raw);
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
  const names = Object.keys(target.settings);
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

function readHome(
  target: Target,
  source: Source,
  values: Record<string, string | number | boolean | undefined>,
  problems: KeyProblem[],
): void {
  const whole = isObject(source.raw) ? (source.raw as Section) : { chat_id: source.raw };
  const within = whole === source.raw ? ".chat_id" : "";
  const keys = ["chat_id", "thread_id", "name"];
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

function isThread(name: string, field: AddressField): boolean {
  return name === "thread_id" || (field.alternatives?.includes("thread_id") ?? false);
}

function lowerFirst(help: string): string {
  return help.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
}

/**
 * The address that a rendered `deliver_extra` stands for: alternatives folded into their names, the home channel (with
 * its topic) where the route names none, every value checked as a whole. Blank values count as not given, other keys are
 * left alone.
 * @throws DeliveryError that names the field: not sent, and never to be tried again.
 */
export function readAddress(target: Target, extra: Readonly<Record<string, string>>, values: SettingValues): Address {
  const address: Record<string, string> = {};
  const fields = Object.entries(target.address);
  const goesHome = fields.some(([name, field]) => field.homeChannel && given(name, field, extra) === undefined);
  for (const [name, field] of fields) {
    const text = given(name, field, extra) ?? (goesHome ? fromHome(name, field, values) : undefined);
    if (text !== undefined) address[name] = checked(target, name, field, text);
    else if (field.required || field.homeChannel)
      throw permanent(`Cannot send to "${target.name}": "${name}" is missing; ${howToGive(field)}`);
  }
  return address;
}

/** What the route says for a field, by its name or by an alternative. */
function given(name: string, field: AddressField, extra: Readonly<Record<string, string>>): string | undefined {
  const key = [name, ...(field.alternatives ?? [])].find((candidate) => isSet(own(extra, candidate)));
  return key === undefined ? undefined : extra[key];
}

function fromHome(name: string, field: AddressField, values: SettingValues): string | undefined {
  const value = field.homeChannel ? values.home_channel : isThread(name, field) ? values[homeThread] : undefined;
  return value === undefined ? undefined : String(value);
}

function checked(target: Target, name: string, field: AddressField, text: string): string {
  if (matches(field, text)) return text;
  const token = tokenIn(text);
  const why =
    token === undefined
      ? `"${name}" is ${quote(text, 100)}, which is not ${lowerFirst(field.help)}`
      : `"${name}" holds ${quote(token, 100)}, which the payload did not resolve; correct its path in "deliver_extra"`;
  throw permanent(`Cannot send to "${target.name}": ${why}`);
}

function howToGive(field: AddressField): string {
  return `set it in "deliver_extra"${field.homeChannel ? ', or set the "home_channel" of the platform' : ""}`;
}

function tokenIn(text: string): string | undefined {
  return /\{[^{}\s]+\}/.exec(text)?.[0];
}

function matches(field: AddressField, text: string): boolean {
  return new RegExp(`^(?:${field.pattern.source})$`, field.pattern.flags.replaceAll(/[gmy]/g, "")).test(text);
}

/**
 * Problems of a route's `deliver_extra` that show before any event: unknown keys, missing ones, no chat and no home
 * channel, values that can never match. A value with a `{token}` is left for `readAddress`.
 */
export function checkAddress(
  target: Target,
  extraTemplates: Readonly<Record<string, string>>,
  values: SettingValues,
): KeyProblem[] {
  const fields = Object.entries(target.address);
  const names = fields.flatMap(([name, field]) => [name, ...(field.alternatives ?? [])]);
  const problems = Object.keys(extraTemplates)
    .filter((key) => !names.includes(key))
    .map((key) => ({ key, message: `Not a key of "${target.name}"; ${suggestion(key, names)}` }));
  for (const [name, field] of fields) {
    const text = given(name, field, extraTemplates);
    if (text === undefined) {
      const fallback = field.homeChannel ? values.home_channel : undefined;
      const isNeeded = field.required || field.homeChannel;
      if (isNeeded && fallback === undefined) problems.push({ key: name, message: `Missing; ${howToGive(field)}` });
    } else if (tokenIn(text) === undefined && !matches(field, text)) {
      problems.push({ key: name, message: `Expected ${lowerFirst(field.help)}, found ${quote(text, 100)}` });
    }
  }
  return problems;
}
