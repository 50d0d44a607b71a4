import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";

export const secret = "a secret for the bench";
export const body = readFileSync(new URL("../samples/github/pull_request.opened.json", import.meta.url));

/** What one stretch of load gave. */
export interface Load {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly statuses: Readonly<Record<string, number>>;
}

export interface Target {
  /** The connections are spread over them. */
  readonly ports: readonly number[];
  readonly path: string;
  readonly connections: number;
  readonly seconds: number;
}

/** What came of requests so far. */
export class Samples {
  readonly #latencies: number[] = [];
  readonly #statuses: Record<string, number> = {};
  #seconds = 0;

  get count(): number {
    return this.#latencies.length;
  }

  note(status: string, ms: number): void {
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
    this.#latencies.push(ms);
  }

  /** Adds to the time that all of them together took. */
  took(seconds: number): void {
    this.#seconds += seconds;
  }

  summary(): Load {
    const sorted = this.#latencies.toSorted((a, b) => a - b);
    const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
    const requestsPerSecond = Math.round(sorted.length / this.#seconds);
    return { requestsPerSecond, p50Ms: at(0.5), p99Ms: at(0.99), statuses: this.#statuses };
  }
}

/**
 * Posts the signed sample again and again, each time under a fresh delivery id, one request at a time per connection. Raw
 * sockets and ready-made bytes: the generator shares the machine with what it measures, so it should cost little.
 */
export async function post(target: Target, samples = new Samples()): Promise<Load> {
  const endAt = performance.now() + target.seconds * 1000;
  const note = (status: string, ms: number) => samples.note(status, ms);
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: target.connections }, (_, index) => client(target, index, endAt, note)));
  samples.took((performance.now() - startedAt) / 1000);
  return samples.summary();
}

function client(
  target: Target,
  index: number,
  endAt: number,
  note: (status: string, ms: number) => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const socket = connect(target.ports[index % target.ports.length]!, "127.0.0.1");
  const prefix = `${process.pid}-${process.hrtime.bigint()}-${index}`;
  let sentAt = 0;
  let count = 0;
  const send = () => {
    sentAt = performance.now();
    const head =
      `POST ${target.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\nx-github-event: pull_request\r\nx-github-delivery: ${prefix}-${count++}\r\n` +
      `x-hub-signature-256: sha256=${signature}\r\n\r\n`;
    socket.cork();
    socket.write(head);
    socket.write(body);
    socket.uncork();
  };
  let text = "";
  socket.setNoDelay(true);
  socket.on("connect", send);
  socket.on("error", reject);
  socket.on("close", () => resolve());
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    const [, status, length] = /^HTTP\/1\.1 (\d+)[\s\S]*?content-length: (\d+)/i.exec(text) ?? [];
    const headEnd = text.indexOf("\r\n\r\n");
    if (status === undefined || headEnd < 0 || text.length < headEnd + 4 + Number(length)) return;
    text = "";
    note(status, performance.now() - sentAt);
    if (performance.now() < endAt) send();
    else socket.end();
  });
  return promise;
}
