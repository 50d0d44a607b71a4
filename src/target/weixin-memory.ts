import { createHash } from "node:crypto";
import { isObject } from "../core/json.ts";
import type { Memory, SettingValues } from "./target.ts";

/** What is kept of the messages that users write to an account: never the messages themselves. */
export interface WeixinMemory {
  /** Where the next poll goes on; empty at the beginning. */
  readonly cursor: string;
  /** Newest context token by user, the one that came last at the end. */
  readonly contexts: ReadonlyMap<string, string>;
}

const mostUsers = 1000;
const longestToken = 2048;
const mostTries = 10;

/**
 * What is remembered for the account and token of these settings. Nothing, when it was kept under another token: a new
 * login makes the old cursor and tokens void.
 * @throws StoreUnavailable
 */
export async function recall(memory: Memory, values: SettingValues): Promise<WeixinMemory> {
  return (await readKept(memory, values)).kept;
}

/**
 * Adds what a poll brought. The users who wrote last are kept, 1000 of them.
 * @throws StoreUnavailable; Error when others write all the time.
 */
export async function remember(memory: Memory, values: SettingValues, news: WeixinMemory): Promise<void> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const { kept, version } = await readKept(memory, values);
    const contexts = newest(kept.contexts, news.contexts);
    const isKnown = kept.cursor === news.cursor && news.contexts.size === 0;
    if (isKnown) return;
    const text = JSON.stringify({ login: loginOf(values), cursor: news.cursor, contexts: [...contexts] });
    if (await memory.write(nameFor(values), text, version)) return;
  }
  throw new Error("What Weixin's users wrote could not be kept, because somebody else keeps writing it");
}

function newest(kept: ReadonlyMap<string, string>, added: ReadonlyMap<string, string>): Map<string, string> {
  const joined = new Map(kept);
  for (const [user, token] of added) {
    if (token.length > longestToken) continue;
    // Behind those who wrote earlier.
    joined.delete(user);
    joined.set(user, token);
  }
  return new Map([...joined].slice(-mostUsers));
}

async function readKept(memory: Memory, values: SettingValues) {
  const { text, version } = await memory.read(nameFor(values));
  return { kept: parseKept(text, loginOf(values)), version };
}

function parseKept(text: string, login: string): WeixinMemory {
  const nothing = { cursor: "", contexts: new Map<string, string>() };
  if (text === "") return nothing;
  try {
    const kept = JSON.parse(text) as { login?: unknown; cursor?: unknown; contexts?: unknown };
    if (!isObject(kept) || kept.login !== login || !Array.isArray(kept.contexts)) return nothing;
    return { cursor: String(kept.cursor ?? ""), contexts: new Map(kept.contexts.filter(isPair)) };
  } catch {
    return nothing;
  }
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && typeof value[0] === "string" && typeof value[1] === "string";
}

function nameFor({ account_id: account }: SettingValues): string {
  return `weixin ${account}`;
}

/** Tells logins apart without giving the token away. */
function loginOf({ token }: SettingValues): string {
  return createHash("sha256").update(String(token)).digest("hex").slice(0, 16);
}
