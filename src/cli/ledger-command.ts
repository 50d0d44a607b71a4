import type { Command } from "commander";
import type { CommonOptions, Context } from "./context.ts";
import type { BackupOptions } from "./ledger/backup.ts";
import type { ImportOptions } from "./ledger/import.ts";

/** `postern ledger …`: looking after the file, or the database, that holds everything that was accepted. */
export function ledger(program: Command, context: Context): void {
  const group = program
    .command("ledger")
    .description("Check, back up, compact and move the ledger")
    .addHelpText("after", "\nExample:\n  $ postern ledger check");
  group
    .command("check [file]")
    .description("Look for damage and for what should not be, while the gateway runs or not; exits 1 when there is any")
    .addHelpText("after", "\nExample:\n  $ postern ledger check\n  $ postern ledger check ~/backup/ledger.db")
    .action(async (file: string | undefined, _options: CommonOptions, command: Command) => {
      const { check } = await import("./ledger/check.ts");
      await check(file, command.optsWithGlobals<CommonOptions>(), context);
    });
  group
    .command("backup <file>")
    .description("Copy the ledger to a file, while the gateway runs or not")
    .option("--force", "replace the file if it is there")
    .addHelpText("after", "\nExample:\n  $ postern ledger backup ~/backup/ledger.db")
    .action(async (file: string, _options: BackupOptions, command: Command) => {
      const { backup } = await import("./ledger/backup.ts");
      await backup(file, command.optsWithGlobals<BackupOptions>(), context);
    });
  group
    .command("compact")
    .description("Give the space of what was forgotten back to the disk, while the gateway runs or not")
    .addHelpText("after", "\nExample:\n  $ postern ledger compact")
    .action(async (_options: CommonOptions, command: Command) => {
      const { compact } = await import("./ledger/compact.ts");
      await compact(command.optsWithGlobals<CommonOptions>(), context);
    });
  group
    .command("import")
    .description(
      "Bring a SQLite ledger and the subscriptions beside it into the PostgreSQL database of the configuration",
    )
    .option("--from <path>", "another home, or the file of a ledger (default: this home)")
    .addHelpText("after", "\nExample:\n  $ postern ledger import --from ~/.postern")
    .action(async (_options: ImportOptions, command: Command) => {
      const { importLedger } = await import("./ledger/import.ts");
      await importLedger(command.optsWithGlobals<ImportOptions>(), context);
    });
}
