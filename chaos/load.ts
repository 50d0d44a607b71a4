import { createHmac, randomBytes } from "node:crypto";
import { makeRandom, type Random } from "../bench/fuzz-random.ts";
import type { ChaosGateway } from "./gateway.ts";
import type { PlannedEvent } from "./plan.ts";
import { textOf } from "./routes.ts";
import { secret } from "./stage.ts";
import { pause } from "./wait.ts";

/** What a sender heard of one request. Times are Unix milliseconds. */
export interface Answer {
  /** Number of the event. */
  readonly n: number;
  /** Index of the gateway that was asked. */
  readonly gateway: number;
  readonly sentAt: number;
  readonly endedAt: number;
  /** `undefined`: none came. */
  readonly status: number | undefined;
  /** The reply's `status`, such as `accepted` or `duplicate`; else why no answer came. */
  readonly said: string;
}

export interface LoadOptions {
  readonly gateways: readonly ChaosGateway[];
  readonly events: readonly PlannedEvent[];
  readonly seed: number;
  /** A sender tries no more after this (`performance.now()`). */
  readonly untilMs: number;
}

/** A sender hangs up after this long. Gateways answer within ten seconds. */
const senderTimeoutMs = 12_000;

/** Sends the events at their times, and again where a sender would. Fulfils with every answer when all senders are done. */
export async function runLoad(options: LoadOptions): Promise<Answer[]> {
  const answers: Answer[] = [];
  const random = makeRandom(options.seed, 2_000_000);
  await Promise.all(
    options.events.map(async (event) => {
      await pause(event.atMs);
      const body = bodyOf(event);
      const first = pickGateway(options.gateways, random);
      const copies = Array.from({ length: event.copies }, (_, copy) =>
        insist(event, body, first + copy, { ...options, random, answers }),
      );
      if (event.echoMs !== undefined) {
        copies.push(pause(event.echoMs).then(() => insist(event, body, first + 1, { ...options, random, answers })));
      }
      await Promise.all(copies);
    }),
  );
  return answers;
}

function bodyOf(event: PlannedEvent): string {
  const { n, chat, route, paddingBytes } = event;
  const padding = randomBytes(Math.ceil(paddingBytes / 2)).toString("hex");
  return JSON.stringify({ n, chat, text: textOf(route, event), padding });
}

/** One of those that listen; of all when none does. */
function pickGateway(gateways: readonly ChaosGateway[], random: Random): number {
  const listening = gateways.filter(({ listens }) => listens);
  return random.pick(listening.length > 0 ? listening : gateways).settings.index;
}

interface Sending extends LoadOptions {
  readonly random: Random;
  readonly answers: Answer[];
}

/** Sends one copy: to the gateway of this number (counted round), later to any, until it was taken or it is too late. */
async function insist(event: PlannedEvent, body: string, first: number, sending: Sending): Promise<void> {
  const { gateways, random, answers, untilMs } = sending;
  const open = gateways.filter(({ settings }) => settings.role !== "worker");
  let gateway = open[first % open.length]!;
  for (;;) {
    const answer = await send(event, body, gateway);
    answers.push(answer);
    const isTaken = answer.status !== undefined && answer.status < 500;
    if (isTaken || !event.isPatient || performance.now() > untilMs) return;
    await pause(200 + random.below(600));
    gateway = gateways[pickGateway(open, random)]!;
  }
}

async function send(event: PlannedEvent, body: string, gateway: ChaosGateway): Promise<Answer> {
  const { index, port } = gateway.settings;
  const sentAt = Date.now();
  const heard = await post(`http://127.0.0.1:${port}/webhooks/${event.route}`, headersOf(event, body), body);
  return { n: event.n, gateway: index, sentAt, endedAt: Date.now(), ...heard };
}

/** Every other event is signed as GitHub does it, the rest the generic way. */
function headersOf({ n, deliveryId }: PlannedEvent, body: string): Record<string, string> {
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const type = { "content-type": "application/json" };
  if (n % 2 === 0) return { ...type, "x-webhook-signature": signature, "x-request-id": deliveryId };
  return {
    ...{ ...type, "x-github-event": "push", "x-github-delivery": deliveryId },
    "x-hub-signature-256": `sha256=${signature}`,
  };
}

async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
): Promise<Pick<Answer, "status" | "said">> {
  try {
    const signal = AbortSignal.timeout(senderTimeoutMs);
    const response = await fetch(url, { method: "POST", headers, body, signal });
    const { status = "" } = JSON.parse(await response.text()) as { status?: string };
    return { status: response.status, said: status };
  } catch (error) {
    const { cause, message } = error as Error;
    return { status: undefined, said: cause instanceof Error ? cause.message : message };
  }
}
