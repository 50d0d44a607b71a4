import type { Agent } from "./agent.ts";
import { cancelled, failed, messageOf } from "./ending.ts";
import { chooseModel } from "./model.ts";

/**
 * A model through its API, with tools in the sandbox. The SDK is loaded at the first run, not before: every command of
 * the program imports the registry.
 */
export const builtin: Agent = {
  name: "builtin",
  async blocked({ settings, env, sandbox }) {
    const choice = chooseModel(settings.model, env);
    return "reason" in choice ? choice.reason : sandbox.blocked();
  },
  async run(request, context) {
    if (context.signal.aborted) return { ...cancelled, transcript: [] };
    const choice = chooseModel(context.settings.model, context.env);
    if ("reason" in choice) return { ...failed(choice.reason, true), transcript: [] };
    try {
      const { runLoop } = await import("./loop.ts");
      return await runLoop(request, context, choice);
    } catch (error) {
      return { ...failed(`the AI SDK could not be loaded: ${messageOf(error)}`), transcript: [] };
    }
  },
};
