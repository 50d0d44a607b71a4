import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface QqMessage extends Taken {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeQq extends FakeService<QqMessage> {
  readonly appId: string;
  readonly secret: string;
  /** Tokens that it gave, in order; only the last one is good. */
  readonly tokens: string[];
  /** Messages that may be answered to; others have expired. */
  readonly answerable: Set<string>;
  /** Messages that go to somebody unasked are refused; they are taken at first. */
  isPassiveOnly: boolean;
  /** Markdown is refused; it is taken at first. */
  isPlainOnly: boolean;
  /** The token that it gave last is good no more. */
  endToken(): void;
}

/** QQ for one bot, its service of tokens included. */
export async function startFakeQq(): Promise<FakeQq> {
  const state = { appId: "102000001", secret: "fakeSecretOfTheBot", tokens: [] as string[], isEnded: false };
  const rights = { answerable: new Set<string>(), isPassiveOnly: false, isPlainOnly: false };
  const service = await startService<QqMessage>({
    schemas: [
      [
        ownSchema("qqbot"),
        ownSchema("qqbot-token"),
        { name: "questions", problems: ({ method }) => (method === "GET" ? [] : ["unknown"]) },
      ],
    ],
    aside: (heard) => answerAside(heard, state),
    read: (heard) => {
      const wrong = tokenFault(heard, state) ?? rightFault(heard, fake) ?? repeatFault(heard, fake.messages);
      return wrong === undefined ? messageIn(heard) : { wrong };
    },
    answers: () => ({
      ok: { status: 200, body: { id: `ROBOT1.0_fake${fake.messages.length}`, timestamp: "2026-11-21T12:00:00+08:00" } },
      refused: qqError(400, 40_034_105, "主动消息被关闭"),
      limited: { ...qqError(429, 22_009, "msg limit exceed"), headers: { "retry-after": "7" } },
    }),
    misunderstood: (problems) => qqError(400, 40_034_001, problems.join("; ")),
  });
  const endToken = () => {
    state.isEnded = true;
  };
  const fake: FakeQq = Object.assign(service, rights, { ...state, endToken });
  return fake;
}

/** An error in the service's own form. */
export function qqError(status: number, code: number, message: string): JsonAnswer {
  return { status, body: { message, code, err_code: code, trace_id: "fakeTrace" } };
}

interface Tokens {
  readonly appId: string;
  readonly secret: string;
  readonly tokens: string[];
  isEnded: boolean;
}

function answerAside(heard: Heard, state: Tokens): JsonAnswer | undefined {
  if (heard.url.pathname === "/app/getAppAccessToken") return grant(heard, state);
  if (heard.method !== "GET") return undefined;
  return tokenFault(heard, state) ?? { status: 200, body: { id: "1", username: "postern" } };
}

function grant({ json = {} }: Heard, state: Tokens): JsonAnswer {
  if (json.appId !== state.appId) return { status: 200, body: { code: 100_007, message: "appid invalid" } };
  if (json.clientSecret !== state.secret)
    return { status: 200, body: { code: 100_016, message: "invalid appid or secret" } };
  state.isEnded = false;
  state.tokens.push(`fakeAccessToken${state.tokens.length + 1}`);
  return { status: 200, body: { access_token: state.tokens.at(-1), expires_in: "7200" } };
}

function tokenFault({ headers }: Heard, { tokens, isEnded }: Tokens): JsonAnswer | undefined {
  const isGood = !isEnded && headers.authorization === `QQBot ${tokens.at(-1)}`;
  return isGood ? undefined : qqError(401, 11_244, "token not exist or expire");
}

function rightFault({ json = {} }: Heard, fake: FakeQq): JsonAnswer | undefined {
  if (json.markdown !== undefined && fake.isPlainOnly) return qqError(400, 304_036, "not allowed markdown");
  if (json.msg_id === undefined) return fake.isPassiveOnly ? qqError(400, 40_034_102, "无权限发送主动消息") : undefined;
  return fake.answerable.has(String(json.msg_id)) ? undefined : qqError(400, 40_034_005, "msg_id已过期");
}

function repeatFault({ json = {} }: Heard, messages: readonly QqMessage[]): JsonAnswer | undefined {
  const isSame = ({ body }: QqMessage) => body.msg_id === json.msg_id && body.msg_seq === json.msg_seq;
  const isRepeated = json.msg_seq !== undefined && messages.some(isSame);
  return isRepeated ? qqError(400, 40_054_005, "消息被去重，请检查请求msgseq") : undefined;
}

function messageIn({ url, json = {} }: Heard): QqMessage {
  const { markdown } = json as { markdown?: { content: string } };
  const raw = String(markdown?.content ?? json.content);
  return { path: url.pathname, raw, text: raw.replaceAll("\u200b", ""), body: json };
}
