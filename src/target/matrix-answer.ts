import type { JsonObject } from "../core/types.ts";
import { type Answer, type Conversation, numberOf, textOf } from "./conversation.ts";
import type { SettingValues } from "./target.ts";

/** Asks the homeserver; what has a body is a message. */
export function call(talk: Conversation, values: SettingValues, method: "GET" | "PUT", path: string, json?: object) {
  const url = `${values.base_url}/_matrix/client/v3${path}`;
  const headers = { authorization: `Bearer ${values.token}` };
  return talk.ask({ method, url, headers, sends: json !== undefined, ...(json === undefined ? {} : { json }) });
}

/** https://spec.matrix.org/latest/client-server-api/#common-error-codes */
const advice: Readonly<Record<string, string>> = {
  M_FORBIDDEN: "invite the account into the room and let it join, and look whether it may post there",
  M_UNKNOWN_TOKEN: 'log the account in again and set its new "token"',
  M_MISSING_TOKEN: 'check the "token"',
  M_USER_DEACTIVATED: "use another account",
  M_NOT_FOUND: "check the room's id, and that the account is in it",
  M_UNRECOGNIZED: 'check "base_url"',
};

/** Refusals that pass, whatever their status. */
const passing = new Set(["M_LIMIT_EXCEEDED", "M_RESOURCE_LIMIT_EXCEEDED"]);

/** Throws unless the answer is a success. `special` is advice by error code, over the usual one. */
export function expectTaken(talk: Conversation, answer: Answer, special: Readonly<Record<string, string>> = {}): void {
  const code = textOf(answer.json?.errcode);
  const words = wordsIn(answer.json, code);
  if (code !== undefined && passing.has(code)) throw talk.later(answer, words, waitIn(answer));
  const how = { ...advice, ...special };
  if (code !== undefined && answer.status >= 400 && answer.status < 500 && Object.hasOwn(how, code)) {
    throw talk.refused(answer, words, how[code]);
  }
  talk.expectSuccess(answer, words);
}

function wordsIn(json: JsonObject | undefined, code: string | undefined): string | undefined {
  const error = textOf(json?.error);
  return code === undefined || error === undefined ? code : `${code}: ${error}`;
}

/** The body's field is the older way to say it. */
function waitIn({ waitMs, json }: Answer): number | undefined {
  const older = numberOf(json?.retry_after_ms);
  return waitMs ?? (older !== undefined && older >= 0 ? older : undefined);
}
