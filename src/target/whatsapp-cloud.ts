import { isObject } from "../core/json.ts";
import { truncate } from "../core/text.ts";
import type { JsonObject } from "../core/types.ts";
import { type Answer, type Conversation, numberOf, textOf } from "./conversation.ts";
import { permanent } from "./failure.ts";
import { markdownToPlain } from "./markup/plain.ts";
import { oneLine } from "./neutralise.ts";
import type { Part, Receipt, SettingValues } from "./target.ts";
import { type Wording, worded } from "./wording.ts";

/** The person has not written for 24 hours, so that only templates are taken. */
const windowClosed = 131_047;

/** Sends by the Cloud API; a template goes instead when free text is not taken and the settings have one. */
export async function sendByCloud(
  talk: Conversation,
  part: Part,
  values: SettingValues,
  wording: Wording,
): Promise<Receipt> {
  const to = recipientOf(part);
  const answer = await post(talk, values, { ...to, ...textOfPart(part, values, wording), ...traceOf(part) });
  if (values.template === undefined || errorIn(answer).code !== windowClosed) return receiptOf(talk, answer);
  return receiptOf(talk, await post(talk, values, { ...to, ...templateOf(part, values), ...traceOf(part) }));
}

function recipientOf({ address: { chat_id: chat = "" } }: Part): object {
  const common = { messaging_product: "whatsapp" };
  const group = /^group:(.+)$/.exec(chat)?.[1];
  if (group !== undefined) return { ...common, recipient_type: "group", to: group };
  const digits = /^\+?(\d+)(?:@s\.whatsapp\.net)?$/.exec(chat)?.[1];
  if (digits !== undefined) return { ...common, recipient_type: "individual", to: digits };
  throw permanent(
    'Cannot send to WhatsApp: "chat_id" is one of a bridge; the Cloud API needs a number or "group:<id>"',
  );
}

function textOfPart(part: Part, { link_previews: previews }: SettingValues, wording: Wording): object {
  const { reply_to: reply } = part.address;
  return {
    type: "text",
    text: { body: worded(part, wording), preview_url: previews === true },
    ...(reply === undefined ? {} : { context: { message_id: reply } }),
  };
}

/** Comes back in the webhook that tells what became of the message. */
function traceOf({ key }: Part): object {
  return { biz_opaque_callback_data: key };
}

/** A variable may hold neither newlines nor tabs nor more than four spaces in a row. */
function templateOf(part: Part, { template, template_language: language }: SettingValues): object {
  const text = oneLine(worded(part, { markdown: markdownToPlain, plain: (text) => text }));
  const parameter = { type: "text", text: truncate(text, 1000) };
  return {
    type: "template",
    template: {
      name: template,
      language: { code: language ?? "en_US" },
      components: [{ type: "body", parameters: [parameter] }],
    },
  };
}

function post(talk: Conversation, values: SettingValues, json: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${values.token}` };
  return talk.ask({ method: "POST", url: `${addressOf(values)}/messages`, headers, json, sends: true });
}

/** Forms of settings that are in the path of the address: anything else could send the message elsewhere. */
export const cloudForms = { phoneNumberId: /\d{5,20}/, apiVersion: /v\d{1,3}\.\d{1,2}/ } as const;

function addressOf({ base_url: base, api_version: version = "v23.0", phone_number_id: id }: SettingValues): string {
  return `${base}/${version}/${id}`;
}

function receiptOf(talk: Conversation, answer: Answer): Receipt {
  const { code, words, isTransient } = errorIn(answer);
  if (code !== undefined) throw judged(talk, answer, code, words, isTransient);
  talk.expectSuccess(answer, words);
  const [message] = Array.isArray(answer.json?.messages) ? answer.json.messages : [];
  const reference = isObject(message ?? null) ? textOf((message as JsonObject).id) : undefined;
  if (reference === undefined) throw talk.notAnAnswer(answer);
  return { reference };
}

interface CloudError {
  readonly code: number | undefined;
  readonly words: string | undefined;
  readonly isTransient: boolean;
}

function errorIn({ json }: Answer): CloudError {
  const error = isObject(json?.error ?? null) ? (json?.error as JsonObject) : undefined;
  if (error === undefined) return { code: undefined, words: undefined, isTransient: false };
  const data = isObject(error.error_data ?? null) ? (error.error_data as JsonObject) : {};
  const code = numberOf(error.code);
  const said = [textOf(error.message), textOf(data.details)].filter((words) => words !== undefined).join(": ");
  return { code, words: said || `error ${code}`, isTransient: error.is_transient === true };
}

/** Too many calls or messages, or a server that is down: nothing was taken. In milliseconds where a time is known. */
const passing = new Map<number, number | undefined>([
  [4, undefined],
  [80_007, undefined],
  [130_429, undefined],
  [131_016, undefined],
  [131_048, undefined],
  [131_056, 6000],
  [133_004, undefined],
]);
/** Something went wrong at Meta's. */
const troubled = new Set([1, 2, 131_000]);

const advice = new Map([
  [10, "give the token the permission whatsapp_business_messaging"],
  [33, 'check "phone_number_id"'],
  [100, 'check "phone_number_id" and the settings of the route'],
  [190, 'the token has ended; set a new "token"'],
  [131_005, "give the token the permission whatsapp_business_messaging"],
  [131_026, "look whether that number is on WhatsApp"],
  [131_030, "add the number to those that a test number may write to"],
  [131_031, "the account is locked; see the WhatsApp Manager"],
  [windowClosed, 'the person has not written for 24 hours; set "template" to an approved template'],
  [132_000, "the template must have one variable in its body, {{1}}"],
  [132_001, 'check "template" and "template_language"'],
]);

/**
 * https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes: the code says what it is, whatever the
 * status and the title. A code that is not known here lasts, as most do, unless the status says that it is Meta's fault.
 */
function judged(talk: Conversation, answer: Answer, code: number, words: string | undefined, isTransient: boolean) {
  if (passing.has(code)) return talk.later(answer, words, passing.get(code) ?? answer.waitMs);
  if (troubled.has(code)) return talk.unclear(answer, words);
  if (isTransient || answer.status === 429) return talk.later(answer, words);
  if (answer.status >= 500 && !advice.has(code)) return talk.unclear(answer, words);
  return talk.refused(answer, words, advice.get(code));
}

/** Asks for the number that sends. */
export async function checkCloud(talk: Conversation, values: SettingValues): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${values.token}` };
  const url = `${addressOf(values)}?fields=display_phone_number,verified_name`;
  const answer = await talk.ask({ method: "GET", url, headers, sends: false });
  const { code, words, isTransient } = errorIn(answer);
  if (code !== undefined) throw judged(talk, answer, code, words, isTransient);
  talk.expectSuccess(answer, words);
  const number = textOf(answer.json?.display_phone_number);
  if (number === undefined) throw talk.notAnAnswer(answer);
  const name = textOf(answer.json?.verified_name) ?? "no name";
  return [`The number that sends is "${number}" ("${name}")`, "Whom it may write to cannot be tried without sending"];
}
