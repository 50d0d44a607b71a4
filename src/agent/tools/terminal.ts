import type { ExecResult } from "../../sandbox/sandbox.ts";
import type { Tool } from "./tool.ts";

/** Runs shell commands in the run's own workspace, wherever `terminal.backend` keeps it. */
export const terminal: Tool = {
  description:
    "Runs a bash command line in this run's own workspace folder, which is empty at first. Commands share files, not " +
    "shell state. Answers with the exit code and the output (standard output and standard error).",
  parameters: {
    type: "object",
    properties: { command: { type: "string", description: "The bash command line" } },
    required: ["command"],
    additionalProperties: false,
  },
  async call(input, bench) {
    return describe(await bench.exec(commandOf(input)));
  },
};

function commandOf(input: unknown): string {
  const command = typeof input === "object" && input !== null && "command" in input ? input.command : undefined;
  if (typeof command === "string" && command.trim() !== "") return command;
  throw new Error('The terminal takes {"command": "…"} with the command line as text');
}

function describe(result: ExecResult): string {
  const lines = [`exit code: ${result.exitCode}`];
  if (result.timedOut) lines.push("timed out: the command took too long and was ended");
  if (result.truncated) lines.push("truncated: the middle of the output was cut out");
  return `${lines.join("\n")}\n\n${result.output === "" ? "(no output)" : result.output}`;
}
