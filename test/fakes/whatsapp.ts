import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface WhatsappMessage extends Taken {
  /** Digits or a group's id; a chat's whole name at the bridge. */
  readonly to: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeCloud extends FakeService<WhatsappMessage> {
  readonly token: string;
  readonly phoneNumberId: string;
}

const person = "15550111";
const phoneNumberId = "106540352242922";

/** The Cloud API for one number, which may write to one person and, by template, to everybody. */
export async function startFakeCloud(token = "EAAfakeTokenOfTheSystemUser"): Promise<FakeCloud> {
  const service = await startService<WhatsappMessage>({
    schemas: [
      [
        ownSchema("whatsapp-cloud"),
        { name: "questions", problems: ({ method }) => (method === "GET" ? [] : ["unknown"]) },
      ],
    ],
    aside: (heard) => (heard.method === "GET" ? (cloudFault(heard, token) ?? aboutNumber) : undefined),
    read: (heard) => {
      const wrong = cloudFault(heard, token);
      return wrong === undefined ? cloudMessage(heard) : { wrong };
    },
    answers: ({ to }) => ({
      ok: {
        status: 200,
        body: { messaging_product: "whatsapp", contacts: [{ input: to, wa_id: to }], messages: [{ id: "wamid.fake" }] },
      },
      refused: cloudError(400, 131_026, "Message undeliverable"),
      limited: cloudError(400, 131_056, "(#131056) (Business Account, Consumer Account) pair rate limit hit"),
    }),
    misunderstood: (problems) => cloudError(400, 100, problems.join("; ")),
  });
  return Object.assign(service, { token, phoneNumberId });
}

const aboutNumber: JsonAnswer = {
  status: 200,
  body: { id: phoneNumberId, display_phone_number: "+1 555 0100", verified_name: "Fakes" },
};

/** An error in the service's own form. */
export function cloudError(status: number, code: number, message: string, more: object = {}): JsonAnswer {
  return { status, body: { error: { message, type: "OAuthException", code, fbtrace_id: "fakeTrace", ...more } } };
}

function cloudFault({ headers, url, json = {} }: Heard, token: string): JsonAnswer | undefined {
  if (headers.authorization !== `Bearer ${token}`) return cloudError(401, 190, "Invalid OAuth access token");
  if (url.pathname.split("/")[2] !== phoneNumberId) return cloudError(400, 100, "Unsupported request");
  if (json.type === "text" && json.recipient_type === "individual" && json.to !== person)
    return cloudError(400, 131_047, "Re-engagement message");
  return undefined;
}

function cloudMessage({ json = {} }: Heard): WhatsappMessage {
  const { text } = json as { text?: { body: string } };
  const raw = text?.body ?? JSON.stringify(json.template);
  return { to: String(json.to), text: raw.replaceAll("\u200b", ""), raw, body: json };
}

/** A bridge that is connected to WhatsApp. */
export function startFakeBridge(): Promise<FakeService<WhatsappMessage>> {
  return startService<WhatsappMessage>({
    schemas: [[ownSchema("whatsapp-bridge")]],
    aside: ({ method }) => (method === "GET" ? { status: 200, body: { status: "connected", uptime: 1 } } : undefined),
    read: ({ json = {} }) => {
      const raw = String(json.message);
      return { to: String(json.chatId), text: raw.replaceAll("\u200b", ""), raw, body: json };
    },
    answers: () => ({
      ok: { status: 200, body: { success: true, messageId: "3EB0FAKE" } },
      refused: { status: 400, body: { error: "chatId is not one" } },
      limited: { status: 503, body: { error: "Not connected to WhatsApp" } },
    }),
    misunderstood: (problems) => ({ status: 400, body: { error: problems.join("; ") } }),
  });
}
