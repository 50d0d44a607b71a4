import { Command, CommanderError } from "commander";
import { ConfigError, describeProblem, StoreRefused, StoreUnavailable, UserError } from "../core/errors.ts";
import type { Context } from "./context.ts";
import * as commands from "./registry.ts";
import { version } from "./version.ts";

/** A command of the program: one file each, listed in `registry.ts`. What is heavy is imported inside its actions. */
export type DefineCommand = (program: Command, context: Context) => void;

const exitCodes = { failed: 1, usage: 2, config: 78 } as const;

/** Runs one command line to its end and answers the exit code: 0 done, 1 failed, 2 wrong usage, 78 invalid configuration. */
export async function runCli(args: readonly string[], context: Context): Promise<number> {
  let exitCode = 0;
  const setExitCode = (code: number) => {
    exitCode = code;
  };
  const program = createProgram({ ...context, setExitCode });
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode;
  } catch (error) {
    return report(error, context);
  }
}

function createProgram(context: Context): Command {
  const program = new Command("postern")
    .description("Inbound webhook gateway for AI agents: verify, filter, run, deliver, lose nothing")
    .version(version(), "-V, --version")
    .option("--profile <name>", "use <home>/profiles/<name> instead of the home itself")
    .option("--json", "print the result as JSON, for machines")
    .showHelpAfterError("(add --help for what is possible)")
    .addHelpText("after", "\nExample:\n  $ postern demo\n\nHome: ~/.postern, or POSTERN_HOME");
  program.configureOutput({ writeOut: context.out, writeErr: context.err });
  // Set before the commands are added: they inherit it.
  program.exitOverride();
  for (const define of Object.values(commands) as DefineCommand[]) define(program, context);
  return program;
}

function report(error: unknown, context: Context): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
  if (error instanceof ConfigError) {
    const count = error.problems.length;
    context.err(`The configuration has ${count === 1 ? "a problem" : `${count} problems`}:\n`);
    for (const problem of error.problems) context.err(`  ${describeProblem(problem)}\n`);
    return exitCodes.config;
  }
  context.err(`postern: ${wordsFor(error)}\n`);
  return exitCodes.failed;
}

function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isExpected = error instanceof UserError || error instanceof StoreRefused || error instanceof StoreUnavailable;
  // The operating system refused something, for example to write into the home; its sentence names the path.
  const isSystem = "syscall" in error && "code" in error;
  return isExpected || isSystem ? error.message : (error.stack ?? error.message);
}
