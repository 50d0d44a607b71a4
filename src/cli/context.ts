import type { Readable, Writable } from "node:stream";
import { findHome, type Home } from "../config/home.ts";
import type { Config } from "../config/load.ts";
import { UserError } from "../core/errors.ts";
import type { Environment } from "../core/types.ts";
import { plainText } from "../target/neutralise.ts";

/** What a command may use of the world; tests hand in their own. */
export interface Context {
  readonly env: Environment;
  /** Results: standard output. */
  readonly out: (text: string) => void;
  /** Messages for a person, and the log: standard error. */
  readonly err: (text: string) => void;
  /** Where a person can be asked, `undefined` when nobody sits there. Questions are no results: they go to standard error. */
  readonly terminal: () => Terminal | undefined;
  /** False once nobody reads standard output any more. */
  readonly isHeard: () => boolean;
  /** All of standard input, up to its end. */
  readonly readInput: () => Promise<string>;
  /** Standard input piece by piece, for what may be long. */
  readonly input: () => AsyncIterable<Buffer>;
  /** Program and arguments that start this same Postern again. */
  readonly self: readonly string[];
  /** Starts a gateway in this process, which logs to standard error. `load` reads its configuration, now and later. */
  readonly startGateway: (load: () => Promise<Config>, role?: Role) => Promise<StartedGateway>;
  /** Calls back on SIGTERM and SIGINT. */
  readonly onStop: (stop: () => void) => void;
  /** Calls back on SIGHUP. */
  readonly onReload: (reload: () => void) => void;
  /** Numbers from here on count as the command's failure: the process exits with it. */
  setExitCode(code: number): void;
}

/** The two sides of a terminal. */
export interface Terminal {
  readonly input: Readable;
  readonly output: Writable;
}

/** What a gateway does of the whole. */
export type Role = "all" | "ingest" | "worker";

/** A gateway as `start.ts` hands it over. */
export interface StartedGateway {
  /** Where it listens; a worker does not. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  readonly routes: readonly string[];
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly config: Config;
  reload(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Options that every command has. */
export interface CommonOptions {
  readonly profile?: string;
  readonly json?: boolean;
}

export function homeOf(context: Context, options: CommonOptions): Home {
  return findHome(context.env, options.profile);
}

/** The secret for a flag whose value is `-`: what stands on standard input, without the line end behind it. */
export async function secretFromInput(context: Context): Promise<string> {
  const secret = (await context.readInput()).replace(/\r?\n$/, "");
  if (secret.trim() !== "") return secret;
  throw new UserError("There is no secret on standard input; write it there, for example from a file: < secret.txt");
}

/** Prints one JSON document for machines, or lines for people, in which nothing a stranger sent can steer the terminal. */
export function print(context: Context, options: CommonOptions, value: unknown, lines: readonly string[]): void {
  const text = () => plainText(lines.map((line) => `${line}\n`).join(""));
  context.out(options.json ? `${JSON.stringify(value, null, 2)}\n` : text());
}
