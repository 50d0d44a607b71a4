import type { IncomingMessage } from "node:http";
import { Rejection } from "../core/errors.ts";

/** The sender closed the connection before its request was whole: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** What is read of a body that nobody wants, so that its sender gets to read the reply. */
const drainBytes = 4_194_304;
const drainMs = 3_000;

/** Whether the request says that a body follows. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Reads a whole body; refuses it as soon as it is longer than `maxBytes`, whatever its head said. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  // Nothing more is heard from a request whose sender went away while nobody listened to it.
  if (request.destroyed) reject(new ClientGone("The sender hung up"));
  const chunks: Buffer[] = [];
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= maxBytes) {
      chunks.push(chunk);
      return;
    }
    request.removeAllListeners("data");
    request.pause();
    reject(new Rejection("payload_too_large", `The body is longer than ${maxBytes} bytes`));
  });
  request.once("end", () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)));
  request.once("error", (cause) => reject(new ClientGone("The connection broke", { cause })));
  request.once("close", () => {
    if (!request.complete) reject(new ClientGone("The sender hung up"));
  });
  return promise;
}

/** Throws away what is left of a body: up to its end, a bounded amount, or a bounded time, whichever comes first. */
export function drain(request: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, drainMs);
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > drainBytes) resolve();
  });
  request.once("end", resolve);
  request.once("close", resolve);
  request.once("error", () => resolve());
  request.resume();
  return promise.finally(() => {
    clearTimeout(timer);
    request.pause();
  });
}
