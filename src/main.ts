import { version } from "./cli/version.ts";

// The launcher (bin/postern) may have started this process for an older Node. When it is killed it cannot pass that on, so
// the closing of its channel has to do: a gateway without its parent would hold port and ledger against the next one.
if (process.env.POSTERN_LAUNCHER !== undefined && process.channel) {
  delete process.env.POSTERN_LAUNCHER;
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel.unref();
}

const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  process.stdout.write(`${version()}\n`);
} else {
  const { runCli } = await import("./cli/cli.ts");
  const { createContext } = await import("./process.ts");
  process.exitCode = await runCli(args, createContext());
}
