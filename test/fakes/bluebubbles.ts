import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface BubblesMessage extends Taken {
  /** "/message/text" or "/chat/new". */
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeBlueBubbles extends FakeService<BubblesMessage> {
  readonly password: string;
  /** The chat that there is. */
  readonly chat: string;
}

/** A BlueBubbles server with one chat. */
export async function startFakeBlueBubbles(password = "pass word&fake/1"): Promise<FakeBlueBubbles> {
  const chat = "iMessage;-;+15550111";
  const service = await startService<BubblesMessage>({
    schemas: [[ownSchema("bluebubbles")]],
    aside: (heard) => answerQuestion(heard, password, chat),
    read: (heard) => {
      const wrong = fault(heard, password, chat);
      return wrong === undefined ? messageIn(heard) : { wrong };
    },
    answers: ({ body }) => ({
      ok: {
        status: 200,
        body: { status: 200, message: "Message sent!", data: { guid: `sent-${body.tempGuid}`, error: 0 } },
      },
      refused: bubblesError(500, "iMessage Error", "Message failed to send!", { error: 22 }),
      limited: bubblesError(400, "Validation Error", "Message is already queued to be sent!"),
    }),
    misunderstood: (problems) => bubblesError(400, "Validation Error", problems.join("; ")),
  });
  return Object.assign(service, { password, chat });
}

/** An error in the service's own form. */
export function bubblesError(status: number, type: string, message: string, data?: object): JsonAnswer {
  const body = { status, message: "You've made a bad request!", error: { type, message }, ...(data ? { data } : {}) };
  return { status, body };
}

function fault({ url, json = {} }: Heard, password: string, chat: string): JsonAnswer | undefined {
  if (url.searchParams.get("password") !== password) return bubblesError(401, "Authentication Error", "Unauthorized");
  const isWrong = json.chatGuid !== undefined && json.chatGuid !== chat;
  return isWrong ? bubblesError(500, "iMessage Error", "Chat does not exist!") : undefined;
}

function answerQuestion(heard: Heard, password: string, chat: string): JsonAnswer | undefined {
  const path = heard.url.pathname;
  if (path !== "/api/v1/ping" && path !== "/api/v1/chat/query") return undefined;
  const wrong = fault(heard, password, chat);
  if (wrong !== undefined) return wrong;
  if (path === "/api/v1/ping") return { status: 200, body: { status: 200, message: "Ping received!", data: "pong" } };
  const data = heard.json?.guid === chat ? [{ guid: chat }] : [];
  return { status: 200, body: { status: 200, message: "Success", data } };
}

function messageIn({ url, json = {} }: Heard): BubblesMessage {
  const text = String(json.message);
  return { path: url.pathname.slice("/api/v1".length), text, raw: text, body: json };
}
