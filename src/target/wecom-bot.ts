import { DeliveryError } from "../core/errors.ts";
import { permanent } from "./failure.ts";
import type { Part, Receipt, SettingValues, TargetTools } from "./target.ts";
import { BotLine, type LineOptions } from "./wecom-line.ts";
import { refusalOf } from "./wecom-socket.ts";
import { botContentOf } from "./wecom-text.ts";

/** One line for each bot that the settings have named. */
export class BotLines {
  readonly #options: LineOptions;
  readonly #lines = new Map<string, BotLine>();

  constructor(options: LineOptions) {
    this.#options = options;
  }

  /** @throws DeliveryError when the setting "websocket_url" is not one to be used. */
  of(values: SettingValues): BotLine {
    const account = { url: urlOf(values), botId: String(values.bot_id), secret: String(values.bot_secret) };
    const key = JSON.stringify(account);
    const line = this.#lines.get(key) ?? new BotLine(account, this.#options);
    this.#lines.set(key, line);
    return line;
  }
}

/** The secret goes over it: only to this very machine without TLS. */
function urlOf({ websocket_url: setting }: SettingValues): string {
  const url = URL.parse(String(setting));
  const isLoopback = /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(url?.hostname ?? "");
  const isSafe = url?.protocol === "wss:" || (url?.protocol === "ws:" && isLoopback);
  if (url !== null && isSafe && !url.username && !url.password && !url.hash) return url.href;
  throw permanent('Cannot reach WeCom as an AI bot: "websocket_url" must be an address that begins with wss://');
}

const notSubscribed = 846609;

/** Sends as an AI bot. Without an answer nobody knows whether it arrived. */
export async function sendByBot(
  line: BotLine,
  part: Part,
  { signal }: TargetTools,
  timeoutMs: number,
): Promise<Receipt> {
  const endsAt = performance.now() + timeoutMs;
  const body = {
    ...chatOf(String(part.address.chat_id)),
    msgtype: "markdown",
    markdown: { content: botContentOf(part) },
  };
  const lingers = part.index < part.count - 1;
  for (let tries = 1; ; tries += 1) {
    const leftMs = Math.ceil(endsAt - performance.now());
    if (leftMs <= 0) throw new DeliveryError("Cannot send to WeCom: the time is up", { sent: "no" });
    const ack = await line.use({ signal, timeoutMs: leftMs, lingers }, async (socket) => {
      const answer = await socket.ask("aibot_send_msg", body, Math.ceil(endsAt - performance.now()), signal);
      // The service has forgotten it, and answers its pings all the same (field reports).
      if (answer.code === notSubscribed) socket.end("it was not subscribed any more");
      return answer;
    });
    if (ack.code === 0) return { reference: "sent by the AI bot, which gives no id" };
    if (ack.code !== notSubscribed || tries > 1) throw refusalOf("Cannot send to WeCom", ack);
  }
}

/** Without a kind the service looks for a group first, then for a person. */
function chatOf(chatId: string): { chatid: string; chat_type?: number } {
  const [, kind, chatid = ""] = /^(?:(\w+):)?(.*)$/.exec(chatId) ?? [];
  if (kind === "party" || kind === "tag" || chatid.includes("|")) {
    throw permanent("Cannot send to WeCom: an AI bot writes to one person or one chat; name one");
  }
  if (kind === undefined) return { chatid };
  return { chatid, chat_type: kind === "user" ? 1 : 2 };
}
