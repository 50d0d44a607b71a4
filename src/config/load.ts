import type { AgentSettings } from "../agent/agent.ts";
import * as agents from "../agent/registry.ts";
import * as agentTools from "../agent/tools/registry.ts";
import { ConfigError, type Problem } from "../core/errors.ts";
import { suggestion } from "../core/nearest.ts";
import type { Environment } from "../core/types.ts";
import * as sandboxes from "../sandbox/registry.ts";
import type { StoreSettings } from "../store/settings.ts";
import { joinEnvironment, readConfigFile } from "./files.ts";
import type { Home } from "./home.ts";
import type { RouteProblem } from "./outlets.ts";
import { unboundedTargets } from "./places.ts";
import { type Platforms, readPlatforms, sectionProblems } from "./platforms.ts";
import { isThere, problemAt, readYaml, type Source } from "./problems.ts";
import { repeats } from "./repeats.ts";
import { type RetentionSettings, retentionSettings } from "./retention.ts";
import { globalRetry, type RetrySettings } from "./retry.ts";
import { buildRoute, type Route, type RouteContext } from "./route.ts";
import type { FileConfig } from "./schema.ts";
import { globalSecrets, secretsOf } from "./secrets.ts";
import { secretsOfStores, storeSettings } from "./store.ts";
import { validate } from "./validate.ts";

export interface WebhookConfig {
  readonly enabled: boolean;
  readonly host: string;
  readonly port: number;
  /** Requests per minute and route. */
  readonly rateLimit: number;
  readonly maxBodyBytes: number;
  readonly scriptTimeoutMs: number;
  /** Where senders reach the gateway from outside, without a slash at the end. */
  readonly publicUrl: string | undefined;
}

/** Everything the gateway obeys, after flags, environment, `.env`, file and defaults were joined and checked. */
export interface Config {
  readonly home: Home;
  /** Process environment over `.env`. */
  readonly env: Environment;
  readonly webhook: WebhookConfig;
  readonly platforms: Platforms;
  readonly agent: AgentSettings & { readonly backend: keyof typeof agents; readonly maxConcurrent: number };
  readonly sandbox: keyof typeof sandboxes;
  readonly python: string;
  readonly logLevel: FileConfig["log"]["level"];
  readonly shutdownTimeoutMs: number;
  /** Where the ledger is. Opened once: a change takes effect at the next start. */
  readonly store: StoreSettings;
  /** How long a lease lasts without a heartbeat. */
  readonly leaseMs: number;
  /** The global rules of retry; see `messageRule` and `runTries`. */
  readonly retry: RetrySettings;
  readonly retention: RetentionSettings;
  /** Static routes by name. */
  readonly routes: ReadonlyMap<string, Route>;
  /** What a subscription needs to become a route. */
  readonly routeContext: RouteContext;
  /** Values that must never leave the gateway. */
  readonly secrets: readonly string[];
  readonly warnings: readonly string[];
}

export interface LoadOptions {
  readonly home: Home;
  readonly env: Environment;
  /** Flags of the command line win over everything. */
  readonly host?: string;
  readonly port?: number;
  /** Told of what goes wrong later, for example an `in_file` list that disappears. */
  readonly warn?: (message: string) => void;
}

/**
 * Reads and checks the configuration of a home. A missing file is an empty one.
 * @throws ConfigError with every problem found.
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  const { home } = options;
  const env = await joinEnvironment(home, options.env);
  const source = readYaml(home.config, (await readConfigFile(home.config)) ?? "");
  const problems: Problem[] = [...source.problems];
  if (problems.length > 0 && source.value === undefined) throw new ConfigError(problems);
  const file = validate(source, problems);
  const warnings: string[] = [];
  const webhookSection = joinNesting(file, source, warnings);
  const webhook = joinWebhook(webhookSection, env, options, problems);
  for (const { path, message } of sectionProblems(file.platforms, env)) {
    problems.push(problemAt(source, path, message));
  }
  const platforms = readPlatforms(file.platforms, env);
  const store = storeSettings(file.store, home, env, problems);
  const routeContext: RouteContext = {
    home,
    platforms,
    globalSecrets: globalSecrets(webhookSection.secret, isLoopback(webhook.host), env, source, problems),
    isLoopback: isLoopback(webhook.host),
    defaultTools: file.agent.tools,
    warn: options.warn ?? (() => {}),
  };
  const routes = buildRoutes(webhookSection, source, routeContext, problems);
  warnings.push(...[...routes.values()].flatMap((route) => routeWarnings(route, webhookSection, platforms, source)));
  checkNames(file, source, problems);
  if (problems.length > 0) throw new ConfigError(inOrder(problems));
  if (file.admin) warnings.push('"admin" has no effect: this version has no admin side');
  return {
    home,
    env,
    webhook,
    platforms,
    agent: agentSettings(file),
    sandbox: file.terminal.backend as keyof typeof sandboxes,
    python: file.scripts.python,
    logLevel: file.log.level,
    shutdownTimeoutMs: file.shutdown_timeout,
    store,
    leaseMs: file.store.lease,
    retry: globalRetry(file.retry),
    retention: retentionSettings(file.retention),
    routes,
    routeContext,
    secrets: secretsOf([...routeContext.globalSecrets, ...secretsOfStores(file.store, env)], platforms, routes, env),
    warnings,
  };
}

/** In the order of the file, as one mends them; those of the environment first. */
function inOrder(problems: readonly Problem[]): Problem[] {
  const place = ({ line = 0, column = 0 }: Problem) => line * 100_000 + column;
  return problems.toSorted((one, other) => place(one) - place(other));
}

/** The addresses on which only this machine can reach the gateway (specification section 5). */
export function isLoopback(host: string): boolean {
  return host === "127.0.0.1" || host === "localhost" || host === "::1";
}

type Section = Omit<FileConfig["platforms"]["webhook"], "extra">;

const direct = ["platforms", "webhook"] as const;
const nested = ["platforms", "webhook", "extra"] as const;

/** Both nestings of `platforms.webhook`, and the old `webhooks.routes`, as one. What stands under `extra` wins. */
function joinNesting(file: FileConfig, source: Source, warnings: string[]): Section {
  const { extra = {}, ...section } = file.platforms.webhook;
  const old = file.webhooks?.routes;
  const warn = (path: readonly string[], message: string) => {
    warnings.push(`${source.file}:${source.position(path)?.line ?? 1}: ${message}`);
  };
  if (old) warn(["webhooks"], '"webhooks.routes" is deprecated; move it to "platforms.webhook.extra.routes"');
  const given = (one: object) => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined));
  const twice = Object.keys(given(section)).filter((key) => key !== "routes" && Object.hasOwn(given(extra), key));
  for (const key of twice) {
    warn([...direct, key], `"${direct.join(".")}.${key}" has no effect: "${nested.join(".")}.${key}" is set too`);
  }
  const routes = { ...old, ...section.routes, ...extra.routes };
  return { ...given(section), ...given(extra), routes };
}

function joinWebhook(section: Section, env: Environment, options: LoadOptions, problems: Problem[]): WebhookConfig {
  return {
    enabled: readFlag("WEBHOOK_ENABLED", env, problems) ?? section.enabled ?? false,
    host: options.host ?? section.host ?? "0.0.0.0",
    port: options.port ?? readPort(env, problems) ?? section.port ?? 8644,
    rateLimit: section.rate_limit ?? 30,
    maxBodyBytes: section.max_body_bytes ?? 1_048_576,
    scriptTimeoutMs: section.script_timeout_seconds ?? 30_000,
    publicUrl: section.public_url?.replace(/\/+$/, ""),
  };
}

function readFlag(name: string, env: Environment, problems: Problem[]): boolean | undefined {
  const value = env[name]?.trim().toLowerCase();
  if (!value) return undefined;
  if (["true", "1", "yes", "on"].includes(value)) return true;
  if (["false", "0", "no", "off"].includes(value)) return false;
  problems.push({ key: name, message: `Expected true or false, found "${value}"` });
  return undefined;
}

function readPort(env: Environment, problems: Problem[]): number | undefined {
  const value = env.WEBHOOK_PORT?.trim();
  if (!value) return undefined;
  if (/^\d{1,5}$/.test(value) && Number(value) <= 65_535) return Number(value);
  problems.push({ key: "WEBHOOK_PORT", message: `Expected a whole number from 0 to 65535, found "${value}"` });
  return undefined;
}

/** Builds the static routes; a problem is shown where the key really stands, in whichever nesting. */
function buildRoutes(section: Section, source: Source, context: RouteContext, problems: Problem[]): Map<string, Route> {
  const routes = new Map<string, Route>();
  for (const [name, config] of Object.entries(section.routes ?? {})) {
    const path = routePath(source, name);
    const built = buildRoute(name, config, "config", context);
    if ("route" in built) routes.set(name, built.route);
    else problems.push(...routeProblems(built.problems, path, source, problems));
  }
  return routes;
}

function routeWarnings(route: Route, { routes = {} }: Section, platforms: Platforms, source: Source): string[] {
  const config = routes[route.name];
  const line = source.position(routePath(source, route.name))?.line ?? 1;
  const found = [...unbounded(route), ...(config === undefined ? [] : repeats(route, config, platforms))];
  return found.map((warning) => `${source.file}:${line}: ${warning}`);
}

/** Who may send to a route must not thereby be able to write to everybody, or to run up a bill. */
function unbounded(route: Route): string[] {
  const how = 'name the places it may go to in "allow_chat_ids"';
  return unboundedTargets(route).map(
    (name) => `The payload of "${route.name}" decides whom "${name}" writes to; ${how}`,
  );
}

/** Where the schema left keys of the route out, what seems to be missing may only be written wrong. */
function routeProblems(
  found: readonly RouteProblem[],
  path: readonly string[],
  source: Source,
  before: readonly Problem[],
): Problem[] {
  const all = found.map((problem) => ({
    path: asWritten(source.value, [...path, ...problem.path]),
    message: problem.message,
  }));
  const isWhole = !before.some(({ key }) => key.startsWith(`${path.join(".")}.`));
  const sure = all.filter(
    (problem) => isThere(source, problem.path) && !before.some(({ key }) => key === problem.path.join(".")),
  );
  return (isWhole ? all : sure).map((problem) => problemAt(source, problem.path, problem.message));
}

/** The path of a key in a list of one, which a route takes for its only item. */
function asWritten(value: unknown, path: RouteProblem["path"]): (string | number)[] {
  const written: (string | number)[] = [];
  for (const step of path) {
    const isSkipped = Array.isArray(value) && typeof step === "string" && !/^\d+$/.test(step);
    if (isSkipped) written.push(0);
    const map: unknown = isSkipped ? (value as unknown[])[0] : value;
    written.push(step);
    value = typeof map === "object" && map !== null ? (map as Record<string, unknown>)[step] : undefined;
  }
  return written;
}

function routePath(source: Source, name: string): string[] {
  const paths = [nested, direct, ["webhooks"]].map((nesting) => [...nesting, "routes", name]);
  return paths.find((path) => isThere(source, path)) ?? ["routes", name];
}

/** Names that must be in a registry. */
function checkNames(file: FileConfig, source: Source, problems: Problem[]): void {
  const check = (path: readonly PropertyKey[], name: string, registry: object, what: string) => {
    const names = Object.keys(registry);
    if (!names.includes(name)) {
      problems.push(problemAt(source, path, `Unknown ${what} "${name}"; ${suggestion(name, names)}`));
    }
  };
  check(["agent", "backend"], file.agent.backend, agents, "agent backend");
  check(["terminal", "backend"], file.terminal.backend, sandboxes, "terminal backend");
  for (const [index, tool] of file.agent.tools.entries()) check(["agent", "tools", index], tool, agentTools, "tool");
  if (file.agent.backend === "command" && file.agent.command.length === 0) {
    problems.push(
      problemAt(
        source,
        ["agent", "command"],
        'The backend "command" needs a program; set "agent.command: [program, argument, …]"',
      ),
    );
  }
}

function agentSettings(file: FileConfig): Config["agent"] {
  return {
    backend: file.agent.backend as keyof typeof agents,
    maxConcurrent: file.agent.max_concurrent,
    timeoutMs: file.agent.timeout,
    maxSteps: file.agent.max_steps,
    command: file.agent.command,
    env: file.agent.env,
    model: { provider: file.model.provider, name: file.model.name, baseUrl: file.model.base_url },
    terminal: { timeoutMs: file.terminal.timeout, maxOutputBytes: file.terminal.max_output_bytes },
  };
}
