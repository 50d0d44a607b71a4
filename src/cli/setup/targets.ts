import { findTarget } from "../../config/platforms.ts";
import { suggestion } from "../../core/nearest.ts";
import * as registry from "../../target/registry.ts";
import type { Setting, Target } from "../../target/target.ts";
import { parseValue } from "../../target/value.ts";

/** Targets that messages can be sent to without more than their settings: those that are platforms. */
export const platforms: readonly Target[] = Object.values<Target>(registry).filter(({ isPlatform }) => isPlatform);

/** The platform of this name or neutral name. */
export function platformNamed(name: string): Target | undefined {
  const target = findTarget(name);
  return target?.isPlatform ? target : undefined;
}

/** Settings that the wizard asks for: what a target cannot do without, its secrets and ports, and its home channel. */
export function askedSettings(target: Target): [string, Setting][] {
  return Object.entries(target.settings).filter(
    ([key, { required, kind }]) => required || kind === "secret" || kind === "integer" || key === "home_channel",
  );
}

/** A setting's value from the text that somebody wrote; a sentence says what is wrong with it. */
export function readSetting(
  target: Target,
  key: string,
  text: string,
): { value: string | number | boolean } | { problem: string } {
  const setting = Object.hasOwn(target.settings, key) ? target.settings[key] : undefined;
  if (!setting) {
    return {
      problem: `"${key}" is not a setting of "${target.name}"; ${suggestion(key, Object.keys(target.settings))}`,
    };
  }
  if (text.trim() === "") return { problem: `"${key}" is empty; give it a value` };
  const parsed = parseValue(setting.kind, text);
  return "value" in parsed ? parsed : { problem: `"${key}": expected ${parsed.expected}, found ${parsed.found}` };
}
