import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { objectIn } from "./http.ts";
import { type Fake, type Mode, takes, tenMegabytes } from "./mode.ts";
import type { Taken } from "./service.ts";
import { type FakeSockets, type Peer, startSockets } from "./websocket.ts";
import { seen } from "./wecom.ts";

export interface BotMessage extends Taken {
  readonly chatid: string;
  readonly chatType: number | undefined;
}

export interface FakeBotService extends Fake<BotMessage> {
  readonly url: string;
  readonly bot: { readonly bot_id: string; readonly bot_secret: string };
  readonly sockets: FakeSockets;
  readonly mismatches: readonly string[];
  /** Subscriptions and pings that were heard so far. */
  readonly subscribed: () => number;
  readonly pings: () => number;
  /** Set, frames of these kinds are not answered any more; what they ask for is done all the same. */
  readonly silent: Set<string>;
  /** The next messages are answered with these codes, each used once, and not taken. */
  readonly codes: number[];
  /** Set, messages are answered by frames that say nothing. */
  bareAcks: boolean;
  /** Sends the subscribed connection what users write. */
  push(frame: object): void;
  /** As the service does it when another connection of the bot subscribes. */
  kick(): void;
}

interface Frame {
  readonly cmd?: string;
  readonly headers?: { readonly req_id?: string };
  readonly body?: Readonly<Record<string, unknown>>;
}

const schemaFile = new URL("../vectors/apis/wecom-aibot-ws.schema.json", import.meta.url);
const isFrame = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(schemaFile, "utf8")));
const bot = { bot_id: "fake-bot", bot_secret: "fake-secret-of-the-bot" };
const longest = 4000;

/** The service of AI bots, for one bot: its second connection ends the first. */
export async function startFakeBotService(): Promise<FakeBotService> {
  const messages: BotMessage[] = [];
  const upcoming: Mode[] = [];
  const mismatches: string[] = [];
  const silent = new Set<string>();
  const codes: number[] = [];
  const count = { subscribed: 0, pings: 0 };
  let current: Peer | undefined;
  const sockets = await startSockets((peer, text) => {
    const frame = (objectIn(text) ?? {}) as Frame;
    if (!isFrame(frame)) mismatches.push(`${text}: ${JSON.stringify(isFrame.errors)}`);
    if (frame.cmd === "aibot_subscribe") subscribe(peer, frame);
    else if (frame.cmd === "ping") answerPing(peer, frame);
    else if (frame.cmd === "aibot_send_msg") take(peer, frame);
  });

  function subscribe(peer: Peer, frame: Frame): void {
    count.subscribed += 1;
    const isKnown = frame.body?.bot_id === bot.bot_id && frame.body.secret === bot.bot_secret;
    if (isKnown && current !== undefined && current !== peer) fake.kick();
    if (isKnown) current = peer;
    if (!silent.has("aibot_subscribe"))
      answer(peer, frame, isKnown ? 0 : 40013, isKnown ? "ok" : "invalid bot_id or secret");
  }

  function answerPing(peer: Peer, frame: Frame): void {
    count.pings += 1;
    if (!silent.has("ping")) answer(peer, frame, 0, "ok");
  }

  function take(peer: Peer, frame: Frame): void {
    fake.tries += 1;
    const wrong = peer === current ? faultOf(frame) : 846609;
    const code = codes.shift() ?? wrong;
    if (code !== 0) answer(peer, frame, code, "refused");
    else decide(peer, frame, upcoming.shift() ?? fake.mode);
  }

  function decide(peer: Peer, frame: Frame, mode: Mode): void {
    if (takes(mode)) messages.push(messageIn(frame));
    if (fake.bareAcks) peer.send(JSON.stringify({ headers: frame.headers }));
    else if (!silent.has("aibot_send_msg")) answerAs(mode, peer, frame);
  }

  const fake: FakeBotService & { mode: Mode; tries: number } = {
    ...{ url: sockets.url, bot, sockets, messages, upcoming, mismatches, silent, codes },
    ...{ mode: "ok", tries: 0, bareAcks: false },
    subscribed: () => count.subscribed,
    pings: () => count.pings,
    push: (frame) => current?.send(JSON.stringify(frame)),
    kick: () => {
      const body = { msgtype: "event", event: { eventtype: "disconnected_event" } };
      fake.push({ cmd: "aibot_event_callback", headers: { req_id: "event" }, body });
      current = undefined;
    },
    close: () => sockets.close(),
  };
  return fake;
}

function answer(peer: Peer, { headers }: Frame, errcode: number, errmsg: string): void {
  peer.send(JSON.stringify({ headers, errcode, errmsg }));
}

function faultOf({ body = {} }: Frame): number {
  if (body.chatid !== "fakechat" && body.chatid !== "ana") return 93006;
  return contentIn(body).length > longest ? 45002 : 0;
}

function contentIn({ markdown }: Readonly<Record<string, unknown>>): string {
  return String((markdown as { content?: unknown } | undefined)?.content);
}

function messageIn({ body = {} }: Frame): BotMessage {
  const raw = contentIn(body);
  return { raw, text: seen(raw), chatid: String(body.chatid), chatType: body.chat_type as number | undefined };
}

function answerAs(mode: Mode, peer: Peer, frame: Frame): void {
  if (mode === "hang") return;
  if (mode === "lost") peer.cut();
  else if (mode === "refused") answer(peer, frame, 93006, "invalid chatid");
  else if (mode === "limited") answer(peer, frame, 45009, "api freq out of limit");
  else if (mode === "broken" || mode === "redirect") answer(peer, frame, -1, "system busy");
  else if (mode === "reset") breakOff(peer);
  else if (mode === "garbage") peer.send("<html><body><h1>Hello from the proxy</h1></body></html>");
  else if (mode === "huge") peer.send(tenMegabytes);
  else answer(peer, frame, 0, "ok");
}

/** The beginning of a text frame of 50 bytes. */
function breakOff(peer: Peer): void {
  peer.write(Buffer.from([0x81, 50, 0x7b, 0x22]));
  peer.close(1001);
}
