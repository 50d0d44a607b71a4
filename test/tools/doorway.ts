import type { TestContext } from "node:test";
import { type Limits, type Listening, listen } from "../../src/server/server.ts";
import { type RequestParts, type Scene, type SceneOptions, setScene, signed } from "./scene.ts";
import { head, openWire, type Wire, type WireAnswer } from "./wire.ts";

/** A scene whose gateway listens. */
export interface Doorway extends Scene {
  readonly port: number;
  readonly listening: Listening;
  connect(options?: { readonly stubborn?: boolean; readonly host?: string }): Promise<Wire>;
  /** One request on a connection of its own. */
  exchange(...pieces: (string | Buffer)[]): Promise<WireAnswer>;
  /** A signed webhook on a connection of its own. */
  post(parts?: RequestParts & { readonly path?: string }): Promise<WireAnswer>;
}

const patientLimits: Limits = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 60_000,
  maxHeaderSize: 16_384,
};

export async function openDoorway(
  t: TestContext,
  options: SceneOptions = {},
  limits: Partial<Limits> = {},
): Promise<Doorway> {
  const scene = await setScene(t, options);
  const listening = await listen(scene.gateway, { ...patientLimits, ...limits });
  t.after(() => listening.close(0));
  const doorway: Doorway = {
    ...scene,
    port: listening.port,
    listening,
    connect: (how = {}) => openWire(t, listening.port, how),
    async exchange(...pieces) {
      const wire = await doorway.connect();
      wire.write(...pieces);
      return wire.answer();
    },
    post: (parts = {}) => doorway.exchange(...webhook(parts)),
  };
  return doorway;
}

/** Head and body of a signed webhook. */
export function webhook(parts: RequestParts & { readonly path?: string } = {}): [head: string, body: string] {
  const { text, headers } = signed(parts);
  const path = parts.path ?? `/webhooks/${parts.route ?? "ci"}`;
  return [head(`POST ${path}`, { "content-length": String(Buffer.byteLength(text)), ...headers }), text];
}
