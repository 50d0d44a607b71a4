import type { Command } from "commander";
import type { CommonOptions, Context } from "./context.ts";
import type { SendOptions } from "./target/send.ts";
import { appendPair } from "./values.ts";

/** `postern target …`: the services that messages can go to, whether they work, and a message to try them. */
export function target(program: Command, context: Context): void {
  const group = program
    .command("target")
    .description("See which services messages can go to, whether they work, and send one a message")
    .addHelpText("after", "\nExample:\n  $ postern target list");
  group
    .command("list")
    .description("List all targets: whether they can be used, and if not what is missing, and which routes use them")
    .addHelpText("after", "\nExample:\n  $ postern target list")
    .action(async (_options: CommonOptions, command: Command) => {
      const { list } = await import("./target/list.ts");
      await list(command.optsWithGlobals<CommonOptions>(), context);
    });
  group
    .command("check [names...]")
    .description("Ask the services whether the settings work, without sending anything; exits 1 when one does not")
    .addHelpText("after", "\nExample:\n  $ postern target check\n  $ postern target check slack email")
    .action(async (names: string[], _options: CommonOptions, command: Command) => {
      const { check } = await import("./target/check.ts");
      await check(names, command.optsWithGlobals<CommonOptions>(), context);
    });
  defineSend(group, context);
}

function defineSend(group: Command, context: Context): void {
  group
    .command("send <name> [text]")
    .description("Really send a message, at once and without a record of it; - reads it from standard input")
    .option("--chat-id <id>", "chat, channel or address, in place of the home channel")
    .option("--extra <key=value>", "a key of the address, as in deliver_extra; repeat for more", appendPair)
    .addHelpText(
      "after",
      '\nExample:\n  $ postern target send telegram "Hello from Postern"\n  $ postern target send github_comment - --extra repo=acme/website --extra number=7 < answer.md',
    )
    .action(async (name: string, text: string | undefined, _options: SendOptions, command: Command) => {
      const { send } = await import("./target/send.ts");
      await send(name, text, command.optsWithGlobals<SendOptions>(), context);
    });
}
