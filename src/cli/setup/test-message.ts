import type { Config } from "../../config/load.ts";
import { findTarget } from "../../config/platforms.ts";
import { DeliveryError, UserError } from "../../core/errors.ts";
import { redact } from "../../core/text.ts";
import { silentLog } from "../../lib/log.ts";
import { openMemory } from "../target/memory.ts";
import { type Posted, post } from "../target/post.ts";

const text = "Postern can reach you here: this is the test message of its setup";

/**
 * Really sends a message to a target's home channel, with the settings of a configuration that need not be written yet.
 * Answers what the service calls it.
 * @throws UserError with the service's own words when it was not taken.
 */
export async function sendTestMessage(config: Config, name: string): Promise<string | undefined> {
  const { references, failure } = await postHome(config, name);
  if (failure) throw notDelivered(failure, config);
  return references[0];
}

async function postHome(config: Config, name: string): Promise<Posted> {
  const target = findTarget(name);
  const platform = config.platforms.get(name);
  if (!target || !platform || "unusable" in platform) throw new UserError(`The target "${name}" is not set up`);
  const { memory, close } = await openMemory(config.home, config.store);
  try {
    const tools = { config, memory, log: silentLog, signal: AbortSignal.timeout(60_000) };
    return await post({ target, values: platform.values, extra: {}, text, route: "setup" }, tools);
  } catch (cause) {
    throw cause instanceof DeliveryError ? notDelivered(cause, config) : cause;
  } finally {
    await close();
  }
}

function notDelivered(cause: DeliveryError, { secrets }: Config): UserError {
  return new UserError(`The test message was not delivered: ${redact(cause.message, secrets)}`, { cause });
}
