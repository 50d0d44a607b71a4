import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface WecomMessage extends Taken {
  readonly msgtype: "text" | "markdown";
  /** The receivers as they were sent: `touser`, `toparty`, `totag` or `chatid`; `undefined` from the robot. */
  readonly to: Readonly<Record<string, unknown>> | undefined;
}

export interface FakeWecom extends FakeService<WecomMessage> {
  readonly webhookUrl: string;
  readonly robotKey: string;
  readonly app: { readonly corp_id: string; readonly secret: string; readonly agent_id: number };
  /** How many tokens were given. */
  readonly tokens: () => number;
  /** The tokens given so far are good no more. */
  endTokens(): void;
  /** Added to the answer to a message of the app that is taken. */
  readonly beside: Record<string, string>;
}

const robotApi = ownSchema("wecom-robot-webhook");
const appApi = ownSchema("wecom-app");
const robotKey = "fake-key-of-the-robot";
const app = { corp_id: "ww0fake", secret: "fake-secret-of-the-app", agent_id: 1000002 };
const limit = { text: 2048, robot: 4096, app: 2048 } as const;

/** WeCom's API for one group robot and one app. */
export async function startFakeWecom(): Promise<FakeWecom> {
  const state = { given: 0, endedBefore: 0, beside: {} as Record<string, string> };
  const isGood = (token: string | null) => {
    const [, number] = /^token-(\d+)$/.exec(token ?? "") ?? [];
    return number !== undefined && Number(number) > state.endedBefore && Number(number) <= state.given;
  };
  const service = await startService<WecomMessage>({
    // The question for the app is described nowhere.
    schemas: [[robotApi, appApi, { name: "questions", problems: ({ url }) => (isQuestion(url) ? [] : ["unknown"]) }]],
    aside: (heard) => {
      const { pathname, searchParams } = heard.url;
      if (pathname.endsWith("/gettoken")) return tokenFor(searchParams, state);
      if (!isQuestion(heard.url)) return undefined;
      return isGood(searchParams.get("access_token"))
        ? said(0, "ok", { name: "Fake app" })
        : said(42001, "access_token expired");
    },
    read: (heard) => {
      const wrong = isRobot(heard.url) ? robotFault(heard) : appFault(heard, isGood);
      return wrong === undefined ? messageIn(heard) : { wrong };
    },
    answers: ({ to }) => ({
      ok: said(0, "ok", to === undefined || "chatid" in to ? {} : { msgid: "m-1", ...state.beside }),
      refused: said(93000, "invalid webhook url, hint: [1], more info"),
      limited: said(45009, "api freq out of limit"),
    }),
    misunderstood: (problems) => said(40058, problems.join()),
  });
  const webhookUrl = `${service.baseUrl}/cgi-bin/webhook/send?key=${robotKey}`;
  return Object.assign(service, {
    ...{ webhookUrl, robotKey, app, tokens: () => state.given },
    endTokens: () => {
      state.endedBefore = state.given;
    },
    beside: state.beside,
  });
}

function said(errcode: number, errmsg: string, more: object = {}): JsonAnswer {
  return { status: 200, body: { errcode, errmsg, ...more } };
}

function isQuestion({ pathname }: URL): boolean {
  return pathname === "/cgi-bin/agent/get";
}

function isRobot({ pathname }: URL): boolean {
  return pathname === "/cgi-bin/webhook/send";
}

function tokenFor(query: URLSearchParams, state: { given: number }): JsonAnswer {
  if (query.get("corpid") !== app.corp_id) return said(40013, "invalid corpid");
  if (query.get("corpsecret") !== app.secret) return said(40001, "invalid credential");
  state.given += 1;
  return said(0, "ok", { access_token: `token-${state.given}`, expires_in: 7200 });
}

function robotFault({ url, json = {} }: Heard): JsonAnswer | undefined {
  if (url.searchParams.get("key") !== robotKey) return said(93000, "invalid webhook url");
  return lengthFault(json, limit.robot);
}

function appFault({ url, json = {} }: Heard, isGood: (token: string | null) => boolean): JsonAnswer | undefined {
  if (!isGood(url.searchParams.get("access_token"))) return said(42001, "access_token expired");
  if ("chatid" in json && json.chatid !== "fakechat") return said(86001, "invalid chatid");
  if (!("chatid" in json) && json.agentid !== app.agent_id) return said(40056, "invalid agentid");
  return lengthFault(json, limit.app);
}

/** The service cuts what is too long and says nothing; here it is a fault. */
function lengthFault(json: Readonly<Record<string, unknown>>, longestMarkdown: number): JsonAnswer | undefined {
  const longest = json.msgtype === "text" ? limit.text : longestMarkdown;
  return Buffer.byteLength(contentIn(json)) > longest ? said(45002, "content too long") : undefined;
}

function contentIn(json: Readonly<Record<string, unknown>>): string {
  return String((json[String(json.msgtype)] as { content?: unknown }).content);
}

function messageIn({ url, json = {} }: Heard): WecomMessage {
  const raw = contentIn(json);
  const { touser, toparty, totag, chatid } = json;
  const to = isRobot(url) ? undefined : JSON.parse(JSON.stringify({ touser, toparty, totag, chatid }));
  return { raw, text: seen(raw), msgtype: json.msgtype as WecomMessage["msgtype"], to };
}

/** What a reader sees of it. */
export function seen(raw: string): string {
  return raw.replaceAll("\u200b", "");
}
