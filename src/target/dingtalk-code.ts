import type { DeliveryError } from "../core/errors.ts";
import { type Answer, type Conversation, numberOf, textOf } from "./conversation.ts";

// What answers of DingTalk say. The API's codes are on the page of each method; custom robots:
// https://help.dingtalk.io/open/development/custom-robots-send-group-messages.

/** The API does not know the token (any more). */
export function isStale({ status, json }: Answer): boolean {
  return status === 401 || /^InvalidAuthentication/i.test(textOf(json?.code) ?? "");
}

/** Codes of refusals that pass; nothing was taken. */
const busy = /qpslimit|throttling|flowcontrol|toomanyrequest|overquota|toofast/i;
/** The service's own trouble. */
const troubled = /^(?:serviceunavailable|systemerror|internalerror|unknownerror)/i;
const advice: readonly (readonly [RegExp, string])[] = [
  [/robotCode/i, 'check "robot_code", and that the robot is in the group'],
  [/openConversationId|conversation/i, "check the group's id, and that the robot is in the group"],
  [/AccessTokenPermissionDenied/i, "give the app the permission qyapi_robot_sendmsg and publish it"],
  [/IpNotInWhiteList/i, "add this machine's address to the app's list"],
];

/**
 * Throws unless the API took what was asked. An unknown code is a refusal: the service's own trouble mostly comes with a status
 * of its own, 5xx. `ownAdvice` is for refusals of this one request.
 */
export function expectTaken(talk: Conversation, answer: Answer, ownAdvice?: string): void {
  const code = textOf(answer.json?.code);
  const words = code === undefined ? undefined : `${code} ${textOf(answer.json?.message) ?? ""}`.trim();
  if (code !== undefined && answer.status < 500) {
    if (busy.test(code)) throw talk.later(answer, words);
    if (troubled.test(code)) throw talk.unclear(answer, words);
    if (answer.status !== 429)
      throw talk.refused(answer, words, ownAdvice ?? advice.find(([one]) => one.test(code))?.[1]);
  }
  talk.expectSuccess(answer, words);
}

/** Sent too fast: the robot is held back for up to ten minutes. */
const tooFast = new Set([130101, 410100, 90018]);
const longWaitMs = 60_000;

const robotAdvice = new Map([
  [310000, 'check "webhook_secret", the clock of this machine, and the robot\'s keywords and addresses'],
  [300001, 'check "webhook_url"'],
  [300005, 'check "webhook_url"'],
  [400013, "the group is gone; add a robot to another one"],
  [400101, 'check "webhook_url"'],
  [400102, "the robot is turned off; turn it on"],
  [400105, "the service does not know this kind of message"],
]);

/** Throws unless the answer says that a custom robot posted the message. */
export function expectPosted(talk: Conversation, answer: Answer): void {
  const code = numberOf(answer.json?.errcode);
  const words = code === undefined ? undefined : `${code} ${textOf(answer.json?.errmsg) ?? ""}`.trim();
  if (code !== undefined && code !== 0 && answer.status < 500) throw judged(talk, answer, code, words);
  talk.expectSuccess(answer, words);
  if (code === undefined) throw talk.notAnAnswer(answer);
}

function judged(talk: Conversation, answer: Answer, code: number, words: string | undefined): DeliveryError {
  if (tooFast.has(code)) return talk.later(answer, words, longWaitMs);
  // "The system is busy, come again later."
  if (code === -1 || answer.status === 429) return talk.later(answer, words);
  return talk.refused(answer, words, robotAdvice.get(code));
}
