import { type Command, Option } from "commander";
import type { CommonOptions, Context } from "./context.ts";
import type { CancelOptions } from "./events/cancel.ts";
import type { ExportOptions } from "./events/export.ts";
import { addFilters } from "./events/filters.ts";
import type { ImportOptions } from "./events/import.ts";
import type { ListOptions } from "./events/list.ts";
import type { ReplayOptions } from "./events/replay.ts";

/** `postern events …`: what arrived and what became of it. Works while the gateway runs, and while it does not. */
export function events(program: Command, context: Context): void {
  const group = program
    .command("events")
    .description("See what arrived and what became of it, do it again, stop it, carry it elsewhere")
    .addHelpText("after", "\nExample:\n  $ postern events list --limit 5");
  defineList(group, context);
  defineTail(group, context);
  defineShow(group, context);
  defineReplay(group, context);
  defineCancel(group, context);
  defineExport(group, context);
  defineImport(group, context);
}

function defineList(group: Command, context: Context): void {
  addFilters(group.command("list").description("List events, newest first"), "--route", 20)
    .option("--follow", "go on: print events as they come, and again when their state changes")
    .addHelpText(
      "after",
      "\nExample:\n  $ postern events list --state dead --since 7d\n  $ postern events list --follow --text acme/website",
    )
    .action(async (_options: ListOptions, command: Command) => {
      const options = command.optsWithGlobals<ListOptions>();
      if (options.follow) await (await import("./events/follow.ts")).follow(options, context);
      else await (await import("./events/list.ts")).list(options, context);
    });
}

function defineTail(group: Command, context: Context): void {
  addFilters(
    group.command("tail").description("Print events as they come, and again when their state changes: list --follow"),
    "--route",
    20,
  )
    .addHelpText("after", "\nExample:\n  $ postern events tail --route reviews")
    .action(async (_options: ListOptions, command: Command) => {
      const { follow } = await import("./events/follow.ts");
      await follow(command.optsWithGlobals<ListOptions>(), context);
    });
}

function defineShow(group: Command, context: Context): void {
  group
    .command("show <id>")
    .description("Show one event's whole life; the beginning of an id is enough")
    .addHelpText("after", "\nExample:\n  $ postern events show 019a2b3c")
    .action(async (id: string, _options: CommonOptions, command: Command) => {
      const { show } = await import("./events/show.ts");
      await show(id, command.optsWithGlobals<CommonOptions>(), context);
    });
}

function defineReplay(group: Command, context: Context): void {
  const command = group
    .command("replay [ids...]")
    .description("Do it again: the named events, or all that pass the filters. A running gateway takes them up at once")
    .addOption(
      new Option(
        "--from <step>",
        "start: decide and compose anew, with the route as it is now; run: the agent again, with the prompt of then; delivery: only send again what was not sent",
      )
        .choices(["start", "run", "delivery"])
        .default("start"),
    )
    .option("--route <name>", "onto another route; with --from start")
    .option("--all", "with --from delivery: also send again what was sent")
    .option("--dry-run", "change nothing, and show what would happen: ignored and why, or the prompt and the addresses")
    .option("--yes", "do not ask before many are replayed");
  addFilters(command, "--of-route")
    .addHelpText(
      "after",
      "\nExample:\n  $ postern events replay 019a2b3c --dry-run\n  $ postern events replay --state dead --since 1d --from delivery",
    )
    .action(async (ids: string[], _options: ReplayOptions, command: Command) => {
      const { replay } = await import("./events/replay.ts");
      await replay(ids, command.optsWithGlobals<ReplayOptions>(), command, context);
    });
}

function defineCancel(group: Command, context: Context): void {
  const command = group
    .command("cancel [ids...]")
    .description("Stop what has not ended: the named events, or all that pass the filters")
    .option("--yes", "do not ask before many are cancelled");
  addFilters(command, "--route")
    .addHelpText(
      "after",
      "\nExample:\n  $ postern events cancel 019a2b3c\n  $ postern events cancel --route reviews --state queued",
    )
    .action(async (ids: string[], _options: CancelOptions, command: Command) => {
      const { cancel } = await import("./events/cancel.ts");
      await cancel(ids, command.optsWithGlobals<CancelOptions>(), command, context);
    });
}

function defineExport(group: Command, context: Context): void {
  addFilters(
    group.command("export").description("Write events with all that became of them, one JSON object a line"),
    "--route",
  )
    .option("--output <file>", "write to this file instead of standard output; it is replaced when all is written")
    .addHelpText("after", "\nExample:\n  $ postern events export --since 30d --output events.jsonl")
    .action(async (_options: ExportOptions, command: Command) => {
      const { exportEvents } = await import("./events/export.ts");
      await exportEvents(command.optsWithGlobals<ExportOptions>(), context);
    });
}

function defineImport(group: Command, context: Context): void {
  group
    .command("import <file>")
    .description(
      "Read events that were exported, from a file or from standard input (-); those that are there are skipped",
    )
    .option("--resume", "go on here with what had not ended; without it, that is cancelled")
    .addHelpText("after", "\nExample:\n  $ postern events import events.jsonl")
    .action(async (file: string, _options: ImportOptions, command: Command) => {
      const { importEvents } = await import("./events/import.ts");
      await importEvents(file, command.optsWithGlobals<ImportOptions>(), context);
    });
}
