import { createHmac } from "node:crypto";
import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface FeishuMessage extends Taken {
  /** Feishu's id of it. */
  readonly id: string;
  /** `undefined` when a custom bot posted it. */
  readonly receiver: string | undefined;
  readonly receiverKind: string | undefined;
  /** The message that it answers to. */
  readonly parent: string | undefined;
  readonly uuid: string | undefined;
  readonly type: string;
  /** Of a post: its paragraphs. */
  readonly nodes: readonly (readonly FeishuNode[])[];
}

export interface FeishuNode {
  readonly tag: string;
  readonly text: string;
  readonly href?: string;
  readonly style?: readonly string[];
  readonly language?: string;
}

export interface FakeFeishu extends FakeService<FeishuMessage> {
  readonly app: { readonly id: string; readonly secret: string };
  /** The one chat that the bot is in. */
  readonly chat: string;
  readonly webhookUrl: string;
  readonly webhookSecret: string;
  /** How many tokens it gave. */
  readonly tokens: number;
  /** Ends the token that it gave last. */
  endToken(): void;
  /** Whether the app may read chats. */
  mayRead: boolean;
  /** Whether it takes posts for unreadable. */
  isPlain: boolean;
}

const api = ownSchema("feishu");
const hooks = ownSchema("feishu-bot-webhook");
const hookPath = "/open-apis/bot/v2/hook/fake-token-of-the-bot";
const questions = {
  name: "questions",
  problems: ({ url }: { url: URL }) => (isQuestion(url) ? [] : ["unknown"]),
};

/** Feishu for one app, with one custom bot. `now` in Unix milliseconds. */
export async function startFakeFeishu(now: () => number = Date.now): Promise<FakeFeishu> {
  const state = {
    app: { id: "cli_a1b2c3", secret: "fakeSecretOfTheApp" },
    chat: "oc_5ad11d72b830411d72b836c20",
    webhookSecret: "fakeSecretOfTheBot",
    tokens: 0,
    mayRead: true,
    isPlain: false,
    isEnded: false,
  };
  const service = await startService<FeishuMessage>({
    schemas: [[api, hooks, questions]],
    aside: (heard) => answerAside(heard, fake, state),
    read: (heard, id) => {
      const isHook = heard.url.pathname.includes("/hook/");
      const wrong = isHook ? hookFault(heard, state.webhookSecret, now()) : fault(heard, fake, state.isEnded);
      return wrong === undefined ? messageIn(heard, id, isHook) : { wrong };
    },
    // For one hour.
    keyOf: ({ uuid }) => uuid,
    answers: ({ id, receiver, parent }) => (receiver === undefined && parent === undefined ? hookAnswers : answers(id)),
    misunderstood: (problems) => refusal(230001, problems.join("; "), 400),
  });
  const endToken = () => {
    state.isEnded = true;
  };
  const fake: FakeFeishu = Object.assign(service, state, { endToken, webhookUrl: `${service.baseUrl}${hookPath}` });
  return fake;
}

function isQuestion({ pathname }: URL): boolean {
  return /\/bot\/v3\/info$|\/im\/v1\/chats\//.test(pathname);
}

function answerAside(heard: Heard, fake: FakeFeishu, state: { isEnded: boolean }): JsonAnswer | undefined {
  const { pathname } = heard.url;
  if (pathname.endsWith("/tenant_access_token/internal")) {
    if (heard.json?.app_id !== fake.app.id) return refusal(10003, "invalid param");
    if (heard.json.app_secret !== fake.app.secret) return refusal(10014, "app secret invalid");
    Object.assign(fake, { tokens: fake.tokens + 1 });
    state.isEnded = false;
    return { status: 200, body: { code: 0, msg: "ok", tenant_access_token: tokenOf(fake), expire: 7200 } };
  }
  if (!isQuestion(heard.url)) return undefined;
  const wrong = tokenFault(heard, fake, state.isEnded);
  if (wrong !== undefined) return wrong;
  if (pathname.endsWith("/info")) return { status: 200, body: { code: 0, msg: "ok", bot: { app_name: "Postern" } } };
  if (!fake.mayRead) return refusal(99991672, "Access denied. One of the following scopes is required", 400);
  return pathname.endsWith(`/${fake.chat}`)
    ? { status: 200, body: { code: 0, msg: "success", data: { name: "ops" } } }
    : refusal(230002, "Bot is not in the group", 400);
}

function tokenOf({ tokens }: FakeFeishu): string {
  return `t-fakeTokenNumber${tokens}`;
}

function refusal(code: number, msg: string, status = 200): JsonAnswer {
  return { status, body: { code, msg } };
}

function tokenFault({ headers }: Heard, fake: FakeFeishu, isEnded: boolean): JsonAnswer | undefined {
  const isGood = headers.authorization === `Bearer ${tokenOf(fake)}` && !isEnded;
  return isGood ? undefined : refusal(99991663, "Invalid access token for authorization", 400);
}

function fault(heard: Heard, fake: FakeFeishu, isEnded: boolean): JsonAnswer | undefined {
  const wrong = tokenFault(heard, fake, isEnded);
  if (wrong !== undefined) return wrong;
  const { json = {}, url, body } = heard;
  if (Buffer.byteLength(body) > 30 * 1024) return refusal(230025, "The message is too long", 400);
  const isChat = url.searchParams.get("receive_id_type") === "chat_id";
  if (isChat && json.receive_id !== fake.chat) return refusal(230002, "Bot is not in the group", 400);
  if (json.msg_type === "post" && fake.isPlain) return refusal(230001, "invalid message content", 400);
  return textIn(String(json.content), json.msg_type).trim() === "" ? refusal(230001, "text is empty", 400) : undefined;
}

function hookFault({ url, json = {}, body }: Heard, secret: string, now: number): JsonAnswer | undefined {
  if (url.pathname !== hookPath) return refusal(19001, "param invalid: incoming webhook access token invalid");
  if (Buffer.byteLength(body) > 20 * 1024) return refusal(9499, "Bad Request");
  const timestamp = String(json.timestamp);
  const sign = createHmac("sha256", `${timestamp}\n${secret}`).digest("base64");
  const isLate = Math.abs(now / 1000 - Number(timestamp)) > 3600;
  if (json.sign !== sign || isLate) return refusal(19021, "sign match fail or timestamp is not within one hour");
  return undefined;
}

function answers(id: string) {
  return {
    ok: { status: 200, body: { code: 0, msg: "success", data: { message_id: id } } },
    refused: refusal(230002, "Bot is not in the group", 400),
    limited: {
      status: 429,
      headers: { "x-ogw-ratelimit-limit": "50", "x-ogw-ratelimit-reset": "7" },
      body: { code: 99991400, msg: "request trigger frequency limit" },
    },
  };
}

const hookAnswers = {
  ok: { status: 200, body: { StatusCode: 0, StatusMessage: "success", code: 0, data: {}, msg: "success" } },
  refused: refusal(19024, "Key Words Not Found"),
  limited: refusal(11232, "create message trigger frequency limit"),
};

function messageIn({ json = {}, url }: Heard, id: number, isHook: boolean): FeishuMessage {
  const content = isHook ? (json.content as { post?: object }) : (JSON.parse(String(json.content)) as object);
  const raw = JSON.stringify("post" in content ? content.post : content);
  return {
    id: `om_${id}`,
    receiver: json.receive_id as string | undefined,
    receiverKind: url.searchParams.get("receive_id_type") ?? undefined,
    parent: /\/messages\/([^/]+)\/reply$/.exec(url.pathname)?.[1],
    uuid: json.uuid as string | undefined,
    type: String(json.msg_type),
    nodes: json.msg_type === "post" ? nodesIn(raw) : [],
    raw: raw.replaceAll(/\\"/g, '"'),
    text: textIn(raw, json.msg_type),
  };
}

function nodesIn(content: string): FeishuNode[][] {
  return (JSON.parse(content) as { zh_cn: { content: FeishuNode[][] } }).zh_cn.content;
}

/** What a reader sees. */
function textIn(content: string, type: unknown): string {
  const text =
    type === "post"
      ? nodesIn(content)
          .map((paragraph) => paragraph.map((node) => node.text).join(""))
          .join("\n")
      : (JSON.parse(content) as { text: string }).text;
  return text.replaceAll("<\u200b", "<").replaceAll("]\u200b(", "](");
}
