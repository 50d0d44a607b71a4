import * as agents from "../../agent/registry.ts";
import * as sandboxes from "../../sandbox/registry.ts";
import type { Setting, SettingValues, Target } from "../../target/target.ts";
import { type Answers, generateSecret, parseCommand, type TargetAnswers } from "./answers.ts";
import type { Ask, Choice, Complaint } from "./ask.ts";
import { findProvider, modelProviders } from "./model.ts";
import { type Present, secretPlace, settingPath, valueAt, variable, webhookPath } from "./present.ts";
import { askedSettings, hasPlace, isSecret, platformNamed, platforms, readSetting } from "./targets.ts";

/** Asks for everything that the flags left open. What Enter takes is what stands there now, else the default. */
export async function interview(given: Answers, present: Present, ask: Ask): Promise<Answers> {
  const enable = given.enable ?? (await ask.confirm("Receive webhooks?", true));
  const host = given.host ?? (await askHost(present, ask));
  const port = given.port ?? (await askPort(present, ask));
  const secret = given.secret === undefined ? await askSecret(present, ask) : given;
  const agent = await askAgent(given, present, ask);
  const target = given.target ?? (await askTarget(present, ask));
  return { ...given, ...agent, enable, host, port, target, secret: secret.secret, isGenerated: secret.isGenerated };
}

function askHost(present: Present, ask: Ask): Promise<string> {
  const now = textAt(present, webhookPath(present, "host")) ?? "0.0.0.0";
  return ask.text("Address to listen on (127.0.0.1: this machine only; 0.0.0.0: every network)", now, blank);
}

async function askPort(present: Present, ask: Ask): Promise<number> {
  const now = variable(present, ["WEBHOOK_PORT"]) ?? textAt(present, webhookPath(present, "port")) ?? "8644";
  const complaint: Complaint = (text) =>
    /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? undefined : "A port is a whole number from 0 to 65535";
  return Number(await ask.text("Port", now, complaint));
}

async function askSecret(present: Present, ask: Ask): Promise<Pick<Answers, "secret" | "isGenerated">> {
  const place = secretPlace(present);
  const keep = place === undefined ? [] : [{ value: "keep", label: "Keep the one that is there", hint: place }];
  const choice = await ask.choose(
    "Secret that senders sign with, for routes without their own",
    [...keep, { value: "generate", label: "Generate a new one" }, { value: "own", label: "Enter one" }],
    place === undefined ? "generate" : "keep",
  );
  if (choice === "keep") return { secret: null };
  return choice === "own" ? { secret: await ask.secret("The secret", blank) } : generateSecret();
}

const blank: Complaint = (text) => (text.trim() === "" ? "Write something, or cancel with Ctrl-C" : undefined);

const agentLabels: Readonly<Record<string, string>> = {
  builtin: "A model, through its API",
  command: "A program of yours: prompt on standard input, answer on standard output",
  acp: "An agent that speaks the Agent Client Protocol",
  preview: "Nobody yet: answer with the prompt, to try things out",
};

const terminalLabels: Readonly<Record<string, string>> = {
  sandbox: "Its own sandbox on this machine (bubblewrap)",
  docker: "A container (docker or podman)",
  ssh: "Another machine, over SSH",
  local: "This machine, without any isolation",
};

async function askAgent(given: Answers, present: Present, ask: Ask): Promise<Partial<Answers>> {
  const now = textAt(present, ["agent", "backend"]) ?? "builtin";
  const agentBackend =
    given.agentBackend ?? (await ask.choose("Who works on the events?", choicesOf(agents, agentLabels), now));
  if (agentBackend === "command" || agentBackend === "acp") {
    return { agentBackend, agentCommand: given.agentCommand ?? (await askCommand(present, ask)) };
  }
  if (agentBackend !== "builtin") return { agentBackend };
  const model = await askModel(given, present, ask);
  const choices = choicesOf(sandboxes, terminalLabels);
  const terminal = textAt(present, ["terminal", "backend"]) ?? "sandbox";
  const terminalBackend =
    given.terminalBackend ?? (await ask.choose("Where do the agent's shell commands run?", choices, terminal));
  return { agentBackend, ...model, terminalBackend };
}

async function askCommand(present: Present, ask: Ask): Promise<readonly string[]> {
  const now = valueAt(present, ["agent", "command"]);
  const preset = Array.isArray(now) && now.length > 0 ? JSON.stringify(now) : undefined;
  return parseCommand(await ask.text("Program with its arguments (words, or a JSON list)", preset, blank));
}

function choicesOf(registry: object, labels: Readonly<Record<string, string>>): Choice[] {
  const order = Object.keys(labels);
  const names = Object.keys(registry).sort((one, other) => order.indexOf(one) - order.indexOf(other));
  return names.map((value) => ({ value, label: labels[value] ?? value, hint: value }));
}

async function askModel(given: Answers, present: Present, ask: Ask): Promise<Partial<Answers>> {
  const choices = Object.entries(modelProviders).map(([value, { label }]) => ({ value, label }));
  const provider = textAt(present, ["model", "provider"]) ?? "openai";
  const modelProvider = given.modelProvider ?? (await ask.choose("Whose model?", choices, provider));
  // Name and address of another provider's model would be wrong here.
  const isSame = modelProvider === provider;
  const preset = (key: string) => (isSame ? textAt(present, ["model", key]) : undefined);
  const modelName = given.modelName ?? (await ask.text("Name of the model", preset("name"), blank));
  const { baseUrl = "default", keys = [] } = findProvider(modelProvider) ?? {};
  const modelBaseUrl =
    given.modelBaseUrl ?? (baseUrl === "default" ? undefined : await askBaseUrl(baseUrl, preset("base_url"), ask));
  const modelKey = given.modelKey ?? (await askKey(keys, present, ask));
  return { modelProvider, modelName, modelBaseUrl, modelKey };
}

async function askBaseUrl(
  need: "optional" | "required",
  preset: string | undefined,
  ask: Ask,
): Promise<string | undefined> {
  const hint = need === "optional" ? " (empty for this machine)" : ', such as "https://models.example.com/v1"';
  const answer = await ask.text(`Address of the server${hint}`, preset, need === "required" ? blank : undefined);
  return answer.trim() === "" ? undefined : answer.trim();
}

async function askKey(keys: readonly string[], present: Present, ask: Ask): Promise<string | undefined> {
  const isThere = variable(present, keys) !== undefined;
  const hint = isThere ? "empty keeps the one that is there" : "empty for none now";
  const key = await ask.secret(`API key, for ${keys[0]} in .env (${hint})`);
  return key.trim() === "" ? undefined : key.trim();
}

async function askTarget(present: Present, ask: Ask): Promise<TargetAnswers | undefined> {
  const choices = platforms.map(({ name }) => ({ value: name, label: name }));
  const none = { value: "", label: "None now; the log is always there" };
  const name = await ask.choose("A chat target for answers?", [none, ...choices], "");
  if (name === "") return undefined;
  const target = platformNamed(name)!;
  const way = await askWay(target, present, ask);
  const settings: Record<string, SettingValues[string]> = {};
  for (const [key, setting] of askedSettings(target, way)) {
    const value = await askSetting(
      target,
      key,
      { ...setting, required: setting.required || way.includes(key) },
      present,
      ask,
    );
    if (value !== undefined) settings[key] = value;
  }
  const isThere = (key: string) => settings[key] !== undefined || settingNow(target, key, present) !== undefined;
  const sendsTest = hasPlace(target, isThere) && (await ask.confirm(`Send a test message to ${name} now?`, true));
  return { name, settings, sendsTest };
}

/** For a service with several ways in; the one that is there already comes first. */
async function askWay(target: Target, present: Present, ask: Ask): Promise<readonly string[]> {
  const { ways = [], settings } = target;
  if (ways.length < 2) return ways[0] ?? [];
  const isThere = (key: string) => settingNow(target, key, present) !== undefined;
  const begun = ways.findIndex((way) => way.every(isThere));
  const choices = ways.map((way, index) => ({
    value: String(index),
    label: way.join(" and "),
    hint: way.map((key) => settings[key]?.help ?? "").join("; "),
  }));
  const answer = await ask.choose(`How is ${target.name} reached?`, choices, String(Math.max(0, begun)));
  return ways[Number(answer)] ?? [];
}

async function askSetting(
  target: Target,
  key: string,
  setting: Setting,
  present: Present,
  ask: Ask,
): Promise<SettingValues[string]> {
  const now = settingNow(target, key, present) ?? (setting.default === undefined ? undefined : String(setting.default));
  const isNeeded = setting.required && now === undefined;
  const complaint: Complaint = (text) => {
    if (text.trim() === "") return isNeeded ? "Write something, or cancel with Ctrl-C" : undefined;
    const read = readSetting(target, key, text);
    return "problem" in read ? read.problem : undefined;
  };
  const hint = isNeeded ? "" : now === undefined ? " (empty for none)" : " (empty keeps the one that is there)";
  const text = await askText(setting, { hint, now, complaint }, ask);
  const read = readSetting(target, key, text.trim());
  return "value" in read ? read.value : undefined;
}

interface Question {
  readonly hint: string;
  /** What Enter takes. */
  readonly now: string | undefined;
  readonly complaint: Complaint;
}

function askText(setting: Setting, { hint, now, complaint }: Question, ask: Ask): Promise<string> {
  const { help, kind, choices = [] } = setting;
  if (isSecret(setting)) return ask.secret(`${help}${hint}`, complaint);
  if (kind !== "choice") return ask.text(`${help}${now === undefined ? hint : ""}`, now, complaint);
  const all = choices.map((value) => ({ value, label: value }));
  return ask.choose(help, all, now ?? choices[0] ?? "");
}

function settingNow(target: Target, key: string, present: Present): string | undefined {
  return variable(present, target.settings[key]?.env ?? []) ?? textAt(present, settingPath(present, target, key));
}

function textAt(present: Present, path: readonly string[]): string | undefined {
  const value = valueAt(present, path);
  return value === undefined || typeof value === "object" ? undefined : String(value);
}
