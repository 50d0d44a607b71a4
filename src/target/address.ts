import { suggestion } from "../core/nearest.ts";
import { permanent, quote } from "./failure.ts";
import type { Address, AddressField, SettingValues, Target } from "./target.ts";

/**
 * One mistake in a target's settings or address. `key` is relative to the section (`token`, `extra.base_url`,
 * `home_channel.chat_id`) or to `deliver_extra`; whoever loads the file puts the path before it.
 */
export interface KeyProblem {
  readonly key: string;
  readonly message: string;
}

/** The forum topic of the home channel, kept beside it in the values; `readAddress` puts it into the address. */
export const homeThread = "home_thread_id";

/** Whether an address field names a thread, a topic or a forum post. */
export function isThread(name: string, field: AddressField): boolean {
  return name === "thread_id" || (field.alternatives?.includes("thread_id") ?? false);
}

/** A help text as a part of a sentence. */
export function lowerFirst(help: string): string {
  return help.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
}

/**
 * The address that a rendered `deliver_extra` stands for: alternatives folded into their names, the home channel (with
 * its topic) where the route names none, every value checked as a whole. Blank values count as not given, and so do null and
 * what did not resolve, where the field may be left out. Other keys are left alone.
 * @throws DeliveryError that names the field: not sent, and never to be tried again.
 */
export function readAddress(target: Target, extra: Readonly<Record<string, string>>, values: SettingValues): Address {
  const address: Record<string, string> = {};
  const texts = placed(target, extra, values);
  for (const [name, field] of Object.entries(target.address)) {
    const text = texts[name];
    if (text !== undefined && !isMissing(text, field)) address[name] = checked(target, name, field, text);
    else if (isNeeded(field, values))
      throw permanent(`Cannot send to "${target.name}": "${name}" is missing; ${howToGive(field)}`);
  }
  return address;
}

/** The address before anything of it is checked, which may be made of templates. */
export function placed(target: Target, extra: Readonly<Record<string, string>>, values: SettingValues): Address {
  const fields = Object.entries(target.address);
  const goesHome = fields.some(([name, field]) => field.homeChannel && given(name, field, extra) === undefined);
  const texts = fields.map(([name, field]) => {
    return [name, given(name, field, extra) ?? (goesHome ? fromHome(name, field, values) : undefined)] as const;
  });
  return Object.fromEntries(texts);
}

/** Whether a message cannot go anywhere without the field. */
function isNeeded(field: AddressField, values: SettingValues): boolean {
  if (field.unlessSet !== undefined && values[field.unlessSet] !== undefined) return false;
  return field.required === true || field.homeChannel === true;
}

/**
 * A place for a template that the payload had nothing for, in a field that may be left out: a message without its thread is
 * better than none.
 */
function isMissing(text: string, field: AddressField): boolean {
  if (field.required || field.homeChannel || matches(field, text)) return false;
  return text.trim() === "null" || tokenIn(text) === text.trim();
}

/** What the route says for a field, by its name or by an alternative. */
function given(name: string, field: AddressField, extra: Readonly<Record<string, string>>): string | undefined {
  const isGiven = (key: string) => Object.hasOwn(extra, key) && extra[key]?.trim() !== "";
  const key = [name, ...(field.alternatives ?? [])].find(isGiven);
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

/** Whether a value is of a field's form, as a whole. */
export function matches(field: Pick<AddressField, "pattern">, text: string): boolean {
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
      if (isNeeded(field, values) && fallback === undefined)
        problems.push({ key: name, message: `Missing; ${howToGive(field)}` });
    } else if (tokenIn(text) === undefined && !matches(field, text)) {
      problems.push({ key: name, message: `Expected ${lowerFirst(field.help)}, found ${quote(text, 100)}` });
    }
  }
  return problems;
}
