import type { Route } from "../config/route.ts";
import { Rejection, StoreUnavailable } from "../core/errors.ts";
import { newId } from "../core/id.ts";
import type { Event, HeaderMap } from "../core/types.ts";
import { checkDeclaredSize, checkEncoding } from "../receive/limits.ts";
import { parse } from "../receive/parse.ts";
import { verify } from "../receive/verify.ts";
import type { Gateway } from "./gateway.ts";
import { type Composed, type Declined, planOf, shape } from "./shape.ts";

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
  await verifyAndSpend(route, incoming.headers, body, gateway); //    verify    401, 429
  const event = parseEvent(route, incoming.headers, body, gateway); // parse    400
  const shaped = await shape(route, event, gateway.config); //        events, filters, script, compose
  if ("ignored" in shaped) return ignored(event, shaped, gateway);
  if (route.isDirect) return deliverNow(route, event, shaped, gateway);
  return acceptRun(route, event, shaped, gateway); //                 accept    202, 503
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

async function verifyAndSpend(route: Route, headers: HeaderMap, body: Buffer, gateway: Gateway): Promise<void> {
  const { rates, now } = gateway;
  try {
    verify({ headers, body, secrets: route.secrets, nowMs: now() });
  } catch (error) {
    const retryAfterSeconds = rates.fail(route.name);
    if (retryAfterSeconds === undefined) throw error;
    throw new Rejection("rate_limited", "Too many failed verifications", { retryAfterSeconds, cause: error });
  }
  const retryAfterSeconds = await available(rates.spend(route.name));
  if (retryAfterSeconds !== undefined) {
    throw new Rejection("rate_limited", `The budget of "${route.name}" is spent`, { retryAfterSeconds });
  }
}

function parseEvent(route: Route, headers: HeaderMap, body: Buffer, { now }: Gateway): Event {
  return parse({ headers, body, route: route.name, nowMs: now(), newId });
}

/** Tells the sender that nothing will be done, and keeps the event with the reason for whoever asks later. */
function ignored(event: Event, { ignored: why, detail }: Declined, { ledger, log }: Gateway): Handled {
  // Nothing was promised, so the sender need not wait for the disk, and a full one is no reason to refuse.
  ledger
    .ignore(event, why)
    .catch((err: unknown) => log.warn({ err, route: event.route }, "An ignored event was not recorded"));
  return { reply: { status: "ignored", ...detail }, event };
}

async function acceptRun(route: Route, event: Event, composed: Composed, gateway: Gateway): Promise<Handled> {
  const terms = { route: route.name, onCrash: route.onCrash };
  const plan = planOf(route, composed, gateway.config);
  const isNew = await durably(gateway, event, gateway.ledger.acceptRun(event, plan, composed.drafts, terms));
  if (!isNew) return duplicate(event, gateway);
  gateway.wake();
  return { reply: { status: "accepted", route: route.name, event: event.type, delivery_id: event.deliveryId }, event };
}

async function deliverNow(route: Route, event: Event, { text, drafts }: Composed, gateway: Gateway): Promise<Handled> {
  const { deliveries, ledger } = gateway;
  const earlier = deliveries.underWay(event);
  const accepted = await durably(gateway, event, ledger.acceptDirect(event, text, drafts));
  if ("duplicate" in accepted) {
    // A copy that comes while the first is still being sent shares its fate: "duplicate" now could turn out untrue. The
    // first may have failed since the ledger looked, so the one from before counts too.
    const underWay = deliveries.underWay(event) ?? earlier;
    if (underWay && !(await underWay)) return failed(event);
    if (!underWay && accepted.isUnderWay) throw comeAgain(event, gateway);
    return duplicate(event, gateway);
  }
  if (!(await deliveries.sendNow(event, accepted))) return failed(event);
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

/** The first is with another gateway, or with one that is gone: the sender's next try finds out what became of it. */
function comeAgain(event: Event, { rates }: Gateway): Rejection {
  rates.giveBack(event.route);
  const reason = `The delivery "${event.deliveryId}" is being sent by another gateway`;
  return new Rejection("unavailable", reason, { retryAfterSeconds: 10 });
}

/** Waits for the commit. What could not be kept is refused, so that the sender tries again, and costs no budget. */
async function durably<Value>({ rates }: Gateway, event: Event, commit: Promise<Value>): Promise<Value> {
  try {
    return await available(commit);
  } catch (error) {
    if (error instanceof Rejection) rates.giveBack(event.route);
    throw error;
  }
}

/** What the ledger cannot do now is refused for now. */
async function available<Value>(answer: Value | Promise<Value>): Promise<Value> {
  try {
    return await answer;
  } catch (cause) {
    if (!(cause instanceof StoreUnavailable)) throw cause;
    throw new Rejection("unavailable", `The ledger cannot commit: ${cause.message}`, { retryAfterSeconds: 10, cause });
  }
}
