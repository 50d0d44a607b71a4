import { UserError } from "../core/errors.ts";
import { suggestion } from "../core/nearest.ts";
import type { MessageRule } from "../core/retry.ts";
import type { Environment } from "../core/types.ts";
import * as registry from "../target/registry.ts";
import { readSettings } from "../target/settings.ts";
import type { SettingValues, Target } from "../target/target.ts";
import { schemaMistakes } from "./problems.ts";
import { ownRetry } from "./retry.ts";
import { targetRetrySchema } from "./schema.ts";

/** How each target stands: ready with its settings, or unusable with the reason and what to do. */
export type Platforms = ReadonlyMap<string, Platform>;

export type Platform = ({ readonly values: SettingValues } | { readonly unusable: string }) & {
  /** Somebody began to set it up: there is a section that is not switched off, or one of its variables. */
  readonly isSetUp?: boolean;
  /** What the section says of retries, over the global rules; nothing when it is left out. */
  readonly retry?: Partial<MessageRule>;
};

const targets: readonly Target[] = Object.values(registry);

export const targetNames: readonly string[] = targets.map(({ name }) => name);

/** The target of this name or neutral name. Only what the registry lists is ever found. */
export function findTarget(name: string): Target | undefined {
  return targets.find((target) => target.name === name || target.neutralName === name);
}

/**
 * The target of this name or neutral name.
 * @throws UserError that says which name may have been meant.
 */
export function targetNamed(name: string): Target {
  const target = findTarget(name);
  if (target) return target;
  throw new UserError(`There is no target "${name}"; ${suggestion(name, targetNames)}`);
}

/**
 * Reads the settings of every target from `platforms` and the environment. A section must say `enabled: true`; a target
 * that only the environment sets up is ready without a section.
 */
export function readPlatforms(sections: Readonly<Record<string, unknown>>, env: Environment): Platforms {
  return new Map(targets.map((target) => [target.name, readPlatform(target, sections, env)]));
}

/** A mistake in a section, with the path of its key. */
export interface SectionProblem {
  readonly path: readonly string[];
  readonly message: string;
}

/**
 * What is wrong in `platforms`, whether a route uses it or not: names and keys that nobody knows, values of the wrong kind.
 * What is missing is no mistake as long as no route needs it.
 */
export function sectionProblems(sections: Readonly<Record<string, unknown>>, env: Environment): SectionProblem[] {
  return Object.entries(sections).flatMap(([name, section]): SectionProblem[] => {
    const path = ["platforms", name];
    const target = findTarget(name);
    if (!target) return name === "webhook" ? [] : [{ path, message: unknownPlatform(name) }];
    if (section === null || section === undefined) return [];
    if (!isMapping(section)) return [{ path, message: "Expected a mapping of settings" }];
    if (name !== target.name && isMapping(sections[target.name])) {
      return [{ path, message: `The same as "platforms.${target.name}"; keep one of them` }];
    }
    if (isOff(section)) return [];
    const { retry, ...own } = section;
    const settings = readSettings(target, own, env);
    const problems = "problems" in settings ? settings.problems : [];
    const isFlag = section.enabled === undefined || isEnabled(section);
    return [
      ...(isFlag ? [] : [{ path: [...path, "enabled"], message: "Expected true or false" }]),
      ...problems.filter(({ message }) => !message.startsWith("Missing")).map(at(path)),
      ...retryProblems(retry, [...path, "retry"]),
    ];
  });
}

function retryProblems(retry: unknown, path: readonly string[]): SectionProblem[] {
  const parsed = targetRetrySchema.optional().safeParse(retry, { reportInput: true });
  if (parsed.success) return [];
  return schemaMistakes(parsed.error, targetRetrySchema).map((mistake) => ({
    path: [...path, ...mistake.path.map(String)],
    message: mistake.message,
  }));
}

function at(path: readonly string[]) {
  return ({ key, message }: { key: string; message: string }) => ({ path: [...path, ...key.split(".")], message });
}

function unknownPlatform(name: string): string {
  return `Unknown platform "${name}"; ${suggestion(name, ["webhook", ...targetNames])}`;
}

function readPlatform(target: Target, sections: Readonly<Record<string, unknown>>, env: Environment): Platform {
  const section = sections[target.name] ?? (target.neutralName && sections[target.neutralName]) ?? undefined;
  if (section !== undefined && !isMapping(section)) {
    return { unusable: `"platforms.${target.name}" is not a mapping; write its settings under it, one a line` };
  }
  // The retry rule belongs to whoever sends, whatever the target.
  const { retry, ...own } = section ?? {};
  const parsed = targetRetrySchema.safeParse(retry ?? {});
  const isSetUp = section === undefined ? hasVariable(target, env) : !isOff(section);
  return { ...readTarget(target, section && own, env), isSetUp, retry: parsed.success ? ownRetry(parsed.data) : {} };
}

function hasVariable({ settings }: Target, env: Environment): boolean {
  return Object.values(settings).some((setting) => setting.env?.some((name) => (env[name] ?? "").trim() !== ""));
}

function readTarget(
  target: Target,
  section: Readonly<Record<string, unknown>> | undefined,
  env: Environment,
): Platform {
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

/** Switched off in so many words: what else stands there does not matter. */
function isOff({ enabled }: Readonly<Record<string, unknown>>): boolean {
  return enabled === false || (typeof enabled === "string" && /^(false|no|off)$/i.test(enabled));
}

function isEnabled({ enabled }: Readonly<Record<string, unknown>>): boolean {
  return enabled === true || (typeof enabled === "string" && /^(true|yes|on)$/i.test(enabled));
}

/** The values among a target's settings that are secret. */
export function secretSettings(name: string, values: SettingValues): string[] {
  const settings = Object.entries(findTarget(name)?.settings ?? {});
  return settings.flatMap(([key, { kind }]) =>
    (kind === "secret" || kind === "secret_url") && values[key] ? [String(values[key])] : [],
  );
}
