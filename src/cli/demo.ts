import type { Command } from "commander";
import type { CommonOptions, Context } from "./context.ts";

/** `postern demo`: the whole way of four events, on a gateway of its own that ends by itself. */
export function demo(program: Command, context: Context): void {
  program
    .command("demo")
    .description("Show the gateway at work: real events, a temporary home, a local mail catcher; ends by itself")
    .addHelpText("after", "\nExample:\n  $ postern demo")
    .action(async (_options: CommonOptions, command: Command) => {
      const { runDemo } = await import("./demo/show.ts");
      await runDemo(context, command.optsWithGlobals<CommonOptions>());
    });
}
