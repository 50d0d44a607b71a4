import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export type Handler = (request: IncomingMessage, body: string, response: ServerResponse) => void;

/** A server whose handler gets the whole body; it is not listening yet. */
export function bodyServer(handler: Handler): Server {
  return createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => {});
    request.on("end", () => handler(request, Buffer.concat(chunks).toString("utf8"), response));
  });
}

/** Listens on a free port of 127.0.0.1, or on a socket file. Answers with the port (0 for a file). */
export async function listen(server: Server, path?: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  if (path === undefined) server.listen(0, "127.0.0.1", resolve);
  else server.listen(path, resolve);
  await promise;
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Stops at once, whoever is still connected. */
export async function stop(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  await promise;
}

/** The object that a body holds, or `undefined` when it is no JSON object. */
export function objectIn(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
