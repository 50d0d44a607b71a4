import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { homeAt } from "../../config/home.ts";
import { UserError } from "../../core/errors.ts";
import { exchange, type HttpResponse } from "../../lib/http.ts";
import { signGithub } from "../../receive/verify.ts";
import { sqlite } from "../../store/registry.ts";
import type { EventRecord, Store } from "../../store/store.ts";
import { type CommonOptions, type Context, print } from "../context.ts";
import { timeline } from "../timeline.ts";
import { startDemoGateway } from "./gateway.ts";
import { type CaughtMail, startMailCatcher } from "./mail.ts";

interface Stage {
  readonly url: string;
  readonly secret: string;
  readonly store: Store;
  /** Aborted when the demo must end before its time. */
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
  /** Every reply in order, for machines. */
  readonly replies: { readonly step: string; readonly status: number; readonly reply: unknown }[];
}

/** Runs the demo to its end and leaves nothing behind, also when it fails or is interrupted. */
export async function runDemo(context: Context, options: CommonOptions): Promise<void> {
  const say = options.json ? () => {} : (text: string) => context.out(`${text}\n`);
  const interruption = new AbortController();
  context.onStop(() => interruption.abort(new UserError("The demo was interrupted")));
  const { signal } = interruption;
  const replies: Stage["replies"] = [];
  const folder = await mkdtemp(join(tmpdir(), "postern-demo-"));
  try {
    await stageIn(folder, context, { say, signal, replies });
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  say("\nThe gateway has stopped and the temporary home is gone. Next: postern gateway run");
  if (options.json) print(context, options, { ok: true, replies }, []);
}

async function stageIn(folder: string, context: Context, common: Pick<Stage, "say" | "signal" | "replies">) {
  const secret = randomBytes(24).toString("base64url");
  const mail = await startMailCatcher();
  try {
    await writeFile(join(folder, "config.yaml"), configuration(mail.port), { mode: 0o600 });
    await writeFile(join(folder, ".env"), `WEBHOOK_SECRET=${secret}\n`, { mode: 0o600 });
    const gateway = await startDemoGateway(folder, context, common.signal);
    const { url } = gateway;
    try {
      common.say(`A gateway listens on ${url}, with a temporary home and a mail catcher on port ${mail.port}.`);
      await withStore(folder, (store) => play({ ...common, url, secret, store }, mail.first));
    } finally {
      await gateway.stop();
    }
  } finally {
    await mail.close();
  }
}

async function withStore(folder: string, use: (store: Store) => Promise<void>): Promise<void> {
  const store = await sqlite({ path: homeAt(folder).ledger, readOnly: true });
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

function configuration(mailPort: number): string {
  return `platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    routes:
      reviews:
        events: [pull_request]
        filters:
          - field: action
            in: [opened, synchronize]
        prompt: |
          Review pull request #{number} of {repository.full_name}: "{pull_request.title}"
          by {pull_request.user.login}, {pull_request.changed_files} files changed.
        deliver: log
      alerts:
        prompt: "[{severity}] {service}: {summary}"
        deliver: email
        deliver_extra: { subject: "Alert: {service}" }
        deliver_only: true
  email:
    enabled: true
    address: postern@localhost
    home_channel: oncall@localhost
    extra: { smtp_host: 127.0.0.1, smtp_port: ${mailPort} }
agent:
  backend: preview
`;
}

async function play(stage: Stage, firstMail: Promise<CaughtMail>): Promise<void> {
  const pullRequest = await readFile(
    new URL("../../../samples/github/pull_request.opened.json", import.meta.url),
    "utf8",
  );
  const delivery = randomUUID();
  const github = { "x-github-event": "pull_request", "x-github-delivery": delivery };

  stage.say("\n(a) GitHub says that a pull request was opened: an agent runs, its answer goes to the log.");
  const opened = await post(stage, "reviews", pullRequest, github, stage.secret);
  show(stage, "agent", opened, 202);
  for (const line of await lifeOf(stage, "reviews", delivery)) stage.say(`    ${line}`);

  stage.say("\n(b) A monitor reports trouble: no agent, the message goes out as e-mail before the sender is answered.");
  const alert = JSON.stringify({
    severity: "critical",
    service: "checkout",
    summary: "Error rate at 12 % since 09:40 UTC",
  });
  const alertId = randomUUID();
  show(stage, "direct", await post(stage, "alerts", alert, { "x-request-id": alertId }, stage.secret), 200);
  for (const line of await lifeOf(stage, "alerts", alertId)) stage.say(`    ${line}`);
  const caught = await firstMail;
  stage.say(`    The mail catcher holds, for ${caught.to.join(", ")}:`);
  for (const line of caught.source.trim().split(/\r?\n/)) stage.say(`    > ${line}`);

  stage.say("\n(c) GitHub sends (a) once more: a duplicate, nothing runs again.");
  show(stage, "duplicate", await post(stage, "reviews", pullRequest, github, stage.secret), 200);

  stage.say("\n(d) Somebody without the secret tries: refused, and nothing of it is kept.");
  const forged = { "x-github-event": "pull_request", "x-github-delivery": randomUUID() };
  show(stage, "forged", await post(stage, "reviews", pullRequest, forged, "a guess"), 401);
}

async function post(
  { url, signal }: Stage,
  route: string,
  body: string,
  headers: Record<string, string>,
  secret: string,
): Promise<HttpResponse> {
  return exchange(`${url}/webhooks/${route}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", "x-hub-signature-256": signGithub(secret, body) },
    body,
    timeoutMs: 10_000,
    maxBytes: 100_000,
    signal,
  });
}

/** Shows the reply, and fails when it is not the promised one: a demo that lies is worse than none. */
function show({ say, replies }: Stage, step: string, { status, text }: HttpResponse, expected: number): void {
  say(`    -> ${status} ${text}`);
  replies.push({ step, status, reply: JSON.parse(text) as unknown });
  if (status !== expected) throw new UserError(`The demo expected ${expected}; please report this`);
}

/** Waits until the event has come to rest and tells its life. */
async function lifeOf(stage: Stage, route: string, deliveryId: string): Promise<string[]> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const event = await find(stage.store, route, deliveryId);
    if (event && ["done", "dead", "refused"].includes(event.state)) return timeline(event);
    if (Date.now() > deadline)
      throw new UserError(`The demo's event ${deliveryId} did not come to rest; please report this`);
    await wait(20, undefined, { signal: stage.signal });
  }
}

async function find(store: Store, route: string, deliveryId: string): Promise<EventRecord | undefined> {
  const row = (await store.listEvents({ limit: 10, route })).find((event) => event.deliveryId === deliveryId);
  return row && store.readEvent({ id: row.id });
}
