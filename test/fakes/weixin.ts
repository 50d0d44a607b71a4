import { bodyServer, listen, objectIn, stop } from "./http.ts";
import { answerJson, type JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface WeixinMessage extends Taken {
  readonly user: string;
  readonly clientId: string;
  readonly contextToken: string | undefined;
}

export interface FakeWeixin extends FakeService<WeixinMessage> {
  readonly token: string;
  /** The one user that has written to the account. */
  readonly user: string;
  /** Context tokens whose session is over; messages with them are refused as the service refuses them. */
  readonly stale: Map<string, JsonAnswer>;
}

const api = ownSchema("weixin-ilink");
export const expired: JsonAnswer = { status: 200, body: { ret: -14, errmsg: "session timeout" } };
const limited: JsonAnswer = { status: 200, body: { ret: -2, errmsg: "rate limit" } };

/** What iLink takes messages with, for one account. */
export async function startFakeWeixin(token = "fake-token-of-the-account"): Promise<FakeWeixin> {
  const user = "o9cq80fake@im.wechat";
  const stale = new Map<string, JsonAnswer>();
  const service = await startService<WeixinMessage>({
    schemas: [[api]],
    aside: (heard) => (heard.url.pathname.endsWith("/getconfig") ? configFor(heard, token, user) : undefined),
    read: (heard) => {
      if (!isKnown(heard, token)) return { wrong: expired };
      const message = messageIn(heard);
      const wrong = stale.get(message.contextToken ?? "none");
      if (wrong !== undefined) return { wrong };
      return message.user === user ? message : { wrong: { status: 200, body: { ret: -3, errmsg: "no such user" } } };
    },
    answers: () => ({ ok: { status: 200, body: {} }, refused: expired, limited }),
    misunderstood: () => ({ status: 400, body: { ret: -1, errmsg: "invalid request" } }),
  });
  return Object.assign(service, { token, user, stale });
}

function isKnown({ headers }: Heard, token: string): boolean {
  return headers.authorization === `Bearer ${token}`;
}

function configFor(heard: Heard, token: string, user: string): JsonAnswer {
  if (!isKnown(heard, token)) return expired;
  if (heard.json?.ilink_user_id !== user) return { status: 200, body: { ret: -3, errmsg: "no such user" } };
  return { status: 200, body: { ret: 0, typing_ticket: "ticket" } };
}

function messageIn({ json = {} }: Heard): WeixinMessage {
  const msg = json.msg as Record<string, unknown>;
  const [item] = msg.item_list as { text_item: { text: string } }[];
  const text = item?.text_item.text ?? "";
  return {
    ...{ user: String(msg.to_user_id), clientId: String(msg.client_id), raw: text, text },
    contextToken: msg.context_token as string | undefined,
  };
}

/** What the service does with one poll: answers, cuts the connection, or leaves it without an answer. */
export type PollAnswer = JsonAnswer | "cut" | "hang";

export interface FakeUpdates {
  readonly baseUrl: string;
  /** The cursor of each poll so far. */
  readonly cursors: readonly string[];
  readonly mismatches: readonly string[];
  /** Polls that wait for an answer. */
  readonly held: () => number;
  /** Answers the poll that is held, or else the next one. */
  answer(answer: PollAnswer): void;
  close(): Promise<void>;
}

/** What iLink tells of messages with, in long polls that it holds until there is an answer. */
export async function startFakeUpdates(token: string): Promise<FakeUpdates> {
  const cursors: string[] = [];
  const mismatches: string[] = [];
  const answers: PollAnswer[] = [];
  const waiting: ((answer: PollAnswer) => void)[] = [];
  const server = bodyServer((request, body, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    mismatches.push(...api.problems({ method: request.method ?? "", url, headers, body }));
    cursors.push(String(objectIn(body)?.get_updates_buf));
    const reply = (answer: PollAnswer) => {
      if (answer === "cut") response.socket?.destroy();
      else if (answer !== "hang") answerJson(response, answer);
    };
    if (headers.authorization !== `Bearer ${token}`) return reply(expired);
    const next = answers.shift();
    if (next !== undefined) return reply(next);
    waiting.push(reply);
    response.on("close", () => {
      if (waiting.includes(reply)) waiting.splice(waiting.indexOf(reply), 1);
    });
  });
  const port = await listen(server);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    cursors,
    mismatches,
    held: () => waiting.length,
    answer: (answer) => {
      const reply = waiting.shift();
      if (reply) reply(answer);
      else answers.push(answer);
    },
    close: () => stop(server),
  };
}
