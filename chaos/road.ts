import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import type { Random } from "../bench/fuzz-random.ts";
import { bodyServer, listen, stop } from "../test/fakes/http.ts";
import type { Piece } from "./routes.ts";
import { pause } from "./wait.ts";

/** A piece that a service took. Times are Unix milliseconds. */
export interface Copy extends Piece {
  /** Index of the gateway that sent it. */
  readonly gateway: number;
  readonly arrivedAt: number;
  readonly takenAt: number;
  /** `answered`: the answer was written; `lost`: it was lost on purpose; `unheard`: the gateway was gone by then. */
  fate: "answered" | "lost" | "unheard";
  endedAt: number;
}

/** Somebody asked a service what it has. */
export interface Lookup {
  readonly place: string;
  readonly at: number;
}

/** How a service behind a road is reached and what is read from its requests. */
export interface Service {
  readonly address: { readonly port: number } | { readonly socketPath: string };
  /** The place of a request, and its text if it sends one. */
  readonly read: (request: IncomingMessage, body: string) => { readonly place: string; readonly text?: string };
  /** The service's own way to say "later". */
  readonly limited: { readonly status: number; readonly headers: Record<string, string>; readonly body: unknown };
  readonly moods: Moods;
}

/** How often out of a thousand requests each happens; the rest goes well. */
export interface Moods {
  /** The service takes it, and its answer is lost. */
  readonly lost: number;
  /** 502 from before the service, which gets nothing. */
  readonly broken: number;
  readonly limited: number;
  /** Slow, half of the time before the service takes it. */
  readonly slow: number;
}

export const moods = {
  telegram: { lost: 40, broken: 30, limited: 5, slow: 100 },
  github: { lost: 150, broken: 50, limited: 0, slow: 150 },
} as const satisfies Record<string, Moods>;

export interface RoadOptions {
  readonly random: Random;
  /** No answer is lost. */
  readonly isHonest: boolean;
  /** Makes the record wrong on purpose: the third piece is forgotten, or noted twice. */
  sabotage: "forget" | "repeat" | undefined;
  /** What the services took, and what they were asked. */
  readonly copies: Copy[];
  readonly lookups: Lookup[];
}

/** The road from one gateway to a service: it delays, refuses and loses, and writes down what the service took. */
export interface Road {
  readonly port: number;
  close(): Promise<void>;
}

const slowestMs = 900;

/** Listens on a free port of 127.0.0.1, or on a socket file. */
export async function openRoad(service: Service, gateway: number, options: RoadOptions, path?: string): Promise<Road> {
  const server = bodyServer((asked, body, response) => {
    travel({ service, gateway, options, asked, body, response }).catch(() => response.socket?.destroy());
  });
  const port = await listen(server, path);
  return { port, close: () => stop(server) };
}

interface Journey {
  readonly service: Service;
  readonly gateway: number;
  readonly options: RoadOptions;
  readonly asked: IncomingMessage;
  readonly body: string;
  readonly response: ServerResponse;
}

async function travel(journey: Journey): Promise<void> {
  const { service, options, asked, body, response } = journey;
  const { random, isHonest, lookups } = options;
  const arrivedAt = Date.now();
  const mood = pickMood(service.moods, random, isHonest);
  if (mood === "slow-before") await pause(random.below(slowestMs));
  if (mood === "broken")
    return void response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>");
  if (mood === "limited") {
    const { status, headers, body: words } = service.limited;
    return void response.writeHead(status, headers).end(JSON.stringify(words));
  }
  const { place, text } = service.read(asked, body);
  if (text === undefined) lookups.push({ place, at: Date.now() });
  const answer = await handOn(service, asked, body);
  const copy = text !== undefined && answer.status < 300 ? noteCopy(journey, { place, text }, arrivedAt) : undefined;
  if (mood === "slow-after") await pause(random.below(slowestMs));
  end(response, answer, mood === "lost", copy);
}

type Mood = "well" | "lost" | "broken" | "limited" | "slow-before" | "slow-after";

function pickMood({ lost, broken, limited, slow }: Moods, random: Random, isHonest: boolean): Mood {
  const ticket = random.below(1000);
  if (ticket < lost) return isHonest ? "well" : "lost";
  if (ticket < lost + broken) return "broken";
  if (ticket < lost + broken + limited) return "limited";
  if (ticket >= lost + broken + limited + slow) return "well";
  return random.percent(50) ? "slow-before" : "slow-after";
}

function noteCopy({ gateway, options }: Journey, piece: Piece, arrivedAt: number): Copy {
  const takenAt = Date.now();
  const copy: Copy = { ...piece, gateway, arrivedAt, takenAt, fate: "unheard", endedAt: takenAt };
  const isMeant = options.copies.length === 2;
  if (!isMeant || options.sabotage !== "forget") options.copies.push(copy);
  if (isMeant && options.sabotage === "repeat") options.copies.push({ ...copy, fate: "answered" });
  // Once is enough.
  if (isMeant) options.sabotage = undefined;
  return copy;
}

function end(response: ServerResponse, answer: Answer, isLost: boolean, copy: Copy | undefined): void {
  const note = (fate: Copy["fate"]) => {
    if (copy) Object.assign(copy, { fate, endedAt: Date.now() });
  };
  if (response.destroyed || response.socket?.destroyed) note("unheard");
  else if (isLost) {
    note("lost");
    response.socket?.destroy();
  } else {
    response.on("finish", () => note("answered"));
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The service's answer to a request that is handed on as it came. */
async function handOn({ address }: Service, asked: IncomingMessage, body: string): Promise<Answer> {
  const { method, url: path, headers } = asked;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const onward: ClientRequest = request(
    { host: "127.0.0.1", ...address, method, path, headers, agent: false },
    resolve,
  );
  onward.on("error", reject);
  onward.end(body);
  const answered = await promise;
  const chunks: Buffer[] = [];
  for await (const chunk of answered) chunks.push(chunk as Buffer);
  const { "transfer-encoding": _, connection: __, "keep-alive": ___, ...kept } = answered.headers;
  return { status: answered.statusCode ?? 502, headers: kept, body: Buffer.concat(chunks).toString("utf8") };
}
