import { StoreUnavailable } from "../core/errors.ts";
import type { Memory, Remembered } from "./target.ts";

// A group that becomes a supergroup gets a new number (https://core.telegram.org/bots/api#responseparameters), of which
// Telegram tells when somebody writes to the old one.

const name = "telegram chats";
const mostChats = 1000;
const mostTries = 10;

/**
 * The number that messages to this chat go to now: its own, or the one it was moved to. When the ledger cannot be asked it
 * is its own, because Telegram tells of the move again.
 */
export async function currentChat(memory: Memory, chat: string): Promise<string> {
  try {
    return chatsIn(await memory.read(name)).get(chat) ?? chat;
  } catch (error) {
    if (error instanceof StoreUnavailable) return chat;
    throw error;
  }
}

/**
 * Remembers that a chat has a new number. The newest 1000 moves are kept.
 * @throws StoreUnavailable; Error when others write all the time.
 */
export async function rememberMove(memory: Memory, from: string, to: string): Promise<void> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const kept = await memory.read(name);
    const chats = chatsIn(kept);
    if (chats.get(from) === to) return;
    const text = JSON.stringify([...moved(chats, from, to)]);
    if (await memory.write(name, text, kept.version)) return;
  }
  throw new Error("A chat's new number could not be kept, because somebody else keeps writing");
}

/** One look leads to the newest number: chats that were moved to `from` before are at `to` now. */
function moved(chats: ReadonlyMap<string, string>, from: string, to: string): Map<string, string> {
  const all = [...chats].map(([old, current]) => [old, current === from ? to : current] as const);
  const others = all.filter(([old]) => old !== from && old !== to);
  return new Map([...others, [from, to] as const].slice(-mostChats));
}

/** What is not of this form was not written by `rememberMove`, and counts as nothing. */
function chatsIn({ text }: Remembered): ReadonlyMap<string, string> {
  try {
    const pairs: unknown = text === "" ? [] : JSON.parse(text);
    return new Map(Array.isArray(pairs) ? pairs.filter(isMove) : []);
  } catch {
    return new Map();
  }
}

function isMove(pair: unknown): pair is [string, string] {
  return Array.isArray(pair) && pair.length === 2 && pair.every(isNumber);
}

function isNumber(chat: unknown): boolean {
  return typeof chat === "string" && /^(?:-?\d{1,16}|@\w{1,64})$/.test(chat);
}
