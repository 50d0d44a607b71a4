import { createHmac } from "node:crypto";
import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface DingtalkMessage extends Taken {
  /** Markdown or plain text. */
  readonly kind: "markdown" | "text";
  readonly title: string | undefined;
  /** `undefined` when a custom robot posted it. */
  readonly group: string | undefined;
  readonly people: readonly string[];
  readonly uuid: string | undefined;
}

export interface FakeDingtalk extends FakeService<DingtalkMessage> {
  readonly app: { readonly id: string; readonly secret: string };
  /** The one group that the robot is in. */
  readonly group: string;
  readonly webhookUrl: string;
  readonly webhookSecret: string;
  /** How many tokens it gave. */
  readonly tokens: number;
  /** Ends the token that it gave last; the status in which it then says so. */
  endToken(status: 400 | 401): void;
  /** People who cannot be reached, and those who got too much lately. */
  readonly invalid: Set<string>;
  readonly slowed: Set<string>;
}

const api = ownSchema("dingtalk-openapi");
const robots = ownSchema("dingtalk-robot-webhook");
const accessToken = "fakeTokenOfTheCustomRobot";

/** DingTalk for one app, with one custom robot. `now` in Unix milliseconds. */
export async function startFakeDingtalk(now: () => number = Date.now): Promise<FakeDingtalk> {
  const state = {
    app: { id: "dingue4kfzdxbyn0pjqd", secret: "fakeSecretOfTheApp" },
    group: "cid6KeBBLoveMJOGXoYKF5x7EeiodoA==",
    webhookSecret: "SECfakeSecretOfTheRobot",
    tokens: 0,
    invalid: new Set<string>(),
    slowed: new Set<string>(),
  };
  let ended: 400 | 401 | undefined;
  const service = await startService<DingtalkMessage>({
    schemas: [[api, robots]],
    aside: (heard) => {
      if (!heard.url.pathname.endsWith("/accessToken")) return undefined;
      ended = undefined;
      return grant(heard, fake);
    },
    read: (heard) => {
      const isRobot = heard.url.pathname === "/robot/send";
      const wrong = isRobot ? robotFault(heard, state.webhookSecret, now()) : fault(heard, fake, ended);
      return wrong === undefined ? messageIn(heard, isRobot) : { wrong };
    },
    keyOf: ({ uuid }) => uuid,
    answers: ({ people, group }) => (people.length === 0 && group === undefined ? robotAnswers : answers(people, fake)),
    misunderstood: (problems) => refusal("invalidParameter.param.invalid", problems.join("; ")),
  });
  const endToken = (status: 400 | 401) => {
    ended = status;
  };
  const webhookUrl = `${service.baseUrl}/robot/send?access_token=${accessToken}`;
  const fake: FakeDingtalk = Object.assign(service, state, { endToken, webhookUrl });
  return fake;
}

function grant({ json = {} }: Heard, fake: FakeDingtalk): JsonAnswer {
  if (json.appKey !== fake.app.id || json.appSecret !== fake.app.secret) {
    return refusal("invalidClientIdOrSecret", "Invalid clientId or clientSecret");
  }
  Object.assign(fake, { tokens: fake.tokens + 1 });
  return { status: 200, body: { accessToken: tokenOf(fake), expireIn: 7200 } };
}

function tokenOf({ tokens }: FakeDingtalk): string {
  return `fakeToken${tokens}`;
}

function refusal(code: string, message: string, status = 400): JsonAnswer {
  return { status, body: { code, message, requestid: "CDA8ED4F-7C46-731B" } };
}

function robotRefusal(errcode: number, errmsg: string): JsonAnswer {
  return { status: 200, body: { errcode, errmsg } };
}

function fault(
  { headers, json = {} }: Heard,
  fake: FakeDingtalk,
  ended: 400 | 401 | undefined,
): JsonAnswer | undefined {
  if (ended === 401) return refusal("Unauthorized", "Unauthorized", 401);
  const isKnown = headers["x-acs-dingtalk-access-token"] === tokenOf(fake) && ended === undefined;
  if (!isKnown) return refusal("InvalidAuthentication", "Invalid access token");
  if (json.robotCode !== fake.app.id) return refusal("invalidParameter.robotCode.invalid", "Invalid robotCode");
  if ((json.openConversationId ?? fake.group) !== fake.group) {
    return refusal("invalidParameter.openConversationId.invalid", "Invalid openConversationId");
  }
  const parameters = String(json.msgParam);
  if (Buffer.byteLength(parameters) > 15_000) return refusal("invalidParameter.msgParam.length", "Too long");
  return textIn(JSON.parse(parameters) as Words).trim() === ""
    ? refusal("invalidParameter.msgParam.invalid", "Empty")
    : undefined;
}

function robotFault({ url, json = {}, body }: Heard, secret: string, now: number): JsonAnswer | undefined {
  const { searchParams: query } = url;
  if (query.get("access_token") !== accessToken) return robotRefusal(300001, "token is not exist");
  const timestamp = query.get("timestamp") ?? "";
  const sign = createHmac("sha256", secret).update(`${timestamp}\n${secret}`).digest("base64");
  const isLate = Math.abs(now - Number(timestamp)) > 3_600_000;
  if (query.get("sign") !== sign || isLate) return robotRefusal(310000, "sign not match");
  if (Buffer.byteLength(body) > 20_000) return robotRefusal(40035, "too long");
  const { isAtAll, atMobiles, atUserIds } = json.at as Record<string, unknown>;
  if (isAtAll !== false || String(atMobiles) + String(atUserIds) !== "")
    return robotRefusal(40035, "it mentions people");
  return undefined;
}

function answers(people: readonly string[], { invalid, slowed }: FakeDingtalk) {
  const invalidStaffIdList = people.filter((one) => invalid.has(one));
  const flowControlledStaffIdList = people.filter((one) => slowed.has(one));
  const lists = people.length === 0 ? {} : { invalidStaffIdList, flowControlledStaffIdList };
  return {
    ok: { status: 200, body: { processQueryKey: "udxt3PGhTcBpJYEU1Qk5", ...lists } },
    refused: refusal("invalidParameter.robotCode.notExsit", "The robot is not in the group"),
    limited: refusal("Forbidden.AccessDenied.QpsLimitForApi", "Too many requests", 403),
  };
}

const robotAnswers = {
  ok: robotRefusal(0, "ok"),
  refused: robotRefusal(400102, "the robot is turned off"),
  limited: robotRefusal(130101, "send too fast, exceed 20 times per minute"),
};

interface Words {
  readonly content?: string;
  readonly title?: string;
  readonly text?: string;
}

function messageIn({ json = {} }: Heard, isRobot: boolean): DingtalkMessage {
  const words = (isRobot ? json[String(json.msgtype)] : JSON.parse(String(json.msgParam))) as Words;
  const isMarkdown = isRobot ? json.msgtype === "markdown" : json.msgKey === "sampleMarkdown";
  const sent = words.text ?? words.content ?? "";
  return {
    kind: isMarkdown ? "markdown" : "text",
    title: words.title,
    group: json.openConversationId as string | undefined,
    people: (json.userIds as string[] | undefined) ?? [],
    uuid: json.msgUuid as string | undefined,
    // Plain text has neither links nor images nor tags.
    raw: isMarkdown ? `${words.title}\n${sent}` : sent.replaceAll(/[[\]<>]/g, " "),
    text: textIn(words),
  };
}

/** What a reader sees. */
function textIn({ content, text = "" }: Words): string {
  return content ?? text.replaceAll("<\u200b", "<").replaceAll(/\\([\\`*_[\]#>+-])/g, "$1");
}
