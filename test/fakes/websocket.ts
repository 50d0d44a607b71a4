import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { listen, stop } from "./http.ts";

/** The server's end of one WebSocket. */
export interface Peer {
  send(text: string): void;
  /** Bytes as they are, for frames that are broken. */
  write(bytes: Buffer): void;
  /** Ends the connection without a word. */
  cut(): void;
  /** Ends it in order, with a code. */
  close(code: number): void;
}

export interface FakeSockets {
  /** `ws://127.0.0.1:port` */
  readonly url: string;
  /** Those that are open, oldest first. */
  readonly peers: readonly Peer[];
  /** How many were ever opened. */
  readonly opened: number;
  /** What becomes of the next ones: they open, are refused with status 502, or are never answered. */
  door: "open" | "refuse" | "hang";
  /** Stops at once, whoever is still connected. */
  close(): Promise<void>;
}

/** Called with each text that a client sends. */
export type Hear = (peer: Peer, text: string) => void;

const opcodes = { continuation: 0x0, text: 0x1, close: 0x8, ping: 0x9, pong: 0xa } as const;

/** A WebSocket server (RFC 6455) on a free port of 127.0.0.1, without extensions. */
export async function startSockets(hear: Hear): Promise<FakeSockets> {
  const peers: Peer[] = [];
  const raw = new Set<Duplex>();
  const server = createServer((_, response) => response.writeHead(426).end());
  server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
    raw.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => raw.delete(socket));
    if (fake.door === "hang") return;
    if (fake.door === "refuse") return void socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
    fake.opened += 1;
    accept(request, socket, peers, hear);
  });
  const port = await listen(server);
  const fake = {
    ...{ url: `ws://127.0.0.1:${port}`, peers, opened: 0, door: "open" as FakeSockets["door"] },
    close: async () => {
      for (const socket of raw) socket.destroy();
      await stop(server);
    },
  };
  return fake;
}

/** Section 4.2.2: what a key is answered with. */
const salt = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

function accept(request: IncomingMessage, socket: Duplex, peers: Peer[], hear: Hear): void {
  const proof = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${salt}`).digest("base64");
  const head = ["HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: Upgrade"];
  socket.write([...head, `sec-websocket-accept: ${proof}`, "", ""].join("\r\n"));
  const peer: Peer = {
    send: (text) => void socket.write(frame(opcodes.text, Buffer.from(text))),
    write: (bytes) => void socket.write(bytes),
    cut: () => void socket.destroy(),
    close: (code) => void socket.end(frame(opcodes.close, Buffer.from([code >> 8, code & 0xff]))),
  };
  peers.push(peer);
  socket.on("close", () => {
    if (peers.includes(peer)) peers.splice(peers.indexOf(peer), 1);
  });
  readFrames(socket, (opcode, payload) => {
    if (opcode === opcodes.text) hear(peer, payload.toString());
    else if (opcode === opcodes.ping) socket.write(frame(opcodes.pong, payload));
    else if (opcode === opcodes.close) socket.end(frame(opcodes.close, payload));
  });
}

/** A whole frame of the server's, which is not masked. */
export function frame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

/** Clients mask what they send, and may send a message in several frames. */
function readFrames(socket: Duplex, take: (opcode: number, payload: Buffer) => void): void {
  let buffer = Buffer.alloc(0);
  let message = Buffer.alloc(0);
  let opcode: number = opcodes.text;
  socket.on("data", (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk]);
    for (let one = nextFrame(buffer); one !== undefined; one = nextFrame(buffer)) {
      buffer = buffer.subarray(one.size);
      if (one.opcode !== opcodes.continuation) [opcode, message] = [one.opcode, Buffer.alloc(0)];
      message = Buffer.concat([message, one.payload]);
      if (one.isLast) take(opcode, message);
    }
  });
}

function nextFrame(bytes: Buffer) {
  if (bytes.length < 2) return undefined;
  const short = bytes[1]! & 0x7f;
  const at = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < at + 4) return undefined;
  const length = at === 4 ? bytes.readUInt16BE(2) : at === 10 ? Number(bytes.readBigUInt64BE(2)) : short;
  const size = at + 4 + length;
  if (bytes.length < size) return undefined;
  const mask = bytes.subarray(at, at + 4);
  const payload = Buffer.from(bytes.subarray(at + 4, size).map((byte, index) => byte ^ mask[index % 4]!));
  return { size, payload, opcode: bytes[0]! & 0x0f, isLast: (bytes[0]! & 0x80) !== 0 };
}
