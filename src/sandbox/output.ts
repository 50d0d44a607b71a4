import { StringDecoder } from "node:string_decoder";

/** Keeps the first and the last bytes of an endless stream; memory stays near `maxBytes`. */
export class CappedOutput {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #head: Buffer[] = [];
  readonly #tail: Buffer[] = [];
  #inTail = 0;
  #total = 0;

  constructor(maxBytes: number) {
    this.#headBytes = Math.ceil(maxBytes / 2);
    this.#tailBytes = Math.floor(maxBytes / 2);
  }

  push(chunk: Buffer): void {
    const room = Math.max(0, this.#headBytes - this.#total);
    if (room > 0) this.#head.push(chunk.subarray(0, room));
    this.#total += chunk.length;
    this.#pushTail(chunk.subarray(room));
  }

  /**
   * What is left, as text: invalid UTF-8 replaced, and no character torn by the cut. `maxBytes` counts the bytes kept; a
   * line that says how many were cut stands between them.
   */
  result(): { output: string; truncated: boolean } {
    const head = Buffer.concat(this.#head);
    const kept = Buffer.concat(this.#tail);
    const cut = this.#total - this.#headBytes - this.#tailBytes;
    if (cut <= 0) return { output: Buffer.concat([head, kept]).toString(), truncated: false };
    const tail = kept.subarray(kept.length - this.#tailBytes);
    const start = new StringDecoder("utf8").write(head);
    return { output: `${start}\n[${cut} bytes cut]\n${fromCharacterStart(tail).toString()}`, truncated: true };
  }

  #pushTail(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#tail.push(chunk);
    this.#inTail += chunk.length;
    for (let first = this.#tail[0]; first && this.#inTail - first.length >= this.#tailBytes; first = this.#tail[0]) {
      this.#inTail -= first.length;
      this.#tail.shift();
    }
  }
}

/** Drops what the cut left of a character: at most three continuation bytes. */
function fromCharacterStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start);
}

/** A blank, three digits and a line feed: what the supervisor writes after the mark. */
const statusBytes = 5;

/**
 * Reads one command's answer from the supervisor's stream: the command's output, then the mark of this request, then its
 * exit status. The mark is random, so output cannot end the answer by accident; a command that finds the mark out and
 * forges an end only lies about itself.
 */
export class ReplyReader {
  readonly output: CappedOutput;
  readonly #mark: Buffer;
  #held: Buffer = Buffer.alloc(0);

  constructor(mark: string, maxOutputBytes: number) {
    this.#mark = Buffer.from(mark);
    this.output = new CappedOutput(maxOutputBytes);
  }

  /** Takes the next bytes and returns the exit status once it is there. Throws when what follows the mark is no status. */
  read(chunk: Buffer): number | undefined {
    const data = Buffer.concat([this.#held, chunk]);
    const found = data.indexOf(this.#mark);
    // Without a mark the last bytes may be its beginning.
    const plain = found >= 0 ? found : Math.max(0, data.length - this.#mark.length + 1);
    this.output.push(data.subarray(0, plain));
    this.#held = data.subarray(plain);
    const end = this.#mark.length + statusBytes;
    if (found < 0 || this.#held.length < end) return undefined;
    const status = this.#held.toString("latin1", this.#mark.length, end);
    this.#held = Buffer.alloc(0);
    return parseStatus(status);
  }

  /** Counts what was held back as output, for a command that was given up before its end. */
  giveUp(): void {
    this.output.push(this.#held);
    this.#held = Buffer.alloc(0);
  }
}

function parseStatus(text: string): number {
  const status = /^ (\d{3})\n$/.test(text) ? Number(text) : Number.NaN;
  if (!(status <= 255)) throw new Error("the workspace broke: its supervisor sent something that is no exit status");
  return status;
}
