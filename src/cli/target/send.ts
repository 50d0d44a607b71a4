import { type Config, loadConfig } from "../../config/load.ts";
import { targetNamed } from "../../config/platforms.ts";
import { DeliveryError, UserError } from "../../core/errors.ts";
import { createLog } from "../../lib/log.ts";
import { checkAddress } from "../../target/address.ts";
import type { Target } from "../../target/target.ts";
import { type CommonOptions, type Context, homeOf, print } from "../context.ts";
import { openMemory } from "./memory.ts";
import { type Post, type Posted, post } from "./post.ts";

export interface SendOptions extends CommonOptions {
  readonly chatId?: string;
  readonly extra?: Readonly<Record<string, string>>;
}

const testText = "This is a test message of Postern";

/** Really sends a message, cut as the gateway cuts it. Fails with the service's own words when it was not taken. */
export async function send(
  name: string,
  text: string | undefined,
  options: SendOptions,
  context: Context,
): Promise<void> {
  const target = targetNamed(name);
  const config = await loadConfig({ home: homeOf(context, options), env: context.env });
  const platform = config.platforms.get(target.name);
  if (!platform || "unusable" in platform) {
    throw new UserError(`The target "${target.name}" cannot be used: ${platform?.unusable ?? "it is not set up"}`);
  }
  const extra = extraOf(target, options);
  const [problem] = checkAddress(target, extra, platform.values);
  if (problem) throw new UserError(`Cannot send to "${target.name}": "${problem.key}": ${problem.message}; ${how}`);
  const whole = text === "-" ? await context.readInput() : (text ?? testText);
  const one = { target, values: platform.values, extra, text: whole, route: "test" };
  report(target, await postIt(one, config, options, context), options, context);
}

const how = "here by --chat-id ID or --extra key=value";

/** `--chat-id` is short for the field that the home channel fills, whatever its name. */
function extraOf({ address }: Target, { chatId, extra = {} }: SendOptions): Record<string, string> {
  const field = Object.entries(address).find(([, { homeChannel }]) => homeChannel)?.[0] ?? "chat_id";
  return { ...extra, ...(chatId === undefined ? {} : { [field]: chatId }) };
}

async function postIt(one: Post, config: Config, options: SendOptions, context: Context): Promise<Posted> {
  const { memory, problem, close } = await openMemory(config.home, config.store);
  if (problem !== undefined) context.err(`What targets remember is not known: ${problem}\n`);
  const log = createLog({
    ...{ level: config.logLevel, pretty: options.json !== true },
    ...{ secrets: () => config.secrets, write: context.err },
  });
  const stop = new AbortController();
  context.onStop(() => stop.abort());
  try {
    return await post(one, { config, memory, log, signal: stop.signal });
  } catch (cause) {
    throw cause instanceof DeliveryError ? new UserError(cause.message, { cause }) : cause;
  } finally {
    await close();
  }
}

function report({ name }: Target, posted: Posted, options: SendOptions, context: Context): void {
  const { parts, references, failure } = posted;
  const words = failure && inWords(name, posted, failure);
  const error = failure && { message: words, sent: failure.sent, retryAfterMs: failure.retryAfterMs };
  const lines = references.map(
    (reference, at) => `  ${parts > 1 ? `${at + 1}/${parts}  ` : ""}${reference ?? "(no id)"}`,
  );
  const head = failure ? `Only in part delivered to ${name}` : `Delivered to ${name}`;
  if (options.json || references.length > 0) {
    print(context, options, { target: name, delivered: !failure, parts, references, error }, [head, ...lines]);
  }
  if (words !== undefined) throw new UserError(words, { cause: failure });
}

function inWords(name: string, { parts, references }: Posted, { sent, message }: DeliveryError): string {
  const what = parts > 1 ? `part ${references.length + 1} of ${parts}` : "the message";
  return sent === "no"
    ? `"${name}" did not take ${what}: ${message}`
    : `It is not known whether "${name}" took ${what}: ${message}`;
}
