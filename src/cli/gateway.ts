import { type Command, InvalidArgumentError, Option } from "commander";
import type { Home } from "../config/home.ts";
import { UserError } from "../core/errors.ts";
import { type CommonOptions, type Context, homeOf, print, type Role, type StartedGateway } from "./context.ts";
import type { SetupOptions } from "./setup/flags.ts";
import { appendPair, parsePort } from "./values.ts";

interface RunOptions extends CommonOptions {
  readonly host?: string;
  readonly port?: number;
  readonly role?: Role;
}

/** `postern gateway [run]`: the gateway itself; `postern gateway setup`: its configuration, by questions or flags. */
export function gateway(program: Command, context: Context): void {
  const group = program
    .command("gateway")
    .description("Receive webhooks and work on them")
    .addHelpText("after", "\nExample:\n  $ postern gateway run --port 8644");
  group
    .command("run", { isDefault: true })
    .description("Start the gateway and run until SIGTERM or SIGINT; --json prints the address once it listens")
    .option("--host <address>", "bind address (default 0.0.0.0)")
    .option("--port <number>", "listen port, 0 for any free one (default 8644)", parsePort)
    .addOption(
      new Option("--role <role>", "with a shared database: all, ingest (receive only), worker (work only, no port)")
        .choices(["all", "ingest", "worker"])
        .default("all"),
    )
    .addHelpText("after", "\nExample:\n  $ postern gateway run --host 127.0.0.1 --port 8644")
    .action(async (_options: RunOptions, command: Command) => run(command.optsWithGlobals<RunOptions>(), context));
  defineSetup(group, context);
}

function defineSetup(group: Command, context: Context): void {
  const setup = group
    .command("setup")
    .description("Set up the gateway: asks, or takes flags; keeps the comments of config.yaml, writes secrets to .env");
  addGatewayFlags(setup);
  addTargetFlags(setup);
  setup
    .option("--yes", "ask nothing: what no flag names stays as it is, or gets its default")
    .addHelpText("after", setupExamples)
    .action(async (_options: SetupOptions, command: Command) => {
      const { setUp } = await import("./setup.ts");
      await setUp(command.optsWithGlobals<SetupOptions>(), command, context);
    });
}

function addGatewayFlags(setup: Command): void {
  setup
    .option("--enable", "receive webhooks (default of --yes)")
    .option("--no-enable", "do not")
    .option("--host <address>", "bind address (default 0.0.0.0)")
    .option("--port <number>", "listen port (default 8644)", parsePort)
    .option("--secret <secret>", "secret of routes without their own; - reads it from standard input")
    .option("--generate-secret", "make one if there is none yet (default of --yes), and print it once")
    .option("--agent-backend <name>", "builtin (a model), command (a program), preview (answers with the prompt)")
    .option("--agent-command <command>", "program and arguments of that agent: words, or a JSON list")
    .option("--model-provider <name>", "openai, anthropic, google, openai-compatible or ollama")
    .option("--model-name <name>", "name of the model")
    .option("--model-base-url <url>", "address of the model's server")
    .option("--model-key <->", "- reads the model's API key from standard input", onlyInput)
    .option("--terminal-backend <name>", "where the agent's shell commands run (default sandbox)");
}

function addTargetFlags(setup: Command): void {
  setup
    .option("--target <name>", "chat target to set up, for example telegram or email")
    .option(
      "--target-setting <key=value>",
      "a setting of the target; repeat for more; key=- reads standard input",
      appendPair,
    )
    .option("--home-channel <id>", "chat, channel or address that messages go to when a route names none")
    .option("--test-message", "send a message to the home channel first; nothing is written when it is refused");
}

const setupExamples = `
Example:
  $ postern gateway setup
  $ postern gateway setup --yes --host 127.0.0.1 --agent-backend preview
  $ postern gateway setup --yes --target telegram --target-setting token=- --home-channel 42 --test-message < token.txt`;

/** A key among the arguments would stand in the list of processes, for every user to see. */
function onlyInput(text: string): string {
  if (text === "-") return text;
  throw new InvalidArgumentError('Give "-" and the key on standard input, or put it into .env');
}

async function run(options: RunOptions, context: Context): Promise<void> {
  const { loadConfig } = await import("../config/load.ts");
  const home = homeOf(context, options);
  const load = async () => {
    const config = await loadConfig({ home, env: context.env, host: options.host, port: options.port });
    if (!config.webhook.enabled && options.role !== "worker") throw new UserError(whatToDoNext(home));
    return config;
  };
  const stopped = Promise.withResolvers<void>();
  // From the start: a signal that comes while the ledger opens must not kill the process half-way.
  context.onStop(stopped.resolve);
  const running = await context.startGateway(load, options.role);
  context.onReload(() => void running.reload());
  announce(running);
  const { address, routes } = running;
  print(context, options, { ...address, role: options.role, routes, home: home.folder }, []);
  await stopped.promise;
  await running.stop();
}

function announce({ address, routes, log, config }: StartedGateway): void {
  for (const warning of config.warnings) log.warn({ file: config.home.config }, warning);
  const names = routes.length > 0 ? `routes: ${routes.join(", ")}` : "no routes yet";
  const doing = address ? `listens on ${inUrl(address.host)}:${address.port}` : "works, and listens nowhere";
  log.info({ ...address, routes, home: config.home.folder, pid: process.pid }, `Postern ${doing}, ${names}`);
  if (routes.length === 0 && address)
    log.info({}, 'Make a first route with "postern webhook subscribe NAME", or under "routes" in config.yaml');
}

function inUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function whatToDoNext(home: Home): string {
  return `The webhook gateway is not enabled in "${home.folder}". To begin:

  1. Write ${home.config}:

       platforms:
         webhook:
           enabled: true
           host: 127.0.0.1
       agent:
         backend: preview   # answers with the prompt; set up a model later

  2. Start it:             postern gateway run
  3. Make a first route:   postern webhook subscribe hello --prompt "Say hello to {name}"
  4. Send an event to it:  postern webhook test hello --payload '{"name":"Ada"}'

WEBHOOK_ENABLED=true in the environment or in ${home.dotenv} enables it too. To be asked
for all of this instead: postern gateway setup. To look around first: postern demo`;
}
