import { Worker } from "node:worker_threads";
import { StoreRefused, StoreUnavailable } from "../core/errors.ts";
import { operationNames } from "./names.ts";
import type { Answer, Call, ThreadOptions } from "./sqlite/thread.ts";
import type { Operations, Store } from "./store.ts";

/** Calls beyond this many wait for nobody: the storage is far behind, and the sender is better told to come back. */
const mostWaiting = 10_000;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * Opens the embedded store: one file, one writer thread. Calls that come while a group is being committed make up the next
 * group, so that many of them share one sync to disk and the calling thread never waits on it.
 * @throws StoreRefused when the file is not a ledger this program can use.
 */
export async function openSqlite(options: ThreadOptions): Promise<Store> {
  const writer = new Writer(options);
  const calls = operationNames.map((name) => [name, (args: unknown) => writer.call(name, args)]);
  const store = {
    ...Object.fromEntries(calls),
    name: "sqlite",
    isShared: false,
    now: Date.now,
    // Whoever else writes to the file is a command, and what it adds is seen at the next look.
    watch: () => {},
    announce: () => {},
    close: () => writer.close(),
  } as Store;
  try {
    await store.nextDue({});
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

/** The calling thread's side of the writer thread. */
class Writer {
  readonly #options: ThreadOptions;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | undefined;
  #group: Call[] = [];
  #nextId = 1;
  #isBusy = false;
  #isClosed = false;
  /** Called after the next group is answered. */
  #whenSettled: (() => void)[] = [];

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  call(name: keyof Operations, args: unknown): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable("The ledger is closed"));
    if (this.#waiting.size >= mostWaiting) {
      return Promise.reject(new StoreUnavailable(`${mostWaiting} operations are waiting for the ledger already`));
    }
    const id = this.#nextId++;
    this.#group.push({ id, name, args });
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    // Whatever else comes in this turn of the event loop joins the group.
    if (!this.#isBusy && this.#group.length === 1) setImmediate(() => this.#send());
    return promise;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    while (this.#waiting.size > 0) await new Promise<void>((resolve) => this.#whenSettled.push(resolve));
    const thread = this.#thread;
    if (!thread) return;
    const ended = new Promise((resolve) => thread.once("exit", resolve));
    thread.ref();
    thread.postMessage("close");
    await ended;
  }

  #start(): Worker {
    // In development this file is TypeScript, in the package JavaScript; its neighbour has the same ending.
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const thread = new Worker(new URL(`./sqlite/thread.${extension}`, import.meta.url), {
      workerData: this.#options,
      env: {},
    });
    thread.on("message", (answers: readonly Answer[]) => this.#settle(answers));
    thread.on("error", (error) => this.#forget(error));
    thread.unref();
    return thread;
  }

  #send(): void {
    if (this.#isBusy || this.#group.length === 0) return;
    this.#isBusy = true;
    this.#thread ??= this.#start();
    this.#thread.ref();
    this.#thread.postMessage(this.#group);
    this.#group = [];
  }

  #settle(answers: readonly Answer[]): void {
    this.#isBusy = false;
    this.#thread?.unref();
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ("failure" in answer) waiting?.reject(errorOf(answer));
      else waiting?.resolve(answer.value);
    }
    this.#tellSettled();
    this.#send();
  }

  /** The thread died (out of memory, a bug): what it held is unknown, so all are told; the next call starts a new one. */
  #forget(cause: unknown): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#group = [];
    this.#isBusy = false;
    this.#thread = undefined;
    for (const { reject } of waiting) reject(new StoreUnavailable("The ledger's thread ended", { cause }));
    this.#tellSettled();
  }

  #tellSettled(): void {
    for (const tell of this.#whenSettled.splice(0)) tell();
  }
}

function errorOf(answer: Extract<Answer, { failure: string }>): Error {
  if (answer.failure === "unavailable") return new StoreUnavailable(answer.message);
  if (answer.failure === "refused") return new StoreRefused(answer.message);
  return new Error(`The ledger failed: ${answer.message}`);
}
