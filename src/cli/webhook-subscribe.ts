import { randomBytes } from "node:crypto";
import { type Config, loadConfig } from "../config/load.ts";
import { addressKeys } from "../config/outlets.ts";
import { findTarget } from "../config/platforms.ts";
import { badRouteName } from "../config/route.ts";
import { buildSubscriptions, type Entries } from "../config/subscriptions.ts";
import { UserError } from "../core/errors.ts";
import { isList, isObject, parseJson } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { locateScript } from "../select/script.ts";
import { type CommonOptions, type Context, homeOf, print, secretFromInput } from "./context.ts";
import { withSubscriptions } from "./subscriptions.ts";
import { webhookUrl } from "./url.ts";

export interface SubscribeOptions extends CommonOptions {
  readonly events?: string[];
  readonly prompt?: string;
  /** JSON texts, each a filter or a list of them. */
  readonly filter?: string[];
  readonly script?: string;
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
export async function subscribe(name: string, flags: SubscribeOptions, context: Context): Promise<void> {
  const problem = badRouteName(name);
  if (problem) throw new UserError(`"${name}" cannot be the name: ${problem}`);
  const options = flags.secret === "-" ? { ...flags, secret: await secretFromInput(context) } : flags;
  const home = homeOf(context, options);
  const config = await loadConfig({ home, env: context.env });
  let entry: Entry = {};
  let isNew = true;
  const withIt = (entries: Entries): Entries => {
    const before = Object.hasOwn(entries, name) ? entries[name] : undefined;
    isNew = !isObject(before);
    entry = update(isObject(before) ? before : undefined, options);
    refuseUnusable(name, entry, config);
    return { ...entries, [name]: entry };
  };
  await withSubscriptions(context, options, "write", (place) => place.change(withIt));
  const notes = [...notesOn(name, config), ...(await scriptNotes(entry, config))];
  announce({ name, entry, isNew, notes, url: webhookUrl(config.webhook, name) }, options, context);
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
    filters: options.filter?.map(parseJson).flatMap((filter) => (isList(filter) ? filter : [filter])),
    script: options.script,
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

function notesOn(name: string, { routes, webhook }: Config): string[] {
  const isHidden = `config.yaml has a route "${name}" too, and that one wins; remove it there or choose another name`;
  const isOff = 'The gateway is not enabled yet; set "platforms.webhook.enabled: true" or WEBHOOK_ENABLED=true';
  return [...(routes.has(name) ? [isHidden] : []), ...(webhook.enabled ? [] : [isOff])];
}

/** A script may well be written after the subscription, but until then no event passes. */
async function scriptNotes({ script }: Entry, { home }: Config): Promise<string[]> {
  const located = typeof script === "string" ? await locateScript(script, home.folder) : undefined;
  return located && "problem" in located ? [`${located.problem}; until that is mended every event is ignored`] : [];
}

interface Saved {
  readonly name: string;
  readonly url: string;
  readonly entry: Entry;
  readonly isNew: boolean;
  readonly notes: readonly string[];
}

function announce({ name, url, entry, isNew, notes }: Saved, options: SubscribeOptions, context: Context): void {
  const secret = isNew ? { secret: String(entry.secret) } : {};
  const unshown = options.secret === undefined ? "unchanged" : "replaced by the given one";
  print(context, options, { name, url, ...secret, created: isNew, notes }, [
    `${isNew ? "Subscribed" : "Updated"} "${name}"`,
    `  URL:    ${url}`,
    isNew ? `  Secret: ${entry.secret}  (shown this once)` : `  Secret: ${unshown}`,
    ...notes.map((note) => `Note: ${note}`),
  ]);
}
