import { z } from "zod";

/**
 * The configuration file as one schema: it validates, gives the types and can print itself as JSON Schema. What needs to
 * know the adapters (targets, senders, agents) is checked in `load.ts` and `route.ts`.
 */

const words = { true: true, yes: true, on: true, false: false, no: false, off: false } as const;

/** YAML 1.2 reads `yes` and `on` as text; people write them for true all the same. */
const flagError = { error: "Expected true or false" };
const flag = z
  .union([z.boolean(), z.string().regex(/^(true|yes|on|false|no|off)$/i, flagError)], flagError)
  .transform((value) => (typeof value === "boolean" ? value : words[value.toLowerCase() as keyof typeof words]));

/** A whole number, also in quotes. */
function whole(min: number, max: number) {
  const params = { error: `Expected a whole number from ${min} to ${max}` };
  return z.preprocess(
    (value) => (typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value),
    z.int(params).min(min, params).max(max, params),
  );
}

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** Node's timers end at once when they are set for longer than 2^31 ms, which is 596 hours. */
const longestMs = 500 * unitMs.h;

/** A time span: a number of seconds, or text such as `500ms`, `30s`, `10m`, `2h`. Becomes milliseconds. */
const durationError = { error: 'Expected seconds as a number, or text such as "30s" or "10m"' };
const duration = z
  .union([z.number(), z.string().regex(/^\d+(\.\d+)?(ms|s|m|h)?$/, durationError)], durationError)
  .transform((value) => {
    if (typeof value === "number") return value * 1000;
    const [, amount, unit = "s"] = /^([\d.]+)(\w*)$/.exec(value) ?? [];
    return Number(amount) * unitMs[(unit || "s") as keyof typeof unitMs];
  })
  .refine((ms) => ms >= 1 && ms <= longestMs, { error: "Expected a time from 1ms to 500h" });

/** One text or a list of them. */
const texts = z
  .union([z.string(), z.array(z.string())], { error: "Expected text or a list of texts" })
  .transform((value) => (typeof value === "string" ? [value] : value));

const extra = z.record(z.string(), z.unknown(), { error: "Expected a mapping of keys to values" });

const delivery = z.union([z.string(), z.looseObject({ to: z.string() })]);

const deliveriesError = { error: "Expected a target's name, or a list of names or {to: name, …}" };
const deliveries = z
  .union([delivery, z.array(delivery).min(1, deliveriesError)], deliveriesError)
  .transform((value) => (Array.isArray(value) ? value : [value]));

/** A route, static or subscribed (specification section 2.3). `filters` are compiled, and so checked, in `route.ts`. */
export const routeSchema = z.strictObject({
  description: z.string().optional(),
  enabled: flag.default(true),
  secret: texts.optional(),
  events: texts.default([]),
  filters: z.unknown().optional(),
  script: z.string().optional(),
  script_env: texts.default([]),
  prompt: z.string().optional(),
  skills: texts.default([]),
  tools: z.array(z.string()).optional(),
  deliver: deliveries.default(["log"]),
  deliver_extra: extra.default({}),
  deliver_only: flag.default(false),
});

/** A dynamic subscription: a route that a command made. Its agent has the tools of the configuration and no others. */
export const subscriptionSchema = routeSchema.omit({ tools: true }).extend({
  name: z.string().optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
});

/** The global secret; an empty text is its default and means that there is none (specification section 2.1). */
const globalSecret = z.preprocess((value) => (value === "" ? undefined : value), texts.optional());

/** Keys of `platforms.webhook`; each may stand under `extra` or directly. */
const webhookKeys = {
  host: z.string().optional(),
  port: whole(0, 65_535).optional(),
  secret: globalSecret,
  rate_limit: whole(1, 1_000_000).optional(),
  max_body_bytes: whole(1, 1_073_741_824).optional(),
  script_timeout_seconds: duration.optional(),
  public_url: z
    .url({ protocol: /^https?$/, error: 'Expected an address such as "https://hooks.example.com"' })
    .optional(),
  routes: z.record(z.string(), routeSchema, { error: "Expected a mapping of route names to routes" }).optional(),
};

const webhookSchema = z.strictObject({
  enabled: flag.optional(),
  ...webhookKeys,
  extra: z.strictObject(webhookKeys).optional(),
});

const agentSchema = z.strictObject({
  backend: z.string().default("builtin"),
  command: z.array(z.string()).default([]),
  env: texts.default([]),
  tools: z.array(z.string()).default(["terminal"]),
  max_concurrent: whole(1, 1000).default(4),
  max_steps: whole(1, 1000).default(20),
  timeout: duration.default(600_000),
});

const modelSchema = z.strictObject({
  provider: z.enum(["openai", "anthropic", "google", "openai-compatible", "ollama"]).optional(),
  name: z.string().optional(),
  base_url: z
    .url({ protocol: /^https?$/, error: 'Expected an address such as "https://models.example.com/v1"' })
    .optional(),
});

const terminalSchema = z.strictObject({
  backend: z.string().default("sandbox"),
  timeout: duration.default(120_000),
  max_output_bytes: whole(1_000, 10_000_000).default(50_000),
});

export const configSchema = z.strictObject({
  platforms: z
    .object({ webhook: webhookSchema.prefault({}) })
    .catchall(z.unknown())
    .prefault({}),
  /** Older place of the routes; still read, with a warning. */
  webhooks: z.strictObject({ routes: webhookKeys.routes }).optional(),
  agent: agentSchema.prefault({}),
  model: modelSchema.prefault({}),
  terminal: terminalSchema.prefault({}),
  scripts: z.strictObject({ python: z.string().default("python3") }).prefault({}),
  log: z.strictObject({ level: z.enum(["debug", "info", "warn", "error"]).default("info") }).prefault({}),
  shutdown_timeout: duration.default(30_000),
  /** The admin side is not part of this version; its keys are taken so that a configuration can name them already. */
  admin: z.looseObject({}).optional(),
});

export type RouteConfig = z.output<typeof routeSchema>;
export type FileConfig = z.output<typeof configSchema>;
