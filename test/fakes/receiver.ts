import { Webhook } from "standardwebhooks";
import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface ReceivedMessage extends Taken {
  readonly id: string;
  readonly body: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
  readonly headers: Heard["headers"];
}

export interface FakeReceiver extends FakeService<ReceivedMessage> {
  readonly url: string;
  readonly secret: string;
}

const path = "/hook";
const receiver = ownSchema("standard-webhooks-outbound");

/** A receiver of Standard Webhooks that takes what is signed with its secret. */
export async function startFakeReceiver(secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"): Promise<FakeReceiver> {
  const service = await startService<ReceivedMessage>({
    schemas: [[receiver]],
    read: (heard) => (heard.url.pathname === path ? messageIn(heard, secret) : { wrong: answer(404, "Not found") }),
    answers: () => ({
      ok: { status: 200, text: "Taken" },
      refused: answer(410, "Gone"),
      limited: { ...answer(429, "Slow down"), headers: { "retry-after": "7" } },
    }),
    misunderstood: (problems) => answer(400, problems.join("; ")),
  });
  return Object.assign(service, { url: `${service.baseUrl}${path}`, secret });
}

function answer(status: number, error: string): JsonAnswer {
  return { status, body: { error } };
}

function messageIn(heard: Heard, secret: string): ReceivedMessage | { readonly wrong: JsonAnswer } {
  try {
    new Webhook(secret).verify(heard.body, heard.headers as Record<string, string>);
  } catch (error) {
    return { wrong: answer(401, String(error)) };
  }
  const body = heard.json as unknown as ReceivedMessage["body"] & { readonly id: string };
  const text = String(body.data.text);
  return { id: body.id, body, headers: heard.headers, text, raw: text };
}
