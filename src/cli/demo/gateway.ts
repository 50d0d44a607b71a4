import { type ChildProcess, spawn } from "node:child_process";
import { UserError } from "../../core/errors.ts";
import { plainEnvironment } from "../../lib/spawn.ts";
import type { Context } from "../context.ts";

/** A gateway of the demo's own: a process like any other. */
export interface DemoGateway {
  readonly url: string;
  /** Stops it in good order. Throws when it does not end in one. */
  stop(): Promise<void>;
}

/** Starts a gateway on the given home and waits until it says where it listens. */
export async function startDemoGateway(home: string, context: Context, signal: AbortSignal): Promise<DemoGateway> {
  const [node = process.execPath, ...args] = context.self;
  // The channel ends a gateway whose demo was killed, as it does for the launcher (`main.ts`).
  const child = spawn(node, [...args, "gateway", "run"], {
    env: { ...plainEnvironment(context.env), POSTERN_HOME: home, POSTERN_LAUNCHER: "demo" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const ended = Promise.withResolvers<string>();
  child.once("close", (code, killedBy) => ended.resolve(String(code ?? killedBy)));
  child.once("error", (error) => ended.resolve(error.message));
  const stop = async () => {
    child.kill("SIGTERM");
    const end = await ended.promise;
    if (end !== "0" && !signal.aborted) throw new UserError(`The demo's gateway ended with ${end}; please report this`);
  };
  try {
    return { url: await startLine(child, ended.promise, signal), stop };
  } catch (error) {
    child.kill("SIGKILL");
    await ended.promise;
    throw error;
  }
}

function startLine(child: ChildProcess, ended: Promise<string>, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    const [, host, port] = /Postern listens on (127\.0\.0\.1):(\d+)/.exec(text) ?? [];
    if (port) resolve(`http://${host}:${port}`);
  });
  ended.then((end) => reject(new UserError(`The demo's gateway did not start (${end}):\n${text}`)));
  signal.addEventListener("abort", () => reject(signal.reason));
  if (signal.aborted) reject(signal.reason);
  return promise;
}
