import { sleep as realSleep } from "../lib/sleep.ts";
import { AccessTokens } from "./access-token.ts";
import { Conversation } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import type { Address, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { checkApp, sendByApp, sendByRobot } from "./wecom-api.ts";
import { BotLines, sendByBot } from "./wecom-bot.ts";
import type { LineOptions } from "./wecom-line.ts";
import { longestOf } from "./wecom-text.ts";

const settings: Target["settings"] = {
  webhook_url: {
    kind: "secret_url",
    help: "Address of a group robot, which posts to its one chat",
    env: ["WECOM_WEBHOOK_URL"],
  },
  corp_id: { kind: "string", help: "Id of the company, for an app", env: ["WECOM_CALLBACK_CORP_ID"] },
  secret: {
    kind: "secret",
    help: "Secret of the app",
    env: ["WECOM_CALLBACK_CORP_SECRET", "WECOM_CALLBACK_SECRET"],
    alternatives: ["corp_secret"],
  },
  agent_id: {
    kind: "integer",
    help: "Number of the app",
    env: ["WECOM_CALLBACK_AGENT_ID"],
    alternatives: ["corp_agent_id"],
  },
  bot_id: { kind: "string", help: "Id of an AI bot, which goes before an app", env: ["WECOM_BOT_ID"] },
  bot_secret: { kind: "secret", help: "Secret of the AI bot's long connection", env: ["WECOM_SECRET"] },
  websocket_url: {
    kind: "string",
    help: "Address of the AI bot's long connection",
    env: ["WECOM_WEBSOCKET_URL"],
    default: "wss://openws.work.weixin.qq.com",
  },
  home_channel: homeChannel("WECOM_HOME_CHANNEL", "Person, department, tag or chat"),
  base_url: baseUrl("WECOM", "Address of the API", "https://qyapi.weixin.qq.com"),
};

const address: Target["address"] = {
  chat_id: {
    help: 'people "ana|bo"; of an app also "party:1|2", "tag:3" or "chat:<id>"; of an AI bot one person "user:ana" or "chat:<id>"',
    // No "@all": who is to reach everybody names their department.
    pattern:
      /(?:(?:user|party|tag|chat):)?[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}(?:\|[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}){0,99}/,
    homeChannel: true,
    unlessSet: "webhook_url",
  },
  format,
};

/** Options for tests. */
export type WecomOptions = TargetOptions & Partial<LineOptions>;

/**
 * WeCom (enterprise WeChat) in three ways: a group robot, an app, and an AI bot over its WebSocket. A message without a
 * `chat_id` goes by the robot; any other by the AI bot when there is one, else by the app, else by the robot too.
 *
 * An AI bot may have one connection, and the service ends the older one when another is opened. One gateway keeps it
 * open (`attend`); another one, or the command line, that has to send opens its own and so ends that one, which is
 * opened again by the next message there. Of a message that is under way at that moment nobody knows whether it was taken.
 * Several gateways that send much do better with an app.
 *
 * Nothing tells a message that is sent twice: the service's own check drops equal texts, whether they are one message or two.
 */
export function createWecom(options: WecomOptions = {}): Target {
  const { timeoutMs = 30_000, sleep = realSleep, random = Math.random } = options;
  const tokens = new AccessTokens(options.now);
  const lines = new BotLines({ sleep, random });
  return {
    name: "wecom",
    neutralName: "chat_target_11",
    isPlatform: true,
    settings,
    ways: [["webhook_url"], ["corp_id", "secret", "agent_id"], ["bot_id", "bot_secret"]],
    address,
    // The least of all ways: text of a robot, text and Markdown of an app. What is longer would be cut off in silence.
    limit: { unit: "bytes", max: 2048, parts: 10, numberedFrom: 3, rendered: longestOf },
    markup: "WeCom's subset of Markdown",
    retried: "45009 and 45033 after a minute, -1, and an AI bot that is cut off",
    repeats: "doubled",
    // A robot's; an app and an AI bot may write to one person or chat 30 times a minute.
    pace: { perPlace: { field: "chat_id", count: 20, everyMs: 60_000 } },
    ownServer: "base_url",
    send: async (part, values, tools) => {
      const way = wayOf(values, part.address);
      if (way === "bot") return sendByBot(lines.of(values), part, tools, timeoutMs);
      const talk = conversation("Cannot send to WeCom", way, values, tools, timeoutMs);
      return way === "robot" ? sendByRobot(talk, part, values) : sendByApp({ talk, values, tokens }, part, tools.log);
    },
    check: async (values, tools) => {
      const said: string[] = [];
      if (values.webhook_url !== undefined) said.push("A robot cannot be tried without posting");
      if (hasBot(values)) said.push(lines.of(values).isOpen ? "The AI bot is connected" : untried);
      if (!hasApp(values)) return said;
      const talk = conversation("Cannot use WeCom", "app", values, tools, timeoutMs);
      return [...said, ...(await checkApp({ talk, values, tokens }))];
    },
    attend: async (values, tools) => {
      if (hasBot(values)) await lines.of(values).keep(tools);
      // A robot and an app have nothing to be kept open.
      else await aborted(tools.signal);
    },
  };
}

/** The target of the registry. */
export const wecom: Target = createWecom();

const untried =
  "An AI bot cannot be tried without ending the connection that a gateway may have; a gateway that cannot open it logs why";

function hasBot({ bot_id: id, bot_secret: secret }: SettingValues): boolean {
  return id !== undefined && secret !== undefined;
}

function hasApp({ corp_id: corp, secret, agent_id: agent }: SettingValues): boolean {
  return corp !== undefined && secret !== undefined && agent !== undefined;
}

function wayOf(values: SettingValues, { chat_id: chat }: Address): "robot" | "app" | "bot" {
  if (chat === undefined) return "robot";
  if (hasBot(values)) return "bot";
  return hasApp(values) ? "app" : "robot";
}

function conversation(
  action: string,
  way: "robot" | "app",
  { webhook_url: hook, secret }: SettingValues,
  { signal }: TargetTools,
  timeoutMs: number,
): Conversation {
  const key = hook === undefined ? undefined : URL.parse(String(hook))?.searchParams.get("key");
  const hidden = [hook, key, secret].filter((one) => one !== undefined && one !== null).map(String);
  const secrets = hidden.flatMap((one) => [one, encodeURIComponent(one)]);
  const addressSetting = way === "robot" ? "webhook_url" : "base_url";
  return new Conversation({ service: "WeCom", action, secrets, timeoutMs, signal, addressSetting });
}

async function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (signal.aborted) resolve();
  await promise;
}
