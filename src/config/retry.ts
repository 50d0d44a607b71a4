import type { MessageRule } from "../core/retry.ts";
import type { RetryConfig } from "./schema.ts";

/** The key `retry`: the rule of messages, and how often an agent's run is made. */
export interface RetrySettings extends MessageRule {
  /** Runs in all, the first one included; only one that failed for a reason that may pass is made again. */
  readonly runTries: number;
}

/** With the other defaults, eight tries spread over about a day. */
const factor = 6;

/** The global rules: every key has its value. */
export function globalRetry(keys: Required<RetryConfig>): RetrySettings {
  return { ...rulesOf(keys), factor };
}

/** The rules of a route or a target: only what is set there, so that it can be laid over others. */
export function ownRetry(keys: RetryConfig): Partial<RetrySettings> {
  return Object.fromEntries(Object.entries(rulesOf(keys)).filter(([, value]) => value !== undefined));
}

function rulesOf<Keys extends RetryConfig>(keys: Keys) {
  return {
    tries: keys.tries as Keys["tries"],
    maxAgeMs: keys.max_age as Keys["max_age"],
    firstDelayMs: keys.first_delay as Keys["first_delay"],
    longestDelayMs: keys.longest_delay as Keys["longest_delay"],
    keepOrderMs: keys.keep_order_for as Keys["keep_order_for"],
    whenUnknown: keys.when_unknown as Keys["when_unknown"],
    runTries: keys.run_tries as Keys["run_tries"],
  };
}

/** Where the rules stand. `Config` is one, and `Route` is the other. */
interface Rules {
  readonly retry: RetrySettings;
  readonly platforms: ReadonlyMap<string, { readonly retry?: Partial<MessageRule> }>;
}
interface RouteRules {
  readonly retry: Partial<RetrySettings>;
}

/** The rule of one message: what its route says over what its target says over the global one. `undefined`: the route is gone. */
export function messageRule(config: Rules, route: RouteRules | undefined, target: string): MessageRule {
  const { runTries: _, ...rule } = { ...config.retry, ...config.platforms.get(target)?.retry, ...route?.retry };
  return rule;
}

/** How many runs of the agent a job of this route may take in all. */
export function runTries(config: Pick<Rules, "retry">, route: RouteRules | undefined): number {
  return route?.retry.runTries ?? config.retry.runTries;
}
