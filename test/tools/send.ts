import { randomUUID } from "node:crypto";
import { signGithub } from "../../src/receive/verify.ts";

export interface Sent {
  readonly status: number;
  readonly reply: Readonly<Record<string, unknown>>;
  readonly deliveryId: string;
}

/** Posts an event to a route as GitHub would, signed with the secret. */
export async function sendEvent(
  url: string,
  route: string,
  secret: string,
  payload: unknown,
  { type = "push", deliveryId = randomUUID() as string } = {},
): Promise<Sent> {
  const body = JSON.stringify(payload);
  const response = await fetch(`${url}/webhooks/${route}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-event": type,
      "x-github-delivery": deliveryId,
      "x-hub-signature-256": signGithub(secret, body),
    },
    body,
  });
  return { status: response.status, reply: (await response.json()) as Sent["reply"], deliveryId };
}
