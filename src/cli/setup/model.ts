import type { Config } from "../../config/load.ts";

type ProviderName = NonNullable<Config["agent"]["model"]["provider"]>;

interface ModelProvider {
  readonly label: string;
  /** Variables that hold its key, the first that is set wins. */
  readonly keys: readonly string[];
  /** What to ask for besides name and key. */
  readonly baseUrl: "default" | "optional" | "required";
}

/** Providers of models as the wizard asks for them; a test holds this against `agent/model.ts`. */
export const modelProviders: Readonly<Record<ProviderName, ModelProvider>> = {
  openai: { label: "OpenAI", keys: ["OPENAI_API_KEY"], baseUrl: "default" },
  anthropic: { label: "Anthropic", keys: ["ANTHROPIC_API_KEY"], baseUrl: "default" },
  google: {
    label: "Google",
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
    baseUrl: "default",
  },
  "openai-compatible": { label: "Any server that speaks OpenAI's API", keys: ["OPENAI_API_KEY"], baseUrl: "required" },
  ollama: { label: "Ollama, on this machine or another", keys: ["OLLAMA_API_KEY"], baseUrl: "optional" },
};

/** The provider of this name, or `undefined`. */
export function findProvider(name: string | undefined): ModelProvider | undefined {
  return name !== undefined && Object.hasOwn(modelProviders, name) ? modelProviders[name as ProviderName] : undefined;
}
