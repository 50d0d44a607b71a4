import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Config, loadConfig } from "../config/load.ts";
import { readEntries, unknownSubscription } from "../config/subscriptions.ts";
import { StoreRefused, StoreUnavailable, UserError } from "../core/errors.ts";
import { INSECURE_NO_AUTH } from "../core/names.ts";
import { exchange, HttpFailure, type HttpResponse } from "../lib/http.ts";
import { signGithub } from "../receive/verify.ts";
import type { EventRecord, Store } from "../store/store.ts";
import { type CommonOptions, type Context, homeOf, print } from "./context.ts";
import { withStore } from "./ledger.ts";
import { withSubscriptions } from "./subscriptions.ts";
import { timeline } from "./timeline.ts";
import { localUrl } from "./url.ts";

export interface TestOptions extends CommonOptions {
  readonly payload?: string;
  /** Seconds to watch the event. */
  readonly wait: number;
}

/** Prompts and answers are shown up to here; `postern events show` has more. */
const longest = 300;
/** An event that was taken is in the ledger before the answer, an ignored one soon after it. */
const recordedWithinMs = 1_500;
const pollMs = 50;

/**
 * Sends a test event as a real sender would, and watches in the ledger what becomes of it. Fails when nobody listens, when
 * the gateway refused the event, and when its job is given up. Static routes are not its business.
 */
export async function testSubscription(name: string, options: TestOptions, context: Context): Promise<void> {
  const home = homeOf(context, options);
  const config = await loadConfig({ home, env: context.env });
  const entries = await withSubscriptions(context, options, "read", readEntries);
  if (!Object.hasOwn(entries, name)) throw unknownSubscription(name, Object.keys(entries));
  if (config.webhook.port === 0) {
    throw new UserError('The gateway\'s port is 0, any free one; set a fixed "platforms.webhook.port" to test it');
  }
  const request = signedRequest(name, entries[name], options.payload, config);
  const { url, event, deliveryId } = request;
  const { status, text } = await post(url, onTheWire(request.headers), request.body);
  // Of what was refused the ledger has nothing, but of a direct delivery that failed.
  const isRecorded = status < 300 || status === 502;
  const fate = isRecorded ? await watch({ route: name, deliveryId }, options, context) : undefined;
  if (status >= 300 || fate?.state === "dead") context.setExitCode(1);
  print(context, options, { url, event, status, reply: parsed(text), fate: fate && fateForMachines(fate) }, [
    `POST ${url}  event "${event}"`,
    `  ${status} ${text}`,
    ...inWords(status, fate, options.wait),
  ]);
}

interface TestRequest {
  readonly url: string;
  readonly event: string;
  readonly deliveryId: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function signedRequest(name: string, stored: unknown, payload: string | undefined, config: Config): TestRequest {
  const entry = (stored ?? {}) as { secret?: string | string[]; events?: string | string[] };
  const body = payload ?? JSON.stringify({ test: true, message: `Test event from "postern webhook test ${name}"` });
  checkPayload(body);
  const event = [entry.events ?? []].flat()[0] ?? "test";
  const secret = [entry.secret ?? config.routeContext.globalSecrets].flat()[0] ?? "";
  const deliveryId = randomUUID();
  const headers = { ...signedHeaders(event, secret, body, deliveryId), "content-type": "application/json" };
  return { url: `${localUrl(config.webhook)}/webhooks/${encodeURIComponent(name)}`, event, deliveryId, headers, body };
}

interface Wanted {
  readonly route: string;
  readonly deliveryId: string;
}

/** Watches the event. `undefined` when it is not in this machine's ledger, or that cannot be read. */
async function watch(wanted: Wanted, options: TestOptions, context: Context): Promise<EventRecord | undefined> {
  try {
    return await withStore(context, options, "read", (store) => untilItRests(store, wanted, options.wait * 1000));
  } catch (error) {
    // What the gateway answered is worth showing all the same.
    if (error instanceof StoreRefused || error instanceof StoreUnavailable) return undefined;
    throw error;
  }
}

/** Reads the ledger again and again until the event rests or the time is up. */
async function untilItRests(store: Store, wanted: Wanted, waitMs: number): Promise<EventRecord | undefined> {
  const startedAt = Date.now();
  for (;;) {
    const event = await find(store, wanted);
    const limitMs = event ? waitMs : Math.min(waitMs, recordedWithinMs);
    if ((event && rests(event)) || Date.now() - startedAt >= limitMs) return event;
    await pause(pollMs);
  }
}

async function find(store: Store, { route, deliveryId }: Wanted): Promise<EventRecord | undefined> {
  const rows = await store.listEvents({ route, limit: 200 });
  const row = rows.find((candidate) => candidate.deliveryId === deliveryId);
  return row && store.readEvent({ id: row.id });
}

/** Nothing more happens to it until somebody does something. */
function rests({ state }: EventRecord): boolean {
  return !["queued", "running", "delivering"].includes(state);
}

function inWords(status: number, fate: EventRecord | undefined, waitSeconds: number): string[] {
  if (!fate) {
    const isTaken = status < 300;
    return [isTaken ? "  What became of it is not in a ledger on this machine; look where the gateway runs" : refused];
  }
  if (fate.state === "ignored") return [`  Ignored: ${fate.reason}`];
  const more = `See all of it: postern events show ${fate.id}`;
  const end = rests(fate) ? more : `Still ${fate.state} after ${waitSeconds} s. ${more}`;
  return ["", ...timeline(fate, longest), "", end];
}

const refused = "  The gateway refused it; its log says why";

function fateForMachines(fate: EventRecord) {
  const { id, state, reason } = fate;
  return { id, state, reason, rests: rests(fate) };
}

function checkPayload(text: string): void {
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new UserError(`--payload is not JSON: ${(cause as Error).message}`, { cause });
  }
}

/** GitLab's events come with GitLab's token, all others with GitHub's signature. */
function signedHeaders(event: string, secret: string, body: string, id: string): Record<string, string> {
  if (event.endsWith(" Hook")) return { "x-gitlab-event": event, "x-gitlab-token": secret, "x-request-id": id };
  const signature: Record<string, string> =
    secret === INSECURE_NO_AUTH ? {} : { "x-hub-signature-256": signGithub(secret, body) };
  return { "x-github-event": event, "x-github-delivery": id, ...signature };
}

/** Headers carry bytes: text beyond ASCII goes out as UTF-8. */
function onTheWire(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Buffer.from(value).toString("latin1")]),
  );
}

async function post(url: string, headers: Record<string, string>, body: string): Promise<HttpResponse> {
  try {
    return await exchange(url, { method: "POST", headers, body, timeoutMs: 60_000, maxBytes: 1_000_000 });
  } catch (cause) {
    if (!(cause instanceof HttpFailure)) throw cause;
    throw new UserError(`No gateway answers at ${url} (${cause.message}); start it with "postern gateway run"`, {
      cause,
    });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
