import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Rejection, UserError } from "../core/errors.ts";
import type { HeaderMap } from "../core/types.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { type Handled, handle } from "../gateway/pipeline.ts";
import { ClientGone, drain, hasBody, readBody } from "./body.ts";
import { ambiguityOf } from "./framing.ts";
import { expectationFailed, healthReply, internalError, rejectionReply, type WireReply, wireReply } from "./replies.ts";
import { Traffic } from "./traffic.ts";

/** A server that listens. */
export interface Listening {
  readonly host: string;
  readonly port: number;
  /** Takes no more connections and fulfils when the requests under way are answered, or cut off after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

/** Limits of a connection, by the names that Node gives them. */
export interface Limits {
  /** Milliseconds for the head of a request. */
  readonly headersTimeout: number;
  /** Milliseconds for a whole request. */
  readonly requestTimeout: number;
  /** How often slow connections are looked for. */
  readonly connectionsCheckingInterval: number;
  readonly keepAliveTimeout: number;
  /** Bytes. */
  readonly maxHeaderSize: number;
}

/** Node's own limits are made for patient browsers; senders that are slower than this are cut off. */
const defaultLimits: Limits = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 60_000,
  maxHeaderSize: 16_384,
};

/**
 * Listens for webhooks.
 * @throws UserError when the address cannot be listened on.
 */
export async function listen(gateway: Gateway, limits: Limits = defaultLimits): Promise<Listening> {
  const { host, port } = gateway.config.webhook;
  const doubtful = new WeakSet<Socket>();
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    // What stands behind a request whose end is in doubt may be a part of it. The answer to that one closes the connection.
    if (doubtful.has(request.socket)) return;
    if (ambiguityOf(request) !== undefined) {
      doubtful.add(request.socket);
      response.shouldKeepAlive = false;
    }
    traffic.begin(response);
    respond(request, response, gateway).catch((err: unknown) => {
      gateway.log.error({ err }, "A request failed in a way it should not");
      response.destroy();
    });
  };
  const server = createServer({ ...limits }, answer);
  const traffic = new Traffic(server);
  // The sender waits for our word before it sends the body: a refusal then costs it nothing.
  server.on("checkContinue", answer);
  server.on("checkExpectation", (_request, response: ServerResponse) => {
    traffic.begin(response);
    return send(response, expectationFailed, {});
  });
  server.on("clientError", (error, socket) => traffic.refuse(error, socket as Socket));
  await bind(server, host, port);
  return { host, port: (server.address() as AddressInfo).port, close: (timeoutMs) => traffic.close(timeoutMs) };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", (error: NodeJS.ErrnoException) =>
    reject(new UserError(whyNotBound(error, host, port), { cause: error })),
  );
  server.listen({ host, port }, resolve);
  return promise;
}

function whyNotBound(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (error.code === "EADDRINUSE") {
    return `Port ${port} on ${host} is in use; stop the program that has it, or choose another with --port or WEBHOOK_PORT`;
  }
  if (error.code === "EACCES") return `Port ${port} needs more rights; choose one above 1023 with --port`;
  return `Listening on ${host} port ${port} failed (${error.code ?? error.message}); check "host" and "port"`;
}

/** Answers one request and writes its line in the log. */
async function respond(request: IncomingMessage, response: ServerResponse, gateway: Gateway): Promise<void> {
  const startedAt = performance.now();
  const path = pathOf(request);
  const line = { method: request.method, path: path.slice(0, 200), ip: request.socket.remoteAddress };
  const elapsed = () => Math.round((performance.now() - startedAt) * 10) / 10;
  try {
    const handled = await direct(request, response, path, gateway);
    if (!handled) return await send(response, healthReply, {});
    const wire = wireReply(handled.reply);
    logHandled(handled, { ...line, status: wire.status, ms: elapsed() }, gateway);
    await send(response, wire, {});
  } catch (error) {
    if (error instanceof ClientGone) {
      gateway.log.debug({ ...line, ms: elapsed() }, "The sender hung up");
      return;
    }
    const wire = error instanceof Rejection ? rejectionReply(error.code) : internalError;
    logRefusal(error, { ...line, status: wire.status, ms: elapsed() }, gateway);
    await send(response, wire, error instanceof Rejection ? refusalHeaders(error) : {});
  }
}

/** Finds out what is asked for. `undefined` stands for the health check. */
async function direct(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  gateway: Gateway,
): Promise<Handled | undefined> {
  const { method } = request;
  const ambiguity = ambiguityOf(request);
  if (ambiguity !== undefined) throw new Rejection("bad_request", ambiguity);
  if (path === "/health") {
    if (method !== "GET" && method !== "HEAD") {
      throw new Rejection("method_not_allowed", "The health check takes GET", { allow: "GET, HEAD" });
    }
    return undefined;
  }
  const route = routeName(path);
  if (route === undefined) throw new Rejection("unknown_route", "There is no such path");
  if (method !== "POST") throw new Rejection("method_not_allowed", "Webhooks take POST", { allow: "POST" });
  const headers = headerMap(request.rawHeaders);
  const body = (maxBytes: number) => {
    if (headers.has("expect")) response.writeContinue();
    return readBody(request, maxBytes);
  };
  return handle({ route, headers, body }, gateway);
}

/** The path alone, also of an address in absolute form (RFC 9112 section 3.2.2), which proxies may send. */
function pathOf({ url = "" }: IncomingMessage): string {
  // A query string may hold a token that somebody put there by mistake: it is neither used nor logged.
  return url.replace(/^https?:\/\/[^/?]*/i, "").split("?", 1)[0] ?? "";
}

function routeName(path: string): string | undefined {
  const encoded = /^\/webhooks\/([^/]+)$/.exec(path)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

function headerMap(raw: readonly string[]): HeaderMap {
  const headers = new Map<string, string[]>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at]!.toLowerCase();
    const values = headers.get(name);
    if (values) values.push(raw[at + 1]!);
    else headers.set(name, [raw[at + 1]!]);
  }
  return headers;
}

function refusalHeaders({ retryAfterSeconds, allow }: Rejection): Record<string, string> {
  return {
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
    ...(allow === undefined ? {} : { allow }),
  };
}

/**
 * Sends a reply. When the request's body was not read, the whole reply goes out first, then a bounded part of the body is
 * read and thrown away, and the connection is closed: a sender that only listens after it has sent sees the reply so.
 */
async function send(
  response: ServerResponse,
  { status, body }: WireReply,
  headers: Record<string, string>,
): Promise<void> {
  const request = response.req;
  const text = JSON.stringify(body);
  const isUnread = hasBody(request) && !request.readableEnded;
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
    ...(isUnread ? { connection: "close" } : {}),
  });
  if (!isUnread) {
    response.end(request.method === "HEAD" ? undefined : text);
    return;
  }
  response.write(text);
  await drain(request);
  response.end();
}

function logHandled({ reply, event }: Handled, line: object, { log }: Gateway): void {
  const wide = {
    route: event.route,
    event: event.type,
    delivery: event.deliveryId,
    id: event.id,
    bytes: event.body.length,
    ...line,
  };
  if (reply.status === "ignored" && "event" in reply) log.debug(wide, "Event ignored: its type is not listed");
  else if (reply.status === "ignored") log.info({ ...wide, reason: reply.reason }, "Event ignored");
  else if (reply.status === "error") log.warn(wide, "Delivery failed");
  else log.info(wide, `Event ${reply.status}`);
}

function logRefusal(error: unknown, line: object, { log }: Gateway): void {
  if (!(error instanceof Rejection)) {
    log.error({ ...line, err: error }, "A request failed in a way it should not");
    return;
  }
  const wide = { ...line, reason: error.message };
  if (error.code === "invalid_signature") log.warn(wide, "Invalid signature");
  else if (error.code === "unavailable") log.error(wide, "Temporarily unavailable");
  // Beyond the limit, failed verifications are no longer worth a line each.
  else if (error.code === "rate_limited" && error.cause) log.debug(wide, "Request refused");
  else log.info({ ...wide, code: error.code }, "Request refused");
}
