import type { Agent } from "./agent.ts";
import { cancelled } from "./ending.ts";
import { fullPrompt } from "./prompt.ts";

/** No model: the answer is what an agent would have been asked. For demos, dry runs and comparing rendered prompts. */
export const preview: Agent = {
  name: "preview",
  async blocked() {
    return undefined;
  },
  async run(request, context) {
    if (context.signal.aborted) return { ...cancelled, transcript: [] };
    return { status: "completed", answer: fullPrompt(request), transcript: [] };
  },
};
