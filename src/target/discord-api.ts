import type { DeliveryError } from "../core/errors.ts";
import { type Answer, type Conversation, numberOf, type Question, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";

/** What Discord refused to know (401), and until when it is not asked again. Unix time in milliseconds. */
export type Strangers = Map<string, number>;

/** A way into Discord: a bot's token, or a webhook's address. */
export interface Door {
  readonly credential: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly strangers: Strangers;
  readonly now: () => number;
}

/** Discord bans the address of who makes 10,000 requests that it refuses so in ten minutes. */
const silenceMs = 600_000;

/** https://discord.com/developers/docs/reference#user-agent: without one of this form requests are blocked. */
const userAgent = "DiscordBot (postern, 1)";

/**
 * The successful answer to one request of the API (https://docs.discord.com/developers/reference).
 * @throws DeliveryError for every other one. After a 401 nothing is asked with the same credential for ten minutes.
 */
export async function ask(talk: Conversation, door: Door, question: Question): Promise<Answer> {
  const until = door.strangers.get(door.credential);
  if (until !== undefined && door.now() < until)
    throw permanent(`Discord refused this login a moment ago; ${logInAnew}`);
  const headers = { "user-agent": userAgent, ...door.headers };
  const answer = await talk.ask({ ...question, headers });
  if (answer.status === 401) door.strangers.set(door.credential, door.now() + silenceMs);
  const words = textOf(answer.json?.message);
  const code = numberOf(answer.json?.code);
  const fault = faultOf(talk, answer, words, code);
  if (fault !== undefined) throw fault;
  talk.expectSuccess(answer, words, advice);
  return answer;
}

const logInAnew = 'check the "token" or the "webhook_url"';

/** Slow mode, and things that pass (https://docs.discord.com/developers/topics/opcodes-and-status-codes#json). */
const passing = new Set([20016, 20022, 20028, 20029, 40004, 110001, 130000]);

const advice: Readonly<Record<number, string>> = { 401: logInAnew };

/** By Discord's own codes, which say more than the status. */
const adviceByCode = new Map<number, string>([
  [10003, 'check the channel\'s id in "chat_id"'],
  [10013, "check the person's id"],
  [10015, 'the webhook was deleted; make a new one and set "webhook_url"'],
  [50001, "let the bot see the channel"],
  [50007, "the person takes no messages of the bot; they must share a server with it and allow them"],
  [50013, 'give the bot the permissions "Send Messages" and, for threads, "Send Messages in Threads"'],
  [50027, 'copy the webhook\'s address again into "webhook_url"'],
  [50083, "open the archived thread again"],
  [220001, 'the webhook belongs to a forum: set "thread_name" or "thread_id"'],
  [220003, 'the webhook belongs to no forum: leave "thread_name" out'],
]);

function faultOf(talk: Conversation, answer: Answer, words: string | undefined, code: number | undefined) {
  const { status } = answer;
  if (status < 400 || status >= 500 || words === undefined) return undefined;
  if (status === 429 || (code !== undefined && passing.has(code))) return later(talk, answer, words);
  const known = code === undefined ? undefined : adviceByCode.get(code);
  return known === undefined ? undefined : talk.refused(answer, words, known);
}

/** `retry_after` has a fraction of a second, which the header has not always. */
function later(talk: Conversation, answer: Answer, words: string): DeliveryError {
  const seconds = numberOf(answer.json?.retry_after);
  return talk.later(answer, words, seconds === undefined || seconds < 0 ? answer.waitMs : Math.ceil(seconds * 1000));
}
