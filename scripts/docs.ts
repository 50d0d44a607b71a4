// Writes docs/configuration.md, and the table of docs/targets.md, from the schema of config.yaml and the targets' own data:
// npm run docs
import { readFileSync, writeFileSync } from "node:fs";
import { configJsonSchema, type JsonSchema } from "../src/config/json-schema.ts";
import * as targets from "../src/target/registry.ts";
import type { Target } from "../src/target/target.ts";
import { code, markdownTable } from "./markdown.ts";
import { targetsPagePath, withTable } from "./targets-table.ts";

/** Where the page is. */
export const pagePath: URL = new URL("../docs/configuration.md", import.meta.url);

const schema = configJsonSchema();
const definitions = schema.$defs ?? {};

/** The environment variables that each `model.provider` is found by; the first one that is set counts. */
export const modelVariables: readonly {
  readonly provider: string;
  readonly key: readonly string[];
  readonly name: readonly string[];
  readonly address: readonly string[];
}[] = [
  { provider: "openai", key: ["OPENAI_API_KEY"], name: ["OPENAI_MODEL"], address: ["OPENAI_BASE_URL"] },
  { provider: "anthropic", key: ["ANTHROPIC_API_KEY"], name: ["ANTHROPIC_MODEL"], address: ["ANTHROPIC_BASE_URL"] },
  {
    provider: "google",
    key: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
    name: ["GOOGLE_MODEL", "GEMINI_MODEL"],
    address: [],
  },
  { provider: "openai-compatible", key: ["OPENAI_API_KEY"], name: ["OPENAI_MODEL"], address: ["OPENAI_BASE_URL"] },
  {
    provider: "ollama",
    key: ["OLLAMA_API_KEY"],
    name: ["OLLAMA_MODEL"],
    address: ["OLLAMA_BASE_URL", "OLLAMA_HOST"],
  },
];

const introduction = `<!-- Made by "npm run docs" from src/config/schema.ts and the targets' settings. A test compares it. -->

# Configuration

Everything stands in \`config.yaml\` in Postern's home: \`~/.postern\`, or the folder that \`POSTERN_HOME\` names. Without the
file, everything has its default. \`.env\` beside it holds environment variables, one \`NAME=value\` a line; it is the place for
secrets.

| Question | Answer |
|---|---|
| Which value counts when several are set? | A flag (\`--host\`, \`--port\`), else the environment, else \`.env\`, else \`config.yaml\`, else the default. For the model's name and address it is \`config.yaml\` before the environment. |
| How do I check what I wrote? | \`postern config check\` names every mistake with file, line and column, and exits 78 if there is one. |
| Several gateways for one user? | \`--profile NAME\` or \`POSTERN_PROFILE\`: the home is then \`profiles/NAME\` in the home. |
| How does my editor help? | \`postern config schema > ~/.postern/config.schema.json\`, and the first line of the example below. |

\`\`\`yaml config
# yaml-language-server: $schema=config.schema.json
platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    extra:
      secret: "a long random text"
      routes:
        alerts:
          prompt: "Explain this alert: {message}"
          deliver: telegram
  telegram:
    enabled: true
    token: "123:abc"         # or TELEGRAM_BOT_TOKEN in .env
    home_channel: "-100123"
agent:
  backend: preview
\`\`\`

The line is read by the YAML language server, which most editors use; the path is relative to the file.

A time is a number of seconds, or text such as \`500ms\`, \`30s\`, \`10m\`, \`2h\`, and where it says so \`7d\`. A size is a number of bytes,
or text with \`KB\`, \`MB\`, \`GB\`, \`TB\` (thousands) or \`KiB\`, \`MiB\`, \`GiB\`, \`TiB\` (1024). Where it says true or false, \`yes\`, \`on\`,
\`no\` and \`off\` will do as well. Whole numbers may be of any size: a chat's id keeps all its digits.
`;

const targetsHead = `## Targets

What \`deliver\` may name; [targets.md](targets.md) compares them, and says how to get their credentials. A target that the environment or \`.env\` sets up needs no section in \`config.yaml\`; where there is
one, it must say \`enabled: true\` (\`github_comment\` and \`log\` are always there).

\`retry\` takes the keys of [\`retry\`](#retries-retry) but \`run_tries\`. What a route says wins over it.

\`\`\`yaml config
platforms:
  telegram:
    enabled: true
    token: "123:abc"
    retry: { tries: 20, max_age: 3d }
  log:
    retry: { tries: 2 }
\`\`\`
`;

/** Of sections whose keys are easier shown than told. */
const examples: Readonly<Record<string, string>> = {
  retention: `
\`\`\`yaml config
retention:
  max_age: 14d
  max_size: 500MB
  states:
    ignored: 12h
    dead: off        # kept until there is no more room
\`\`\`
`,
};

/** The whole page. */
export function configurationPage(): string {
  const { platforms, ...sections } = schema.properties ?? {};
  const single = Object.entries(sections).filter(([, { properties, title }]) => !properties && !title);
  const grouped = Object.entries(sections).filter(([, { properties, title }]) => properties ?? title);
  const parts = [
    introduction,
    section("platforms.webhook", platforms?.properties?.webhook ?? {}),
    section("platforms.webhook.extra.routes.NAME", definitions.route ?? {}),
    ...grouped.map(([name, one]) => section(name, one) + (examples[name] ?? "")),
    `## Other keys\n\n${table(Object.fromEntries(single))}`,
    targetsHead,
    ...Object.values(targets).map(targetPart),
    environmentPart(),
  ];
  return parts.join("\n");
}

function section(path: string, one: JsonSchema): string {
  const head = `## ${one.title}: \`${path}\`\n\n${one.description}.\n`;
  return Object.keys(one.properties ?? {}).length > 0 ? `${head}\n${table(one.properties ?? {})}` : head;
}

/** Keys with their type, default and meaning; the column of environment variables only where there are any. */
function table(properties: Readonly<Record<string, JsonSchema>>): string {
  const keys = Object.entries(properties);
  const hasEnv = keys.some(([, key]) => key["x-env"] !== undefined);
  const head = ["Key", "Type", "Default", "Meaning", ...(hasEnv ? ["Environment"] : [])];
  const rows = keys.map(([name, key]) => [
    code(name),
    typeWords(key),
    key.default === undefined ? "" : code(JSON.stringify(key.default)),
    key.description ?? "",
    ...(hasEnv ? [(key["x-env"] ?? []).map(code).join(" or ")] : []),
  ]);
  return markdownTable(head, rows);
}

const typeNames: Readonly<Record<string, string>> = { string: "text", number: "number", object: "mapping" };

/** A key's type in words. */
function typeWords(key: JsonSchema): string {
  const { $ref, ...here } = key;
  const there = $ref === undefined ? {} : (definitions[$ref.replace("#/$defs/", "")] ?? {});
  const one: JsonSchema = { ...there, ...here };
  if (one.enum) return one.enum.map((value) => code(String(value))).join(", ");
  if (one.title) return one.title;
  if (one.format === "uri") return "address";
  if (one.type === "array") return `list of ${listWords(one.items ?? {})}`;
  if (one.type === "integer") return `whole number, ${one.minimum} to ${one.maximum}`;
  return typeNames[String(one.type)] ?? String(one.type);
}

function listWords(items: JsonSchema): string {
  const words = typeWords(items);
  return words === "text" ? "texts" : words;
}

/** A target's settings and the address that a route gives it. */
function targetPart({ name, neutralName, settings, address }: Target): string {
  const also = neutralName === undefined ? "" : `, also ${code(neutralName)}`;
  const properties = definitions[`platform_${name}`]?.properties;
  const fields = Object.entries(address).map(([key, field]) => [
    [key, ...(field.alternatives ?? [])].map(code).join(" or "),
    field.help,
    field.required ? "yes" : field.homeChannel ? "without `home_channel`" : "",
  ]);
  const isEmpty = Object.keys(settings).length === 0 && fields.length === 0;
  return [
    `### ${code(name)}${also}\n`,
    ...(isEmpty ? ["Needs no section and no address.\n"] : []),
    ...(properties ? [`Settings, under \`platforms.${name}\`:\n`, table(properties)] : []),
    ...(fields.length > 0
      ? ["Address, in a route's `deliver_extra`:\n", markdownTable(["Key", "Meaning", "Needed"], fields)]
      : []),
  ].join("\n");
}

function environmentPart(): string {
  const names = (list: readonly string[]) => list.map(code).join(" or ");
  const rows = modelVariables.map(({ provider, key, name, address }) => [
    code(provider),
    names(key),
    names(name),
    names(address),
  ]);
  return `## Environment variables without a key

${markdownTable(
  ["Variable", "Meaning"],
  [
    ["`POSTERN_HOME`", "The home, instead of `~/.postern`; not read from `.env`"],
    ["`POSTERN_PROFILE`", "The profile, like the flag `--profile`; not read from `.env`"],
  ],
)}
The model's variables. Without \`model.provider\`, the keys and addresses that are set decide.

${markdownTable(["Provider", "API key", "Instead of `model.name`", "Instead of `model.base_url`"], rows)}`;
}

if (import.meta.main) {
  writeFileSync(pagePath, configurationPage());
  writeFileSync(targetsPagePath, withTable(readFileSync(targetsPagePath, "utf8")));
  console.log("Wrote docs/configuration.md and the table of docs/targets.md");
}
