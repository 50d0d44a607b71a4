import { DeliveryError } from "../core/errors.ts";
import { isList, isObject, parseJson } from "../core/json.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { type Answer, textOf } from "./conversation.ts";
import { isMarked, marker } from "./discord-text.ts";
import { permanent } from "./failure.ts";
import type { Part, Receipt } from "./target.ts";

const perPage = 100;
const mostPages = 10;
/** A hundred messages of 2,000 characters, each of which JSON may write as twelve. */
const maxPageBytes = 4_194_304;
/** How far Discord's clock may be behind the gateway's. */
const clockDifferenceMs = 120_000;
/** Discord counts from the first second of 2015 (https://docs.discord.com/developers/reference#snowflakes). */
const epochMs = 1_420_070_400_000;

/** Asks for a page of a channel's messages: https://docs.discord.com/developers/resources/message#get-channel-messages. */
export type AskPage = (query: string, maxBytes: number) => Promise<Answer>;

/**
 * Looks for a part by its marker, newest messages first, down to the first try.
 * @throws DeliveryError "never" when what is shown holds no marker at all: Discord shows nothing to a bot that may not
 * read the history, and does not promise to keep marks that nobody sees.
 */
export async function findMessage(part: Part, action: string, askPage: AskPage): Promise<Receipt | undefined> {
  const mark = marker(part.key);
  const since = part.firstTriedAt - clockDifferenceMs;
  let isProven = false;
  let before = "";
  for (let page = 1; page <= mostPages; page += 1) {
    const messages = listIn(action, await askPage(`limit=${perPage}${before}`, maxPageBytes));
    const found = messages.find(({ content }) => textOf(content)?.endsWith(mark));
    if (found !== undefined) return { reference: textOf(found.id) ?? "found" };
    isProven ||= messages.some(({ content = null }) => typeof content === "string" && isMarked(content));
    const oldest = textOf(messages.at(-1)?.id);
    if (oldest === undefined || messages.length < perPage || sentAt(oldest) < since) return notThere(action, isProven);
    before = `&before=${oldest}`;
  }
  throw permanent(`${action}: too many messages are new since the first try; look for it there`);
}

function notThere(action: string, isProven: boolean): undefined {
  if (isProven) return undefined;
  const how = 'give the bot the permission "Read Message History", and look for it there';
  throw permanent(`${action}: the channel shows no message of this gateway; ${how}`);
}

function listIn(action: string, { text }: Answer): readonly JsonObject[] {
  const list = parsed(text);
  if (isList(list)) return list.filter(isObject);
  throw new DeliveryError(`${action}: the answer is no list of messages`, { sent: "no" });
}

function parsed(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

/** Unix time in milliseconds. */
function sentAt(snowflake: string): number {
  return /^\d{1,20}$/.test(snowflake) ? Number(BigInt(snowflake) >> 22n) + epochMs : 0;
}
