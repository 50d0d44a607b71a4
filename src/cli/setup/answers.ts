import { randomBytes } from "node:crypto";
import type { SettingValues } from "../../target/target.ts";

/** What the flags and the person said; what is absent stays as it is. */
export interface Answers {
  readonly enable?: boolean;
  readonly host?: string;
  readonly port?: number;
  /** `null` when it was decided that the present one stays. */
  readonly secret?: string | null;
  /** The secret is a new one that nobody has seen yet. */
  readonly isGenerated?: boolean;
  readonly agentBackend?: string;
  readonly agentCommand?: readonly string[];
  readonly modelProvider?: string;
  readonly modelName?: string;
  readonly modelBaseUrl?: string;
  readonly modelKey?: string;
  readonly terminalBackend?: string;
  readonly target?: TargetAnswers;
}

/** One chat target, with those of its settings that were named. */
export interface TargetAnswers {
  readonly name: string;
  readonly settings: SettingValues;
  readonly sendsTest: boolean;
}

/** A new global secret: 256 bits in 43 characters that need no quotes anywhere. */
export function generateSecret(): Pick<Answers, "secret" | "isGenerated"> {
  return { secret: randomBytes(32).toString("base64url"), isGenerated: true };
}

/** A program and its arguments, written as a JSON list or as words with blanks between. */
export function parseCommand(text: string): readonly string[] {
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list) && list.every((item) => typeof item === "string")) return list;
  } catch {
    // Not JSON, so it is words.
  }
  return text.trim().split(/\s+/);
}
