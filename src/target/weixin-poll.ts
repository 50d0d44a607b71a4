import { DeliveryError, StoreUnavailable } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { Trouble } from "../core/trouble.ts";
import type { JsonObject } from "../core/types.ts";
import { exchange, type HttpResponse } from "../lib/http.ts";
import type { sleep } from "../lib/sleep.ts";
import { numberOf, objectIn, textOf } from "./conversation.ts";
import { permanent, quote, withoutAnswer } from "./failure.ts";
import type { SettingValues, TargetTools } from "./target.ts";
import { recall, remember, type WeixinMemory } from "./weixin-memory.ts";
import { baseInfo, codeOf, codes, expiredAdvice, headersFor, wordsOf } from "./weixin-protocol.ts";

export interface PollOptions {
  /** How much longer than the service means to hold a poll its answer is waited for. */
  readonly patienceMs: number;
  readonly sleep: typeof sleep;
  readonly random: () => number;
}

/** How long the service holds a poll when it does not say. */
const heldMs = 35_000;
const longestHeldMs = 120_000;
/** A service, or something before it, that answers at once with nothing is not asked all the time. */
const pauseMs = 1_000;
const trouble = { firstMs: 1_000, longestMs: 60_000 };
/** As the vendor's own client does it. */
const expiredPauseMs = 3_600_000;
/** Many messages may have come while nobody asked. */
const maxAnswerBytes = 16_777_216;
const failed = "Cannot ask Weixin what its users wrote";

/** The patterns of a user's id; groups and other bots have none that messages can go to. */
export const userId = /[A-Za-z0-9][A-Za-z0-9_.=-]{0,127}@im\.wechat/;
const wholeUserId = new RegExp(`^${userId.source}$`);

/**
 * Asks again and again what users wrote, and keeps the context token of each one's last message. Goes on through
 * connections that are cut, answers of something else, and failures of the service. An expired session is told, and asked
 * again after an hour: somebody has to log in.
 * @throws DeliveryError when the service refuses the question, for example its address.
 */
export async function poll(values: SettingValues, tools: TargetTools, options: PollOptions): Promise<void> {
  const bad = new Trouble({ ...trouble, random: options.random });
  const state = { heldMs };
  while (!tools.signal.aborted) {
    const waitMs = await step(state, values, tools, options, bad);
    if (waitMs > 0) await options.sleep(waitMs, tools.signal);
  }
}

/** One poll. Answers the pause before the next one. */
async function step(
  state: { heldMs: number },
  values: SettingValues,
  tools: TargetTools,
  { patienceMs }: PollOptions,
  bad: Trouble,
): Promise<number> {
  try {
    const { cursor } = await recall(tools.memory, values);
    const json = await ask(cursor, values, tools, state.heldMs + patienceMs);
    if (codeOf(json) === codes.expired) return tellExpired(tools, bad);
    if (codeOf(json) !== codes.taken) throw new DeliveryError(`${failed}: ${quote(wordsOf(json))}`, { sent: "no" });
    await remember(tools.memory, values, newsIn(json, cursor));
    state.heldMs = heldFor(json);
    if (bad.over()) tools.log.info({ target: "weixin" }, "Weixin answers again");
    return Array.isArray(json.msgs) && json.msgs.length > 0 ? 0 : pauseMs;
  } catch (error) {
    if (tools.signal.aborted) return 0;
    const mayPass = error instanceof StoreUnavailable || (error instanceof DeliveryError && !isPermanent(error));
    if (!mayPass) throw error;
    return tell(error.message, tools, bad);
  }
}

function isPermanent({ retryAfterMs }: DeliveryError): boolean {
  return retryAfterMs === "never";
}

async function ask(cursor: string, values: SettingValues, tools: TargetTools, timeoutMs: number): Promise<JsonObject> {
  const token = String(values.token);
  const headers = { "content-type": "application/json", ...headersFor(token) };
  const body = JSON.stringify({ get_updates_buf: cursor, base_info: baseInfo });
  const { signal } = tools;
  try {
    const request = { method: "POST", headers, body, timeoutMs, maxBytes: maxAnswerBytes, signal } as const;
    return read(await exchange(`${values.base_url}/ilink/bot/getupdates`, request));
  } catch (error) {
    throw withoutAnswer(failed, error, [token]);
  }
}

function read({ status, text }: HttpResponse): JsonObject {
  const json = objectIn(text);
  if (status >= 200 && status < 300 && json !== undefined) return json;
  const isPassing = status < 300 || status >= 500 || status === 408 || status === 429;
  if (isPassing) throw new DeliveryError(`${failed}: the answer ${status} is not one of Weixin`, { sent: "no" });
  throw permanent(`${failed}: the answer was ${status}; check "token" and "base_url"`);
}

/** The context tokens of messages that users wrote to the account itself. */
function newsIn({ msgs, get_updates_buf: next }: JsonObject, cursor: string): WeixinMemory {
  const contexts = new Map<string, string>();
  for (const message of Array.isArray(msgs) ? msgs : []) {
    if (!isObject(message)) continue;
    const user = textOf(message.from_user_id) ?? "";
    const token = textOf(message.context_token);
    if (token === undefined || !wholeUserId.test(user) || textOf(message.group_id) !== undefined) continue;
    contexts.delete(user);
    contexts.set(user, token);
  }
  return { contexts, cursor: textOf(next) ?? cursor };
}

function heldFor({ longpolling_timeout_ms: asked }: JsonObject): number {
  const ms = numberOf(asked) ?? 0;
  return ms > 0 ? Math.min(ms, longestHeldMs) : heldMs;
}

function tell(reason: string, { log }: TargetTools, bad: Trouble): number {
  const { pauseMs: retryInMs, isNews } = bad.failed(reason);
  const fields = { target: "weixin", reason, retryInMs };
  if (isNews) log.warn(fields, "What Weixin's users write is not heard for now; it is tried again");
  else log.debug(fields, "What Weixin's users write is still not heard");
  return retryInMs;
}

function tellExpired({ log }: TargetTools, bad: Trouble): number {
  const { isNews } = bad.failed("expired");
  if (isNews) log.error({ target: "weixin" }, `Weixin takes and tells nothing: ${expiredAdvice}`);
  return expiredPauseMs;
}
