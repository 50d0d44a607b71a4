import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** An answer as it came over the wire. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly closes: boolean;
}

/** What became of one request. */
export interface Outcome {
  /** Answers without the interim ones (1xx). */
  readonly answers: readonly Answer[];
  /** Bytes that are no answer. */
  readonly rest: string;
  /** Neither answered nor closed in time. */
  readonly hung: boolean;
}

/** How a request is written. */
export interface Delivery {
  /** More than one: with a moment between them. */
  readonly pieces: readonly Buffer[];
  /** Well framed: it may share its connection with others, and gets exactly one answer. */
  readonly isClean: boolean;
  /** `answer`: wait for it; `end`: close our side when none comes soon; `reset`: cut the connection once all is written. */
  readonly ending: "answer" | "end" | "reset";
  /** How many answers are waited for. */
  readonly answers: number;
  readonly isHead: boolean;
}

/** How long an answer may take that need not come. */
const patienceMs = 200;

/** The server cuts whoever is slower than 15 s, and looks for such every 2 s. */
const deadlineMs = 25_000;

/** One sender: sends one request after the other, and keeps its connection as long as that is proper. */
export class Lane {
  readonly #port: number;
  #socket: Socket | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  async send(delivery: Delivery): Promise<Outcome> {
    const socket = (delivery.isClean ? this.#socket : undefined) ?? (await this.#connect());
    if (delivery.isClean) this.#socket = undefined;
    const outcome = await exchange(socket, delivery);
    const isReusable = delivery.isClean && outcome.answers.length === 1 && !outcome.answers[0]!.closes && !outcome.hung;
    if (isReusable && !socket.destroyed && socket.readable) this.#socket = socket;
    else socket.destroy();
    return outcome;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #connect(): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const socket = connect(this.#port, "127.0.0.1", () => {
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("error", reject);
    // A connection that the server cuts is what is looked for, in the answers.
    socket.on("error", () => {});
    socket.setNoDelay(true);
    return promise;
  }
}

async function exchange(socket: Socket, delivery: Delivery): Promise<Outcome> {
  const { pieces, isClean, ending, isHead } = delivery;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const answers: Answer[] = [];
  let received = "";
  const take = (chunk: Buffer) => {
    received += chunk.toString("latin1");
    for (;;) {
      const found = readAnswer(received, isHead);
      if (!found) break;
      received = received.slice(found.length);
      if (found.answer.status >= 200) answers.push(found.answer);
    }
    if (answers.length < delivery.answers) return;
    if (isClean) resolve(false);
    // Whatever else the server makes of it comes before it closes.
    else socket.end();
  };
  const gone = () => resolve(false);
  const timer = setTimeout(() => resolve(true), deadlineMs);
  socket.on("data", take).once("close", gone);
  if (socket.destroyed) gone();
  await write(socket, pieces);
  const closing = ending === "end" ? setTimeout(() => socket.end(), patienceMs) : undefined;
  if (ending === "reset") socket.resetAndDestroy();
  const hung = await promise;
  clearTimeout(timer);
  clearTimeout(closing);
  socket.off("data", take).off("close", gone);
  return { answers, rest: received, hung };
}

async function write(socket: Socket, pieces: readonly Buffer[]): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    // A slow sender is part of what is tried.
    if (index > 0) await pause(5);
    if (!socket.writable) return;
    socket.write(piece);
  }
}

function readAnswer(text: string, isHead: boolean): { answer: Answer; length: number } | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const top = text.slice(0, end);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(top)?.[1]);
  if (Number.isNaN(status)) return undefined;
  const length = isHead ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(top)?.[1] ?? 0);
  const start = end + 4;
  if (text.length < start + length) return undefined;
  const closes = /\r\nconnection: close/i.test(top);
  return { answer: { status, text: text.slice(start, start + length), closes }, length: start + length };
}
