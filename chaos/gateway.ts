import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { mainPath } from "../test/tools/program.ts";
import type { Role } from "./plan.ts";
import { pause, within } from "./wait.ts";

export interface GatewaySettings {
  readonly index: number;
  /** Its home, with a configuration in it. */
  readonly home: string;
  readonly role: Role;
  /** Where it listens, unless it only works. */
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
}

const startTimeoutMs = 60_000;
const stopTimeoutMs = 45_000;

/** A gateway in a process of its own, which is started again after each end that somebody brought about. */
export class ChaosGateway {
  readonly settings: GatewaySettings;
  /** File that all its processes write their log to. */
  readonly logFile: string;
  /** Ends that nobody asked for, in words. */
  readonly surprises: string[] = [];
  #child: ChildProcess | undefined;
  #starting: Promise<void> | undefined;
  #isWanted = false;
  #isReady = false;

  constructor(settings: GatewaySettings) {
    this.settings = settings;
    this.logFile = join(settings.home, "gateway.log");
  }

  /** True when senders may be led to it. One that is frozen takes connections all the same. */
  get listens(): boolean {
    return this.#isReady && this.settings.role !== "worker";
  }

  /** Starts it, again and again while its database is away, as a supervisor does. Fulfils when it is ready. */
  start(): Promise<void> {
    this.#isWanted = true;
    this.#starting ??= this.#startUntilReady().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** SIGKILL, and its end. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** SIGTERM, and its end, which must come in time and with exit code 0. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (!child || hasEnded(child)) return;
    const timer = setTimeout(() => {
      this.surprises.push(`did not end within ${stopTimeoutMs} ms after SIGTERM`);
      child.kill("SIGKILL");
    }, stopTimeoutMs);
    await this.#end("SIGTERM");
    clearTimeout(timer);
    if (child.exitCode !== 0 && child.signalCode !== "SIGKILL") {
      this.surprises.push(`ended with exit code ${child.exitCode}, signal ${child.signalCode} after SIGTERM`);
    }
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  async #startUntilReady(): Promise<void> {
    const deadline = performance.now() + startTimeoutMs;
    while (this.#isWanted && performance.now() < deadline) {
      if (await this.#startOnce(deadline - performance.now())) return;
      await pause(250);
    }
    if (this.#isWanted) this.surprises.push(`does not start within ${startTimeoutMs} ms`);
  }

  async #startOnce(timeoutMs: number): Promise<boolean> {
    const offset = sizeOf(this.logFile);
    const child = this.#spawn();
    this.#child = child;
    const isReady = () => /Postern (listens on|works, and)/.test(readFrom(this.logFile, offset));
    await within(timeoutMs, () => hasEnded(child) || isReady());
    this.#isReady = !hasEnded(child) && isReady();
    return this.#isReady;
  }

  #spawn(): ChildProcess {
    const { home, role, env } = this.settings;
    const log = openSync(this.logFile, "a");
    const argv = [mainPath, "gateway", "run", ...(role === "all" ? [] : ["--role", role])];
    const child = spawn(process.execPath, argv, {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home, POSTERN_HOME: home, TMPDIR: home, ...env },
      stdio: ["ignore", "ignore", log],
    });
    closeSync(log);
    child.on("exit", (code, signal) => {
      // One that cannot start ends by itself, and is started again.
      if (this.#child === child && this.#isWanted && this.#isReady) {
        this.surprises.push(`ended by itself with exit code ${code}, signal ${signal}`);
        void this.start();
      }
      this.#isReady = false;
    });
    return child;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#isWanted = false;
    this.#isReady = false;
    const child = this.#child;
    if (!child || hasEnded(child)) return;
    const ended = once(child, "exit");
    child.kill(signal);
    // What is frozen hears nothing but SIGKILL.
    child.kill("SIGCONT");
    await ended;
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function readFrom(file: string, offset: number): string {
  return readFileSync(file).subarray(offset).toString("utf8");
}
