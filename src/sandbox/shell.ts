import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { killGroup } from "../lib/spawn.ts";
import { ReplyReader } from "./output.ts";
import type { ExecOptions, ExecResult, Workspace, WorkspaceOptions } from "./sandbox.ts";
import { readyLine, request, stopLine } from "./supervisor.ts";

/** How a backend starts the supervisor and what it leaves behind. */
export interface ShellHost {
  /** Starts the supervisor as leader of a process group (`detached`), with its first three streams as pipes to us. */
  readonly start: () => ChildProcess;
  /** Ends the supervisor, whose standard input is closed already. Its whole group is killed when it then stays. */
  readonly end: (child: ChildProcess) => void;
  /** Runs once, after the supervisor's end, also when it was never started. */
  readonly cleanUp: (pid: number | undefined) => Promise<void>;
}

const openTimeoutMs = 10_000;

/** How long the inside may take to end a command that was told to stop, before the whole workspace is ended. */
const stopGraceMs = 1_000;

/** How long a supervisor may take to end once its workspace is closed. */
const endGraceMs = 1_000;

/** `setTimeout` takes anything longer for 1 ms. */
const longestTimerMs = 2 ** 31 - 1 - stopGraceMs;

/** At most this much is read in one go; after it a pause, so that an endless writer costs the gateway little. */
const burstBytes = 1024 * 1024;
const burstPauseMs = 20;

/** SIGKILL as a shell reports it. */
const killedStatus = 137;

const maxWordsBytes = 4096;

/**
 * Starts a supervisor and waits until it answers. Throws with the program's own words when it does not; then nothing of it
 * is left.
 */
export async function openShell(host: ShellHost, options: WorkspaceOptions): Promise<Workspace> {
  let shell: Shell | undefined;
  try {
    const variables = Object.entries(options.env);
    for (const [name, value] of variables) checkVariable(name, value);
    shell = new Shell(host, await started(host.start()), options.signal);
    await shell.ready();
    for (const [name, value] of variables) shell.setVariable(name, value);
    return shell;
  } catch (error) {
    await (shell ? shell.close() : host.cleanUp(undefined));
    throw error;
  }
}

/** A child that could not be started has no process and may not even have streams. */
async function started(child: ChildProcess): Promise<ChildProcess> {
  if (child.pid !== undefined) return child;
  const [error] = (await once(child, "error")) as [Error];
  throw new Error(`the workspace could not be started: ${error.message}`, { cause: error });
}

function checkVariable(name: string, value: string): void {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new TypeError(`"${name}" cannot be the name of a variable`);
  if (value.includes("\0")) throw new TypeError(`the value of "${name}" holds a NUL character`);
}

interface Running {
  readonly reply: ReplyReader;
  readonly end: (exitCode: number) => void;
  readonly fail: (error: Error) => void;
}

/** The gateway's end of a supervisor. The other end is hostile: whatever it sends that is not expected ends everything. */
class Shell implements Workspace {
  readonly #host: ShellHost;
  readonly #child: ChildProcess;
  readonly #signal: AbortSignal;
  readonly #abort = () => this.#break(new Error("the workspace was closed because its run was aborted"));
  readonly #exited = Promise.withResolvers<void>();
  readonly #ready = Promise.withResolvers<void>();
  #greeting = "";
  #words = "";
  #burst = 0;
  #running: Running | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #broken: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(host: ShellHost, child: ChildProcess, signal: AbortSignal) {
    this.#host = host;
    this.#child = child;
    this.#signal = signal;
    this.#child.once("exit", (code, killer) => this.#afterWords(() => this.#ended(killer ?? `status ${code}`)));
    // A pipe that breaks is followed by the exit that broke it.
    for (const stream of this.#child.stdio) stream?.on("error", () => {});
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#child.stderr?.on("data", (chunk: Buffer) => this.#hear(chunk));
    this.#ready.promise.catch(() => {});
    signal.addEventListener("abort", this.#abort, { once: true });
    if (signal.aborted) this.#abort();
  }

  async ready(): Promise<void> {
    const late = () => this.#break(new Error(`the workspace did not open within ${openTimeoutMs / 1000} s`));
    const timer = setTimeout(late, openTimeoutMs);
    await this.#ready.promise.finally(() => clearTimeout(timer));
  }

  setVariable(name: string, value: string): void {
    this.#child.stdin?.write(request("set", `${name}=${value}`, "-"));
  }

  exec(command: string, options: ExecOptions): Promise<ExecResult> {
    const result = this.#turn.then(() => this.#exec(command, options));
    this.#turn = result.catch(() => {});
    return result;
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #exec(command: string, options: ExecOptions): Promise<ExecResult> {
    if (this.#broken) throw this.#broken;
    if (command.includes("\0")) return unspeakable;
    const mark = randomBytes(16).toString("hex");
    const reply = new ReplyReader(mark, options.maxOutputBytes);
    const { promise, resolve: end, reject: fail } = Promise.withResolvers<number>();
    this.#running = { reply, end, fail };
    const clock = this.#startClock(options.timeoutMs, reply, end);
    this.#child.stdin?.write(request("run", command, mark));
    try {
      const exitCode = await promise;
      return { exitCode, ...reply.output.result(), timedOut: clock.stopped && exitCode === killedStatus };
    } finally {
      clearTimeout(clock.timer);
      this.#running = undefined;
    }
  }

  /** Asks the inside to end the command in time and, when it does not obey, ends the workspace. */
  #startClock(timeoutMs: number, reply: ReplyReader, end: (exitCode: number) => void) {
    const clock = { stopped: false, timer: undefined as NodeJS.Timeout | undefined };
    const giveUp = () => {
      reply.giveUp();
      end(killedStatus);
      this.#break(new Error("the workspace was ended because a command could not be stopped at its time limit"));
    };
    const stop = () => {
      clock.stopped = true;
      this.#child.stdin?.write(stopLine);
      clock.timer = setTimeout(giveUp, stopGraceMs);
    };
    clock.timer = setTimeout(stop, Math.min(timeoutMs, longestTimerMs));
    return clock;
  }

  #receive(chunk: Buffer): void {
    this.#rest(chunk.length);
    if (this.#greeting !== readyLine) this.#greet(chunk);
    // Output of processes left in the background while no command runs belongs to nobody.
    else if (this.#running !== undefined) this.#readReply(this.#running, chunk);
  }

  #readReply(running: Running, chunk: Buffer): void {
    try {
      const exitCode = running.reply.read(chunk);
      if (exitCode === undefined) return;
      running.end(exitCode);
      this.#running = undefined;
    } catch (error) {
      this.#break(error as Error);
    }
  }

  #greet(chunk: Buffer): void {
    this.#greeting += chunk.toString("latin1");
    if (this.#greeting === readyLine) this.#ready.resolve();
    else if (!readyLine.startsWith(this.#greeting)) this.#break(new Error("the workspace broke: no greeting"));
  }

  #rest(bytes: number): void {
    this.#burst += bytes;
    if (this.#burst < burstBytes) return;
    this.#burst = 0;
    this.#child.stdout?.pause();
    setTimeout(() => this.#child.stdout?.resume(), burstPauseMs);
  }

  #hear(chunk: Buffer): void {
    this.#words = (this.#words + chunk.toString()).slice(0, maxWordsBytes);
  }

  /** What the program said last may still be in the pipe when it has ended. */
  #afterWords(then: () => void): void {
    this.#exited.resolve();
    const stream = this.#child.stderr;
    if (!stream || stream.closed) then();
    else stream.once("close", then);
  }

  #ended(how: string): void {
    this.#exited.resolve();
    this.#break(new Error(`the workspace ended unexpectedly: ${this.#words.trim() || how}`));
  }

  #break(error: Error): void {
    this.#broken ??= error;
    // Whoever calls `close` is told when cleaning up fails.
    this.close().catch(() => {});
  }

  async #end(): Promise<void> {
    this.#broken ??= new Error("the workspace is closed");
    this.#signal.removeEventListener("abort", this.#abort);
    this.#ready.reject(this.#broken);
    this.#running?.fail(this.#broken);
    this.#child.stdin?.destroy();
    this.#host.end(this.#child);
    const patience = setTimeout(() => killGroup(this.#child.pid, "SIGKILL"), endGraceMs);
    await this.#exited.promise;
    clearTimeout(patience);
    killGroup(this.#child.pid, "SIGKILL");
    for (const stream of this.#child.stdio) stream?.destroy();
    await this.#host.cleanUp(this.#child.pid);
  }
}

const unspeakable: ExecResult = {
  exitCode: 126,
  output: "bash: a command cannot hold a NUL character\n",
  truncated: false,
  timedOut: false,
};
