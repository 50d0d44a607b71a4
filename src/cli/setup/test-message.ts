import { randomBytes } from "node:crypto";
import type { Config } from "../../config/load.ts";
import { findTarget } from "../../config/platforms.ts";
import { DeliveryError, UserError } from "../../core/errors.ts";
import { redact } from "../../core/text.ts";
import { silentLog } from "../../lib/log.ts";
import { readAddress } from "../../target/settings.ts";

const text = "Postern can reach you here: this is the test message of its setup";

/**
 * Really sends a message to a target's home channel, with the settings of a configuration that need not be written yet.
 * Answers what the service calls it.
 * @throws UserError with the service's own words when it was not taken.
 */
export async function sendTestMessage(config: Config, name: string): Promise<string | undefined> {
  const target = findTarget(name);
  const platform = config.platforms.get(name);
  if (!target || !platform || "unusable" in platform) throw new UserError(`The target "${name}" is not set up`);
  const key = randomBytes(16).toString("hex");
  try {
    const address = readAddress(target, {}, platform.values);
    const part = {
      text,
      address,
      index: 0,
      count: 1,
      key,
      firstTriedAt: Date.now(),
      route: "setup",
      eventType: "test",
    };
    const tools = { env: config.env, log: silentLog, signal: AbortSignal.timeout(60_000) };
    return (await target.send(part, platform.values, tools)).reference;
  } catch (cause) {
    if (!(cause instanceof DeliveryError)) throw cause;
    throw new UserError(`The test message was not delivered: ${redact(cause.message, config.secrets)}`, { cause });
  }
}
