import * as tools from "../agent/tools/registry.ts";
import { compilePrompt } from "../compose/prompt.ts";
import type { Scope } from "../compose/template.ts";
import { INSECURE_NO_AUTH } from "../core/names.ts";
import { suggestion } from "../core/nearest.ts";
import { compileFilters, type Filter } from "../select/filter.ts";
import type { Home } from "./home.ts";
import { type Outlet, type RouteProblem, readOutlets } from "./outlets.ts";
import type { Platforms } from "./platforms.ts";
import { ownRetry, type RetrySettings } from "./retry.ts";
import type { RouteConfig } from "./schema.ts";

/** A route that is ready for requests: everything that can be checked or compiled beforehand has been. */
export interface Route {
  readonly name: string;
  readonly origin: "config" | "subscription";
  readonly description: string | undefined;
  readonly enabled: boolean;
  /** Any one of them verifies. */
  readonly secrets: readonly string[];
  readonly events: readonly string[];
  readonly filter: Filter | undefined;
  readonly script: string | undefined;
  readonly scriptEnv: readonly string[];
  /** Makes the prompt, or the message of a direct delivery. */
  readonly compose: (scope: Scope) => string;
  readonly skills: readonly string[];
  readonly tools: readonly string[];
  /** True when the rendered text is sent as it is, without an agent. */
  readonly isDirect: boolean;
  readonly outlets: readonly Outlet[];
  /** The only places that a template may lead messages to; `undefined`: any. */
  readonly allowChatIds: readonly string[] | undefined;
  /** What this route says of retries, over its targets' and the global rules (`messageRule`, `runTries`). */
  readonly retry: Partial<RetrySettings>;
  /** Runs at the same time on all gateways together; `undefined`: no bound of its own. */
  readonly maxConcurrent: number | undefined;
  /** What becomes of a run that the gateway's death cut off. */
  readonly onCrash: RouteConfig["on_crash"];
}

export interface RouteContext {
  readonly home: Home;
  readonly platforms: Platforms;
  readonly globalSecrets: readonly string[];
  /** Whether the gateway listens on a loopback address only. */
  readonly isLoopback: boolean;
  readonly defaultTools: readonly string[];
  readonly warn: (message: string) => void;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Why a name cannot be a route's, or `undefined` when it can. */
export function badRouteName(name: string): string | undefined {
  if (namePattern.test(name)) return undefined;
  return 'A route name begins with a letter or digit and goes on with letters, digits, ".", "_" and "-", 128 at most';
}

/** Compiles a route, or names everything that is wrong with it. */
export function buildRoute(
  name: string,
  config: RouteConfig,
  origin: Route["origin"],
  context: RouteContext,
): { readonly route: Route } | { readonly problems: readonly RouteProblem[] } {
  const problems: RouteProblem[] = [];
  const badName = badRouteName(name);
  if (badName) problems.push({ path: [], message: badName });
  const secrets = routeSecrets(config, context, problems);
  const filter = routeFilter(config, context, problems);
  const outlets = readOutlets(config, context.platforms, problems);
  const wantedTools = config.tools ?? context.defaultTools;
  for (const [index, tool] of (config.tools ?? []).entries()) {
    if (!Object.hasOwn(tools, tool)) {
      problems.push({
        path: ["tools", index],
        message: `Unknown tool "${tool}"; ${suggestion(tool, Object.keys(tools))}`,
      });
    }
  }
  if (problems.length > 0) return { problems };
  return {
    route: {
      name,
      origin,
      description: config.description,
      enabled: config.enabled,
      secrets,
      events: config.events,
      filter,
      script: config.script,
      scriptEnv: config.script_env,
      compose: compilePrompt(config.prompt),
      skills: config.skills,
      tools: wantedTools,
      isDirect: config.deliver_only,
      outlets,
      allowChatIds: config.allow_chat_ids,
      retry: ownRetry(config.retry),
      maxConcurrent: config.max_concurrent,
      onCrash: config.on_crash,
    },
  };
}

/** The route's own secrets, else the global ones, which are checked where they are set. */
function routeSecrets(config: RouteConfig, context: RouteContext, problems: RouteProblem[]): readonly string[] {
  const own = config.secret;
  const problem = own ? secretProblem(own, context.isLoopback) : undefined;
  if (problem) problems.push({ path: ["secret"], message: problem });
  if (!own && context.globalSecrets.length === 0) {
    const how = 'set "secret" on it, "platforms.webhook.extra.secret" or WEBHOOK_SECRET';
    problems.push({ path: ["secret"], message: `The route has no secret; ${how}` });
  }
  return own ?? context.globalSecrets;
}

/** Why these secrets cannot protect a route, or `undefined`. */
export function secretProblem(secrets: readonly string[], isLoopback: boolean): string | undefined {
  if (secrets.length === 0) return "The list of secrets is empty; write a secret into it, or remove it";
  if (secrets.some((secret) => secret.trim() === "")) return "A secret is empty; remove it or write a real one";
  if (!secrets.includes(INSECURE_NO_AUTH)) return undefined;
  if (secrets.length > 1) return `${INSECURE_NO_AUTH} cannot stand beside real secrets; remove it`;
  if (isLoopback) return undefined;
  return `${INSECURE_NO_AUTH} is only for a gateway on 127.0.0.1, localhost or ::1; set a real secret, or bind to 127.0.0.1`;
}

function routeFilter(config: RouteConfig, context: RouteContext, problems: RouteProblem[]): Filter | undefined {
  if (config.filters === undefined || config.filters === null) return undefined;
  const compiled = compileFilters(config.filters, context.home.folder, { warn: context.warn });
  if ("filter" in compiled) return compiled.filter;
  for (const { path, message } of compiled.problems) {
    problems.push({ path: path.split(".").map((step) => (/^\d+$/.test(step) ? Number(step) : step)), message });
  }
  return undefined;
}
