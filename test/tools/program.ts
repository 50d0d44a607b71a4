import { spawn } from "node:child_process";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

export const mainPath = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
export const binPath = fileURLToPath(new URL("../../bin/postern", import.meta.url));

export interface Ended {
  /** `null` when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** A process that a test started. */
export interface Program {
  readonly pid: number;
  /** What it has written so far. */
  readonly out: string;
  readonly err: string;
  /** Fulfils when it has ended and all it wrote is here. */
  readonly ended: Promise<Ended>;
  /** Waits until standard error matches; fails when the process ends first. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
}

export interface ProgramOptions {
  /** The whole environment besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
}

/** Starts a program; it is killed when the test ends, if it still runs. */
export function startProgram(t: TestContext, argv: readonly string[], options: ProgramOptions = {}): Program {
  const [file = "", ...args] = argv;
  const env = { PATH: process.env.PATH, ...options.env };
  const child = spawn(file, args, { env, cwd: options.cwd, stdio: ["pipe", "pipe", "pipe"] });
  if (child.pid === undefined) throw new Error(`Cannot start "${file}"`);
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin ?? "");
  const written = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    written.err += text;
  });
  const ended = once(child, "close").then(
    ([code, signal]): Ended => ({ code: code as number | null, signal: signal as NodeJS.Signals | null, ...written }),
  );
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
  });
  return {
    pid: child.pid,
    get out() {
      return written.out;
    },
    get err() {
      return written.err;
    },
    ended,
    said(pattern) {
      const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
      const look = () => {
        const match = pattern.exec(written.err);
        if (!match) return;
        child.stderr.off("data", look);
        resolve(match);
      };
      child.stderr.on("data", look);
      look();
      ended.then(() => reject(new Error(`The program ended without saying ${pattern}: ${written.err}`)), reject);
      return promise;
    },
    kill: (signal) => void child.kill(signal),
  };
}

/** Runs `postern` as a real process to its end. */
export function postern(t: TestContext, args: readonly string[], options?: ProgramOptions): Promise<Ended> {
  return startProgram(t, [process.execPath, mainPath, ...args], options).ended;
}
