import { Conversation } from "./conversation.ts";
import { baseUrl, format, homeChannel } from "./fields.ts";
import { shortFence, shortSpan } from "./markup/code.ts";
import { type Dialect, renderMarkdown } from "./markup/render.ts";
import type { SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";
import { bridgeAddress, checkBridge, sendByBridge } from "./whatsapp-bridge.ts";
import { checkCloud, cloudForms, sendByCloud } from "./whatsapp-cloud.ts";
import { longerWording, type Wording } from "./wording.ts";

const settings: Target["settings"] = {
  token: {
    kind: "secret",
    help: "Access token of the Cloud API, a system user's",
    env: ["WHATSAPP_CLOUD_ACCESS_TOKEN"],
    alternatives: ["access_token"],
  },
  phone_number_id: {
    kind: "string",
    help: 'Id of the number that sends, digits such as "106540352242922" in quotes, which are not the number itself',
    env: ["WHATSAPP_CLOUD_PHONE_NUMBER_ID"],
    pattern: cloudForms.phoneNumberId,
  },
  api_version: {
    kind: "string",
    help: 'Version of the Graph API, such as "v23.0"',
    env: ["WHATSAPP_CLOUD_API_VERSION"],
    pattern: cloudForms.apiVersion,
    default: "v23.0",
  },
  bridge_url: {
    kind: "url",
    help: "Address of a WhatsApp bridge on this machine such as http://127.0.0.1:3000, in place of the Cloud API; it answers POST /send",
    env: ["WHATSAPP_BRIDGE_URL"],
    pattern: bridgeAddress,
  },
  home_channel: homeChannel("WHATSAPP_HOME_CHANNEL", "Person or group"),
  base_url: baseUrl("WHATSAPP", "Address of the Graph API", "https://graph.facebook.com"),
  template: {
    kind: "string",
    help: "Approved template for people who have not written for 24 hours; the text becomes its one variable, {{1}}, cut to 1,000 characters",
    env: ["WHATSAPP_TEMPLATE"],
  },
  template_language: { kind: "string", help: 'Language of the template, such as "en_US"', default: "en_US" },
  link_previews: { kind: "boolean", help: "Let WhatsApp show what a link points to", default: false },
};

const address: Target["address"] = {
  chat_id: {
    help: 'a number with its country such as "+15550100" or "15550100@s.whatsapp.net", or a group, "…@g.us" of a bridge or "group:<id>" of the Cloud API',
    pattern: /\+?[1-9]\d{4,19}(?:@(?:s\.whatsapp\.net|lid))?|\d{5,25}(?:-\d{5,20})?@g\.us|group:[A-Za-z0-9_=-]{5,200}/,
    homeChannel: true,
  },
  reply_to: {
    help: 'the id of the message to answer to, such as "wamid.abc"',
    pattern: /[A-Za-z0-9._=:+/-]{5,250}/,
    alternatives: ["message_id"],
  },
  format,
};

/** https://faq.whatsapp.com/539178204879377: how WhatsApp writes bold and the like. */
const dialect: Dialect = {
  escape: plain,
  escapeCode: (code) => code,
  escapeUrl: (url) => url,
  bold: ["*", "*"],
  italic: ["_", "_"],
  strike: ["~", "~"],
  code: shortSpan,
  codeBlock: shortFence,
  checks: ["☐", "☑"],
};

const wording: Wording = { markdown: (text) => renderMarkdown(text, dialect), plain };

/** Marks work in pairs within a line, and nothing escapes them but what stands between the first one and its word. */
function plain(text: string): string {
  return text.split("\n").map(partMarks).join("\n");
}

const opening = /(?<![\p{L}\p{N}])[*_~`](?=[^\s\u200b])/gu;
const closing = /(?<=\S)[*_~`](?![\p{L}\p{N}])/gu;

function partMarks(line: string): string {
  const lastOf = new Map<string, number>();
  for (const { 0: mark, index } of line.matchAll(closing)) lastOf.set(mark, index);
  return line.replaceAll(opening, (mark, at: number) => ((lastOf.get(mark) ?? 0) > at + 1 ? `${mark}\u200b` : mark));
}

/**
 * WhatsApp through Meta's Cloud API (https://developers.facebook.com/docs/whatsapp/cloud-api), or through a bridge of the
 * user's own on this machine. Neither tells a message that is sent twice. That the Cloud API takes a message does not mean
 * that it arrives: what fails later goes to the app's own webhook, where `biz_opaque_callback_data` is the part's key.
 */
export function createWhatsapp(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  return {
    name: "whatsapp",
    neutralName: "chat_target_05",
    isPlatform: true,
    settings,
    ways: [["token", "phone_number_id"], ["bridge_url"]],
    address,
    limit: { unit: "utf16", max: 4096, parts: 10, numberedFrom: 3, rendered: longerWording(wording, "utf16") },
    markup: "WhatsApp's own (`*bold*`, `_italic_`)",
    retried: "4, 80007, 130429, 131048, 131056 and what it calls transient; 1, 2, 131000",
    repeats: "doubled",
    // https://developers.facebook.com/docs/whatsapp/cloud-api/overview#throughput: one number may get one every 6 seconds.
    pace: { overall: { count: 80, everyMs: 1000 }, perPlace: { field: "chat_id", count: 10, everyMs: 60_000 } },
    ownServer: "base_url",
    send: (part, values, tools) => {
      const talk = conversation("Cannot send to WhatsApp", values, tools, timeoutMs);
      return isBridge(values) ? sendByBridge(talk, part, values, wording) : sendByCloud(talk, part, values, wording);
    },
    check: (values, tools) => {
      const talk = conversation("Cannot use WhatsApp", values, tools, timeoutMs);
      return isBridge(values) ? checkBridge(talk, values) : checkCloud(talk, values);
    },
  };
}

/** The target of the registry. */
export const whatsapp: Target = createWhatsapp();

function isBridge({ token, phone_number_id: id }: SettingValues): boolean {
  return token === undefined || id === undefined;
}

function conversation(action: string, values: SettingValues, { signal }: TargetTools, timeoutMs: number): Conversation {
  const isOwn = isBridge(values);
  const secrets = values.token === undefined ? [] : [String(values.token)];
  const names = isOwn ? { service: "a WhatsApp bridge", addressSetting: "bridge_url" } : { service: "WhatsApp" };
  return new Conversation({ ...names, action, secrets, timeoutMs, signal });
}
