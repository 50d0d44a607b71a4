import type { JsonAnswer } from "./mode.ts";
import { ownSchema } from "./schema.ts";
import { type FakeService, type Heard, startService, type Taken } from "./service.ts";

export interface NtfyMessage extends Taken {
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeNtfy extends FakeService<NtfyMessage> {
  readonly token: string;
  readonly password: string;
}

const api = ownSchema("ntfy");

/** An ntfy server with one account, "ops"; the topic "open" is for everybody, no other one is. */
export async function startFakeNtfy(): Promise<FakeNtfy> {
  const login = { token: "tk_fakeTokenOfNtfy", password: "fakePasswordOfNtfy" };
  const service = await startService<NtfyMessage>({
    schemas: [[api]],
    aside: (heard) => (heard.method === "GET" ? answerQuestion(heard, login) : undefined),
    read: (heard, id) => {
      const wrong = fault(heard, login);
      return wrong === undefined ? messageIn(heard, id) : { wrong };
    },
    answers: ({ id, body }) => ({
      ok: { status: 200, body: { id, time: 1_800_000_000, event: "message", topic: body.topic } },
      refused: refusal(403, 40301, "forbidden"),
      limited: { ...refusal(429, 42901, "limit reached: too many requests"), headers: { "retry-after": "7" } },
    }),
    misunderstood: (problems) => refusal(400, 40001, problems.join("; ")),
  });
  return Object.assign(service, login);
}

function refusal(http: number, code: number, error: string): JsonAnswer {
  return { status: http, body: { code, http, error, link: "https://ntfy.sh/docs/publish/" } };
}

type Login = Pick<FakeNtfy, "token" | "password">;

/** The account's name, `*` for nobody. */
function nameIn({ headers: { authorization } }: Heard, { token, password }: Login): string | undefined {
  if (authorization === undefined) return "*";
  const basic = `Basic ${Buffer.from(`ops:${password}`).toString("base64")}`;
  return authorization === `Bearer ${token}` || authorization === basic ? "ops" : undefined;
}

function answerQuestion(heard: Heard, login: Login): JsonAnswer {
  const username = nameIn(heard, login);
  return username === undefined
    ? refusal(401, 40101, "unauthorized")
    : { status: 200, body: { username, role: "user" } };
}

function fault(heard: Heard, login: Login): JsonAnswer | undefined {
  const name = nameIn(heard, login);
  if (name === undefined) return refusal(401, 40101, "unauthorized");
  if (name === "*" && heard.json?.topic !== "open") return refusal(403, 40301, "forbidden");
  const isLong = Buffer.byteLength(String(heard.json?.message)) > 4096;
  return isLong ? refusal(413, 41301, "attachment too large, or bandwidth limit reached") : undefined;
}

function messageIn({ json = {} }: Heard, id: number): NtfyMessage {
  const text = String(json.message);
  return { id: `m${id}`, body: json, text, raw: text };
}
