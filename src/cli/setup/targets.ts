import { findTarget } from "../../config/platforms.ts";
import { suggestion } from "../../core/nearest.ts";
import * as registry from "../../target/registry.ts";
import type { Setting, SettingValue, Target } from "../../target/target.ts";
import { parseValue } from "../../target/value.ts";

/** Targets that messages can be sent to without more than their settings: those that are platforms. */
export const platforms: readonly Target[] = Object.values<Target>(registry).filter(({ isPlatform }) => isPlatform);

/** The platform of this name or neutral name. */
export function platformNamed(name: string): Target | undefined {
  const target = findTarget(name);
  return target?.isPlatform ? target : undefined;
}

/** Kinds whose value nobody but the operator may see. */
export function isSecret(setting: Setting | undefined): boolean {
  return setting?.kind === "secret" || setting?.kind === "secret_url";
}

/**
 * Settings that the wizard asks for: what a target cannot do without, what the chosen way in needs, its home channel, and
 * secrets, ports and choices that belong to no other way.
 */
export function askedSettings({ settings, ways = [] }: Target, way: readonly string[]): [string, Setting][] {
  const others = ways.flat().filter((key) => !way.includes(key));
  // The secret of a webhook belongs to its address: "webhook_secret", "webhook_url".
  const belongsElsewhere = (key: string) =>
    others.some((other) => family(other) === family(key)) && !way.some((own) => family(own) === family(key));
  return Object.entries(settings).filter(([key, setting]) => {
    if (setting.required || key === "home_channel" || way.includes(key)) return true;
    return isAskedKind(setting) && !others.includes(key) && !belongsElsewhere(key);
  });
}

function family(key: string): string {
  return key.replace(/_.*$/, "");
}

function isAskedKind(setting: Setting): boolean {
  return isSecret(setting) || setting.kind === "integer" || (setting.kind === "choice" && setting.isAsked !== false);
}

/** Whether messages find their place without an address: a home channel, or a setting that names one by itself. */
export function hasPlace({ address }: Target, isThere: (key: string) => boolean): boolean {
  const field = Object.values(address).find(({ homeChannel }) => homeChannel);
  return isThere("home_channel") || (field?.unlessSet !== undefined && isThere(field.unlessSet));
}

/** A setting's value from the text that somebody wrote; a sentence says what is wrong with it. */
export function readSetting(
  target: Target,
  key: string,
  text: string,
): { value: Exclude<SettingValue, undefined> } | { problem: string } {
  const setting = Object.hasOwn(target.settings, key) ? target.settings[key] : undefined;
  if (!setting) {
    return {
      problem: `"${key}" is not a setting of "${target.name}"; ${suggestion(key, Object.keys(target.settings))}`,
    };
  }
  if (text.trim() === "") return { problem: `"${key}" is empty; give it a value` };
  const parsed = parseValue(setting, text);
  return "value" in parsed ? parsed : { problem: `"${key}": expected ${parsed.expected}, found ${parsed.found}` };
}
