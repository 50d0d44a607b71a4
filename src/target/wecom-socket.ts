import { randomUUID } from "node:crypto";
import { DeliveryError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { redact } from "../core/text.ts";
import type { Json, JsonObject } from "../core/types.ts";
import type { sleep } from "../lib/sleep.ts";
import { numberOf, objectIn, textOf, unsent } from "./conversation.ts";
import { permanent, quote } from "./failure.ts";
import { fateOf } from "./wecom-codes.ts";

export interface BotAccount {
  /** Of the service's WebSocket. */
  readonly url: string;
  readonly botId: string;
  readonly secret: string;
}

/** Why a connection ended. */
export interface SocketEnd {
  readonly reason: string;
  /** Another connection of the same bot has taken its place: the service lets a bot have one. */
  readonly isKicked: boolean;
}

/** What the service says to a frame: 0 when it took it, not a number when it does not say. */
export interface Ack {
  readonly code: number;
  readonly words: string;
}

const pingEveryMs = 30_000;
const ackMs = 5_000;
const longestFrame = 1_048_576;
const action = "Cannot reach WeCom as an AI bot";

/**
 * One connection of an AI bot (https://developer.work.weixin.qq.com/document/path/101463): frames of JSON, each answered by one
 * with the same `req_id`. It is subscribed and pings every 30 seconds; without an answer to a second ping it is over.
 */
export class BotSocket {
  /** Fulfils when it is over, and never rejects. */
  readonly ended: Promise<SocketEnd>;
  /** Fulfils when a ping was answered: it holds. */
  readonly proven: Promise<void>;
  readonly #account: BotAccount;
  readonly #sleep: typeof sleep;
  readonly #socket: WebSocket;
  readonly #over = new AbortController();
  readonly #pending = new Map<string, (frame: JsonObject) => void>();
  readonly #end: (end: SocketEnd) => void;
  readonly #prove: () => void;

  private constructor(account: BotAccount, wait: typeof sleep) {
    [this.#account, this.#sleep] = [account, wait];
    const end = Promise.withResolvers<SocketEnd>();
    const proof = Promise.withResolvers<void>();
    [this.ended, this.#end] = [end.promise, end.resolve];
    [this.proven, this.#prove] = [proof.promise, proof.resolve];
    this.#socket = new WebSocket(account.url);
    this.#socket.addEventListener("message", ({ data }) => this.#hear(data));
    this.#socket.addEventListener("close", ({ code }) => this.end(`the connection ended with code ${code}`));
  }

  /**
   * Opens and subscribes.
   * @throws DeliveryError: nothing was sent.
   */
  static async open(account: BotAccount, wait: typeof sleep, timeoutMs: number): Promise<BotSocket> {
    const socket = new BotSocket(account, wait);
    const opened = Promise.withResolvers<boolean>();
    socket.#socket.addEventListener("open", () => opened.resolve(true));
    const outcome = Promise.race([opened.promise, socket.ended]);
    const isOpen = await within(outcome, timeoutMs, socket.#over.signal, wait);
    try {
      if (isOpen?.value !== true) throw new DeliveryError(`${action}: no connection could be opened`, { sent: "no" });
      await socket.#subscribe();
    } catch (error) {
      socket.end("it could not be opened");
      throw unsent(error);
    }
    void socket.#stayAlive();
    return socket;
  }

  get isOpen(): boolean {
    return !this.#over.signal.aborted && this.#socket.readyState === WebSocket.OPEN;
  }

  /**
   * Sends a frame and waits for what the service says to it, at most 5 seconds.
   * @throws DeliveryError when it says nothing: the frame may have arrived if the connection was open.
   */
  async ask(cmd: string, body: object | undefined, timeoutMs: number, signal: AbortSignal): Promise<Ack> {
    if (!this.isOpen || signal.aborted) throw new DeliveryError(`${action}: the connection ended`, { sent: "no" });
    const id = randomUUID();
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    this.#pending.set(id, resolve);
    this.#socket.send(JSON.stringify({ cmd, headers: { req_id: id }, ...(body === undefined ? {} : { body }) }));
    const outcome = Promise.race([promise, this.ended.then(({ reason }) => reason)]);
    const answer = await within(outcome, Math.min(timeoutMs, ackMs), signal, this.#sleep);
    this.#pending.delete(id);
    if (answer !== undefined && typeof answer.value !== "string") return this.#ackOf(answer.value);
    // Nothing may come through any more.
    if (answer === undefined && cmd !== "ping" && !signal.aborted) void this.#lookAlive();
    const why =
      answer?.value ?? (signal.aborted ? "the gateway stops" : `no answer within ${Math.min(timeoutMs, ackMs)} ms`);
    const what = cmd === "aibot_send_msg" ? "Cannot send to WeCom for certain" : action;
    throw new DeliveryError(`${what}: ${why}`, { sent: "maybe" });
  }

  /** Ends it. Does nothing when it is over. */
  end(reason: string, isKicked = false): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#end({ reason, isKicked });
    this.#socket.close();
  }

  async #subscribe(): Promise<void> {
    const { botId, secret } = this.#account;
    const body = { bot_id: botId, secret };
    const ack = await this.ask("aibot_subscribe", body, ackMs, this.#over.signal);
    if (ack.code !== 0) throw refusalOf(action, ack);
  }

  async #stayAlive(): Promise<void> {
    for (;;) {
      await this.#sleep(pingEveryMs, this.#over.signal);
      if (this.#over.signal.aborted) return;
      await this.#lookAlive();
    }
  }

  /** Asks for a sign of life, twice when none comes, and ends the connection when there is none. */
  async #lookAlive(): Promise<void> {
    for (let tries = 0; tries < 2; tries += 1) {
      if (!this.isOpen) return;
      const isAnswered = await this.ask("ping", undefined, ackMs, this.#over.signal).then(
        () => true,
        () => false,
      );
      if (isAnswered) return this.#prove();
    }
    this.end("pings were not answered");
  }

  #ackOf(frame: JsonObject): Ack {
    const code = numberOf(frame.errcode) ?? Number.NaN;
    return { code, words: redact(textOf(frame.errmsg) ?? "", [this.#account.secret]) };
  }

  #hear(data: unknown): void {
    const frame = typeof data === "string" && data.length <= longestFrame ? objectIn(data) : undefined;
    if (frame === undefined) this.end("what came is not one of WeCom's frames");
    else if (isKick(frame)) this.end("another connection of the same bot has taken its place", true);
    else this.#pending.get(textOf(objectOf(frame.headers)?.req_id) ?? "")?.(frame);
  }
}

/** What a code other than 0 means for whoever wanted something. */
export function refusalOf(action: string, { code, words }: Ack): DeliveryError {
  if (Number.isNaN(code)) return new DeliveryError(`${action} for certain: the answer has no code`, { sent: "maybe" });
  const fate = fateOf(code);
  const said = `${action}: it answered ${code} ${quote(words)}`;
  if (fate.as === "later") return new DeliveryError(said, { sent: "no", retryAfterMs: fate.waitMs });
  return permanent(fate.advice === undefined ? said : `${said}; ${fate.advice}`);
}

/** What a promise fulfils with, or `undefined` after a time or when the signal is aborted. */
export async function within<Value>(
  promise: Promise<Value>,
  ms: number,
  signal: AbortSignal,
  wait: typeof sleep,
): Promise<{ readonly value: Value } | undefined> {
  const done = new AbortController();
  const late = wait(ms, AbortSignal.any([signal, done.signal])).then(() => undefined);
  try {
    return await Promise.race([promise.then((value) => ({ value })), late]);
  } finally {
    done.abort();
  }
}

function isKick({ cmd, body }: JsonObject): boolean {
  const event = objectOf(objectOf(body)?.event);
  return cmd === "aibot_event_callback" && event?.eventtype === "disconnected_event";
}

function objectOf(value: Json | undefined): JsonObject | undefined {
  return value !== undefined && isObject(value) ? (value as JsonObject) : undefined;
}
