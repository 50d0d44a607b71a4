import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Near the end of the range for ordinary users (Debian policy 9.2.2: 1000 to 59999), where accounts hardly ever are. */
const firstUid = 59_000;
const slots = 500;

/** A user id of the host that one workspace has for itself, so that its limit on processes is its own. */
export interface Slot {
  readonly uid: number;
  release(): void;
}

/**
 * Takes a free user id. Held by listening on an abstract socket, so that gateways on one machine do not share ids and
 * nothing stays behind when one is killed. Begins at a random one, because gateways in different network namespaces do not
 * see each other's sockets. Throws when all are taken.
 */
export async function claimSlot(): Promise<Slot> {
  const start = randomInt(slots);
  for (let step = 0; step < slots; step += 1) {
    const slot = await tryClaim(firstUid + ((start + step) % slots));
    if (slot) return slot;
  }
  throw new Error(`all ${slots} user ids for sandboxes are in use; run fewer agents at once`);
}

function tryClaim(uid: number): Promise<Slot | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Slot | undefined>();
  const server = createServer((socket) => socket.destroy());
  server.unref();
  server.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EADDRINUSE") resolve(undefined);
    else reject(error);
  });
  server.listen({ path: `\0postern-sandbox-${uid}` }, () => resolve({ uid, release: () => server.close() }));
  return promise;
}
