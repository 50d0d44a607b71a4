import type { JsonAnswer } from "./mode.ts";
import { officialSchema, ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface MatrixMessage extends Taken {
  readonly room: string;
  readonly txnId: string;
  readonly eventId: string;
  readonly content: Readonly<Record<string, unknown>>;
}

export interface FakeMatrix extends FakeService<MatrixMessage> {
  readonly token: string;
  /** The room that the account is in. */
  readonly room: string;
  /** Room ids by alias. A test may change them. */
  readonly aliases: Map<string, string>;
  /** Rooms with encryption. */
  readonly encrypted: Set<string>;
  /** Rooms that the account is in. */
  readonly joined: Set<string>;
  /** Set, this is the answer to who asks for a room's encryption. */
  encryption: JsonAnswer | undefined;
}

const base = "/_matrix/client/v3";
const own = ownSchema("matrix");
const official = officialSchema("matrix-client-server");
const sendPath = new RegExp(`^${base}/rooms/([^/]+)/send/m\\.room\\.message/([^/]+)$`);
/** The size of an event with all that servers add to its content. */
const maxEventBytes = 65_536 - 4096;

/** A homeserver for one account, which is in one room. */
export async function startFakeMatrix(token = "syt_fakeTokenOfTheAccount"): Promise<FakeMatrix> {
  const room = "!opaque:fakes.example";
  const aliases = new Map([["#ops:fakes.example", room]]);
  const encrypted = new Set<string>();
  const joined = new Set([room]);
  const service = await startService<MatrixMessage>({
    // The copy of the official description has not all of the questions.
    schemas: [[own], ...(official.length === 0 ? [] : [[...official, { name: "questions", problems: isQuestion }]])],
    aside: (heard) => answerQuestion(heard, token, fake),
    read: (heard, id) => {
      const message = messageIn(heard, id);
      const wrong = fault(heard, token) ?? (joined.has(message.room) ? undefined : notInRoom);
      return wrong === undefined ? message : { wrong };
    },
    keyOf: ({ txnId }) => txnId,
    answers: ({ eventId }) => ({
      ok: { status: 200, body: { event_id: eventId } },
      refused: notInRoom,
      limited: {
        status: 429,
        headers: { "retry-after": "7" },
        body: { errcode: "M_LIMIT_EXCEEDED", error: "Too Many Requests", retry_after_ms: 7000 },
      },
    }),
    misunderstood: (problems) => matrixError(400, "M_BAD_JSON", problems.join("; ")),
  });
  const fake: FakeMatrix = Object.assign(service, { token, room, aliases, encrypted, joined, encryption: undefined });
  return fake;
}

/** An error in the service's own words. */
export function matrixError(status: number, errcode: string, error: string): JsonAnswer {
  return { status, body: { errcode, error } };
}

const notInRoom = matrixError(403, "M_FORBIDDEN", "User @postern:fakes.example not in room");

function isQuestion({ method }: { readonly method: string }): string[] {
  return method === "GET" ? [] : ["no question"];
}

function answerQuestion(heard: Heard, token: string, fake: FakeMatrix): JsonAnswer | undefined {
  if (heard.method !== "GET") return undefined;
  const { aliases, encrypted, joined } = fake;
  const wrong = fault(heard, token);
  if (wrong !== undefined) return wrong;
  const path = decodeURIComponent(heard.url.pathname.slice(base.length));
  if (path === "/account/whoami") return { status: 200, body: { user_id: "@postern:fakes.example" } };
  const alias = /^\/directory\/room\/(.+)$/.exec(path)?.[1];
  if (alias !== undefined) {
    const id = aliases.get(alias);
    if (id === undefined) return matrixError(404, "M_NOT_FOUND", `Room alias ${alias} not found`);
    return { status: 200, body: { room_id: id, servers: ["fakes.example"] } };
  }
  const room = /^\/rooms\/(.+)\/state\/m\.room\.encryption$/.exec(path)?.[1] ?? "";
  if (!joined.has(room)) return notInRoom;
  if (fake.encryption !== undefined) return fake.encryption;
  if (!encrypted.has(room)) return matrixError(404, "M_NOT_FOUND", "Event not found");
  return { status: 200, body: { algorithm: "m.megolm.v1.aes-sha2" } };
}

function fault({ headers, body }: Heard, token: string): JsonAnswer | undefined {
  if (headers.authorization !== `Bearer ${token}`)
    return matrixError(401, "M_UNKNOWN_TOKEN", "Invalid access token passed");
  return Buffer.byteLength(body) > maxEventBytes ? matrixError(413, "M_TOO_LARGE", "event too large") : undefined;
}

function messageIn({ url, json = {} }: Heard, id: number): MatrixMessage {
  const [, room = "", txnId = ""] = sendPath.exec(url.pathname) ?? [];
  return {
    room: decodeURIComponent(room),
    txnId: decodeURIComponent(txnId),
    eventId: `$fakeEvent${id}`,
    content: json,
    // Nobody takes what stands in the plain text for tags.
    raw: `${String(json.body).replaceAll("<", "\u2039")}\n${json.formatted_body ?? ""}`,
    text: String(json.body),
  };
}
