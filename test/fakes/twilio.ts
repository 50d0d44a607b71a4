import type { JsonAnswer } from "./mode.ts";
import { type HeardRequest, officialSchema, ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface Sms extends Taken {
  readonly to: string;
  readonly from: string | undefined;
  readonly service: string | undefined;
}

export interface FakeTwilio extends FakeService<Sms> {
  readonly account: string;
  /** Of the account, and of its API key. */
  readonly authToken: string;
  readonly apiKey: string;
  readonly apiSecret: string;
  /** The account's, "active" at first. */
  accountStatus: string;
}

const account = `AC${"0123456789abcdef".repeat(2)}`;
const own = ownSchema("twilio");
/** It has no question about the account; and it takes the texts of a form for what they stand for. */
const official = officialSchema("twilio").map(({ name, problems }) => ({
  name,
  problems: (heard: HeardRequest) => problems({ ...heard, body: heard.body.replace("&SmartEncoded=true", "") }),
}));
const questions = { name: "questions", problems: ({ method }: { method: string }) => (method === "GET" ? [] : ["no"]) };

/** Twilio with one account, an auth token and an API key. */
export async function startFakeTwilio(): Promise<FakeTwilio> {
  const login = {
    account,
    authToken: "fakeAuthTokenOfTwilio",
    apiKey: `SK${"0".repeat(32)}`,
    apiSecret: "fakeApiSecret",
  };
  const state = { accountStatus: "active" };
  const service = await startService<Sms>({
    schemas: [[own], ...(official.length === 0 ? [] : [[questions, ...official]])],
    aside: (heard) => (heard.method === "GET" ? answerQuestion(heard, login, state.accountStatus) : undefined),
    read: (heard) => {
      const wrong = fault(heard, login);
      return wrong === undefined ? smsIn(heard) : { wrong };
    },
    answers: (sms) => ({
      ok: { status: 201, body: { sid: `SM${"0".repeat(32)}`, status: "queued", error_code: null, body: sms.raw } },
      refused: refusal(400, 21211, "Invalid 'To' Phone Number"),
      limited: { ...refusal(429, 20429, "Too Many Requests"), headers: { "retry-after": "7" } },
    }),
    misunderstood: (problems) => refusal(400, 21604, problems.join("; ")),
  });
  return Object.defineProperty(Object.assign(service, login, state), "accountStatus", {
    set: (status: string) => {
      state.accountStatus = status;
    },
  });
}

function refusal(status: number, code: number, message: string): JsonAnswer {
  return { status, body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status } };
}

type Login = Pick<FakeTwilio, "authToken" | "apiKey" | "apiSecret">;

function isKnown({ headers }: Heard, names: readonly string[]): boolean {
  return names.some((name) => headers.authorization === `Basic ${Buffer.from(name).toString("base64")}`);
}

function fault(heard: Heard, { authToken, apiKey, apiSecret }: Login): JsonAnswer | undefined {
  if (!isKnown(heard, [`${account}:${authToken}`, `${apiKey}:${apiSecret}`]))
    return refusal(401, 20003, "Authenticate");
  return heard.url.pathname.includes(account) ? undefined : refusal(404, 20404, "The resource was not found");
}

function answerQuestion(heard: Heard, login: Login, status: string): JsonAnswer {
  const wrong = fault(heard, login);
  if (wrong !== undefined) return wrong;
  if (heard.url.pathname.endsWith("/Messages.json")) return { status: 200, body: { messages: [] } };
  // A key that is not a main one may not see the account.
  if (!isKnown(heard, [`${account}:${login.authToken}`])) return refusal(401, 20003, "Authenticate");
  return { status: 200, body: { sid: account, friendly_name: "Fakes", status } };
}

function smsIn({ form }: Heard): Sms {
  const text = form.get("Body") ?? "";
  const [from, service] = [form.get("From") ?? undefined, form.get("MessagingServiceSid") ?? undefined];
  return { to: form.get("To") ?? "", from, service, text, raw: text };
}
