import { write } from "node:fs";

/** Lines wait in memory up to here; what comes beyond is dropped and counted. */
const mostWaitingBytes = 8_388_608;
/** How long after a full pipe it is tried again. */
const pauseMs = 20;

/**
 * Writes lines to a file descriptor one after the other, without ever making the caller wait: a log on a full disk, or in
 * a pipe that nobody reads, must not stop a gateway.
 */
export class LineWriter {
  readonly #descriptor: number;
  readonly #waiting: Buffer[] = [];
  readonly #flushes: { readonly after: number; readonly resolve: () => void }[] = [];
  #waitingBytes = 0;
  #added = 0;
  #written = 0;
  #dropped = 0;
  #isWriting = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** Takes one line with its newline. */
  write(line: string): void {
    if (this.#dropped > 0 && this.#waitingBytes < mostWaitingBytes / 2) {
      this.#add(`(${this.#dropped} lines were dropped here, because nobody read them)\n`);
      this.#dropped = 0;
    }
    if (this.#waitingBytes + line.length > mostWaitingBytes) this.#dropped += 1;
    else this.#add(line);
  }

  /** Fulfils when all lines taken so far are written. Rejects after `timeoutMs`. */
  flush(timeoutMs: number): Promise<void> {
    if (this.#written === this.#added) return Promise.resolve();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`The log was not written within ${timeoutMs} ms`)), timeoutMs);
    this.#flushes.push({ after: this.#added, resolve });
    return promise.finally(() => clearTimeout(timer));
  }

  #add(line: string): void {
    const bytes = Buffer.from(line);
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#added += 1;
    if (!this.#isWriting) this.#next();
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    this.#isWriting = true;
    const count = this.#waiting.length;
    this.#push(Buffer.concat(this.#waiting.splice(0)), 0, count);
  }

  /** Writes what is left of a group of lines, again after a pause when the pipe is full. */
  #push(bytes: Buffer, from: number, lines: number): void {
    write(this.#descriptor, bytes, from, bytes.length - from, null, (error, count) => {
      if (error?.code === "EAGAIN") return void setTimeout(() => this.#push(bytes, from, lines), pauseMs);
      // A full disk or a closed pipe: these lines are lost, and the work goes on.
      if (!error && from + count < bytes.length) return this.#push(bytes, from + count, lines);
      this.#waitingBytes -= bytes.length;
      this.#written += lines;
      this.#isWriting = false;
      while (this.#flushes[0] && this.#flushes[0].after <= this.#written) this.#flushes.shift()?.resolve();
      this.#next();
    });
  }
}
