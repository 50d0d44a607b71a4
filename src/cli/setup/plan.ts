import { parseEnv } from "node:util";
import { findTarget } from "../../config/platforms.ts";
import type { Environment } from "../../core/types.ts";
import type { Answers, TargetAnswers } from "./answers.ts";
import { setInDotenv } from "./dotenv.ts";
import { findProvider } from "./model.ts";
import { type Present, sectionPath, settingPath, valueAt, webhookPath } from "./present.ts";
import { isSecret } from "./targets.ts";
import { setInYaml, type YamlValue } from "./yaml.ts";

/** One thing that will be different, for a person to look at. */
export interface Change {
  readonly file: "config.yaml" | ".env";
  readonly key: string;
  /** `undefined` when there was nothing; of a secret neither this nor `now` says more than that it is one. */
  readonly was: string | undefined;
  readonly now: string;
}

/** Both files as they will be, and what that changes. Nothing is written yet. */
export interface Plan {
  readonly yaml: string;
  readonly dotenv: string;
  /** The environment that the gateway will see: the process's own over the new `.env`. */
  readonly env: Environment;
  readonly changes: readonly Change[];
  readonly notes: readonly string[];
}

/** One answer and the places that can hold it. */
interface Wish {
  readonly value: YamlValue;
  readonly path: readonly string[];
  /** Environment variables that win over the file, the first that is set counts. */
  readonly variables: readonly string[];
  readonly isSecret: boolean;
}

const hidden = "(a secret)";

/** Works the answers into the texts of both files. Answers that stand there already change nothing. */
export function makePlan(answers: Answers, present: Present): Plan {
  const changes: Change[] = [];
  const notes: string[] = [];
  let { yaml, dotenv } = present;
  const wishes = wishesOf(answers, present);
  for (const wish of wishes) {
    const name = variableOf(wish, present);
    const change = name === undefined ? yamlChange(wish, present) : dotenvChange(name, wish, present);
    if (!change) continue;
    changes.push(change);
    if (name === undefined) yaml = setInYaml(yaml, wish.path, wish.value);
    else dotenv = setInDotenv(dotenv, name, String(wish.value));
    const isLeftBehind = name !== undefined && wish.path.length > 0 && isThere(valueAt(present, wish.path));
    if (isLeftBehind)
      notes.push(`"${wish.path.join(".")}" in config.yaml has no effect: ${name} in .env wins; remove it`);
  }
  const env = { ...parseEnv(dotenv), ...present.process };
  notes.push(...foreignAddress(answers, present), ...wishes.flatMap((wish) => overruled(wish, env, present)));
  return { yaml, dotenv, env, changes, notes };
}

function wishesOf(answers: Answers, present: Present): Wish[] {
  const provider = answers.modelProvider ?? valueAt(present, ["model", "provider"]);
  const keys = findProvider(String(provider))?.keys ?? [];
  const key = keys.find((name) => isThere(present.written[name])) ?? keys[0] ?? "";
  return [
    ...wish(answers.enable, ["platforms", "webhook", "enabled"], ["WEBHOOK_ENABLED"]),
    ...wish(answers.host, webhookPath(present, "host")),
    ...wish(answers.port, webhookPath(present, "port"), ["WEBHOOK_PORT"]),
    ...wish(answers.secret ?? undefined, webhookPath(present, "secret"), ["WEBHOOK_SECRET"], true),
    ...wish(answers.agentBackend, ["agent", "backend"]),
    ...wish(answers.agentCommand, ["agent", "command"]),
    ...wish(answers.modelProvider, ["model", "provider"]),
    ...wish(answers.modelName, ["model", "name"]),
    ...wish(answers.modelBaseUrl, ["model", "base_url"]),
    ...wish(answers.modelKey, [], [key], true),
    ...wish(answers.terminalBackend, ["terminal", "backend"]),
    ...(answers.target ? targetWishes(answers.target, present) : []),
  ];
}

function wish(
  value: YamlValue | undefined,
  path: readonly string[],
  variables: readonly string[] = [],
  isSecret = false,
): Wish[] {
  return value === undefined ? [] : [{ value, path, variables, isSecret }];
}

function targetWishes({ name, settings }: TargetAnswers, present: Present): Wish[] {
  const target = findTarget(name);
  if (!target) return [];
  const values = Object.entries(settings).flatMap(([key, value]) => {
    const setting = target.settings[key];
    return wish(value, settingPath(present, target, key), setting?.env, isSecret(setting));
  });
  return [...wish(true, [...sectionPath(present, target), "enabled"]), ...values];
}

/** The variable of `.env` that is to hold the answer: the one that stands there already, and for a secret in any case one. */
function variableOf({ variables, isSecret }: Wish, present: Present): string | undefined {
  const standing = variables.find((name) => isThere(present.written[name]));
  return standing ?? (isSecret ? variables[0] : undefined);
}

function dotenvChange(name: string, { value, isSecret }: Wish, present: Present): Change | undefined {
  const was = present.written[name];
  if (isSame(was, value)) return undefined;
  const shown = isThere(was) ? (isSecret ? hidden : was) : undefined;
  return { file: ".env", key: name, was: shown, now: isSecret ? hidden : String(value) };
}

function yamlChange({ path, value, isSecret }: Wish, present: Present): Change | undefined {
  const was = valueAt(present, path);
  if (isSame(was, value)) return undefined;
  const shown = was === undefined ? undefined : isSecret ? hidden : inWords(was);
  return { file: "config.yaml", key: path.join("."), was: shown, now: isSecret ? hidden : inWords(value) };
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && !(typeof value === "string" && value.trim() === "");
}

/** YAML 1.2 reads `yes` and a quoted number as text; they mean the same here as they do to the schema. */
function isSame(was: unknown, value: YamlValue): boolean {
  if (!isThere(was)) return false;
  if (typeof value === "boolean")
    return (value ? /^(true|yes|on|1)$/i : /^(false|no|off|0)$/i).test(inWords(was).trim());
  return inWords(was) === inWords(value);
}

function inWords(value: unknown): string {
  return typeof value === "object"
    ? JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? String(part) : part))
    : String(value);
}

/** The address of one provider's server would get the requests, and the key, of another's. */
function foreignAddress({ modelProvider, modelBaseUrl }: Answers, present: Present): string[] {
  const before = valueAt(present, ["model", "provider"]);
  const address = valueAt(present, ["model", "base_url"]);
  if (modelProvider === undefined || modelProvider === before || modelBaseUrl !== undefined || !isThere(address))
    return [];
  return [
    `"model.base_url" in config.yaml is still "${address}"; remove it if that is not where "${modelProvider}" is`,
  ];
}

/** A variable of the process wins over both files: whoever sets it here must know. */
function overruled({ variables, value }: Wish, env: Environment, present: Present): string[] {
  const winner = variables.find((name) => isThere(env[name]));
  if (winner === undefined || !isThere(present.process[winner]) || isSame(env[winner], value)) return [];
  return [`${winner} in the environment says otherwise, and wins as long as it is set there`];
}
