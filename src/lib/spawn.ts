import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import type { Environment } from "../core/types.ts";

export interface Program {
  /** Program and arguments; no shell is ever between. Nothing secret and nothing a stranger wrote at length belongs here. */
  readonly argv: readonly string[];
  /** The whole environment of the child: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string | Buffer;
  readonly timeoutMs: number;
  /** For standard output and standard error each; a program that prints more is ended. */
  readonly maxOutputBytes: number;
  readonly signal?: AbortSignal;
  /** Time between SIGTERM and SIGKILL to the process group; 0 sends SIGKILL at once. */
  readonly graceMs?: number;
}

export interface Finished {
  /** `missing`: the program could not be started, `errorCode` says why. The others but `exited`: it was ended by us. */
  readonly end: "exited" | "timeout" | "aborted" | "overflow" | "missing";
  /** With `missing`: ENOENT and EACCES are lasting; EMFILE, ENFILE, EAGAIN and ENOMEM mean that the machine is short of something. */
  readonly errorCode?: string;
  /** `null` when a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/**
 * Runs a program in a process group of its own and waits for its end. Never throws: what went wrong is in `end`.
 * When it returns, no process of the group is left.
 */
export function run(program: Program): Promise<Finished> {
  const [file, ...args] = program.argv;
  if (file === undefined) throw new TypeError("run: argv is empty");
  const child = start(file, args, program);
  if (child instanceof Error) return Promise.resolve(unstarted(child));
  if (child.pid === undefined) return once(child, "error").then(([error]) => unstarted(error), unstarted);
  const { promise, resolve } = Promise.withResolvers<Finished>();
  let end: Finished["end"] = "exited";
  let escalation: NodeJS.Timeout | undefined;

  const stop = (why: Finished["end"]) => {
    if (end !== "exited" || child.exitCode !== null || child.signalCode !== null) return;
    end = why;
    if (!program.graceMs) return killGroup(child.pid, "SIGKILL");
    killGroup(child.pid, "SIGTERM");
    escalation = setTimeout(() => killGroup(child.pid, "SIGKILL"), program.graceMs);
  };
  const timer = setTimeout(() => stop("timeout"), program.timeoutMs);
  const onAbort = () => stop("aborted");
  const stdout = collect(child.stdout, program.maxOutputBytes, () => stop("overflow"));
  const stderr = collect(child.stderr, program.maxOutputBytes, () => stop("overflow"));

  const settle = (last: Finished["end"], exitCode: number | null) => {
    clearTimeout(timer);
    clearTimeout(escalation);
    program.signal?.removeEventListener("abort", onAbort);
    resolve({ end: last, exitCode, stdout: stdout(), stderr: stderr() });
  };
  // It was started: what fails now is a signal to a process that is gone.
  child.on("error", () => {});
  child.once("exit", () => {
    killGroup(child.pid, "SIGKILL");
    // A survivor in another session may hold the pipes open for ever; what it writes is not waited for.
    const patience = setTimeout(() => {
      child.stdout.destroy();
      child.stderr.destroy();
    }, 500);
    child.once("close", () => clearTimeout(patience));
  });
  child.once("close", (code) => settle(end, code));

  // A program that does not read its input closes the pipe early: that is its right, not an error.
  child.stdin.on("error", () => {});
  child.stdin.end(program.stdin ?? "");
  if (program.signal?.aborted) onAbort();
  program.signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}

/** Node throws some failures (E2BIG, a NUL in an argument) and emits others; without pipes left it makes a child without streams. */
function start(file: string, args: string[], { cwd, env }: Program): ChildProcessWithoutNullStreams | Error {
  try {
    return spawn(file, args, { cwd, env: { ...env }, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function unstarted(error: unknown): Finished {
  const errorCode = error instanceof Error && "code" in error ? String(error.code) : "UNKNOWN";
  return { end: "missing", errorCode, exitCode: null, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
}

/** Sends a signal to every process of the group that `pid` leads; nobody there is fine. */
export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: all of them are gone already.
  }
}

function collect(stream: NodeJS.ReadableStream, maxBytes: number, overflow: () => void): () => Buffer {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    const room = maxBytes - size;
    if (room > 0) chunks.push(chunk.subarray(0, room));
    size += chunk.length;
    if (size > maxBytes) overflow();
  });
  return () => Buffer.concat(chunks);
}

/**
 * The few variables a child needs to work at all: PATH (without the `node_modules/.bin` folders that `npm start` puts in
 * front of it), HOME, LANG and TZ. Secrets of the gateway are not among them.
 */
export function plainEnvironment(env: Environment): Record<string, string> {
  const path = (env.PATH ?? "/usr/local/bin:/usr/bin:/bin")
    .split(":")
    .filter((folder) => !/node_modules\/\.bin$|node-gyp-bin$/.test(folder))
    .join(":");
  const plain: Record<string, string> = { PATH: path };
  for (const name of ["HOME", "LANG", "TZ"]) {
    const value = env[name];
    if (value !== undefined) plain[name] = value;
  }
  return plain;
}
