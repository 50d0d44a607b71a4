import { type ChildProcess, spawn } from "node:child_process";
import { UserError } from "../../core/errors.ts";
import { plainEnvironment } from "../../lib/spawn.ts";
import type { Context } from "../context.ts";

/** A gateway of the demo's own: a process like any other. */
export interface DemoGateway {
  readonly url: string;
  /** Stops it in good order. Answers its exit code. */
  stop(): Promise<number | null>;
}

/** Starts a gateway on the given home and waits until it says where it listens. */
export async function startDemoGateway(home: string, context: Context): Promise<DemoGateway> {
  const [node = process.execPath, ...args] = context.self;
  const child = spawn(node, [...args, "gateway", "run"], {
    env: { ...plainEnvironment(context.env), POSTERN_HOME: home },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const url = await startLine(child);
  return {
    url,
    stop() {
      const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      return ended;
    },
  };
}

function startLine(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    const [, host, port] = /Postern listens on (127\.0\.0\.1):(\d+)/.exec(text) ?? [];
    if (port) resolve(`http://${host}:${port}`);
  });
  child.once("exit", () => reject(new UserError(`The demo's gateway did not start:\n${text}`)));
  return promise;
}
