import { setTimeout as startTimer } from "node:timers";

export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whole exchange, body included. */
  readonly timeoutMs: number;
  /** A longer answer is an error: no service we talk to needs more. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The exchange did not end in an answer. `sent` is `"no"` only when the request certainly never reached the other side. */
export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  readonly sent: "no" | "maybe";

  constructor(message: string, sent: "no" | "maybe", cause: unknown) {
    super(message, { cause });
    this.sent = sent;
  }
}

/** One HTTP exchange by `fetch`: never follows a redirect, never waits past its time, never reads past its cap. */
export async function exchange(url: string, request: HttpRequest): Promise<HttpResponse> {
  // Cleared with the exchange: `AbortSignal.timeout` keeps what it holds for its whole time, however soon the answer comes. A
  // timer of the real clock, as that one's is, also where a test has its own: the other side takes real time.
  const timeout = new AbortController();
  const timer = startTimer(() => timeout.abort(), request.timeoutMs).unref();
  const signal = request.signal ? AbortSignal.any([timeout.signal, request.signal]) : timeout.signal;
  try {
    const response = await fetch(url, {
      method: request.method,
      headers: request.headers ?? {},
      body: request.body ?? null,
      redirect: "manual",
      signal,
    });
    return { status: response.status, headers: response.headers, text: await readCapped(response, request.maxBytes) };
  } catch (cause) {
    if (cause instanceof HttpFailure) throw cause;
    if (timeout.signal.aborted) throw new HttpFailure(`no answer within ${request.timeoutMs} ms`, "maybe", cause);
    throw new HttpFailure(describe(cause), neverConnected(cause) ? "no" : "maybe", cause);
  } finally {
    clearTimeout(timer);
  }
}

async function readCapped(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new HttpFailure(`the answer is longer than ${maxBytes} bytes`, "maybe", undefined);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Milliseconds that a `Retry-After` header asks to wait (RFC 9110 section 10.2.3: seconds or a date), or `undefined`
 * when there is none that makes sense.
 */
export function retryAfterMs(value: string | null | undefined, nowMs: number): number | undefined {
  if (!value) return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.ceil(seconds * 1000) : undefined;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

function neverConnected(error: unknown): boolean {
  const code = codeOf(error);
  return (
    code !== undefined &&
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_INVALID_URL)$/.test(code)
  );
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return code ?? codeOf(error.cause) ?? (error instanceof AggregateError ? codeOf(error.errors[0]) : undefined);
}

function describe(error: unknown): string {
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  return code === undefined ? message : `${message} (${code})`;
}
