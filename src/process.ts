import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { fileURLToPath } from "node:url";
import type { Context } from "./cli/context.ts";
import { LineWriter } from "./lib/lines.ts";

/** What goes to the log as a message counts as delivered when it is written within this time. */
const logPatienceMs = 10_000;

/** A second signal this long after the first means that somebody will not wait. */
const patienceMs = 1_000;

/** The real world for the commands: this process's arguments, environment, streams and signals. */
export function createContext(): Context {
  const main = fileURLToPath(new URL(`./main.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url));
  let isHeard = true;
  return {
    env: process.env,
    out: (text) => {
      isHeard = writeAll(1, text);
    },
    err: (text) => void writeAll(2, text),
    isHeard: () => isHeard,
    terminal: () => (isatty(0) && isatty(2) ? { input: process.stdin, output: process.stderr } : undefined),
    readInput: async () => (await import("node:stream/consumers")).text(process.stdin),
    input: () => process.stdin,
    self: [process.execPath, main],
    async startGateway(load, role) {
      const { startGateway } = await import("./start.ts");
      const lines = new LineWriter(2);
      const write = (line: string) => lines.write(line);
      return startGateway(load, { pretty: isatty(2), write, flush: () => lines.flush(logPatienceMs) }, role);
    },
    onStop,
    onReload: (reload) => void process.on("SIGHUP", reload),
    setExitCode: (code) => {
      process.exitCode = code;
    },
  };
}

/**
 * Writes at once, so that what was said is out even when the process is killed in the next moment. Answers whether anybody
 * reads it.
 */
function writeAll(descriptor: number, text: string): boolean {
  const bytes = Buffer.from(text);
  for (let offset = 0; offset < bytes.length; ) {
    try {
      offset += writeSync(descriptor, bytes, offset);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Nobody reads any more (`postern events list | head`): there is nothing left to say.
      if (code === "EPIPE") return false;
      // A pipe whose reader is slow; it is read sooner or later.
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
  return true;
}

function onStop(stop: () => void): void {
  let firstAt: number | undefined;
  const onSignal = () => {
    firstAt ??= Date.now();
    if (Date.now() - firstAt > patienceMs) process.exit(1);
    stop();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
