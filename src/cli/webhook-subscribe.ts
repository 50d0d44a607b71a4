import { randomBytes } from "node:crypto";
import { type Config, loadConfig } from "../config/load.ts";
import { findTarget } from "../config/platforms.ts";
import { addressKeys, badRouteName } from "../config/route.ts";
import { buildSubscriptions, changeEntries } from "../config/subscriptions.ts";
import { UserError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { type CommonOptions, type Context, homeOf, print } from "./context.ts";
import { webhookUrl } from "./url.ts";

export interface SubscribeOptions extends CommonOptions {
  readonly events?: string[];
  readonly prompt?: string;
  readonly skill?: string[];
  readonly deliver?: string;
  readonly deliverChatId?: string;
  readonly deliverExtra?: Record<string, string>;
  readonly deliverOnly?: boolean;
  readonly description?: string;
  readonly secret?: string;
}

type Entry = JsonObject;

/** Makes a subscription, or updates what its flags name and keeps the rest, the secret too. */
export async function subscribe(name: string, options: SubscribeOptions, context: Context): Promise<void> {
  const problem = badRouteName(name);
  if (problem) throw new UserError(`"${name}" cannot be the name: ${problem}`);
  const home = homeOf(context, options);
  const config = await loadConfig({ home, env: context.env });
  let entry: Entry = {};
  let isNew = true;
  await changeEntries(home, (entries) => {
    const before = Object.hasOwn(entries, name) ? entries[name] : undefined;
    isNew = !isObject(before);
    entry = update(isObject(before) ? before : undefined, options);
    refuseUnusable(name, entry, config);
    return { ...entries, [name]: entry };
  });
  announce(name, entry, isNew, options, context, config);
}

function update(before: Entry | undefined, options: SubscribeOptions): Entry {
  const now = new Date().toISOString();
  const extra = {
    ...keptExtra(before?.deliver_extra, options.deliver),
    ...options.deliverExtra,
    ...(options.deliverChatId === undefined ? {} : { chat_id: options.deliverChatId }),
  };
  const named = {
    description: options.description,
    events: options.events,
    prompt: options.prompt,
    skills: options.skill,
    deliver: options.deliver,
    deliver_extra: Object.keys(extra).length > 0 || before?.deliver_extra ? extra : undefined,
    deliver_only: options.deliverOnly,
    secret: options.secret,
  };
  const given = Object.fromEntries(
    Object.entries(named).flatMap(([key, value]): [string, Json][] => (value === undefined ? [] : [[key, value]])),
  );
  if (before) return { ...before, ...given, updated_at: now };
  return { secret: randomBytes(32).toString("base64url"), ...given, created_at: now };
}

/** Settings of the old target that mean nothing to a new one go with it. */
function keptExtra(extra: Json | undefined, newTarget: string | undefined): JsonObject {
  if (!isObject(extra)) return {};
  const target = newTarget === undefined ? undefined : findTarget(newTarget);
  if (!target) return extra;
  const known = addressKeys(target);
  return Object.fromEntries(Object.entries(extra).filter(([key]) => known.includes(key)));
}

/** What the gateway would skip is not written in the first place. */
function refuseUnusable(name: string, entry: Entry, config: Config): void {
  const { errors } = buildSubscriptions(JSON.stringify({ [name]: entry }), config.home, config.routeContext);
  if (errors.length === 0) return;
  const reasons = errors.map((error) => error.replace(/^The subscription ".*?" is skipped: /, ""));
  throw new UserError(`"${name}" was not saved: ${reasons.join("; ")}`);
}

function announce(
  name: string,
  entry: Entry,
  isNew: boolean,
  options: SubscribeOptions,
  context: Context,
  config: Config,
): void {
  const url = webhookUrl(config.webhook, name);
  const notes = [
    config.routes.has(name)
      ? `config.yaml has a route "${name}" too, and that one wins; remove it there or choose another name`
      : undefined,
    config.webhook.enabled
      ? undefined
      : 'The gateway is not enabled yet; set "platforms.webhook.enabled: true" or WEBHOOK_ENABLED=true',
  ].filter((note) => note !== undefined);
  const secret = isNew ? { secret: String(entry.secret) } : {};
  const unshown = options.secret === undefined ? "unchanged" : "replaced by the given one";
  print(context, options, { name, url, ...secret, created: isNew, notes }, [
    `${isNew ? "Subscribed" : "Updated"} "${name}"`,
    `  URL:    ${url}`,
    isNew ? `  Secret: ${entry.secret}  (shown this once)` : `  Secret: ${unshown}`,
    ...notes.map((note) => `Note: ${note}`),
  ]);
}
