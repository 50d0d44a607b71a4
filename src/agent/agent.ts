import type { Environment, Skill } from "../core/types.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** What one run is asked to do. Everything in it was fixed when the event was accepted, except the skill's text. */
export interface RunRequest {
  readonly route: string;
  readonly eventType: string;
  readonly deliveryId: string;
  /** The rendered prompt; a stranger wrote parts of it. */
  readonly prompt: string;
  readonly skill: Skill | undefined;
  /** Names of the tools this run may use, for example `terminal`. */
  readonly tools: readonly string[];
}

/** Settings under `agent`, `model` and `terminal` that runs obey; validated by `config/schema.ts`. */
export interface AgentSettings {
  /** Wall time of one run. */
  readonly timeoutMs: number;
  /** Model turns of one run. */
  readonly maxSteps: number;
  /** Program and arguments of the `command` backend. */
  readonly command: readonly string[];
  /** Names of environment variables that the `command` backend passes on. */
  readonly env: readonly string[];
  readonly model: ModelSettings;
  readonly terminal: TerminalSettings;
}

export interface ModelSettings {
  readonly provider: "openai" | "anthropic" | "google" | "openai-compatible" | "ollama" | undefined;
  readonly name: string | undefined;
  readonly baseUrl: string | undefined;
}

export interface TerminalSettings {
  /** Wall time of one command. */
  readonly timeoutMs: number;
  /** Bytes of output that the model sees of one command. */
  readonly maxOutputBytes: number;
}

/** What a run may reach: all of it handed in, so that a test hands in its own. */
export interface RunContext {
  readonly settings: AgentSettings;
  /** Process environment over `.env`: where credentials are read. */
  readonly env: Environment;
  readonly sandbox: Sandbox;
  /** Aborted when the run is to be given back (shutdown) or cancelled. The run then ends as `cancelled`, at once. */
  readonly signal: AbortSignal;
}

/** One line of a run's transcript: what the model said, a tool call, or a tool's result. */
export interface TranscriptEntry {
  readonly role: "assistant" | "tool-call" | "tool-result";
  readonly text: string;
}

interface OutcomeBase {
  readonly transcript: readonly TranscriptEntry[];
  /** Tokens as the provider counted them. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number };
}

/** How a run ended. An agent never throws into the gateway: what goes wrong is one of these. */
export type Outcome =
  | (OutcomeBase & { readonly status: "completed"; readonly answer: string })
  | (OutcomeBase & {
      readonly status: "failed" | "timeout" | "cancelled" | "budget";
      /** What happened, in one sentence, without secrets. */
      readonly reason: string;
      /** True when the same run may well succeed later (model down, rate limited). */
      readonly transient: boolean;
    });

/** A backend that turns a prompt into an answer (`agent.backend`). One file each, listed in `registry.ts`. */
export interface Agent {
  readonly name: string;
  /**
   * Says why runs cannot start now (`no model configured`, bubblewrap missing), or `undefined` when they can.
   * Jobs wait while it gives a reason. Called again and again: cheap, or cached by the caller.
   */
  blocked(context: Omit<RunContext, "signal">): Promise<string | undefined>;
  /** Runs to the end. Never throws; obeys `context.signal` and the budgets of the settings. */
  run(request: RunRequest, context: RunContext): Promise<Outcome>;
}
