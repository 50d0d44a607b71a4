import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { configurationPage, modelVariables, pagePath } from "../../scripts/docs.ts";
import { chooseModel } from "../../src/agent/model.ts";
import { configJsonSchema } from "../../src/config/json-schema.ts";
import { load } from "../config/loading.ts";

test("docs/configuration.md is what the schema and the targets' settings make", () => {
  const hint = "docs/configuration.md is out of date; run: npm run docs";
  assert.equal(readFileSync(pagePath, "utf8"), configurationPage(), hint);
});

test("the defaults of platforms.webhook on the page are those of an empty configuration", async (t) => {
  const { webhook } = await load(t, "");
  const keys = configJsonSchema().properties?.platforms?.properties?.webhook?.properties ?? {};
  const shown = (name: string) => keys[name]?.default;
  assert.deepEqual(
    {
      enabled: shown("enabled"),
      host: shown("host"),
      port: shown("port"),
      rateLimit: shown("rate_limit"),
      maxBodyBytes: shown("max_body_bytes"),
      scriptTimeoutMs: Number(shown("script_timeout_seconds")) * 1000,
      publicUrl: shown("public_url"),
    },
    webhook,
  );
});

for (const { provider, key, name, address } of modelVariables) {
  test(`the variables of ${provider} on the page are the ones it reads`, () => {
    const settings = { provider, name: undefined, baseUrl: undefined } as Parameters<typeof chooseModel>[0];
    const base = "http://127.0.0.1:9/v1";
    const whole = { [key[0]!]: "the-key", [name[0]!]: "the-model", ...(address[0] ? { [address[0]]: base } : {}) };
    for (const variable of [...key, ...name, ...address]) {
      const kind = [key, name, address].find((list) => list.includes(variable))!;
      const env = Object.fromEntries(Object.entries(whole).filter(([other]) => !kind.includes(other)));
      const choice = chooseModel(settings, { ...env, [variable]: kind === address ? base : "of-this-variable" });
      assert.ok(!("reason" in choice), JSON.stringify(choice));
      const read = { [key[0]!]: choice.apiKey, [name[0]!]: choice.name, [address[0] ?? ""]: choice.baseUrl };
      assert.equal(read[kind[0]!], kind === address ? base : "of-this-variable", variable);
    }
  });
}
