import { generateText, isStepCount, jsonSchema, tool as sdkTool, type ToolSet } from "ai";
import type { Outcome, RunContext, RunRequest } from "./agent.ts";
import { type Bench, layBench } from "./bench.ts";
import { type Ending, failed, messageOf } from "./ending.ts";
import { endingOf } from "./failure.ts";
import { startHalt, untilAborted } from "./halt.ts";
import { loadModel, type ModelChoice } from "./model.ts";
import { fullPrompt, systemPrompt } from "./prompt.ts";
import * as registry from "./tools/registry.ts";
import type { Tool } from "./tools/tool.ts";
import { startTranscript, type Transcript } from "./transcript.ts";

/** Tries of one model call beyond the first; their waits count against the run's time. */
const maxRetries = 2;

// The SDK would print warnings about models to standard error: its documented switch, one for the whole process.
globalThis.AI_SDK_LOG_WARNINGS = false;

/** The parts of a finished turn that decide how the run ends. */
interface Turn {
  readonly text: string;
  readonly finishReason: string;
  readonly toolCalls: readonly unknown[];
}

/**
 * Lets the model work until it answers without calling a tool, within the budgets. Never throws.
 * Importing this file loads the AI SDK: import it lazily.
 */
export async function runLoop(request: RunRequest, context: RunContext, choice: ModelChoice): Promise<Outcome> {
  const secrets = choice.apiKey === undefined ? [] : [choice.apiKey];
  const transcript = startTranscript(secrets);
  const unknown = request.tools.find((name) => !Object.hasOwn(registry, name));
  if (unknown !== undefined) return transcript.ended(unknownTool(unknown));
  const halt = startHalt(context.settings.timeoutMs, context.signal);
  const bench = layBench(context, halt);
  try {
    const work = converse(request, context, choice, {
      tools: offer(request.tools, bench),
      transcript,
      signal: halt.signal,
    });
    const turns = await untilAborted(work, halt.signal);
    return conclude(turns, context.settings.maxSteps, transcript);
  } catch (error) {
    return transcript.ended(halt.ending() ?? endingOf(error, secrets));
  } finally {
    halt.release();
    await bench.close();
  }
}

interface Conversation {
  readonly tools: ToolSet;
  readonly transcript: Transcript;
  readonly signal: AbortSignal;
}

async function converse(
  request: RunRequest,
  context: RunContext,
  choice: ModelChoice,
  { tools, transcript, signal }: Conversation,
): Promise<readonly Turn[]> {
  const result = await generateText({
    model: await loadModel(choice),
    instructions: systemPrompt(request),
    prompt: fullPrompt(request),
    tools,
    stopWhen: isStepCount(context.settings.maxSteps),
    // Commands of one run share files: two at once would see each other half done.
    toolCallConcurrency: 1,
    maxRetries,
    abortSignal: signal,
    ...recordInto(transcript),
  });
  return result.steps;
}

type Callbacks = Pick<
  Parameters<typeof generateText>[0],
  "onLanguageModelCallEnd" | "onToolExecutionEnd" | "onStepEnd"
>;

/** Writes each thing down when it happens, so that a run that is stopped in the middle shows all that came before. */
function recordInto(transcript: Transcript): Callbacks {
  return {
    onLanguageModelCallEnd({ content, usage }) {
      transcript.count(usage);
      for (const part of content) {
        if (part.type === "text") transcript.add("assistant", part.text);
        if (part.type === "tool-call") transcript.add("tool-call", `${part.toolName} ${argumentsOf(part.input)}`);
      }
    },
    onToolExecutionEnd({ toolOutput }) {
      const text = toolOutput.type === "tool-result" ? String(toolOutput.output) : messageOf(toolOutput.error);
      transcript.add("tool-result", text);
    },
    onStepEnd({ content, toolCalls }) {
      // Calls of unknown tools and with malformed arguments are answered by the SDK without being executed.
      const invalid = new Set(toolCalls.flatMap((call) => (call.invalid ? [call.toolCallId] : [])));
      for (const part of content) {
        if (part.type !== "tool-error" || !invalid.has(part.toolCallId)) continue;
        transcript.add("tool-result", messageOf(part.error));
      }
    },
  };
}

/** Malformed arguments stay the text they were. */
function argumentsOf(input: unknown): string {
  return typeof input === "string" ? input : (JSON.stringify(input) ?? "");
}

/** The named tools in the SDK's form. */
function offer(names: readonly string[], bench: Bench): ToolSet {
  const chosen = Object.entries<Tool>(registry).filter(([name]) => names.includes(name));
  return Object.fromEntries(
    chosen.map(([name, { description, parameters, call }]) => [
      name,
      sdkTool({
        description,
        inputSchema: jsonSchema<unknown>(parameters),
        execute: (input: unknown) => call(input, bench),
      }),
    ]),
  );
}

/** A run cannot do what it was set up for without its tools: saying so beats a worse answer. */
function unknownTool(name: string): Ending {
  return failed(
    `unknown tool "${name}": known tools are ${Object.keys(registry).join(", ")}; correct the route's tools`,
  );
}

function conclude(turns: readonly Turn[], maxSteps: number, transcript: Transcript): Outcome {
  const last = turns.at(-1);
  if (!last) return transcript.ended(failed("the model took no turn"));
  const ending = endingOfTurn(last, turns.length, maxSteps);
  return ending ? transcript.ended(ending) : transcript.completed(last.text);
}

function endingOfTurn(turn: Turn, count: number, maxSteps: number): Ending | undefined {
  const calls = turn.toolCalls.length > 0;
  if (turn.finishReason === "error") return failed("the model broke off its answer", true);
  if (turn.finishReason === "content-filter") return failed("the model refused to answer (content filter)");
  // An answer that was cut is worth more to its readers than none; half a tool call is worth nothing.
  if (turn.finishReason === "length" && (calls || turn.text.trim() === "")) {
    return failed("the model reached its limit of output tokens before it answered");
  }
  if (!calls) return undefined;
  if (count < maxSteps) return failed(`the model called a tool but ended its turn as "${turn.finishReason}"`);
  return { status: "budget", reason: `no final answer within ${maxSteps} model turns`, transient: false };
}
