import { DeliveryError } from "../core/errors.ts";
import { keyOf } from "../core/id.ts";
import { isList, parseJson } from "../core/json.ts";
import type { Part, TargetTools } from "./target.ts";

/** The newest posts are enough: only the parts of one message ask for theirs. */
const mostPosts = 200;
const document = "discord posts";

/** The posts that the first parts of messages began in forums, by what all parts of a message share. */
type Posts = readonly (readonly [message: string, post: string])[];

/** The post that the first part of this part's message began in a forum; `undefined` for the first one. */
export async function postOf(part: Part, { memory }: Pick<TargetTools, "memory">): Promise<string | undefined> {
  if (part.address.thread_name === undefined || part.index === 0) return undefined;
  const key = messageKey(part);
  try {
    return read((await memory.read(document)).text).findLast(([message]) => message === key)?.[1];
  } catch (cause) {
    const said = "Cannot send to Discord: the post in the forum that this goes to cannot be read from the store";
    throw new DeliveryError(said, { sent: "no", cause });
  }
}

/** Keeps the post that a first part began. The part was taken, so that a failure is only told. */
export async function rememberPost(part: Part, post: string, { memory, log }: TargetTools): Promise<void> {
  if (part.count === 1) return;
  try {
    for (let tries = 0; tries < 5; tries += 1) {
      const { version, text } = await memory.read(document);
      const posts = [...read(text), [messageKey(part), post] as const].slice(-mostPosts);
      if (await memory.write(document, JSON.stringify(posts), version)) return;
    }
    log.warn({ target: "discord" }, "Cannot remember the post of a forum; the other parts begin new ones");
  } catch (err) {
    log.warn({ target: "discord", err }, "Cannot remember the post of a forum; the other parts begin new ones");
  }
}

function messageKey({ address, route, eventType, firstTriedAt, count }: Part): string {
  const { chat_id: chat = "", thread_name: title = "" } = address;
  return keyOf(chat, title, route, eventType, firstTriedAt, count);
}

function read(text: string): Posts {
  if (text === "") return [];
  const list = parseJson(text);
  if (!isList(list)) return [];
  return list.filter(isList).map(([message, post]) => [String(message), String(post)] as const);
}
