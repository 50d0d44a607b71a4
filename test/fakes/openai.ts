import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";

/** One answer of the fake; the first request gets the first one, and so on. */
export type FakeReply =
  /** The model's final text. */
  | { readonly text: string; readonly finishReason?: string }
  /** The model calls tools. */
  | { readonly toolCalls: readonly FakeToolCall[]; readonly text?: string; readonly finishReason?: string }
  /** The provider refuses; `retry-after-ms: 0` keeps the SDK from waiting before it tries again. */
  | { readonly status: number; readonly message: string; readonly headers?: Readonly<Record<string, string>> }
  /** These bytes and nothing else: garbage, or the answer of another provider's API. */
  | { readonly raw: string; readonly status?: number }
  /** Never answers. */
  | { readonly hang: true }
  /** Closes the connection without an answer. */
  | { readonly drop: true };

export interface FakeToolCall {
  readonly name: string;
  /** An object is sent as JSON; a text as it stands, so that it can be malformed. */
  readonly arguments: object | string;
}

export interface FakeRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as sent. */
  readonly text: string;
  /** The body as chat completions have it; empty lists when it is something else. */
  readonly messages: readonly FakeMessage[];
  /** Names of the tools that were offered. */
  readonly tools: readonly string[];
}

export interface FakeMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
}

export interface FakeOpenAI {
  /** For `OPENAI_BASE_URL`; ends in `/v1`. */
  readonly baseUrl: string;
  /** Every request so far, in order of arrival. */
  readonly requests: readonly FakeRequest[];
  /** Resolves when so many requests have arrived in all. */
  received(count: number): Promise<void>;
  /** Cuts every connection and stops listening. */
  close(): Promise<void>;
}

/** The next answer, from a request and its number (from 0). */
export type FakeScript = readonly FakeReply[] | ((request: FakeRequest, index: number) => FakeReply);

/**
 * Starts a scripted OpenAI-compatible server (`POST …/chat/completions`, not streaming) on a free loopback port. A request
 * beyond the end of the list is refused with 400, which nobody tries again.
 */
export async function startFakeOpenAI(script: FakeScript): Promise<FakeOpenAI> {
  const requests: FakeRequest[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const server = createServer(async (incoming, response) => {
    const request = await record(incoming);
    const index = requests.push(request) - 1;
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve();
    answer(response, replyFor(script, request, index));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    received(count) {
      if (requests.length >= count) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ count, resolve });
      return promise;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function record(incoming: IncomingMessage): Promise<FakeRequest> {
  const text = await readText(incoming);
  const body = parse(text);
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: incoming.headers,
    text,
    messages: body.messages ?? [],
    tools: (body.tools ?? []).flatMap((tool) => tool.function?.name ?? []),
  };
}

interface ChatBody {
  readonly messages?: readonly FakeMessage[];
  readonly tools?: readonly { readonly function?: { readonly name: string } }[];
}

function parse(text: string): ChatBody {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function replyFor(script: FakeScript, request: FakeRequest, index: number): FakeReply {
  const over = { status: 400, message: `The script of the fake has no reply number ${index}` };
  return (typeof script === "function" ? script(request, index) : script[index]) ?? over;
}

function answer(response: ServerResponse, reply: FakeReply): void {
  if ("hang" in reply) return;
  if ("drop" in reply) response.destroy();
  else if ("raw" in reply) send(response, reply.status ?? 200, reply.raw);
  else if ("message" in reply) send(response, reply.status, JSON.stringify(errorBody(reply.message)), reply.headers);
  else send(response, 200, JSON.stringify(completion(reply)));
}

function errorBody(message: string) {
  return { error: { message, type: "fake_error", param: null, code: null } };
}

function send(response: ServerResponse, status: number, body: string, headers: Readonly<Record<string, string>> = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}

/** Ten tokens in and five out, every time. */
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

function completion(reply: Extract<FakeReply, { text: string } | { toolCalls: unknown }>) {
  const calls = "toolCalls" in reply ? reply.toolCalls.map(toolCall) : undefined;
  const finishReason = reply.finishReason ?? (calls ? "tool_calls" : "stop");
  const message = { role: "assistant", content: reply.text ?? null, ...(calls && { tool_calls: calls }) };
  return {
    id: "chatcmpl-fake",
    object: "chat.completion",
    created: 1_700_000_000,
    model: "fake-model",
    choices: [{ index: 0, message, finish_reason: finishReason }],
    usage,
  };
}

function toolCall(call: FakeToolCall, index: number) {
  const text = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
  return { id: `call_${index}`, type: "function", function: { name: call.name, arguments: text } };
}
