import { redact } from "../core/text.ts";
import type { Outcome, TranscriptEntry } from "./agent.ts";
import type { Ending } from "./ending.ts";

/** Bytes that the transcript keeps of one tool call or one tool result. */
const maxToolBytes = 10_000;

/** Collects what a run says, does and costs, so that a run that ends badly still shows how far it came. */
export interface Transcript {
  /** Blank texts are left out; tool calls and results are cut to 10 kB; secrets are blotted out. */
  add(role: TranscriptEntry["role"], text: string): void;
  /** Adds the tokens of one model turn; `undefined` where the provider did not count. */
  count(usage: { readonly inputTokens?: number | undefined; readonly outputTokens?: number | undefined }): void;
  completed(answer: string): Outcome;
  ended(ending: Ending): Outcome;
}

/** An empty transcript. `secrets` never appear in it. */
export function startTranscript(secrets: readonly string[]): Transcript {
  const entries: TranscriptEntry[] = [];
  let usage: Outcome["usage"];
  const base = () => ({ transcript: entries.slice(), ...(usage && { usage }) });
  return {
    add(role, text) {
      if (text.trim() === "") return;
      const clean = redact(text, secrets);
      entries.push({ role, text: role === "assistant" ? clean : headOf(clean, maxToolBytes) });
    },
    count({ inputTokens, outputTokens }) {
      if (inputTokens === undefined && outputTokens === undefined) return;
      usage = {
        inputTokens: (usage?.inputTokens ?? 0) + (inputTokens ?? 0),
        outputTokens: (usage?.outputTokens ?? 0) + (outputTokens ?? 0),
      };
    },
    completed: (answer) => ({ status: "completed", answer, ...base() }),
    ended: (ending) => ({ ...ending, ...base() }),
  };
}

/** The first bytes of a text, never ending inside a character. */
function headOf(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  // In streaming mode the decoder keeps an unfinished character back instead of replacing it.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, maxBytes), { stream: true });
}
