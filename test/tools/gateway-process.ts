import type { TestContext } from "node:test";
import type { Home } from "../../src/config/home.ts";
import { type Ended, mainPath, type Program, startProgram } from "./program.ts";

/** A gateway in a process of its own that listens. */
export interface GatewayProcess extends Program {
  readonly host: string;
  readonly port: number;
  /** `http://host:port` */
  readonly url: string;
  /** The lines of its log so far. */
  log(): Record<string, unknown>[];
  /** SIGTERM, then its end. */
  stop(): Promise<Ended>;
}

export interface GatewayOptions {
  /** After `gateway run`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** What stands before `gateway run`; this Node and `src/main.ts` when not set. */
  readonly program?: readonly string[];
}

/** Starts `postern gateway run` on a home and waits until it listens. It is killed when the test ends, if it still runs. */
export async function startGatewayProcess(
  t: TestContext,
  home: Pick<Home, "folder">,
  options: GatewayOptions = {},
): Promise<GatewayProcess> {
  const argv = [...(options.program ?? [process.execPath, mainPath]), "gateway", "run", ...(options.args ?? [])];
  const program = startProgram(t, argv, { env: { HOME: home.folder, POSTERN_HOME: home.folder, ...options.env } });
  const [, host = "", port] = await program.said(/Postern listens on (\S+):(\d+),/);
  // Not spread: what it has written grows.
  return Object.assign(Object.create(program) as Program, {
    host,
    port: Number(port),
    url: `http://${host}:${port}`,
    log: () => logLines(program.err),
    stop() {
      program.kill("SIGTERM");
      return program.ended;
    },
  });
}

/** The lines of a JSON log. */
export function logLines(text: string): Record<string, unknown>[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
