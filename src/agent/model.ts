import type { LanguageModel } from "ai";
import type { Environment } from "../core/types.ts";
import type { ModelSettings } from "./agent.ts";

type ProviderName = NonNullable<ModelSettings["provider"]>;

/** A model that can be called: everything that was left open in the settings is decided. Holds a secret. */
export interface ModelChoice {
  readonly provider: ProviderName;
  readonly name: string;
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
}

/** Why there is no model; starts with `no model configured` and says what to set. */
export interface NoModel {
  readonly reason: string;
}

/** How one provider is found in the environment (first name that is set wins) and spoken to. */
interface Provider {
  readonly keys: readonly string[];
  readonly keyOptional?: true;
  readonly names: readonly string[];
  readonly bases: readonly string[];
  readonly defaultBase?: string;
  readonly tidyBase?: (url: string) => string;
  load(choice: ModelChoice): Promise<LanguageModel>;
}

const providers: Readonly<Record<ProviderName, Provider>> = {
  openai: {
    keys: ["OPENAI_API_KEY"],
    names: ["OPENAI_MODEL"],
    bases: ["OPENAI_BASE_URL"],
    defaultBase: "https://api.openai.com/v1",
    async load({ name, baseUrl, apiKey }) {
      const { createOpenAI } = await import("@ai-sdk/openai");
      const openai = createOpenAI({ baseURL: baseUrl, apiKey: apiKey ?? "", fetch: withoutRedirects });
      // Self-hosted servers speak chat completions; the newer responses API is OpenAI's own.
      return baseUrl === providers.openai.defaultBase ? openai(name) : openai.chat(name);
    },
  },
  anthropic: {
    keys: ["ANTHROPIC_API_KEY"],
    names: ["ANTHROPIC_MODEL"],
    bases: ["ANTHROPIC_BASE_URL"],
    defaultBase: "https://api.anthropic.com/v1",
    async load({ name, baseUrl, apiKey }) {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic({ baseURL: baseUrl, apiKey: apiKey ?? "", fetch: withoutRedirects })(name);
    },
  },
  google: {
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
    names: ["GOOGLE_MODEL", "GEMINI_MODEL"],
    bases: [],
    defaultBase: "https://generativelanguage.googleapis.com/v1beta",
    async load({ name, baseUrl, apiKey }) {
      const { createGoogle } = await import("@ai-sdk/google");
      return createGoogle({ baseURL: baseUrl, apiKey: apiKey ?? "", fetch: withoutRedirects })(name);
    },
  },
  "openai-compatible": {
    keys: ["OPENAI_API_KEY"],
    keyOptional: true,
    names: ["OPENAI_MODEL"],
    bases: ["OPENAI_BASE_URL"],
    load: loadCompatible,
  },
  ollama: {
    keys: ["OLLAMA_API_KEY"],
    keyOptional: true,
    names: ["OLLAMA_MODEL"],
    bases: ["OLLAMA_BASE_URL", "OLLAMA_HOST"],
    defaultBase: "http://127.0.0.1:11434/v1",
    tidyBase: ollamaBase,
    load: loadCompatible,
  },
};

/**
 * Decides which model a run calls, from the settings first and the environment second. Pure; blank values count as unset.
 *
 * Without `model.provider` the first of these that holds decides: `model.base_url`, or `OPENAI_BASE_URL` together with a
 * model name, means `openai-compatible`; `OPENAI_API_KEY` means `openai`; `ANTHROPIC_API_KEY` `anthropic`; one of Google's
 * three keys `google`; `OLLAMA_BASE_URL` or `OLLAMA_HOST` `ollama`.
 *
 * The name is `model.name`, else the provider's own variable (`OPENAI_MODEL`, `ANTHROPIC_MODEL`, …); no provider has a
 * default model. The address is `model.base_url`, else the provider's variable, else its public one.
 */
export function chooseModel(settings: ModelSettings, env: Environment): ModelChoice | NoModel {
  const provider = settings.provider ?? impliedProvider(settings, env);
  if (provider === undefined) {
    return none("set model.provider and model.name, or OPENAI_API_KEY and OPENAI_MODEL in the environment or .env");
  }
  const { keys, keyOptional, names, bases, defaultBase, tidyBase } = providers[provider];
  const name = settings.name?.trim() || firstSet(names, env);
  if (!name) return none(`provider "${provider}" needs model.name or ${names.join(" or ")}`);
  const apiKey = firstSet(keys, env);
  if (apiKey === undefined && !keyOptional) {
    return none(`provider "${provider}" needs ${keys.join(" or ")} in the environment or .env`);
  }
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    return none("the API key has a blank or a character that no header may have; copy it again");
  }
  const address = settings.baseUrl?.trim() || firstSet(bases, env);
  const baseUrl = address && tidyBase ? tidyBase(address) : (address ?? defaultBase);
  if (!baseUrl) return none(`provider "${provider}" needs model.base_url or ${bases.join(" or ")}`);
  const complaint = complaintAbout(baseUrl);
  return complaint ? none(complaint) : { provider, name, baseUrl: withoutTrailingSlashes(baseUrl), apiKey };
}

/** The chosen model, ready to be called. Imports its provider's package now, and no other. */
export function loadModel(choice: ModelChoice): Promise<LanguageModel> {
  return providers[choice.provider].load(choice);
}

function none(what: string): NoModel {
  return { reason: `no model configured: ${what}` };
}

function impliedProvider(settings: ModelSettings, env: Environment): ProviderName | undefined {
  if (settings.baseUrl?.trim()) return "openai-compatible";
  const name = settings.name?.trim() || firstSet(["OPENAI_MODEL"], env);
  if (name && firstSet(["OPENAI_BASE_URL"], env)) return "openai-compatible";
  const withKey = (["openai", "anthropic", "google"] as const).find((provider) =>
    firstSet(providers[provider].keys, env),
  );
  return withKey ?? (firstSet(providers.ollama.bases, env) ? "ollama" : undefined);
}

function firstSet(names: readonly string[], env: Environment): string | undefined {
  for (const name of names) {
    const value = env[name]?.trim();
    if (value) return value;
  }
  return undefined;
}

function complaintAbout(baseUrl: string): string | undefined {
  const url = URL.parse(baseUrl);
  // Not quoted: the address itself is the secret.
  if (url?.username || url?.password) {
    return "the model's address holds a user name or password; put the key into the environment or .env instead";
  }
  if (url?.protocol === "http:" || url?.protocol === "https:") return undefined;
  return `the model's address "${baseUrl}" is not an http or https address; correct model.base_url`;
}

function withoutTrailingSlashes(url: string): string {
  let end = url.length;
  while (url[end - 1] === "/") end -= 1;
  return url.slice(0, end);
}

/**
 * Ollama's own variables may hold a bare host (`0.0.0.0`, `box:11434`) and leave out `/v1`.
 * Source: the Ollama FAQ on OLLAMA_HOST, and its page on OpenAI compatibility.
 */
function ollamaBase(address: string): string {
  const bare = !address.includes("://");
  const url = URL.parse(bare ? `http://${address}` : address);
  if (url === null) return address;
  if (bare && url.port === "") url.port = "11434";
  // An address to listen on, not one to call.
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.pathname === "/") url.pathname = "/v1";
  return url.href;
}

async function loadCompatible({ provider, name, baseUrl, apiKey }: ModelChoice): Promise<LanguageModel> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const settings = { name: provider, baseURL: baseUrl, fetch: withoutRedirects };
  return createOpenAICompatible(apiKey === undefined ? settings : { ...settings, apiKey })(name);
}

/** `fetch` would carry `x-api-key` and its like along to whatever host a redirect names. */
const withoutRedirects: typeof fetch = (input, init) => fetch(input, { ...init, redirect: "manual" });
