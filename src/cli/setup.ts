import type { Command } from "commander";
import { chooseModel } from "../agent/model.ts";
import type { Config } from "../config/load.ts";
import { ConfigError, UserError } from "../core/errors.ts";
import * as sandboxes from "../sandbox/registry.ts";
import { type Context, homeOf, print } from "./context.ts";
import type { Answers } from "./setup/answers.ts";
import { type Ask, createAsk } from "./setup/ask.ts";
import { checkResult, checkTarget } from "./setup/check.ts";
import { flagProblem, keyProblem, readFlags, type SetupOptions, withDefaults } from "./setup/flags.ts";
import { interview } from "./setup/interview.ts";
import { type Change, makePlan, type Plan } from "./setup/plan.ts";
import { type Present, readPresent, secretPlace } from "./setup/present.ts";
import { save } from "./setup/save.ts";
import { sendTestMessage } from "./setup/test-message.ts";
import { webhookUrl } from "./url.ts";

const needsTerminal =
  "there is no terminal to ask at; add --yes, and name what is to differ from what is there: --enable, --host, " +
  "--port, --secret, --agent-backend, --model-provider, --model-name, --model-key, --terminal-backend, --target";

/**
 * `postern gateway setup`: asks what the flags leave open, shows what that changes, tries it (the configuration as a whole,
 * a test message), and only then writes `.env` and `config.yaml`.
 */
export async function setUp(options: SetupOptions, command: Command, context: Context): Promise<void> {
  const refuse = (problem: string | undefined) => problem && command.error(`error: ${problem}`, { exitCode: 2 });
  refuse(flagProblem(options));
  const terminal = options.yes ? undefined : context.terminal();
  if (!options.yes && !terminal) refuse(needsTerminal);
  const present = await readPresent(homeOf(context, options), context.env);
  refuse(keyProblem(options, present));
  const given = await readFlags(options, present, context);
  const ask = terminal && (await createAsk(terminal));
  const answers = ask ? await interview(given, present, ask) : withDefaults(given, present);
  const plan = makePlan(answers, present);
  const config = await check(answers, plan, present, context);
  ask?.say(changeLines(plan).join("\n"), "What will change");
  const test = answers.target?.sendsTest ? await tryTarget(config, answers.target.name, ask) : undefined;
  if (ask && plan.changes.length > 0 && !(await ask.confirm("Write this?", true))) {
    throw new UserError("Nothing was written");
  }
  await save(present, plan);
  ask?.end("Done");
  await report({ answers, plan, config, present, test }, options, context);
}

async function check(answers: Answers, plan: Plan, present: Present, context: Context): Promise<Config> {
  try {
    const config = await checkResult(present.home, plan.yaml, plan.env);
    if (answers.target) checkTarget(config, answers.target.name);
    return config;
  } catch (error) {
    if (error instanceof ConfigError) context.err("Nothing was written, because the gateway would not start with it\n");
    throw error;
  }
}

interface TestResult {
  readonly target: string;
  readonly reference: string | undefined;
}

/** A person may go on without the message (the network may be down); a program may not. */
async function tryTarget(config: Config, target: string, ask: Ask | undefined): Promise<TestResult | undefined> {
  try {
    return { target, reference: await sendTestMessage(config, target) };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if (!ask) throw new UserError(`Nothing was written: ${error.message}`, { cause: error });
    ask.say(error.message, "Test message");
    if (await ask.confirm("Go on all the same?", false)) return undefined;
    throw new UserError("Nothing was written");
  }
}

function changeLines({ changes }: Plan): string[] {
  return changes.length === 0 ? ["Nothing: all of it is there already"] : changes.map(changeLine);
}

function changeLine({ file, key, was, now }: Change): string {
  return `${file.padEnd(11)}  ${key}: ${now}${was === undefined ? "" : ` (was: ${was})`}`;
}

interface Outcome {
  readonly answers: Answers;
  readonly plan: Plan;
  readonly config: Config;
  readonly present: Present;
  readonly test: TestResult | undefined;
}

async function report(outcome: Outcome, options: SetupOptions, context: Context): Promise<void> {
  const { answers, plan, config, present, test } = outcome;
  const { enabled, host, port } = config.webhook;
  const url = webhookUrl(config.webhook, "NAME");
  const secret = answers.isGenerated && answers.secret ? { secret: answers.secret } : {};
  const notes = [...keptSecret(outcome), ...plan.notes, ...config.warnings, ...(await shortcomings(config))];
  const { changes } = plan;
  print(context, options, { home: present.home.folder, changes, enabled, host, port, url, ...secret, test, notes }, [
    `${changes.length === 0 ? "Nothing to change" : "Set up"} in ${present.home.folder}`,
    ...changes.map((change) => `  ${changeLine(change)}`),
    ...(secret.secret ? [`  Secret:  ${secret.secret}  (shown this once; it stands in .env)`] : []),
    ...(test ? [`  Test message delivered to ${test.target}${test.reference ? `: ${test.reference}` : ""}`] : []),
    ...(enabled ? [`  Address: ${port === 0 ? "any free port; the gateway names it when it starts" : url}`] : []),
    ...notes.map((note) => `Note: ${note}`),
    ...nextSteps(config, options),
  ]);
}

/** A secret that somebody already signs with is not replaced in passing; that is said. */
function keptSecret({ answers, present }: Outcome): string[] {
  const place = answers.secret === null ? secretPlace(present) : undefined;
  return place === undefined ? [] : [`the secret that is there is kept (${place}); --secret replaces it`];
}

/** What is right as a configuration but will not work yet. */
async function shortcomings({ agent, env, sandbox }: Config): Promise<string[]> {
  if (agent.backend !== "builtin") {
    const isIdle = agent.model.name !== undefined;
    return isIdle ? [`the model is not used: the agent is "${agent.backend}"; --agent-backend builtin uses it`] : [];
  }
  const model = chooseModel(agent.model, env);
  const noModel = "reason" in model ? [`events wait, and none is lost: ${model.reason}`] : [];
  const blocked = await sandboxes[sandbox].blocked();
  return blocked === undefined
    ? noModel
    : [...noModel, `the terminal backend "${sandbox}" does not work here: ${blocked}`];
}

function nextSteps({ webhook }: Config, options: SetupOptions): string[] {
  const postern = `postern${options.profile === undefined ? "" : ` --profile ${options.profile}`}`;
  if (!webhook.enabled) return [`Next: the webhook is not enabled; run "${postern} gateway setup --enable"`];
  const deliver = options.target === undefined ? "" : ` --deliver ${options.target}`;
  return [
    "Next:",
    `  1. Start it (again, if it runs):  ${postern} gateway run`,
    `  2. Make a first route:            ${postern} webhook subscribe hello --prompt "Say hello to {name}"${deliver}`,
    `  3. Send an event to it:           ${postern} webhook test hello --payload '{"name":"Ada"}'`,
  ];
}
