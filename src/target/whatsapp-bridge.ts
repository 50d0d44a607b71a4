import { matches } from "./address.ts";
import { type Conversation, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import type { Part, Receipt, SettingValues } from "./target.ts";
import { type Wording, worded } from "./wording.ts";

/** Sends through a bridge: POST /send `{chatId, message, replyTo}` answers 200 `{success: true}` or `{messageId}`, or both. */
export async function sendByBridge(
  talk: Conversation,
  part: Part,
  values: SettingValues,
  wording: Wording,
): Promise<Receipt> {
  const { reply_to: reply } = part.address;
  const json = {
    chatId: chatOf(part),
    message: worded(part, wording),
    ...(reply === undefined ? {} : { replyTo: reply }),
  };
  const answer = await talk.ask({ method: "POST", url: `${addressOf(values)}/send`, json, sends: true });
  const error = textOf(answer.json?.error);
  // It says so before it tries, when it is not connected to WhatsApp.
  if (answer.status === 503 && error !== undefined) throw talk.later(answer, error);
  talk.expectSuccess(answer, error);
  const { success, messageId } = answer.json ?? {};
  if (success === false || error !== undefined) throw talk.refused(answer, error ?? "success: false");
  const id = textOf(messageId);
  if (success !== true && id === undefined) throw talk.notAnAnswer(answer);
  return { reference: id ?? "taken by the bridge, which gave no id" };
}

/** WhatsApp's own name of a chat. */
function chatOf({ address: { chat_id: chat = "" } }: Part): string {
  if (chat.startsWith("group:"))
    throw permanent('Cannot send to WhatsApp: "chat_id" is one of the Cloud API; a bridge needs a number or "…@g.us"');
  const bare = chat.replace(/^\+/, "");
  return bare.includes("@") ? bare : `${bare}@s.whatsapp.net`;
}

/** A bridge asks nobody who he is, so it must not be where others reach it. */
export const bridgeAddress: RegExp =
  /https?:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?:\/[^\s\\]*)?/i;

function addressOf({ bridge_url: bridge }: SettingValues): string {
  if (matches({ pattern: bridgeAddress }, String(bridge))) return String(bridge);
  throw permanent('Cannot use a WhatsApp bridge: "bridge_url" must be on this machine, such as http://127.0.0.1:3000');
}

/** Asks for its health, which says whether it is connected. */
export async function checkBridge(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const answer = await talk.ask({ method: "GET", url: `${addressOf(values)}/health`, sends: false });
  talk.expectSuccess(answer, textOf(answer.json?.error));
  const status = textOf(answer.json?.status);
  if (status === undefined) throw talk.notAnAnswer(answer);
  if (status !== "connected") throw talk.later(answer, `status: ${status}`);
  return ["The bridge is connected to WhatsApp", "Whom it can write to cannot be tried without sending"];
}
