import { randomUUID } from "node:crypto";
import { loadConfig } from "../config/load.ts";
import { readEntries, unknownSubscription } from "../config/subscriptions.ts";
import { UserError } from "../core/errors.ts";
import { INSECURE_NO_AUTH } from "../core/names.ts";
import { exchange, HttpFailure, type HttpResponse } from "../lib/http.ts";
import { signGithub } from "../receive/verify.ts";
import { type CommonOptions, type Context, homeOf, print } from "./context.ts";
import { localUrl } from "./url.ts";

export interface TestOptions extends CommonOptions {
  readonly payload?: string;
}

/** Sends a test event as a real sender would; fails when it is refused. Static routes are not its business. */
export async function testSubscription(name: string, options: TestOptions, context: Context): Promise<void> {
  const home = homeOf(context, options);
  const config = await loadConfig({ home, env: context.env });
  const entries = await readEntries(home);
  if (!Object.hasOwn(entries, name)) throw unknownSubscription(name, Object.keys(entries));
  const entry = (entries[name] ?? {}) as { secret?: string | string[]; events?: string | string[] };
  if (config.webhook.port === 0) {
    throw new UserError('The gateway\'s port is 0, any free one; set a fixed "platforms.webhook.port" to test it');
  }
  const body =
    options.payload ?? JSON.stringify({ test: true, message: `Test event from "postern webhook test ${name}"` });
  checkPayload(body);
  const event = [entry.events ?? []].flat()[0] ?? "test";
  const secret = [entry.secret ?? config.routeContext.globalSecrets].flat()[0] ?? "";
  const url = `${localUrl(config.webhook)}/webhooks/${encodeURIComponent(name)}`;
  const headers = { ...signedHeaders(event, secret, body), "content-type": "application/json" };
  const response = await post(url, onTheWire(headers), body);
  const isTaken = response.status < 300;
  if (!isTaken) context.setExitCode(1);
  const reply = parsed(response.text);
  print(context, options, { url, event, status: response.status, reply }, [
    `POST ${url}  event "${event}"`,
    `  ${response.status} ${response.text}`,
    isTaken ? "  See what became of it: postern events list" : "  The gateway refused it; its log says why",
  ]);
}

function checkPayload(text: string): void {
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new UserError(`--payload is not JSON: ${(cause as Error).message}`, { cause });
  }
}

/** GitLab's events come with GitLab's token, all others with GitHub's signature. */
function signedHeaders(event: string, secret: string, body: string): Record<string, string> {
  if (event.endsWith(" Hook")) {
    return { "x-gitlab-event": event, "x-gitlab-token": secret, "x-request-id": randomUUID() };
  }
  const signature: Record<string, string> =
    secret === INSECURE_NO_AUTH ? {} : { "x-hub-signature-256": signGithub(secret, body) };
  return { "x-github-event": event, "x-github-delivery": randomUUID(), ...signature };
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
