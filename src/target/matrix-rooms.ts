import { type Conversation, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import { Lookups } from "./lookups.ts";
import { call, expectTaken } from "./matrix-answer.ts";
import type { SettingValues } from "./target.ts";

/** An alias may move to another room. */
const aliasMs = 600_000;
/** Encryption is never switched off again (https://spec.matrix.org/latest/client-server-api/#mroomencryption). */
const encryptedMs = 86_400_000;
/** It may be switched on at any time, and what is sent after that would be readable to the server. */
const unencryptedMs = 60_000;

/** What is known about rooms, each for a while: the ids that aliases stand for, and which rooms are encrypted. */
export class Rooms {
  readonly #ids: Lookups<string>;
  readonly #encrypted: Lookups<boolean>;

  constructor(now?: () => number) {
    this.#ids = new Lookups(() => aliasMs, now);
    this.#encrypted = new Lookups((isEncrypted) => (isEncrypted ? encryptedMs : unencryptedMs), now);
  }

  /** The id of a room that is named by its id or its alias. */
  idOf(talk: Conversation, values: SettingValues, chat: string): Promise<string> {
    if (chat.startsWith("!")) return Promise.resolve(chat);
    return this.#ids.get(keyOf(values, chat), async () => {
      const answer = await call(talk, values, "GET", `/directory/room/${encodeURIComponent(chat)}`);
      expectTaken(talk, answer, { M_NOT_FOUND: "check the room's alias" });
      const id = textOf(answer.json?.room_id);
      if (id === undefined || !/^!\S{1,255}$/.test(id)) throw talk.notAnAnswer(answer);
      return id;
    });
  }

  /** The room that an alias stands for now, when that is another one than was known: rooms are replaced by new versions. */
  async movedTo(talk: Conversation, values: SettingValues, chat: string): Promise<string | undefined> {
    if (!chat.startsWith("#")) return undefined;
    const known = await this.idOf(talk, values, chat);
    this.#ids.forget(keyOf(values, chat));
    const room = await this.idOf(talk, values, chat);
    return room === known ? undefined : room;
  }

  /** Throws when the room is encrypted and the settings do not allow what is not: its members count on it. */
  async expectReadable(talk: Conversation, values: SettingValues, room: string): Promise<void> {
    if (values.allow_unencrypted === true || !(await this.isEncrypted(talk, values, room))) return;
    const how = 'name a room without encryption, or set "allow_unencrypted" to post there unencrypted';
    throw permanent(`Cannot send to Matrix: the room is encrypted, and Postern cannot encrypt; ${how}`);
  }

  /** Only a member may ask. */
  isEncrypted(talk: Conversation, values: SettingValues, room: string): Promise<boolean> {
    return this.#encrypted.get(keyOf(values, room), async () => {
      const path = `/rooms/${encodeURIComponent(room)}/state/m.room.encryption`;
      const answer = await call(talk, values, "GET", path);
      if (answer.status === 404 && answer.json?.errcode === "M_NOT_FOUND") return false;
      expectTaken(talk, answer);
      if (answer.json === undefined) throw talk.notAnAnswer(answer);
      return true;
    });
  }
}

function keyOf({ base_url: base, token }: SettingValues, room: string): string[] {
  return [String(base), String(token), room];
}
