import { type RenderedMap, renderMap, type Scope } from "../compose/template.ts";
import type { Outlet, Route } from "../config/route.ts";
import { Rejection, StoreUnavailable } from "../core/errors.ts";
import { newId } from "../core/id.ts";
import type { Event, HeaderMap } from "../core/types.ts";
import type { Draft } from "../ledger/ledger.ts";
import { checkDeclaredSize, checkEncoding } from "../receive/limits.ts";
import { parse } from "../receive/parse.ts";
import { verify } from "../receive/verify.ts";
import { acceptsType } from "../select/events.ts";
import { matches } from "../select/filter.ts";
import { runScript } from "../select/script.ts";
import type { Gateway } from "./gateway.ts";

/** A request for a route, before anything of its body was read. */
export interface Incoming {
  /** Name in the URL. */
  readonly route: string;
  readonly headers: HeaderMap;
  /** Reads the whole body. Rejects with `payload_too_large` as soon as it is longer than `maxBytes`. */
  body(maxBytes: number): Promise<Buffer>;
}

/** What the sender is told when nothing is refused. */
export type Reply =
  | { readonly status: "accepted"; readonly route: string; readonly event: string; readonly delivery_id: string }
  | { readonly status: "ignored"; readonly event: string }
  | { readonly status: "ignored"; readonly reason: "filter" | "script" }
  | { readonly status: "duplicate"; readonly delivery_id: string }
  | { readonly status: "delivered"; readonly route: string; readonly target: string; readonly delivery_id: string }
  | { readonly status: "error"; readonly error: "Delivery failed"; readonly delivery_id: string };

/** A reply, and the event that the log's line names. */
export interface Handled {
  readonly reply: Reply;
  readonly event: Event;
}

/**
 * The way of a request (specification section 4.2). A step that refuses throws a `Rejection`; a step that declines returns
 * a reply. Nothing before `accept` promises anything, and nothing after it can lose the job.
 */
export async function handle(incoming: Incoming, gateway: Gateway): Promise<Handled> {
  const { maxBodyBytes } = gateway.config.webhook;
  checkDeclaredSize(incoming.headers, maxBodyBytes); //               size      413
  const route = await findRoute(incoming.route, gateway); //          route     404, 403
  checkEncoding(incoming.headers); //                                           415
  checkBudget(route, gateway); //                                     rate      429
  const body = await incoming.body(maxBodyBytes); //                            413
  verifyAndSpend(route, incoming.headers, body, gateway); //          verify    401, 429
  const event = parseEvent(route, incoming.headers, body, gateway); // parse    400
  if (!acceptsType(route.events, event)) {
    return ignored(event, `the event type is not in "events"`, { event: event.type }, gateway);
  }
  const mismatch = route.filter && (await matches(route.filter, event));
  if (mismatch) {
    return ignored(event, `${mismatch.clause}, found ${mismatch.value}`, { reason: "filter" }, gateway);
  }
  const shaped = await transform(route, event, gateway); //           script
  if ("ignored" in shaped) return ignored(event, shaped.ignored, { reason: "script" }, gateway);
  const text = route.compose(shaped); //                              compose
  const drafts = route.outlets.map((outlet) => draft(outlet, shaped));
  if (route.isDirect) return deliverNow(route, event, text, drafts, gateway);
  return acceptRun(route, event, text, drafts, gateway); //           accept    202, 503
}

async function findRoute(name: string, { routes }: Gateway): Promise<Route> {
  const route = await routes.find(name);
  if (!route) throw new Rejection("unknown_route", "There is no such route");
  if (!route.enabled) throw new Rejection("route_disabled", `The route "${name}" is disabled`);
  return route;
}

function checkBudget(route: Route, { rates }: Gateway): void {
  const retryAfterSeconds = rates.spentFor(route.name);
  if (retryAfterSeconds !== undefined) {
    throw new Rejection("rate_limited", `The budget of "${route.name}" is spent`, { retryAfterSeconds });
  }
}

function verifyAndSpend(route: Route, headers: HeaderMap, body: Buffer, { rates, now }: Gateway): void {
  try {
    verify({ headers, body, secrets: route.secrets, nowMs: now() });
  } catch (error) {
    const retryAfterSeconds = rates.fail(route.name);
    if (retryAfterSeconds === undefined) throw error;
    throw new Rejection("rate_limited", "Too many failed verifications", { retryAfterSeconds, cause: error });
  }
  const retryAfterSeconds = rates.spend(route.name);
  if (retryAfterSeconds !== undefined) {
    throw new Rejection("rate_limited", `The budget of "${route.name}" is spent`, { retryAfterSeconds });
  }
}

function parseEvent(route: Route, headers: HeaderMap, body: Buffer, { now }: Gateway): Event {
  return parse({ headers, body, route: route.name, nowMs: now(), newId });
}

async function transform(route: Route, event: Event, gateway: Gateway): Promise<Scope | { readonly ignored: string }> {
  if (route.script === undefined) return event;
  const { config } = gateway;
  const result = await runScript({
    script: route.script,
    home: config.home.folder,
    event,
    python: config.python,
    timeoutMs: config.webhook.scriptTimeoutMs,
    env: config.env,
    extraEnv: route.scriptEnv,
  });
  return "ignored" in result ? result : { payload: result.payload, type: event.type };
}

function draft({ target, extra }: Outlet, scope: Scope): Draft {
  return { target: target.name, extra: flat(renderMap(extra, scope)) };
}

/** Addresses are plain texts; a mapping inside one was refused when the route was loaded. */
function flat(map: RenderedMap): Record<string, string> {
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

/** Tells the sender that nothing will be done, and keeps the event with the reason for whoever asks later. */
function ignored(
  event: Event,
  why: string,
  detail: { readonly event: string } | { readonly reason: "filter" | "script" },
  { ledger, log }: Gateway,
): Handled {
  // Nothing was promised, so the sender need not wait for the disk, and a full one is no reason to refuse.
  ledger
    .ignore(event, why)
    .catch((err: unknown) => log.warn({ err, route: event.route }, "An ignored event was not recorded"));
  return { reply: { status: "ignored", ...detail }, event };
}

async function acceptRun(
  route: Route,
  event: Event,
  prompt: string,
  drafts: readonly Draft[],
  gateway: Gateway,
): Promise<Handled> {
  const plan = { prompt, skills: route.skills, tools: route.tools };
  const isNew = await durably(gateway, event, gateway.ledger.acceptRun(event, plan, drafts));
  if (!isNew) return duplicate(event, gateway);
  gateway.wake();
  return { reply: { status: "accepted", route: route.name, event: event.type, delivery_id: event.deliveryId }, event };
}

async function deliverNow(
  route: Route,
  event: Event,
  text: string,
  drafts: readonly Draft[],
  gateway: Gateway,
): Promise<Handled> {
  const { deliveries, ledger } = gateway;
  const earlier = deliveries.underWay(event);
  const messages = await durably(gateway, event, ledger.acceptDirect(event, text, drafts));
  if (!messages) {
    // A copy that comes while the first is still being sent shares its fate: "duplicate" now could turn out untrue. The
    // first may have failed since the ledger looked, so the one from before counts too.
    const isUnderWay = deliveries.underWay(event) ?? earlier;
    if (isUnderWay && !(await isUnderWay)) return failed(event);
    return duplicate(event, gateway);
  }
  if (!(await deliveries.sendNow(event, messages))) return failed(event);
  const target = [...new Set(drafts.map((one) => one.target))].join(",");
  return { reply: { status: "delivered", route: route.name, target, delivery_id: event.deliveryId }, event };
}

function failed(event: Event): Handled {
  return { reply: { status: "error", error: "Delivery failed", delivery_id: event.deliveryId }, event };
}

function duplicate(event: Event, { rates }: Gateway): Handled {
  rates.giveBack(event.route);
  return { reply: { status: "duplicate", delivery_id: event.deliveryId }, event };
}

/** Waits for the commit. What could not be kept is refused, so that the sender tries again, and costs no budget. */
async function durably<Value>({ rates }: Gateway, event: Event, commit: Promise<Value>): Promise<Value> {
  try {
    return await commit;
  } catch (cause) {
    if (!(cause instanceof StoreUnavailable)) throw cause;
    rates.giveBack(event.route);
    throw new Rejection("unavailable", `The ledger cannot commit: ${cause.message}`, { retryAfterSeconds: 10, cause });
  }
}
