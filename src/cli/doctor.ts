import type { Command } from "commander";
import { type CommonOptions, type Context, homeOf, print } from "./context.ts";
import type { Finding, Grade } from "./doctor/finding.ts";

/** `postern doctor`: everything that may keep the gateway from doing its work, and what to do about it. */
export function doctor(program: Command, context: Context): void {
  program
    .command("doctor")
    .description("Look at everything that may be wrong, and say what to do; exits 1 when something does not work")
    .addHelpText("after", "\nExample:\n  $ postern doctor")
    .action(async (_options: CommonOptions, command: Command) =>
      examine(command.optsWithGlobals<CommonOptions>(), context),
    );
}

async function examine(options: CommonOptions, context: Context): Promise<void> {
  const { examineHome } = await import("./doctor/examine.ts");
  const found = await examineHome(homeOf(context, options), context);
  const count = (grade: Grade) => found.filter((finding) => finding.grade === grade).length;
  const [problems, warnings] = [count("problem"), count("warning")];
  if (problems > 0) context.setExitCode(1);
  const result = { ok: problems === 0, problems, warnings, findings: found };
  print(context, options, result, [...found.flatMap(inWords), "", summary(problems, warnings)]);
}

function inWords({ check, grade, text, details = [], next }: Finding): string[] {
  const mark = { ok: "ok", warning: "warning", problem: "PROBLEM" }[grade].padEnd(7);
  return [
    `${mark}  ${check}: ${text}`,
    ...details.map((detail) => `           ${detail}`),
    ...(next === undefined ? [] : [`         > ${next}`]),
  ];
}

function summary(problems: number, warnings: number): string {
  if (problems + warnings === 0) return "All is well";
  const of = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;
  return `${of(problems, "problem")}, ${of(warnings, "warning")}`;
}
