import type { ServerResponse } from "node:http";

/**
 * What a fake service does with the next message:
 * - `ok`: takes it and says so
 * - `lost`: takes it, then ends the connection without an answer
 * - `refused`: the service's own error for "never"
 * - `limited`: the service's own way to say "later"; where it can name a time, 7 seconds
 * - `broken`: fails on its side (5xx), does not take it
 * - `reset`: takes it, then ends the connection in the middle of the answer
 * - `hang`: neither takes nor answers it
 * - `garbage`: something that is not the service answers with success, does not take it
 * - `huge`: takes it, then answers with 10 MB
 * - `redirect`: points to another server (an HTTP service; any other fails as with `broken`), does not take it
 */
export const modes = [
  ...(["ok", "lost", "refused", "limited", "broken", "reset", "hang", "garbage", "huge", "redirect"] as const),
] as const;
export type Mode = (typeof modes)[number];

/** What every fake has. */
export interface Fake<Message> {
  /** What it took, in order. */
  readonly messages: readonly Message[];
  /** For every message that `upcoming` says nothing about. Starts as `ok`. */
  mode: Mode;
  /** Modes of the next messages, each used once: `fake.upcoming.push("limited", "ok")`. */
  readonly upcoming: Mode[];
  /** Tries that reached it, taken or not. */
  readonly tries: number;
  /** Stops at once; connections that still hang are cut. */
  close(): Promise<void>;
}

/** Modes in which the message is taken. */
export function takes(mode: Mode): boolean {
  return mode === "ok" || mode === "lost" || mode === "reset" || mode === "huge";
}

/** Ten million bytes in one line. */
export const tenMegabytes = "x".repeat(10_000_000);

/** An answer of a service: JSON, or plain text where a service has no more to say. */
export interface JsonAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly text?: string;
}

export function answerJson(response: ServerResponse, answer: JsonAnswer): void {
  const type = answer.text === undefined ? "application/json; charset=utf-8" : "text/plain; charset=utf-8";
  response.writeHead(answer.status, { "content-type": type, ...answer.headers });
  response.end(contentOf(answer));
}

function contentOf({ text, body }: JsonAnswer): string {
  return text ?? JSON.stringify(body);
}

/** Where nobody listens: whoever follows a redirect finds no answer at all. */
const elsewhere = "http://127.0.0.1:1/internal";

/** Answers as `mode` says, for an HTTP service; `ok` is its answer to a message that it took. */
export function answerAs(
  mode: Mode,
  response: ServerResponse,
  answers: { ok: JsonAnswer; refused: JsonAnswer; limited: JsonAnswer },
): void {
  const html = "<html><body><h1>Hello from the proxy</h1></body></html>";
  if (mode === "hang") return;
  if (mode === "lost") response.socket?.destroy();
  else if (mode === "broken") response.writeHead(502, { "content-type": "text/html" }).end(html);
  else if (mode === "redirect") response.writeHead(307, { location: elsewhere }).end();
  else if (mode === "garbage") response.writeHead(200, { "content-type": "text/html" }).end(html);
  else if (mode === "reset") breakOff(response, answers.ok);
  else if (mode === "huge")
    answerJson(response, { status: answers.ok.status, body: { ok: true, filler: tenMegabytes } });
  else answerJson(response, answers[mode]);
}

function breakOff(response: ServerResponse, answer: JsonAnswer): void {
  const body = contentOf(answer).padEnd(2);
  response.writeHead(answer.status, { "content-type": "application/json", "content-length": String(body.length) });
  response.write(body.slice(0, body.length / 2), () => response.socket?.destroy());
}
