import type { Config } from "../config/load.ts";
import { ConfigError, describeProblem } from "../core/errors.ts";
import { fileSignature } from "../lib/file.ts";
import type { Log } from "../lib/log.ts";

export interface ReloadOptions {
  /** Reads and checks the configuration anew. */
  readonly load: () => Promise<Config>;
  /** Files whose change is reason to do so. */
  readonly files: readonly string[];
  /** Puts a good configuration in force. */
  readonly apply: (config: Config) => void;
  readonly log: Log;
  /** How often the files are looked at. */
  readonly everyMs: number;
}

/** Keeps the configuration current while the gateway runs. A wrong one changes nothing and is told once. */
export class Reload {
  readonly #options: ReloadOptions;
  #seen = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ReloadOptions) {
    this.#options = options;
  }

  /** Begins to watch. What the files hold at this moment counts as read. */
  async start(): Promise<void> {
    this.#seen = await this.#signature();
    this.#timer = setInterval(() => void this.#look(), this.#options.everyMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Reads the configuration now. Answers whether it is in force. */
  async now(): Promise<boolean> {
    const { load, apply, log } = this.#options;
    try {
      const config = await load();
      apply(config);
      log.info({ routes: [...config.routes.keys()] }, "Configuration reloaded");
      for (const warning of config.warnings) log.warn({ file: config.home.config }, warning);
      return true;
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems.map(describeProblem) : undefined;
      log.error(
        problems ? { problems } : { err: error },
        "The changed configuration is wrong; the old one stays in force",
      );
      return false;
    }
  }

  async #look(): Promise<void> {
    const signature = await this.#signature();
    if (signature === this.#seen) return;
    this.#seen = signature;
    await this.now();
  }

  async #signature(): Promise<string> {
    const signatures = this.#options.files.map((file) => fileSignature(file).catch(String));
    return (await Promise.all(signatures)).join(" ");
  }
}
