import { constants } from "node:fs";
import { access, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { redact, truncate } from "../core/text.ts";
import type { Environment } from "../core/types.ts";
import { type Finished, plainEnvironment, run as runProgram } from "../lib/spawn.ts";
import type { Agent, AgentSettings, Outcome, RunContext, RunRequest } from "./agent.ts";
import { cancelled, type Ending, failed, messageOf, timedOut } from "./ending.ts";
import { fullPrompt } from "./prompt.ts";

const maxOutputBytes = 1024 * 1024;

/** Between SIGTERM and SIGKILL, for a program that has something to put away. */
const graceMs = 2000;

/** Characters of standard error that a reason quotes. */
const maxReasonChars = 300;

/** Any program: prompt on standard input, answer on standard output, in a folder of its own that is removed afterwards. */
export const command: Agent = {
  name: "command",
  async blocked({ settings, env }) {
    const [program] = settings.command;
    if (program === undefined || program === "") {
      return 'agent.command is empty: set it to a program and its arguments, for example ["claude", "-p"]';
    }
    return missing(program, plainEnvironment(env).PATH ?? "");
  },
  async run(request, context) {
    if (context.signal.aborted) return { ...cancelled, transcript: [] };
    let folder: string | undefined;
    try {
      folder = await mkdtemp(join(tmpdir(), "postern-run-"));
      return await runIn(folder, request, context);
    } catch (error) {
      return { ...failed(`the command could not be started: ${messageOf(error)}`, true), transcript: [] };
    } finally {
      // A folder that cannot be removed must not cost the answer.
      if (folder !== undefined) await rm(folder, { recursive: true, force: true }).catch(() => {});
    }
  },
};

async function runIn(folder: string, request: RunRequest, { settings, env, signal }: RunContext): Promise<Outcome> {
  const [program] = settings.command;
  if (!program) return { ...failed("agent.command is empty"), transcript: [] };
  const path = plainEnvironment(env).PATH ?? "";
  const reason = await missing(program, path);
  if (reason !== undefined) return { ...failed(reason), transcript: [] };
  const finished = await runProgram({
    argv: [...(await endsWithGateway(path)), ...settings.command],
    env: environment(request, settings, env),
    cwd: folder,
    stdin: fullPrompt(request),
    timeoutMs: settings.timeoutMs,
    maxOutputBytes,
    signal,
    graceMs,
  });
  const answer = withoutTrailingNewlines(finished.stdout.toString("utf8"));
  const transcript: Outcome["transcript"] = answer === "" ? [] : [{ role: "assistant", text: answer }];
  const passed = settings.env.flatMap((name) => env[name] ?? []);
  const ending = endingOf(finished, program, settings.timeoutMs, passed);
  return ending ? { ...ending, transcript } : { status: "completed", answer, transcript };
}

function endingOf(
  finished: Finished,
  program: string,
  timeoutMs: number,
  secrets: readonly string[],
): Ending | undefined {
  switch (finished.end) {
    case "aborted":
      return cancelled;
    case "timeout":
      return timedOut(timeoutMs);
    case "overflow":
      return failed(`the command printed more than ${maxOutputBytes} bytes and was ended`);
    case "missing":
      return failed(`agent.command "${program}" could not be started`);
    case "exited":
      return finished.exitCode === 0 ? undefined : exitFailure(finished, secrets);
  }
}

function exitFailure(finished: Finished, secrets: readonly string[]): Ending {
  const how =
    finished.exitCode === null
      ? "the command was ended by a signal"
      : `the command ended with exit code ${finished.exitCode}`;
  // Blotted out before it is cut: half a secret would not be recognised.
  const words = redact(finished.stderr.toString("utf8"), secrets).trim();
  return failed(words === "" ? how : `${how}: ${words.slice(-maxReasonChars)}`);
}

/** The plain variables, those that the operator named, and what the run is about. */
function environment(request: RunRequest, settings: AgentSettings, env: Environment): Record<string, string> {
  const variables = plainEnvironment(env);
  for (const name of settings.env) {
    const value = env[name];
    if (value !== undefined) variables[name] = value;
  }
  variables.WEBHOOK_ROUTE = asVariable(request.route);
  variables.WEBHOOK_EVENT = asVariable(request.eventType);
  variables.WEBHOOK_DELIVERY_ID = asVariable(request.deliveryId);
  return variables;
}

/** A sender chose the text: a NUL, or more than the system takes, would keep the program from starting. */
function asVariable(text: string): string {
  return truncate(text.replaceAll("\0", ""), 1024);
}

/** Says why the program cannot be started. Relative paths are refused: the command starts in a fresh folder. */
async function missing(program: string, path: string): Promise<string | undefined> {
  if (program.includes("/")) {
    if (!isAbsolute(program)) return `agent.command "${program}" is a relative path; write the whole path`;
    if (await isProgram(program)) return undefined;
    return `agent.command "${program}" is not an executable file; correct the path or install it`;
  }
  if ((await find(program, path)) !== undefined) return undefined;
  return `agent.command "${program}" is not on PATH; install it or write its whole path`;
}

/**
 * What goes before a command so that it ends when the gateway is killed and cannot end it any more: the run will be started
 * again, and two at once may cost twice. Linux does it for a process that asks (prctl(2), PR_SET_PDEATHSIG); its own
 * children are up to it.
 */
async function endsWithGateway(path: string): Promise<readonly string[]> {
  const setpriv = process.platform === "linux" ? await find("setpriv", path) : undefined;
  return setpriv === undefined ? [] : [setpriv, "--pdeathsig", "KILL", "--"];
}

async function find(program: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    const file = join(folder, program);
    if (folder !== "" && (await isProgram(file))) return file;
  }
  return undefined;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** By hand: a regular expression for this takes quadratic time on output that is mostly newlines. */
function withoutTrailingNewlines(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end -= 1;
  return text.slice(0, end);
}
