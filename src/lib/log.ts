import pino from "pino";
import { redact } from "../core/text.ts";

export type LogFields = Readonly<Record<string, unknown>>;

/** Structured log: one wide line per request, run and attempt. Fields hold no secret and no payload. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** Fulfils when everything said so far is written. Rejects when that takes too long. */
  flush(): Promise<void>;
}

export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error";
  /** Readable lines for a person at a terminal instead of JSON. */
  readonly pretty: boolean;
  /** Called for each line; values it returns are blotted out wherever they stand in it. */
  readonly secrets: () => readonly string[];
  /** Takes one line with its newline. */
  readonly write: (line: string) => void;
  /** Waits until the lines are out; not needed when `write` already does. */
  readonly flush?: () => Promise<void>;
}

/** Makes the program's log. Nothing else writes to standard error while the gateway runs. */
export function createLog(options: LogOptions): Log {
  const stream = {
    write(line: string) {
      const clean = redact(line, options.secrets());
      options.write(options.pretty ? readable(clean) : clean);
    },
  };
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: pino.stdSerializers.err },
    },
    stream,
  );
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    flush: options.flush ?? (async () => {}),
  };
}

/** A log that says nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, async flush() {} };

function readable(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const rest = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${ownLine(`${msg}${rest && `  ${rest}`}`)}\n`;
}

/** What a stranger wrote begins no line that looks like one of the log's, and moves no cursor. */
function ownLine(text: string): string {
  return text.replaceAll(/\r\n?|\n/g, `\n${" ".repeat(15)}| `).replaceAll(/[^\P{C}\n\t\u200b-\u200d\u2060]/gu, "");
}
