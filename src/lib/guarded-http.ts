import { type LookupAddress, type LookupOptions, lookup as systemLookup } from "node:dns";
import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { setTimeout as startTimer } from "node:timers";
import { HttpFailure, type HttpRequest, type HttpResponse } from "./http.ts";
import { type Reach, reachOf } from "./public-address.ts";

/** Finds all addresses of a name, as `dns.lookup` does with `all: true`. */
export type Resolve = (
  name: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface Guard {
  /** Whether this machine and those of one's own network may be asked too, and by plain `http:`. */
  readonly allowPrivate: boolean;
  /** The system's when not set. */
  readonly resolve?: Resolve;
}

/** The guard did not let the request go out. Nothing was sent, and asking again does not help. */
export class AddressRefused extends HttpFailure {
  constructor(message: string) {
    super(message, "no", undefined);
  }
}

/**
 * One exchange with a server that a stranger may have named. It goes to public addresses only: judged is the address that
 * the connection is made to, so neither a name nor a way of writing an address helps past it. Redirects are not followed,
 * no proxy is used, no connection is used again. The status is the answer: a body that breaks off, takes too long or is
 * longer than `maxBytes` is there as far as it came.
 * @throws AddressRefused before anything was sent, HttpFailure when there is no answer.
 */
export async function guardedExchange(url: string, request: HttpRequest, guard: Guard): Promise<HttpResponse> {
  const address = checkedUrl(url, guard);
  const isOver = new AbortController();
  const timer = startTimer(() => isOver.abort(), request.timeoutMs).unref();
  const signal = request.signal ? AbortSignal.any([isOver.signal, request.signal]) : isOver.signal;
  const { method, headers = {}, body, maxBytes } = request;
  const send = address.protocol === "https:" ? requestHttps : requestHttp;
  const outgoing = send(address, {
    method,
    headers: { ...headers },
    agent: false,
    lookup: guardedLookup(guard),
    signal,
  });
  const answer = answerTo(outgoing, address.protocol, maxBytes);
  outgoing.end(body);
  try {
    return await answer;
  } catch (cause) {
    if (!isOver.signal.aborted || !(cause instanceof HttpFailure)) throw cause;
    throw new HttpFailure(`no answer within ${request.timeoutMs} ms`, cause.sent, cause);
  } finally {
    clearTimeout(timer);
    outgoing.destroy();
  }
}

function answerTo(outgoing: ClientRequest, protocol: string, maxBytes: number): Promise<HttpResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  let isConnected = false;
  const fail = (cause: Error) =>
    reject(
      cause instanceof AddressRefused ? cause : new HttpFailure(describe(cause), isConnected ? "maybe" : "no", cause),
    );
  outgoing.once("socket", (socket) => {
    // Before the handshake is done nothing of the request is on its way.
    socket.once(protocol === "https:" ? "secureConnect" : "connect", () => {
      isConnected = true;
    });
  });
  // From then on no error changes anything.
  outgoing.once("response", (incoming) => resolve(readAnswer(incoming, maxBytes)));
  outgoing.on("error", fail);
  // An answer of another kind, such as an upgrade, ends the connection and is no error to Node.
  outgoing.once("close", () => fail(new Error("the connection was closed without an answer")));
  return promise;
}

/**
 * Says whether a request would be let out, without making it.
 * @throws AddressRefused, or HttpFailure when the name cannot be resolved.
 */
export async function checkDestination(url: string, guard: Guard): Promise<void> {
  const { hostname } = checkedUrl(url, guard);
  if (isIP(bare(hostname)) !== 0) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  guardedLookup(guard)(hostname, { all: true }, (error) => (error ? reject(error) : resolve()));
  await promise.catch((cause: Error) => {
    throw cause instanceof AddressRefused ? cause : new HttpFailure(describe(cause), "no", cause);
  });
}

/** A literal address is never looked up, and so judged here; `URL` has brought all its notations to one. */
function checkedUrl(text: string, guard: Guard): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) throw new AddressRefused("it is no http or https address");
  if (url.protocol === "http:" && !guard.allowPrivate)
    throw new AddressRefused("plain http is not allowed, only https");
  if (url.username !== "" || url.password !== "") throw new AddressRefused("a name or password in it is not allowed");
  const host = bare(url.hostname);
  if (isIP(host) !== 0 && !isAllowed(host, guard)) throw refusal(host, [host]);
  return url;
}

function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

function isAllowed(ip: string, { allowPrivate }: Guard): boolean {
  const reach: Reach = reachOf(ip);
  return reach === "public" || (reach === "private" && allowPrivate);
}

/** In place of `dns.lookup`: what it answers is what the socket connects to, with no second question in between. */
function guardedLookup(guard: Guard): LookupFunction {
  const resolve: Resolve = guard.resolve ?? systemLookup;
  return (name, options, callback) => {
    resolve(name, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, "", 0);
      const allowed = addresses.filter(({ address }) => isAllowed(address, guard));
      const [first] = allowed;
      if (first === undefined)
        return callback(
          refusal(
            name,
            addresses.map(({ address }) => address),
          ),
          "",
          0,
        );
      if (options.all) return callback(null, allowed);
      callback(null, first.address, first.family);
    });
  };
}

function refusal(host: string, addresses: readonly string[]): AddressRefused {
  const behind = addresses.join(", ");
  const what = behind === host ? `${host} is` : `"${host}" stands for ${behind === "" ? "nothing" : behind},`;
  return new AddressRefused(`${what} not a public address`);
}

async function readAnswer(incoming: IncomingMessage, maxBytes: number): Promise<HttpResponse> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.byteLength;
      if (size >= maxBytes) break;
    }
  } catch {
    // The rest of the words is lost, not the answer.
  }
  const text = Buffer.concat(chunks).subarray(0, maxBytes).toString("utf8");
  return { status: incoming.statusCode ?? 0, headers: headersOf(incoming), text };
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  return headers;
}

function describe(error: Error & { readonly code?: unknown }): string {
  const said = error.message || (error instanceof AggregateError ? String(error.errors[0]?.message ?? "") : "");
  return typeof error.code === "string" && !said.includes(error.code) ? `${said} (${error.code})` : said;
}
