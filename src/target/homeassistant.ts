import { isList, isObject, parseJson } from "../core/json.ts";
import { truncate } from "../core/text.ts";
import type { Json } from "../core/types.ts";
import { type Answer, Conversation, textOf } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { oneLine } from "./neutralise.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { longerWording, type Wording, worded } from "./wording.ts";

const base = baseUrl(
  "HOMEASSISTANT",
  'Address of Home Assistant, such as "http://homeassistant.local:8123"',
  undefined,
  ["url"],
);

const settings: Target["settings"] = {
  token: { kind: "secret", help: "Long-lived access token, from one's profile", env: ["HASS_TOKEN"], required: true },
  base_url: { ...base, env: ["HOMEASSISTANT_BASE_URL", "HASS_URL"] },
  home_channel: homeChannel("HASS_HOME_CHANNEL", "Notifier"),
};

const name = "[a-z0-9](?:[a-z0-9_]{0,98}[a-z0-9])?";

const address: Target["address"] = {
  chat_id: {
    help: 'an action that notifies such as "notify.mobile_app_phone", an entity such as "entity:notify.kitchen", or "persistent_notification"',
    // Actions of any other domain do things: open doors, run programs.
    pattern: new RegExp(
      `persistent_notification|notify\\.(?!send_message$)${name}|mobile_app_${name}|entity:notify\\.${name}`,
    ),
    homeChannel: true,
  },
  title: { help: "the title of the notification; none when not set", pattern: /[\s\S]*/ },
  format,
};

const longestTitle = 250;

const wording: Wording = { markdown: (text) => withoutTemplates(markdownToPlain(text)), plain: withoutTemplates };

/**
 * Home Assistant's notifications (https://developers.home-assistant.io/docs/api/rest/), and nothing else of it. A repeat
 * takes the place of the first one in the app and in the web interface, but a telephone rings twice; other notifiers show
 * both.
 */
export function createHomeassistant({ timeoutMs = 30_000 }: TargetOptions = {}): Target {
  const converse = (action: string, { token }: SettingValues, { signal }: TargetTools) =>
    new Conversation({ service: "Home Assistant", action, secrets: [String(token)], timeoutMs, signal });
  return {
    name: "homeassistant",
    neutralName: "chat_target_08",
    isPlatform: true,
    settings,
    address,
    // The services that bring a notification to a telephone take 4,096 bytes, with all that the app adds.
    limit: { unit: "bytes", max: 3000, parts: 10, numberedFrom: 3, rendered: longerWording(wording, "bytes") },
    markup: "none: plain text",
    retried: "as for all",
    repeats: "doubled",
    send: (part, values, tools) => send(converse("Cannot notify by Home Assistant", values, tools), part, values),
    check: (values, tools) => check(converse("Cannot use Home Assistant", values, tools), values),
  };
}

/** The target of the registry. */
export const homeassistant: Target = createHomeassistant();

async function send(talk: Conversation, part: Part, values: SettingValues): Promise<Receipt> {
  const { action, data } = callFor(part);
  const url = `${values.base_url}/api/services/${action.replace(".", "/")}`;
  const answer = await talk.ask({ method: "POST", url, headers: headersOf(values), json: data, sends: true });
  expectSuccess(talk, answer);
  // The states that the action has changed: mostly none.
  if (listIn(answer.text) === undefined) throw talk.notAnAnswer(answer);
  return { reference: `taken by ${part.address.chat_id}; Home Assistant gives no id` };
}

function headersOf({ token }: SettingValues): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

/** The action that notifies, and what it is told. */
function callFor({ text, key, address }: Part): { readonly action: string; readonly data: object } {
  const { chat_id: place = "", title } = address;
  const plain = worded({ text, address }, wording);
  const titled = title === undefined ? {} : { title: withoutTemplates(truncate(oneLine(title), longestTitle)) };
  if (place === "persistent_notification") {
    const own = { message: escapeMarkdown(plain), notification_id: `postern_${key}` };
    return { action: "persistent_notification.create", data: { ...titled, ...own } };
  }
  // The same notification by another name, without an id.
  if (place === webNotifier) return { action: webNotifier, data: { ...titled, message: escapeMarkdown(plain) } };
  const message = withoutCommand(plain);
  if (place.startsWith("entity:")) {
    const entity_id = place.slice("entity:".length);
    return { action: "notify.send_message", data: { ...titled, message, entity_id } };
  }
  const action = actionOf(place);
  const tagged = action.startsWith("notify.mobile_app_") ? { data: { tag: key } } : {};
  return { action, data: { ...titled, message, ...tagged } };
}

const webNotifier = "notify.persistent_notification";

/**
 * What opens a template of Home Assistant: those who notify render both the message and the title as one, which may say
 * where people are. Text without any of these stays as it is, whatever else is in it. A form that Home Assistant would
 * render as braces would not do: a group of notifiers has each of its members render again what came out.
 */
const templateStart = /\{(?=[{%#])/g;

function withoutTemplates(text: string): string {
  return text.replaceAll(templateStart, "{\u200b");
}

/**
 * Words that the app takes for a command when they are the whole message, such as "request_location_update" or
 * "command_dnd" (https://companion.home-assistant.io/docs/notifications/notification-commands).
 */
const command =
  /^\s*(?:command_\w+|clear_notification|remove_channel|request_location_update|delete_alert|clear_badge|update_complications|update_widgets|tts)\s*$/i;

function withoutCommand(message: string): string {
  return command.test(message) ? `\u200b${message.trim()}` : message;
}

/** Addresses, which stay as they are, and whatever else could be a mark. */
const addressOrMark = /(https?:\/\/[^\s<>()[\]{}\\`*~|]+)|[\\`*_{}[\]<>()#+.!|~&$:=@-]/g;

/** The web interface shows Markdown: links with other words than their address, images that are loaded from anywhere. */
function escapeMarkdown(text: string): string {
  return text.replaceAll(addressOrMark, (found, url: string | undefined) => url ?? `\\${found}`);
}

const advice: Readonly<Record<number, string>> = {
  400: "check the name of the notifier",
  401: 'check the "token"',
  403: "see whether this machine is banned in Home Assistant",
  404: 'check "base_url", and that the api integration is on',
};

/** Errors are JSON with a message, or plain text such as "401: Unauthorized". */
function expectSuccess(talk: Conversation, answer: Answer): void {
  const { json, text } = answer;
  const words = textOf(json?.message) ?? /^\d{3}: [\w ]{1,60}$/.exec(text.trim())?.[0];
  talk.expectSuccess(answer, words, advice);
}

function listIn(text: string): readonly Json[] | undefined {
  try {
    const value = parseJson(text);
    return isList(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

async function check(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const headers = headersOf(values);
  const answer = await talk.ask({ method: "GET", url: `${values.base_url}/api/`, headers, sends: false });
  expectSuccess(talk, answer);
  if (textOf(answer.json?.message) === undefined) throw talk.notAnAnswer(answer);
  return ["The token is good", await checkHome(talk, values)];
}

async function checkHome(talk: Conversation, values: SettingValues): Promise<string> {
  const home = textOf(values.home_channel as string | undefined);
  if (home === undefined) return "No home channel is set";
  if (home === "persistent_notification") return "The home channel is the web interface";
  const isEntity = home.startsWith("entity:");
  const path = isEntity ? `states/${home.slice("entity:".length)}` : "services";
  const question = { method: "GET", url: `${values.base_url}/api/${path}`, headers: headersOf(values) } as const;
  const answer = await talk.ask({ ...question, sends: false, maxBytes: maxActionsBytes });
  expectSuccess(talk, answer);
  if (isEntity || notifiersIn(answer).includes(actionOf(home))) return `The home channel is "${home}"`;
  throw talk.refused(answer, `there is no ${actionOf(home)}`, 'correct "home_channel"');
}

/** All actions of a large installation, with their descriptions. */
const maxActionsBytes = 16_777_216;

function actionOf(place: string): string {
  return place.startsWith("notify.") ? place : `notify.${place}`;
}

function notifiersIn({ text }: Answer): string[] {
  const domains = listIn(text) ?? [];
  return domains.flatMap((one) => {
    if (!isObject(one) || one.domain !== "notify" || !isObject(one.services)) return [];
    return Object.keys(one.services).map((action) => `notify.${action}`);
  });
}
