import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** A port of 127.0.0.1 on which nobody listens now. */
export function freePort(): Promise<number> {
  return tryPort(0);
}

/**
 * A port of 127.0.0.1 on which nobody listens now, and that the system gives to nobody who does not ask for it: for what
 * stops and comes back on the same port. (Who tries a port of those that the system hands out may even connect to itself.)
 */
export async function stablePort(): Promise<number> {
  for (;;) {
    try {
      return await tryPort(randomInt(20_000, 32_000));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}

async function tryPort(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
