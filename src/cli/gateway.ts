import { type Command, InvalidArgumentError } from "commander";
import type { Home } from "../config/home.ts";
import { UserError } from "../core/errors.ts";
import { type CommonOptions, type Context, homeOf, print, type StartedGateway } from "./context.ts";

interface RunOptions extends CommonOptions {
  readonly host?: string;
  readonly port?: number;
}

/** `postern gateway [run]`: the gateway itself. */
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
    .addHelpText("after", "\nExample:\n  $ postern gateway run --host 127.0.0.1 --port 8644")
    .action(async (_options: RunOptions, command: Command) => run(command.optsWithGlobals<RunOptions>(), context));
}

/** A TCP port in digits. */
export function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("Expected a whole number from 0 to 65535");
}

async function run(options: RunOptions, context: Context): Promise<void> {
  const { loadConfig } = await import("../config/load.ts");
  const home = homeOf(context, options);
  const load = async () => {
    const config = await loadConfig({ home, env: context.env, host: options.host, port: options.port });
    if (!config.webhook.enabled) throw new UserError(whatToDoNext(home));
    return config;
  };
  const stopped = Promise.withResolvers<void>();
  // From the start: a signal that comes while the ledger opens must not kill the process half-way.
  context.onStop(stopped.resolve);
  const running = await context.startGateway(load);
  context.onReload(() => void running.reload());
  announce(running);
  const { host, port, routes } = running;
  print(context, options, { host, port, routes, home: home.folder }, []);
  await stopped.promise;
  await running.stop();
}

function announce({ host, port, routes, log, config }: StartedGateway): void {
  for (const warning of config.warnings) log.warn({ file: config.home.config }, warning);
  const names = routes.length > 0 ? `routes: ${routes.join(", ")}` : "no routes yet";
  log.info(
    { host, port, routes, home: config.home.folder, pid: process.pid },
    `Postern listens on ${inUrl(host)}:${port}, ${names}`,
  );
  if (routes.length === 0)
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

WEBHOOK_ENABLED=true in the environment or in ${home.dotenv} enables it too. To look around first: postern demo`;
}
