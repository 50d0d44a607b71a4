import { parseEnv } from "node:util";
import type { Home } from "../../config/home.ts";
import { readYaml } from "../../config/problems.ts";
import { ConfigError } from "../../core/errors.ts";
import type { Environment } from "../../core/types.ts";
import { readTextIfThere } from "../../lib/file.ts";
import type { Target } from "../../target/target.ts";

/** The configuration as it stands before the wizard changes it. */
export interface Present {
  readonly home: Home;
  /** Text of `config.yaml`, and what it says. */
  readonly yaml: string;
  readonly file: unknown;
  /** Text of `.env`, and what it says. */
  readonly dotenv: string;
  readonly written: Environment;
  /** The process's own environment, which wins over both. */
  readonly process: Environment;
}

/**
 * Reads a home's configuration for editing. Values may be wrong, they may be what is about to be mended.
 * @throws ConfigError when `config.yaml` is no YAML.
 */
export async function readPresent(home: Home, env: Environment): Promise<Present> {
  const yaml = (await readTextIfThere(home.config)) ?? "";
  const dotenv = (await readTextIfThere(home.dotenv)) ?? "";
  const source = readYaml(home.config, yaml);
  if (source.problems.length > 0) throw new ConfigError(source.problems);
  return { home, yaml, file: source.value ?? {}, dotenv, written: parseEnv(dotenv), process: env };
}

/** What `config.yaml` says at a path. */
export function valueAt(present: Present, path: readonly string[]): unknown {
  let here: unknown = present.file;
  for (const key of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, key)) return undefined;
    here = (here as Record<string, unknown>)[key];
  }
  return here ?? undefined;
}

/** Where a key of `platforms.webhook` stands, or belongs: each file keeps the nesting that it has. */
export function webhookPath(present: Present, key: string): readonly string[] {
  const direct = ["platforms", "webhook", key];
  const nested = ["platforms", "webhook", "extra", key];
  // What stands under "extra" wins, so a change elsewhere would have no effect.
  if (valueAt(present, nested) !== undefined) return nested;
  if (valueAt(present, direct) !== undefined) return direct;
  const section = valueAt(present, ["platforms", "webhook"]) ?? {};
  const isDirect = Object.keys(section).some((name) => name !== "enabled" && name !== "extra");
  return isDirect && !Object.hasOwn(section, "extra") ? direct : nested;
}

/** Where a target's section stands, by its name or its neutral one, or belongs. */
export function sectionPath(present: Present, target: Target): readonly string[] {
  const neutral = target.neutralName === undefined ? undefined : ["platforms", target.neutralName];
  return neutral && valueAt(present, neutral) !== undefined ? neutral : ["platforms", target.name];
}

/** Where a setting of a target stands, or belongs. */
export function settingPath(present: Present, target: Target, key: string): readonly string[] {
  const section = sectionPath(present, target);
  const isNested = valueAt(present, [...section, key]) === undefined;
  const path =
    isNested && valueAt(present, [...section, "extra", key]) !== undefined
      ? [...section, "extra", key]
      : [...section, key];
  // A home channel may be written with its topic and name.
  const isMapping = key === "home_channel" && typeof valueAt(present, path) === "object";
  return isMapping ? [...path, "chat_id"] : path;
}

/** The value of the first of these variables that is set, as the gateway will see them. */
export function variable(present: Present, names: readonly string[]): string | undefined {
  const all = names.map((name) => present.process[name] ?? present.written[name]);
  return all.find((value) => value !== undefined && value.trim() !== "");
}

/** Where the global secret stands, in words; `undefined` when there is none. */
export function secretPlace(present: Present): string | undefined {
  if (isSet(present.process.WEBHOOK_SECRET)) return "WEBHOOK_SECRET in the environment";
  if (isSet(present.written.WEBHOOK_SECRET)) return "WEBHOOK_SECRET in .env";
  const path = webhookPath(present, "secret");
  const value = valueAt(present, path);
  return value === undefined || value === "" ? undefined : `"${path.join(".")}" in config.yaml`;
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value.trim() !== "";
}
