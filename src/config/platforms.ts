import type { Environment } from "../core/types.ts";
import * as registry from "../target/registry.ts";
import { readSettings } from "../target/settings.ts";
import type { SettingValues, Target } from "../target/target.ts";

/** How each target stands: ready with its settings, or unusable with the reason and what to do. */
export type Platforms = ReadonlyMap<string, Platform>;

export type Platform = { readonly values: SettingValues } | { readonly unusable: string };

const targets: readonly Target[] = Object.values(registry);

export const targetNames: readonly string[] = targets.map(({ name }) => name);

/** Names that the specification gives to targets, which a configuration may hold even where this version has none. */
const specifiedPlatforms = new Set(
  `github_comment host_a_comment sms email telegram discord slack signal whatsapp matrix mattermost homeassistant dingtalk
   feishu wecom weixin bluebubbles qqbot`.split(/\s+/),
);

/** The target of this name or neutral name. Only what the registry lists is ever found. */
export function findTarget(name: string): Target | undefined {
  return targets.find((target) => target.name === name || target.neutralName === name);
}

/** Whether `platforms.<name>` may stand in a configuration. */
export function isPlatformName(name: string): boolean {
  return findTarget(name) !== undefined || specifiedPlatforms.has(name) || /^chat_target_(0[1-9]|1[0-4])$/.test(name);
}

/**
 * Reads the settings of every target from `platforms` and the environment. A section must say `enabled: true`; a target
 * that only the environment sets up is ready without a section.
 */
export function readPlatforms(sections: Readonly<Record<string, unknown>>, env: Environment): Platforms {
  return new Map(targets.map((target) => [target.name, readPlatform(target, sections, env)]));
}

function readPlatform(target: Target, sections: Readonly<Record<string, unknown>>, env: Environment): Platform {
  const section = sections[target.name] ?? (target.neutralName && sections[target.neutralName]) ?? undefined;
  if (section !== undefined && !isMapping(section)) {
    return { unusable: `"platforms.${target.name}" is not a mapping; write its settings under it, one a line` };
  }
  if (section !== undefined && target.isPlatform && !isEnabled(section)) {
    return { unusable: `it is not enabled; set "platforms.${target.name}.enabled: true"` };
  }
  const settings = readSettings(target, section, env);
  if ("values" in settings) return { values: settings.values };
  return { unusable: settings.problems.map(({ key, message }) => `${key}: ${message}`).join("; ") };
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEnabled({ enabled }: Readonly<Record<string, unknown>>): boolean {
  return enabled === true || (typeof enabled === "string" && /^(true|yes|on)$/i.test(enabled));
}

/** The values among a target's settings that are secret. */
export function secretSettings(name: string, values: SettingValues): string[] {
  const settings = Object.entries(findTarget(name)?.settings ?? {});
  return settings.flatMap(([key, { kind }]) => (kind === "secret" && values[key] ? [String(values[key])] : []));
}
