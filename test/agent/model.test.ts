import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import type { ModelSettings } from "../../src/agent/agent.ts";
import { builtin } from "../../src/agent/builtin.ts";
import { chooseModel } from "../../src/agent/model.ts";
import type { Environment } from "../../src/core/types.ts";
import { aContext, apiKey, aRequest, fakeFor } from "./surroundings.ts";

const unset: ModelSettings = { provider: undefined, name: undefined, baseUrl: undefined };
const openai = "https://api.openai.com/v1";
const anthropic = "https://api.anthropic.com/v1";
const google = "https://generativelanguage.googleapis.com/v1beta";
const ollama = "http://127.0.0.1:11434/v1";
const own = "http://127.0.0.1:9/v1";

/** Settings, environment, and what comes of them: provider, name, address, key. */
const choices: [Partial<ModelSettings>, Environment, [string, string, string, string | undefined]][] = [
  [{ provider: "openai", name: "m" }, { OPENAI_API_KEY: "k" }, ["openai", "m", openai, "k"]],
  [{ provider: "openai" }, { OPENAI_API_KEY: "k", OPENAI_MODEL: "m" }, ["openai", "m", openai, "k"]],
  [{ provider: "openai", name: "m" }, { OPENAI_API_KEY: "k", OPENAI_MODEL: "x" }, ["openai", "m", openai, "k"]],
  [{ provider: "openai", name: "m" }, { OPENAI_API_KEY: " k\n", OPENAI_BASE_URL: own }, ["openai", "m", own, "k"]],
  [
    { provider: "openai", name: "m", baseUrl: `${own}//` },
    { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://x" },
    ["openai", "m", own, "k"],
  ],
  [{ provider: "anthropic", name: "m" }, { ANTHROPIC_API_KEY: "k" }, ["anthropic", "m", anthropic, "k"]],
  [
    { provider: "anthropic" },
    { ANTHROPIC_API_KEY: "k", ANTHROPIC_MODEL: "m", OPENAI_MODEL: "x", ANTHROPIC_BASE_URL: own },
    ["anthropic", "m", own, "k"],
  ],
  [
    { provider: "google", name: "m" },
    { GOOGLE_GENERATIVE_AI_API_KEY: "a", GEMINI_API_KEY: "b" },
    ["google", "m", google, "a"],
  ],
  [{ provider: "google", name: "m" }, { GEMINI_API_KEY: "b", GOOGLE_API_KEY: "c" }, ["google", "m", google, "b"]],
  [{ provider: "google" }, { GOOGLE_API_KEY: "c", GEMINI_MODEL: "m" }, ["google", "m", google, "c"]],
  [{ provider: "openai-compatible", name: "m", baseUrl: own }, {}, ["openai-compatible", "m", own, undefined]],
  [
    { provider: "openai-compatible", name: "m" },
    { OPENAI_BASE_URL: own, OPENAI_API_KEY: "k" },
    ["openai-compatible", "m", own, "k"],
  ],
  [{ provider: "ollama", name: "m" }, {}, ["ollama", "m", ollama, undefined]],
  [{ provider: "ollama", name: "m" }, { OPENAI_API_KEY: "k" }, ["ollama", "m", ollama, undefined]],
  [{ provider: "ollama", name: "m" }, { OLLAMA_HOST: "0.0.0.0" }, ["ollama", "m", ollama, undefined]],
  [{ provider: "ollama", name: "m" }, { OLLAMA_HOST: "box:1234" }, ["ollama", "m", "http://box:1234/v1", undefined]],
  [
    { provider: "ollama", name: "m" },
    { OLLAMA_BASE_URL: "https://box/" },
    ["ollama", "m", "https://box/v1", undefined],
  ],
  [{ provider: "ollama", name: "m", baseUrl: "http://box/o/v1" }, {}, ["ollama", "m", "http://box/o/v1", undefined]],
  // Without a provider.
  [{}, { OPENAI_BASE_URL: own, OPENAI_MODEL: "m" }, ["openai-compatible", "m", own, undefined]],
  [{ name: "m" }, { OPENAI_BASE_URL: own, OPENAI_API_KEY: "k" }, ["openai-compatible", "m", own, "k"]],
  [{ name: "m", baseUrl: own }, { ANTHROPIC_API_KEY: "k" }, ["openai-compatible", "m", own, undefined]],
  [{ name: "m" }, { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "a" }, ["openai", "m", openai, "k"]],
  [{ name: "m" }, { OPENAI_API_KEY: " ", ANTHROPIC_API_KEY: "a" }, ["anthropic", "m", anthropic, "a"]],
  [{ name: "m" }, { GEMINI_API_KEY: "g" }, ["google", "m", google, "g"]],
  [{ name: "m" }, { OLLAMA_HOST: "127.0.0.1" }, ["ollama", "m", ollama, undefined]],
];

for (const [settings, env, [provider, name, baseUrl, apiKey]] of choices) {
  test(`${JSON.stringify(settings)} with ${JSON.stringify(env)} is ${provider} at ${baseUrl}`, () => {
    assert.deepEqual(chooseModel({ ...unset, ...settings }, env), { provider, name, baseUrl, apiKey });
  });
}

/** Settings, environment, and what the reason says after `no model configured: `. */
const refusals: [Partial<ModelSettings>, Environment, RegExp][] = [
  [{}, {}, /set model\.provider and model\.name, or OPENAI_API_KEY and OPENAI_MODEL/],
  [{ name: "m" }, {}, /set model\.provider/],
  [{}, { OPENAI_API_KEY: "k" }, /provider "openai" needs model\.name or OPENAI_MODEL/],
  [{}, { OPENAI_BASE_URL: own, OPENAI_API_KEY: "k" }, /provider "openai" needs model\.name/],
  [{ provider: "openai", name: "m" }, {}, /provider "openai" needs OPENAI_API_KEY/],
  [{ provider: "openai", name: "m" }, { OPENAI_API_KEY: "" }, /provider "openai" needs OPENAI_API_KEY/],
  [{ provider: "anthropic", name: "m" }, { OPENAI_API_KEY: "k" }, /provider "anthropic" needs ANTHROPIC_API_KEY/],
  [{ provider: "google", name: "m" }, {}, /needs GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY or GOOGLE_API_KEY/],
  [{ provider: "openai-compatible", name: "m" }, {}, /needs model\.base_url or OPENAI_BASE_URL/],
  [{ provider: "ollama" }, {}, /provider "ollama" needs model\.name or OLLAMA_MODEL/],
  [{ name: "m", baseUrl: "box:1234" }, {}, /"box:1234" is not an http or https address; correct model\.base_url/],
  [{ provider: "openai", name: "m" }, { OPENAI_API_KEY: "two words" }, /API key has a blank/],
];

for (const [settings, env, words] of refusals) {
  test(`${JSON.stringify(settings)} with ${JSON.stringify(env)} is no model`, () => {
    const choice = chooseModel({ ...unset, ...settings }, env);
    assert.ok("reason" in choice);
    assert.ok(choice.reason.startsWith("no model configured: "), choice.reason);
    assert.match(choice.reason, words);
  });
}

test("an address that holds a password is refused without quoting it", () => {
  const choice = chooseModel({ ...unset, name: "m", baseUrl: "http://me:hunter22@box/v1" }, {});
  assert.ok("reason" in choice);
  assert.doesNotMatch(choice.reason, /hunter22/);
});

test("openai with an address of one's own speaks chat completions", async (t) => {
  const fake = await fakeFor(t, [{ text: "ok" }]);
  const model = { provider: "openai", name: "m", baseUrl: fake.baseUrl } as const;
  const outcome = await builtin.run(aRequest(), aContext({ settings: { model }, env: { OPENAI_API_KEY: apiKey } }));
  assert.equal(outcome.status, "completed");
  assert.equal(fake.requests[0]?.path, "/v1/chat/completions");
  assert.equal(fake.requests[0].headers.authorization, `Bearer ${apiKey}`);
});

test("anthropic is asked at its path with its header", async (t) => {
  const usage = { input_tokens: 3, output_tokens: 4 };
  const content = [{ type: "text", text: "ok" }];
  const message = { type: "message", id: "1", model: "m", role: "assistant", content, stop_reason: "end_turn", usage };
  const fake = await fakeFor(t, [{ raw: JSON.stringify(message) }]);
  const model = { provider: "anthropic", name: "m", baseUrl: fake.baseUrl } as const;
  const outcome = await builtin.run(aRequest(), aContext({ settings: { model }, env: { ANTHROPIC_API_KEY: apiKey } }));
  assert.equal("answer" in outcome && outcome.answer, "ok", JSON.stringify(outcome));
  assert.deepEqual(outcome.usage, { inputTokens: 3, outputTokens: 4 });
  assert.equal(fake.requests[0]?.path, "/v1/messages");
  assert.equal(fake.requests[0].headers["x-api-key"], apiKey);
});

test("google is asked at its path with its header", async (t) => {
  const content = { role: "model", parts: [{ text: "ok" }] };
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 };
  const fake = await fakeFor(t, [
    { raw: JSON.stringify({ candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata }) },
  ]);
  const model = { provider: "google", name: "gemini-m", baseUrl: fake.baseUrl } as const;
  const outcome = await builtin.run(aRequest(), aContext({ settings: { model }, env: { GEMINI_API_KEY: apiKey } }));
  assert.equal("answer" in outcome && outcome.answer, "ok", JSON.stringify(outcome));
  assert.equal(fake.requests[0]?.path, "/v1/models/gemini-m:generateContent");
  assert.equal(fake.requests[0].headers["x-goog-api-key"], apiKey);
});

/** Urls of every module that a script loads, in a process of its own. */
function modulesLoadedBy(script: string): string[] {
  const watch = `import { registerHooks } from "node:module";
    const seen = [];
    registerHooks({ load(url, context, next) { seen.push(url); return next(url, context); } });
    ${script}
    console.log(JSON.stringify(seen));`;
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", watch], { encoding: "utf8" });
  assert.equal(done.stderr, "");
  return JSON.parse(done.stdout);
}

test("the registry loads no package; a provider loads its own and no other", () => {
  const source = (file: string) => JSON.stringify(new URL(`../../src/agent/${file}`, import.meta.url).href);
  const registry = modulesLoadedBy(`await import(${source("registry.ts")});`);
  assert.ok(registry.some((url) => url.endsWith("/agent/builtin.ts")));
  assert.deepEqual(
    registry.filter((url) => url.includes("/node_modules/")),
    [],
  );
  const choice = { provider: "anthropic", name: "m", baseUrl: "http://127.0.0.1:9/v1", apiKey };
  const model = modulesLoadedBy(
    `await (await import(${source("model.ts")})).loadModel(${JSON.stringify(choice)});`,
  ).join("\n");
  assert.match(model, /@ai-sdk\/anthropic\//);
  assert.doesNotMatch(model, /@ai-sdk\/(openai|google|openai-compatible)\/|node_modules\/ai\//);
});
