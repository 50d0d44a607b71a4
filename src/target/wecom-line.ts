import { DeliveryError } from "../core/errors.ts";
import { Trouble } from "../core/trouble.ts";
import type { sleep } from "../lib/sleep.ts";
import type { TargetTools } from "./target.ts";
import { type BotAccount, BotSocket, type SocketEnd, within } from "./wecom-socket.ts";

export interface LineOptions {
  readonly sleep: typeof sleep;
  readonly random: () => number;
}

const openMs = 10_000;
/** How long the next part of a message may take to come. */
const lingerMs = 5_000;
const reopen = { firstMs: 1_000, longestMs: 60_000 };
/** The longest wait a timer has. */
const forever = 2_147_483_647;

/**
 * The one connection that an AI bot may have, shared by all who need it in this process. It is open while somebody keeps it
 * or uses it.
 */
export class BotLine {
  readonly #account: BotAccount;
  readonly #options: LineOptions;
  #socket: BotSocket | undefined;
  #opening: Promise<BotSocket> | undefined;
  #opened = Promise.withResolvers<void>();
  #holders = 0;
  #lingering: AbortController | undefined;

  constructor(account: BotAccount, options: LineOptions) {
    [this.#account, this.#options] = [account, options];
  }

  get isOpen(): boolean {
    return this.#socket?.isOpen === true;
  }

  /**
   * Gives `use` the open connection; opens it when there is none. With `lingers` it stays open for a moment longer.
   * @throws DeliveryError
   */
  async use<Value>(
    { signal, timeoutMs, lingers }: { signal: AbortSignal; timeoutMs: number; lingers: boolean },
    use: (socket: BotSocket) => Promise<Value>,
  ): Promise<Value> {
    this.#holders += 1;
    this.#lingering?.abort();
    try {
      const socket = await this.#get(timeoutMs, signal);
      if (lingers) this.#linger();
      return await use(socket);
    } finally {
      this.#release();
    }
  }

  /**
   * Keeps it open until the signal is aborted. A connection that is cut is opened again, sooner or later as it goes on. One
   * that had to give way to another is not: whoever has that one would have to give way in turn. Then it is kept again from
   * the next message on that needs it.
   * @throws DeliveryError when the service refuses the bot for good.
   */
  async keep({ signal, log }: Pick<TargetTools, "signal" | "log">): Promise<void> {
    const trouble = new Trouble({ ...reopen, random: this.#options.random });
    const told = { isKicked: false };
    this.#holders += 1;
    try {
      while (!signal.aborted) {
        const end = await this.#hold(signal, log, trouble);
        if (signal.aborted || end === undefined) continue;
        if (end.isKicked) await this.#stayAway(signal, log, told);
        else await this.#pause(end.reason, signal, log, trouble);
      }
    } finally {
      this.#release();
    }
  }

  /** Opens it, and waits for its end. */
  async #hold(signal: AbortSignal, log: TargetTools["log"], trouble: Trouble): Promise<SocketEnd | undefined> {
    try {
      const socket = await this.#get(openMs * 2, signal);
      void socket.proven.then(() => {
        if (trouble.over()) log.info({ target: "wecom" }, "The AI bot is connected again");
      });
      return (await within(socket.ended, forever, signal, this.#options.sleep))?.value;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof DeliveryError) || error.retryAfterMs === "never") throw error;
      return { reason: error.message, isKicked: false };
    }
  }

  async #pause(reason: string, signal: AbortSignal, log: TargetTools["log"], trouble: Trouble): Promise<void> {
    const { pauseMs: retryInMs, isNews } = trouble.failed(reason);
    const fields = { target: "wecom", reason, retryInMs };
    if (isNews) log.warn(fields, "The AI bot is not connected; its connection is opened again");
    else log.debug(fields, "The AI bot is still not connected");
    await this.#options.sleep(retryInMs, signal);
  }

  async #stayAway(signal: AbortSignal, log: TargetTools["log"], told: { isKicked: boolean }): Promise<void> {
    const what = "Another connection of the AI bot has taken its place; this one is opened by the next message";
    if (told.isKicked) log.debug({ target: "wecom" }, what);
    else log.warn({ target: "wecom" }, what);
    told.isKicked = true;
    if (!this.isOpen) await within(this.#opened.promise, forever, signal, this.#options.sleep);
  }

  async #get(timeoutMs: number, signal: AbortSignal): Promise<BotSocket> {
    if (this.#socket?.isOpen) return this.#socket;
    this.#opening ??= this.#open();
    const opened = await within(this.#opening, timeoutMs, signal, this.#options.sleep);
    if (opened !== undefined) return opened.value;
    const why = signal.aborted ? "the gateway stops" : `no connection within ${timeoutMs} ms`;
    throw new DeliveryError(`Cannot reach WeCom as an AI bot: ${why}`, { sent: "no" });
  }

  async #open(): Promise<BotSocket> {
    try {
      this.#socket = await BotSocket.open(this.#account, this.#options.sleep, openMs);
      this.#opened.resolve();
      this.#opened = Promise.withResolvers<void>();
      // Whoever wanted it may have given up.
      this.#closeUnheld();
      return this.#socket;
    } finally {
      this.#opening = undefined;
    }
  }

  #linger(): void {
    const end = new AbortController();
    this.#lingering = end;
    this.#holders += 1;
    void this.#options.sleep(lingerMs, end.signal).then(() => this.#release());
  }

  #release(): void {
    this.#holders -= 1;
    this.#closeUnheld();
  }

  #closeUnheld(): void {
    if (this.#holders === 0) this.#socket?.end("nobody needs it any more");
  }
}
