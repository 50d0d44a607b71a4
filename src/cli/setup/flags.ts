import * as agents from "../../agent/registry.ts";
import { suggestion } from "../../core/nearest.ts";
import * as sandboxes from "../../sandbox/registry.ts";
import type { SettingValues } from "../../target/target.ts";
import { type CommonOptions, type Context, secretFromInput } from "../context.ts";
import { type Answers, generateSecret, parseCommand, type TargetAnswers } from "./answers.ts";
import { modelProviders } from "./model.ts";
import { type Present, secretPlace, valueAt } from "./present.ts";
import { platformNamed, platforms, readSetting } from "./targets.ts";

/** The flags of `postern gateway setup`: every question has one. */
export interface SetupOptions extends CommonOptions {
  readonly enable?: boolean;
  readonly host?: string;
  readonly port?: number;
  readonly secret?: string;
  readonly generateSecret?: boolean;
  readonly agentBackend?: string;
  readonly agentCommand?: string;
  readonly modelProvider?: string;
  readonly modelName?: string;
  readonly modelBaseUrl?: string;
  readonly modelKey?: string;
  readonly terminalBackend?: string;
  readonly target?: string;
  readonly targetSetting?: Readonly<Record<string, string>>;
  readonly homeChannel?: string;
  readonly testMessage?: boolean;
  readonly yes?: boolean;
}

/** What is wrong with the flags as they were given, in one sentence; `undefined` when nothing is. */
export function flagProblem(options: SetupOptions): string | undefined {
  return [combinationProblem, inputProblem, nameProblem, targetProblem].map((find) => find(options)).find(Boolean);
}

function combinationProblem(options: SetupOptions): string | undefined {
  const { secret, target, targetSetting, homeChannel, testMessage, agentBackend } = options;
  if (secret !== undefined && options.generateSecret)
    return "--secret and --generate-secret exclude each other; give one";
  if (target === undefined && (targetSetting || homeChannel !== undefined || testMessage)) {
    return "--target-setting, --home-channel and --test-message need --target NAME";
  }
  if (homeChannel !== undefined && targetSetting?.home_channel !== undefined) {
    return "--home-channel and --target-setting home_channel=… are the same; give one";
  }
  if (agentBackend === "command" && options.agentCommand === undefined) {
    return '--agent-backend command needs --agent-command "program argument …"';
  }
  const blank = Object.entries(options).find(([, value]) => typeof value === "string" && value.trim() === "");
  return (
    blank &&
    `--${blank[0].replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} is empty; give it a value or leave it out`
  );
}

/** Standard input can hold one secret, and not while a person answers there. */
function inputProblem({ secret, modelKey, targetSetting = {}, yes }: SetupOptions): string | undefined {
  const count = [secret, modelKey, ...Object.values(targetSetting)].filter((value) => value === "-").length;
  if (count > 1) return "Only one flag can read standard input by -; run setup once for each of them";
  if (count === 1 && !yes) return "- reads standard input, where the questions would be answered; add --yes";
  return undefined;
}

function nameProblem(options: SetupOptions): string | undefined {
  const names = [
    ["--agent-backend", options.agentBackend, agents],
    ["--terminal-backend", options.terminalBackend, sandboxes],
    ["--model-provider", options.modelProvider, modelProviders],
  ] as const;
  for (const [flag, name, known] of names) {
    if (name !== undefined && !Object.keys(known).includes(name)) {
      return `${flag}: there is no "${name}"; ${suggestion(name, Object.keys(known))}`;
    }
  }
  return undefined;
}

function targetProblem({ target: name, targetSetting = {}, homeChannel }: SetupOptions): string | undefined {
  if (name === undefined) return undefined;
  const target = platformNamed(name);
  if (!target) {
    const names = platforms.map((platform) => platform.name);
    return `--target: there is no chat target "${name}"; ${suggestion(name, names)}`;
  }
  const given = { ...targetSetting, ...(homeChannel === undefined ? {} : { home_channel: homeChannel }) };
  for (const [key, text] of Object.entries(given)) {
    if (text === "-") continue;
    const read = readSetting(target, key, text);
    if ("problem" in read) return `--target-setting: ${read.problem}`;
  }
  return undefined;
}

/** Each provider has a variable of its own for the key. */
export function keyProblem({ modelKey, modelProvider }: SetupOptions, present: Present): string | undefined {
  const provider = modelProvider ?? valueAt(present, ["model", "provider"]);
  return modelKey !== undefined && provider === undefined ? "--model-key needs --model-provider" : undefined;
}

/** The answers that the flags hold, checked before by `flagProblem`. Reads standard input for a flag that says `-`. */
export async function readFlags(options: SetupOptions, present: Present, context: Context): Promise<Answers> {
  const { secret, modelKey, agentCommand, target } = options;
  const read = (value: string | undefined) => (value === "-" ? secretFromInput(context) : value);
  const generated = secretPlace(present) === undefined ? generateSecret() : { secret: null };
  return {
    enable: options.enable,
    host: options.host,
    port: options.port,
    ...(options.generateSecret ? generated : { secret: await read(secret) }),
    agentBackend: options.agentBackend,
    agentCommand: agentCommand === undefined ? undefined : parseCommand(agentCommand),
    modelProvider: options.modelProvider,
    modelName: options.modelName,
    modelBaseUrl: options.modelBaseUrl,
    modelKey: await read(modelKey),
    terminalBackend: options.terminalBackend,
    target: target === undefined ? undefined : await readTarget(target, options, read),
  };
}

async function readTarget(
  name: string,
  { targetSetting = {}, homeChannel, testMessage = false }: SetupOptions,
  read: (text: string) => string | undefined | Promise<string>,
): Promise<TargetAnswers> {
  const target = platformNamed(name)!;
  const settings: Record<string, SettingValues[string]> = {};
  for (const [key, text] of Object.entries(targetSetting)) {
    const value = readSetting(target, key, (await read(text)) ?? "");
    settings[key] = "value" in value ? value.value : undefined;
  }
  if (homeChannel !== undefined) settings.home_channel = homeChannel;
  return { name: target.name, settings, sendsTest: testMessage };
}

/** With `--yes`: what no flag named stays as it is, and what cannot be left open gets its default. */
export function withDefaults(given: Answers, present: Present): Answers {
  const isDecided =
    valueAt(present, ["platforms", "webhook", "enabled"]) !== undefined || present.written.WEBHOOK_ENABLED;
  const enable = given.enable ?? (isDecided ? undefined : true);
  if (given.secret !== undefined) return { ...given, enable };
  return { ...given, enable, ...(secretPlace(present) === undefined ? generateSecret() : { secret: null }) };
}
