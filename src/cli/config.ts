import type { Command } from "commander";
import { ConfigError } from "../core/errors.ts";
import { type CommonOptions, type Context, homeOf, print } from "./context.ts";

/** `postern config check|schema`: is the configuration right, before the gateway is started with it, and help in writing it. */
export function config(program: Command, context: Context): void {
  const group = program
    .command("config")
    .description("Look at the configuration")
    .addHelpText("after", "\nExample:\n  $ postern config check");
  group
    .command("check")
    .description(
      "Check config.yaml, .env and the environment; prints every problem at once and exits 78 if there is one",
    )
    .addHelpText("after", "\nExample:\n  $ postern config check")
    .action(async (_options: CommonOptions, command: Command) =>
      check(command.optsWithGlobals<CommonOptions>(), context),
    );
  group
    .command("schema")
    .description("Print the JSON Schema of config.yaml, with which editors complete and check it")
    .addHelpText("after", schemaHelp)
    .action(async () => {
      const { configJsonSchema } = await import("../config/json-schema.ts");
      context.out(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
    });
}

const schemaHelp = `
Example:
  $ postern config schema > ~/.postern/config.schema.json

Then write this as the first line of ~/.postern/config.yaml (for the YAML language server, in most editors):
  # yaml-language-server: $schema=config.schema.json`;

async function check(options: CommonOptions, context: Context): Promise<void> {
  const { loadConfig } = await import("../config/load.ts");
  const home = homeOf(context, options);
  const loaded = await loadConfig({ home, env: context.env }).catch((error: unknown) => {
    // A machine finds the problems in the one place where it looks for the result.
    if (options.json && error instanceof ConfigError) {
      print(context, options, { ok: false, file: home.config, problems: error.problems }, []);
    }
    throw error;
  });
  const { webhook, routes, warnings, agent } = loaded;
  const { enabled, host, port } = webhook;
  const summary = {
    ok: true,
    file: home.config,
    enabled,
    host,
    port,
    routes: [...routes.keys()],
    agent: agent.backend,
    warnings,
  };
  print(context, options, summary, [
    `${home.config}: no problems`,
    `  gateway  ${enabled ? `enabled, ${host} port ${port}` : 'not enabled; set "platforms.webhook.enabled: true"'}`,
    `  routes   ${[...routes.keys()].join(", ") || "none"}`,
    `  agent    ${agent.backend}`,
    ...warnings.map((warning) => `  warning  ${warning}`),
  ]);
}
