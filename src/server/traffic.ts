import { type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { troubleReply } from "./replies.ts";

/** How long a refused sender has to read the reply and hang up. */
const lingerMs = 3_000;

/** What is under way on a server's connections: who can still be told something, and when nobody is waited for any more. */
export class Traffic {
  readonly #server: Server;
  readonly #newest = new WeakMap<Socket, ServerResponse>();
  readonly #refused = new WeakSet<Socket>();
  #underWay = 0;

  constructor(server: Server) {
    this.#server = server;
  }

  /** A request's head is there. */
  begin(response: ServerResponse): void {
    this.#underWay += 1;
    this.#newest.set(response.req.socket, response);
    response.once("close", () => {
      this.#underWay -= 1;
      this.#cutIfDone();
    });
  }

  /** Answers what Node could not read as a request, if anybody still listens. */
  refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    // More of what could not be read comes in; it is thrown away until the connection is cut.
    if (this.#refused.has(socket)) return;
    this.#refused.add(socket);
    // Node leaves the connection to us, and a sender that never hangs up would keep it.
    setTimeout(() => socket.destroy(), lingerMs).unref();
    if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
    else if (this.#isOthersTurn(socket)) socket.destroySoon();
    else socket.end(rawReply(error.code));
  }

  /** Takes no more connections and fulfils when the requests under way are answered, or cut off after `timeoutMs`. */
  close(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cutOff = setTimeout(() => this.#server.closeAllConnections(), timeoutMs);
    this.#server.close(() => {
      clearTimeout(cutOff);
      resolve();
    });
    this.#cutIfDone();
    return promise;
  }

  /** Connections on which nobody waits for an answer would keep a server that stops for as long as they like. */
  #cutIfDone(): void {
    if (this.#underWay === 0 && !this.#server.listening) this.#server.closeAllConnections();
  }

  /** Whether what we say now would be taken for the answer to an earlier request, or stand behind an answer. */
  #isOthersTurn(socket: Socket): boolean {
    const response = this.#newest.get(socket);
    if (!response || response.closed) return false;
    return response.socket !== socket || response.headersSent || response.req.complete;
  }
}

function rawReply(code: string | undefined): string {
  const { status, body } = troubleReply(code);
  const text = JSON.stringify(body);
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}
