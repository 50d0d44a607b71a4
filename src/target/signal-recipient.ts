/** Whom a Signal message goes to. */
export interface Recipient {
  readonly kind: "person" | "username" | "group";
  /** As signal-cli names it: a number, a UUID, a user name, a group's id. */
  readonly id: string;
  /** As signal-cli-rest-api names it. */
  readonly restId: string;
}

/** Reads `chat_id`, which has matched its pattern. */
export function recipientOf(chat: string): Recipient {
  if (/^group[:.]/i.test(chat)) return groupOf(chat);
  if (chat.startsWith("+")) return { kind: "person", id: chat, restId: chat };
  if (/^[\da-f]{8}-/i.test(chat)) {
    const uuid = chat.toLowerCase();
    return { kind: "person", id: uuid, restId: uuid };
  }
  const name = chat.replace(/^u:/i, "");
  return { kind: "username", id: name, restId: name };
}

/**
 * A group's id is the base64 of 32 bytes; signal-cli-rest-api writes the base64 of that text behind "group.". Either
 * way in takes either form.
 */
function groupOf(chat: string): Recipient {
  const given = chat.slice("group:".length);
  const inner = Buffer.from(given, "base64").toString("latin1");
  const id = isGroupId(inner) ? inner : given;
  return { kind: "group", id, restId: `group.${Buffer.from(id, "latin1").toString("base64")}` };
}

function isGroupId(text: string): boolean {
  return /^[A-Za-z0-9+/]{20,200}={0,2}$/.test(text);
}
