import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { until } from "./wait.ts";

/** An answer as it came over the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** One connection, with what came over it. */
export interface Wire {
  readonly socket: Socket;
  write(...pieces: (string | Buffer)[]): void;
  /** The next answer; interim ones (1xx) count. */
  answer(): Promise<WireAnswer>;
  /** What came and was not taken as an answer yet. */
  rest(): string;
  /** Fulfils when the other side has closed the connection. */
  readonly closed: Promise<void>;
  isClosed(): boolean;
}

export interface WireOptions {
  readonly host?: string;
  /** A sender that leaves its side open when the other closes. */
  readonly stubborn?: boolean;
}

/** Connects; the connection is cut when the test ends. */
export async function openWire(t: TestContext, port: number, options: WireOptions = {}): Promise<Wire> {
  const socket = connect({ port, host: options.host ?? "127.0.0.1", allowHalfOpen: options.stubborn ?? false });
  t.after(() => socket.destroy());
  const closed = Promise.withResolvers<void>();
  let isClosed = false;
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  for (const event of ["end", "close"]) {
    socket.on(event, () => {
      isClosed = true;
      closed.resolve();
    });
  }
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const take = (): WireAnswer | undefined => {
    const [answer, length] = readAnswer(received) ?? [];
    if (answer) received = received.slice(length);
    else if (isClosed) throw new Error(`The connection was closed without an answer: ${JSON.stringify(received)}`);
    return answer;
  };
  return {
    socket,
    closed: closed.promise,
    isClosed: () => isClosed,
    write(...pieces) {
      for (const piece of pieces) socket.write(piece);
    },
    answer: () => until("an answer", take),
    rest: () => received,
  };
}

function readAnswer(text: string): [answer: WireAnswer, length: number] | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
  const headers = Object.fromEntries(
    lines.map((line) => [line.split(":")[0]!.toLowerCase(), line.replace(/^[^:]*: */, "")]),
  );
  const length = Number(headers["content-length"] ?? 0);
  const start = end + 4;
  if (text.length < start + length) return undefined;
  return [
    { status, headers, text: Buffer.from(text.slice(start, start + length), "latin1").toString() },
    start + length,
  ];
}

/** The head of a request, line by line. */
export function head(line: string, headers: Readonly<Record<string, string | readonly string[]>> = {}): string {
  const fields = Object.entries({ host: "localhost", ...headers }).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  );
  return `${[`${line} HTTP/1.1`, ...fields].join("\r\n")}\r\n\r\n`;
}
