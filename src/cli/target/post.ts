import { randomUUID } from "node:crypto";
import type { Config } from "../../config/load.ts";
import { DeliveryError } from "../../core/errors.ts";
import { keyOf } from "../../core/id.ts";
import { redact } from "../../core/text.ts";
import { Paces } from "../../gateway/pace.ts";
import { cut, placeOf } from "../../gateway/transmit.ts";
import type { Log } from "../../lib/log.ts";
import { sleep } from "../../lib/sleep.ts";
import { readAddress } from "../../target/address.ts";
import type { Memory, Part, SettingValues, Target } from "../../target/target.ts";

/** What a person sends by hand. */
export interface Post {
  readonly target: Target;
  readonly values: SettingValues;
  /** `deliver_extra`. */
  readonly extra: Readonly<Record<string, string>>;
  readonly text: string;
  /** What stands for the route where a target names it. */
  readonly route: string;
}

export interface PostTools {
  readonly config: Pick<Config, "env" | "secrets">;
  readonly memory: Memory;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** How it went: what the service calls each part that it took, and why it did not take the next one. */
export interface Posted {
  readonly parts: number;
  readonly references: readonly (string | undefined)[];
  readonly failure: DeliveryError | undefined;
}

/**
 * Really sends a text, cut and paced as the gateway does, but at once and beside the ledger: nothing is tried again. Stops at
 * the first part that is not taken.
 * @throws DeliveryError when the address is not one, before anything is sent.
 */
export async function post(one: Post, tools: PostTools): Promise<Posted> {
  const { target, values, extra, text, route } = one;
  const address = readAddress(target, extra, values);
  const texts = cut(text, target, tools.config.secrets);
  const [id, firstTriedAt, count] = [randomUUID(), Date.now(), texts.length];
  const parts = texts.map((text, index): Part => {
    return { text, address, index, count, key: keyOf(id, index), firstTriedAt, route, eventType: "test" };
  });
  const references: (string | undefined)[] = [];
  const paces = new Paces({ now: Date.now, sleep });
  try {
    for (const part of parts) {
      const isTurn = await paces.turn(target, placeOf(part, target), { signal: tools.signal });
      if (!isTurn) throw new DeliveryError("Stopped before it was sent", { sent: "no" });
      const { env } = tools.config;
      references.push((await target.send(part, values, { ...tools, env })).reference);
    }
    return { parts: count, references, failure: undefined };
  } catch (error) {
    return { parts: count, references, failure: clean(error, tools) };
  }
}

function clean(cause: unknown, { config }: PostTools): DeliveryError {
  if (!(cause instanceof DeliveryError)) throw cause;
  const { sent, retryAfterMs } = cause;
  return new DeliveryError(redact(cause.message, config.secrets), { sent, retryAfterMs, cause });
}
