import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface GoogleChatMessage extends Taken {
  readonly name: string;
  readonly requestId: string | undefined;
  readonly threadKey: string | undefined;
  readonly replyOption: string | null;
}

export interface FakeGoogleChat extends FakeService<GoogleChatMessage> {
  readonly webhookUrl: string;
}

const path = "/v1/spaces/AAAAfakeSpace/messages";
const token = "fakeToken-of_theWebhook=";

/** Google Chat for one webhook of one space. */
export async function startFakeGoogleChat(): Promise<FakeGoogleChat> {
  const service = await startService<GoogleChatMessage>({
    schemas: [[ownSchema("google-chat")]],
    read: (heard, id) => read(heard, id),
    keyOf: ({ requestId }) => requestId,
    answers: ({ name }) => ({
      ok: { status: 200, body: { name, thread: { name: "spaces/AAAAfakeSpace/threads/1" } } },
      refused: fault(403, "PERMISSION_DENIED", "Webhooks are not allowed in this space."),
      limited: { ...fault(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted."), headers: { "retry-after": "7" } },
    }),
    misunderstood: () => fault(400, "INVALID_ARGUMENT", "Invalid JSON payload received."),
  });
  const webhookUrl = `${service.baseUrl}${path}?key=fakeKey&token=${encodeURIComponent(token)}`;
  return Object.assign(service, { webhookUrl });
}

function fault(code: number, status: string, message: string): JsonAnswer {
  return { status: code, body: { error: { code, status, message } } };
}

function read({ url, json = {} }: Heard, id: number): GoogleChatMessage | { wrong: JsonAnswer } {
  if (url.pathname !== path) return { wrong: fault(404, "NOT_FOUND", "The space was not found.") };
  const query = url.searchParams;
  if (query.get("token") !== token || query.get("key") !== "fakeKey")
    return { wrong: fault(401, "UNAUTHENTICATED", "The webhook is not valid.") };
  const raw = String(json.text);
  if (Buffer.byteLength(raw) > 32_000) return { wrong: fault(400, "INVALID_ARGUMENT", "The message is too long.") };
  const thread = json.thread as { threadKey?: string } | undefined;
  return {
    name: `spaces/AAAAfakeSpace/messages/${id}`,
    requestId: query.get("requestId") ?? undefined,
    threadKey: thread?.threadKey,
    replyOption: query.get("messageReplyOption"),
    raw,
    text: raw.replaceAll("\u200b", ""),
  };
}
