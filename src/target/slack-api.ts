import type { JsonObject } from "../core/types.ts";
import { type Answer, type Conversation, type Question, textOf } from "./conversation.ts";
import { quote } from "./failure.ts";
import type { SettingValues } from "./target.ts";

/**
 * The answer of a method of the Web API that says `ok`. The methods that read take a form and no JSON.
 * @throws DeliveryError for every other answer.
 */
export async function call(
  talk: Conversation,
  { base_url: base, token }: SettingValues,
  method: string,
  question: Pick<Question, "json" | "form" | "sends" | "maxBytes">,
): Promise<JsonObject> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await talk.ask({ method: "POST", url: `${base}/${method}`, headers, ...question });
  const error = textOf(answer.json?.error);
  talk.expectSuccess(answer, error);
  if (answer.json?.ok === true) return answer.json;
  if (error === undefined) throw talk.notAnAnswer(answer);
  throw judged(talk, answer, error);
}

/** Errors that pass: nothing was posted (https://docs.slack.dev/reference/methods/chat.postMessage#errors). */
const passing = /^(?:rate_?limited|service_unavailable|team_added_to_org)$/;
/** Slack's own trouble, which may have come after the message was posted. */
const troubled = /^(?:internal_error|fatal_error|request_timeout)$/;

const advice: Readonly<Record<string, string>> = {
  not_in_channel: "invite the bot into the channel",
  channel_not_found: "check the channel's id, and that the bot is in it when it is private",
  invalid_auth: 'check the "token"',
  not_authed: 'check the "token"',
  token_revoked: "install the app again and set its new token",
  token_expired: "install the app again and set its new token",
  account_inactive: "install the app again and set its new token",
};

function judged(talk: Conversation, answer: Answer, error: string) {
  if (passing.test(error)) return talk.later(answer, error);
  if (troubled.test(error)) return talk.unclear(answer, error);
  return talk.refused(answer, error, adviceFor(answer, error));
}

function adviceFor({ json }: Answer, error: string): string | undefined {
  if (error === "missing_scope")
    return `give the app the scope ${quote(textOf(json?.needed) ?? "chat:write")} and install it again`;
  return Object.hasOwn(advice, error) ? advice[error] : undefined;
}
