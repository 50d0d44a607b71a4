import { z } from "zod";
import { badStoreUrl } from "../store/settings.ts";
import { type FinalEventState, finalEventStates } from "../store/states.ts";
import { age, duration, lease, longDuration, longDurationOrNone, size } from "./measure.ts";

/**
 * The configuration file as one schema: it validates, gives the types, and its metadata (`title`, `description`, `x-env` for
 * environment variables) becomes the JSON Schema for editors and the page in `docs/` (`json-schema.ts`). What needs to know
 * the adapters (targets, senders, agents) is checked in `load.ts` and `route.ts`.
 *
 * An `id` makes a definition of its own in the JSON Schema; `json-schema.ts` fills those that depend on registries. Defaults
 * are written with `prefault`, because a `default` of a schema that transforms would not show in the JSON Schema; those that
 * `load.ts` gives are written as `x-default`.
 */

const words = { true: true, yes: true, on: true, false: false, no: false, off: false } as const;

/** JSON Schema knows no flag for "in any case", so that each letter is written in both. */
const inAnyCase = Object.keys(words)
  .map((word) => word.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`))
  .join("|");

/** YAML 1.2 reads `yes` and `on` as text; people write them for true all the same. */
const flagError = { error: "Expected true or false" };
const flag = z
  .union(
    [
      z.boolean(),
      z
        .string()
        .regex(/^(true|yes|on|false|no|off)$/i, flagError)
        .meta({ pattern: `^(${inAnyCase})$` }),
    ],
    flagError,
  )
  .transform((value) => (typeof value === "boolean" ? value : words[value.toLowerCase() as keyof typeof words]))
  .meta({ id: "flag", title: "true or false" });

/** A whole number, also in quotes. */
function whole(min: number, max: number) {
  const params = { error: `Expected a whole number from ${min} to ${max}` };
  return z.preprocess(
    (value) => (typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value),
    z.int(params).min(min, params).max(max, params),
  );
}

/** One text or a list of them. */
const texts = z
  .union([z.string(), z.array(z.string())], { error: "Expected text or a list of texts" })
  .transform((value) => (typeof value === "string" ? [value] : value))
  .meta({ id: "texts", title: "text or a list of texts" });

const address = (example: string) =>
  z
    .url({ protocol: /^https?$/, error: `Expected an address such as "${example}"` })
    .meta({ pattern: "^[hH][tT][tT][pP][sS]?://", examples: [example] });

const extra = z
  .record(z.string(), z.unknown(), { error: "Expected a mapping of keys to values" })
  .meta({ id: "deliverExtra", title: "mapping" });

const deliveriesError = { error: "Expected a target's name, or a list of names or {to: name, …}" };

/** A target with its address; a fallback inside it is refused in `route.ts`, which says how to write it. */
const destination = z.union([z.string(), z.looseObject({ to: z.string() })]).meta({ id: "destination" });
const fallback = z
  .union([destination, z.array(destination)], deliveriesError)
  .transform((value) => (Array.isArray(value) ? value : [value]))
  .meta({ id: "fallback", title: "target, or a list of targets" });

const delivery = z
  .union([z.string(), z.looseObject({ to: z.string(), fallback: fallback.optional() })])
  .meta({ id: "delivery" });
const deliveries = z
  .union([delivery, z.array(delivery).min(1, deliveriesError)], deliveriesError)
  .transform((value) => (Array.isArray(value) ? value : [value]))
  .meta({ id: "deliver", title: "target, or a list of targets" });

/** Texts, some of which YAML reads as numbers; those of many digits as `bigint`. */
const idsError = { error: "Expected a list of texts or numbers" };
const chatId = z
  .preprocess(
    (value) => (typeof value === "number" || typeof value === "bigint" ? String(value) : value),
    z.string(idsError),
  )
  .meta({ id: "chatId", title: "text or number", type: ["string", "number"] });
const chatIds = z.array(chatId, idsError).meta({ id: "chatIds", title: "list of texts or numbers" });

/** What a route and a target may say of retries; the global section has a default for each key. */
const messageRetryKeys = {
  tries: whole(1, 100).describe("Tries of one message in all, the first one included"),
  max_age: longDuration.describe("No try is made later than this after the message was ready"),
  first_delay: longDuration.describe(
    "Longest wait before the second try; before each further one it is six times as long. Chance decides how much of it is waited, or the service when it names a time",
  ),
  longest_delay: longDuration.describe("No wait is longer, unless the service names a time"),
  keep_order_for: longDurationOrNone.describe(
    "How long later messages to the same place wait for one that failed, counted from when it was ready; with 0 they pass at once",
  ),
  when_unknown: z
    .enum(["at_least_once", "at_most_once"])
    .describe(
      "What to do when nobody can tell whether the service took a message, and a second one would be a copy: at_least_once sends it again, at_most_once gives it up",
    ),
};

const retryKeys = {
  ...messageRetryKeys,
  run_tries: whole(1, 10).describe("Runs of the agent in all, where they fail for a reason that may pass"),
};

/** `retry` of a target, beside its settings. */
export const targetRetrySchema = z.strictObject(messageRetryKeys).partial();

const routeRetrySchema = z.strictObject(retryKeys).partial().meta({ id: "routeRetry", title: "mapping" });

const retrySchema = z.strictObject({
  tries: retryKeys.tries.prefault(8),
  max_age: retryKeys.max_age.prefault("24h"),
  first_delay: retryKeys.first_delay.prefault("4s"),
  longest_delay: retryKeys.longest_delay.prefault("24h"),
  keep_order_for: retryKeys.keep_order_for.prefault("10m"),
  when_unknown: retryKeys.when_unknown.prefault("at_least_once"),
  run_tries: retryKeys.run_tries.prefault(3),
});

const toolNames = z.array(z.string().meta({ id: "tool" }));

/** A route, static or subscribed (specification section 2.3). `filters` are compiled, and so checked, in `route.ts`. */
export const routeSchema = z
  .strictObject({
    description: z.string().optional().describe("What the route is for, for people"),
    enabled: flag.prefault(true).describe("With false, its requests are answered 403"),
    secret: texts
      .optional()
      .describe(
        "What senders sign with, or send as token; each of a list verifies. Without it the global secret counts. INSECURE_NO_AUTH switches verification off, on loopback addresses only",
      ),
    events: texts.prefault([]).describe("Event types to accept, as the sender writes them; none are all"),
    filters: z
      .unknown()
      .optional()
      .meta({ $ref: "#/$defs/filters", description: "Conditions on the payload that must all hold" }),
    script: z
      .string()
      .optional()
      .describe(
        "Program in the home's scripts folder that reshapes or declines the payload; .sh and .bash run with bash, others with Python",
      ),
    script_env: texts.prefault([]).describe("Environment variables that the script may see, by name"),
    prompt: z
      .string()
      .optional()
      .describe("Template of the prompt, or of the message with deliver_only; without one, the payload as JSON"),
    skills: texts
      .prefault([])
      .describe("Skills of the agent; the first that is found in the home's skills folder is loaded"),
    tools: toolNames.optional().describe("Tools of the agent; those of agent.tools when not set"),
    deliver: deliveries.prefault("log").describe("Where the answer goes"),
    deliver_extra: extra.prefault({}).describe("The target's address; values are templates like the prompt"),
    fallback: fallback
      .prefault([])
      .describe(
        "Where a message goes that is given up: to the first of these, to the next when that gives it up too. For every entry of deliver that has no fallback of its own",
      ),
    allow_chat_ids: chatIds
      .optional()
      .describe(
        "Where messages of this route may go when a template names the place (its chat, address or repository): one of these, exactly; without it, anywhere",
      ),
    deliver_only: flag.prefault(false).describe("Send the rendered prompt as it is, without an agent"),
    retry: routeRetrySchema
      .prefault({})
      .describe(
        "Rules of retry for this route: any key of `retry`; what stands here wins over the targets' and the global ones",
      ),
    max_concurrent: whole(1, 1000)
      .optional()
      .describe(
        "Runs of this route at the same time, on all gateways together; without it only agent.max_concurrent counts",
      ),
    on_crash: z
      .enum(["rerun", "fail"])
      .prefault("rerun")
      .describe("What becomes of a run that the gateway's death cut off: it is made again, or the event is given up"),
  })
  .meta({ id: "route", title: "Route", description: "What to do with the events of one URL" });

/** A dynamic subscription: a route that a command made. Its agent has the tools of the configuration and no others. */
export const subscriptionSchema = routeSchema.omit({ tools: true }).extend({
  name: z.string().optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
});

/** The global secret; an empty text is its default and means that there is none (specification section 2.1). */
const globalSecret = z.preprocess((value) => (value === "" ? undefined : value), texts.optional());

/** Names are checked in `route.ts`, with a sentence that says what they may hold; here the pattern is for editors. */
const routeName = z.string().meta({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" });

/** Keys of `platforms.webhook`; each may stand under `extra` or directly, so that defaults are given where both are joined. */
const webhookKeys = {
  host: z.string().optional().meta({
    description: "Address to listen on; 127.0.0.1 is reached from this machine only",
    "x-default": "0.0.0.0",
  }),
  port: whole(0, 65_535)
    .optional()
    .meta({ description: "Port to listen on; 0 takes any free one", "x-default": 8644, "x-env": ["WEBHOOK_PORT"] }),
  secret: globalSecret.meta({
    description: "Secret of every route without its own; each of a list verifies",
    "x-env": ["WEBHOOK_SECRET"],
  }),
  rate_limit: whole(1, 1_000_000)
    .optional()
    .meta({ description: "Requests per minute, of each route", "x-default": 30 }),
  max_body_bytes: whole(1, 1_073_741_824)
    .optional()
    .meta({ description: "Longest request body, in bytes", "x-default": 1_048_576 }),
  script_timeout_seconds: duration
    .optional()
    .meta({ description: "Longest run of a route's script; a number is seconds", "x-default": 30 }),
  public_url: address("https://hooks.example.com")
    .optional()
    .describe("Where senders reach the gateway from outside; commands print URLs that begin with it"),
  routes: z
    .record(routeName, routeSchema, { error: "Expected a mapping of route names to routes" })
    .optional()
    .meta({ title: "mapping", description: "Routes by name; the name is the end of the URL: /webhooks/NAME" }),
};

const webhookSchema = z.strictObject({
  enabled: flag.optional().meta({
    description: "Whether the gateway takes webhooks",
    "x-default": false,
    "x-env": ["WEBHOOK_ENABLED"],
  }),
  ...webhookKeys,
  extra: z.strictObject(webhookKeys).optional().meta({
    title: "mapping",
    description: "Any of the keys beside it but enabled; what stands here wins",
  }),
});

const agentSchema = z.strictObject({
  backend: z
    .string()
    .meta({ id: "agentBackend" })
    .prefault("builtin")
    .describe("builtin calls a model, command runs a program, preview answers with the prompt itself"),
  command: z
    .array(z.string())
    .prefault([])
    .describe("Program and arguments of the backend command: prompt on standard input, answer on standard output"),
  env: texts.prefault([]).describe("Environment variables that the backend command may see, by name"),
  tools: toolNames.prefault(["terminal"]).describe("Tools of every route that names none of its own"),
  max_concurrent: whole(1, 1000).prefault(4).describe("Runs of one gateway at the same time"),
  max_steps: whole(1, 1000).prefault(20).describe("Model turns of one run"),
  timeout: duration.prefault("10m").describe("Longest run"),
});

const modelSchema = z.strictObject({
  provider: z
    .enum(["openai", "anthropic", "google", "openai-compatible", "ollama"])
    .optional()
    .describe("Whose interface it is; when not set, what base_url and the keys in the environment imply"),
  name: z.string().optional().describe("The model, by its provider's name for it; there is no default"),
  base_url: address("https://models.example.com/v1")
    .optional()
    .describe("Where the provider's interface is, if elsewhere"),
});

const terminalSchema = z.strictObject({
  backend: z
    .string()
    .meta({ id: "terminalBackend" })
    .prefault("sandbox")
    .describe("Where the agent's commands run: sandbox is bubblewrap, local is this machine without isolation"),
  timeout: duration.prefault("2m").describe("Longest run of one command"),
  max_output_bytes: whole(1_000, 10_000_000)
    .prefault(50_000)
    .describe("Output of one command that the model sees, in bytes"),
});

/** Where the ledger is. */
export const storeSchema = z.strictObject({
  url: z
    .string()
    .superRefine((url, context) => {
      const message = badStoreUrl(url);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .optional()
    .meta({
      title: "address",
      description:
        "PostgreSQL database that several gateways may share; without it the ledger is a SQLite file in the home",
      pattern: "^postgres(ql)?://",
      examples: ["postgres://postern@db.example.com/postern"],
      "x-env": ["POSTERN_STORE_URL"],
    }),
  schema: z
    .string()
    .regex(/^(?!pg_)[a-z_][a-z0-9_]{0,47}$/, {
      error:
        'Expected a name of lower-case letters, digits and "_", 48 at most, that begins with neither a digit nor "pg_"',
    })
    .prefault("postern")
    .describe("Schema of the PostgreSQL database that Postern's tables are in"),
  lease: lease
    .prefault("30s")
    .describe("How long the work of a gateway that died is left to it; it says three times as often that it lives"),
});

const stateAges = {
  done: age.optional().describe("Every message was sent, or kept back on purpose"),
  dead: age.optional().describe("Given up"),
  refused: age.optional().describe("A direct delivery that failed"),
  cancelled: age.optional().describe("Stopped by hand"),
  ignored: age.optional().describe("Declined by events, filters or the script"),
} satisfies Record<FinalEventState, z.ZodType>;

const retentionSchema = z.strictObject({
  max_age: age.prefault("30d").describe("How long a finished event is kept, 1h at least"),
  max_size: size
    .prefault("2GiB")
    .describe("How much the ledger may hold, 1MiB at least; when it is more, finished events go, oldest first"),
  states: z
    .strictObject(stateAges)
    .prefault({})
    .meta({
      title: "mapping",
      description: `Ages of their own, over max_age, by what became of the event: ${finalEventStates.join(", ")}`,
    }),
});

export const configSchema = z
  .strictObject({
    platforms: z
      .object({
        webhook: webhookSchema
          .prefault({})
          .meta({ title: "Webhooks", description: "The gateway's own address and its routes" }),
      })
      .catchall(z.unknown())
      .prefault({})
      .meta({ title: "Platforms", description: "Where events come in, and where messages go" }),
    webhooks: z
      .strictObject({ routes: webhookKeys.routes })
      .optional()
      .meta({ title: "Old place of the routes", description: "Still read, with a warning", deprecated: true }),
    agent: agentSchema.prefault({}).meta({ title: "Agent", description: "Who answers the prompts" }),
    model: modelSchema.prefault({}).meta({ title: "Model", description: "The model of the backend builtin" }),
    terminal: terminalSchema
      .prefault({})
      .meta({ title: "Terminal", description: "Where the agent's terminal tool runs" }),
    scripts: z
      .strictObject({
        python: z.string().prefault("python3").describe("Interpreter of scripts that are not .sh or .bash"),
      })
      .prefault({})
      .meta({ title: "Scripts", description: "What runs the scripts of routes" }),
    store: storeSchema.prefault({}).meta({
      title: "Store",
      description: "Where the ledger is. A change takes effect at the next start",
    }),
    retry: retrySchema.prefault({}).meta({
      title: "Retries",
      description:
        "When a message or a run that failed is tried again, where neither the target nor the route says otherwise",
    }),
    retention: retentionSchema.prefault({}).meta({
      title: "Retention",
      description: "How much of the past is kept. What is not finished always is",
    }),
    log: z
      .strictObject({
        level: z.enum(["debug", "info", "warn", "error"]).prefault("info").describe("Least important lines to write"),
      })
      .prefault({})
      .meta({ title: "Log", description: "The gateway's log, on standard error" }),
    shutdown_timeout: duration
      .prefault("30s")
      .describe("How long requests and runs may go on when the gateway is told to stop"),
    admin: z.looseObject({}).optional().meta({
      title: "Admin side",
      description: "Has no effect, with a warning: this version has no admin side",
    }),
  })
  .meta({ title: "Postern configuration", description: "The file config.yaml in Postern's home" });

export type RouteConfig = z.output<typeof routeSchema>;
export type RetryConfig = z.output<typeof routeRetrySchema>;
export type FileConfig = z.output<typeof configSchema>;
