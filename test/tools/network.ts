import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { Transform } from "node:stream";
import { stablePort } from "./port.ts";

/** A stretch of network before a server on 127.0.0.1: what connects to its port is connected to the server's. */
export interface Network {
  readonly port: number;
  /**
   * From now on no byte passes either way, and neither does an end: connections stay as they are, new ones are taken and
   * hear nothing.
   */
  cut(): void;
  /** Ends all connections; new ones are refused. */
  sever(): void;
  /** Goes on, and what was held back by `cut` is delivered. Fulfils when it listens. */
  mend(): Promise<void>;
  close(): Promise<void>;
}

export async function startNetwork(targetPort: number): Promise<Network> {
  const network = new Wires(targetPort, await stablePort());
  await network.mend();
  return network;
}

class Wires implements Network {
  readonly port: number;
  readonly #targetPort: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #isCut = false;
  /** Fulfils when bytes may pass. */
  #open = Promise.withResolvers<void>();

  constructor(targetPort: number, port: number) {
    this.#targetPort = targetPort;
    this.port = port;
    this.#open.resolve();
  }

  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#open = Promise.withResolvers();
  }

  sever(): void {
    this.#server?.close();
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  async mend(): Promise<void> {
    this.#isCut = false;
    this.#open.resolve();
    if (this.#server) return;
    this.#server = createServer({ allowHalfOpen: true }, (client) => void this.#lead(client));
    await once(this.#server.listen(this.port, "127.0.0.1"), "listening");
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.sever();
    this.#open.resolve();
    if (server) await once(server, "close");
  }

  async #lead(client: Socket): Promise<void> {
    this.#keep(client);
    await this.#open.promise;
    if (client.destroyed) return;
    const target = this.#keep(connect({ port: this.#targetPort, host: "127.0.0.1", allowHalfOpen: true }));
    this.#join(client, target);
    this.#join(target, client);
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    // The end of a connection is passed on when it closes, whatever closed it.
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    return socket;
  }

  #join(from: Socket, to: Socket): void {
    from.pipe(this.#valve()).pipe(to);
    from.on("close", async (hadError) => {
      await this.#open.promise;
      if (hadError || !from.readableEnded) to.destroy();
    });
  }

  #valve(): Transform {
    return new Transform({
      transform: async (chunk, _encoding, done) => {
        await this.#open.promise;
        done(null, chunk);
      },
      flush: async (done) => {
        await this.#open.promise;
        done();
      },
    });
  }
}
