import type { JsonAnswer } from "./mode.ts";
import { officialSchema, ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface SignalMessage extends Taken {
  /** As the request named it, whichever way. */
  readonly recipient: string;
  /** The request's body, or its `params`. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeSignal extends FakeService<SignalMessage> {
  readonly account: string;
}

/** The account that the fakes send from. */
const account = "+15550100";
/** In an answer, what stands for the id of the request that it is to. */
export const requestId = "(the request's)";
/** The only number that is not on Signal. */
const stranger = "+15550199";

/** signal-cli's daemon with several accounts. */
export async function startFakeDaemon(): Promise<FakeSignal> {
  const service = await startService<SignalMessage>({
    schemas: [[ownSchema("signal-cli-daemon")]],
    aside: ({ method }) => (method === "GET" ? { status: 200, text: "" } : undefined),
    read: (heard) => {
      const { params = {} } = (heard.json ?? {}) as { params?: Record<string, unknown> };
      if (params.account !== account) return { wrong: rpcError(-32602, "Specified account does not exist") };
      const recipient = String(params.recipient ?? params.groupId ?? params.username);
      if (recipient === stranger) return { wrong: nobodyGotIt(-1, { type: "UNREGISTERED_FAILURE" }) };
      return { ...messageIn(params), recipient };
    },
    answers: () => ({
      ok: rpcResult([{ type: "SUCCESS" }]),
      refused: nobodyGotIt(-1, { type: "UNREGISTERED_FAILURE" }),
      limited: nobodyGotIt(-5, { type: "RATE_LIMIT_FAILURE", retryAfterSeconds: 7 }),
    }),
    misunderstood: (problems) => rpcError(-32600, problems.join("; ")),
    answering: withId,
  });
  return Object.assign(service, { account });
}

/** signal-cli-rest-api with one account. */
export async function startFakeRest(): Promise<FakeSignal> {
  const service = await startService<SignalMessage>({
    schemas: [[ownSchema("signal-rest")], ...[officialSchema("signal-cli-rest-api")].filter((list) => list.length > 0)],
    aside: ({ method }) => (method === "GET" ? { status: 200, body: [account] } : undefined),
    read: ({ json = {} }) => {
      const recipient = String(json.recipients);
      if (json.number !== account) return { wrong: restError(400, `User ${json.number} is not registered.`) };
      if (recipient === stranger) return { wrong: restError(400, "Unregistered user") };
      return { ...messageIn(json), recipient };
    },
    answers: () => ({
      ok: { status: 201, body: { timestamp: "1712345678901" } },
      refused: restError(400, "Unregistered user"),
      limited: { status: 429, body: { error: "Rate limit", account, challenge_tokens: ["fakeToken"] } },
    }),
    misunderstood: (problems) => restError(400, problems.join("; ")),
  });
  return Object.assign(service, { account });
}

function withId(answer: JsonAnswer, { json = {} }: Heard): JsonAnswer {
  const { body } = answer as { body?: { id?: unknown } };
  return body?.id === requestId ? { ...answer, body: { ...body, id: json.id } } : answer;
}

export function rpcError(code: number, message: string, data?: object): JsonAnswer {
  return { status: 200, body: { jsonrpc: "2.0", id: requestId, error: { code, message, data: data ?? null } } };
}

/** The error of a message that went to nobody: the answer it would have been stands in `data`. */
export function nobodyGotIt(code: number, ...results: object[]): JsonAnswer {
  return rpcError(code, "Failed to send message", { response: { timestamp: 1712345678901, results } });
}

export function rpcResult(results: object[]): JsonAnswer {
  return { status: 200, body: { jsonrpc: "2.0", id: requestId, result: { timestamp: 1712345678901, results } } };
}

function restError(status: number, error: string): JsonAnswer {
  return { status, body: { error } };
}

function messageIn(body: NonNullable<Heard["json"]>) {
  const text = String(body.message);
  return { text, raw: text, body };
}
