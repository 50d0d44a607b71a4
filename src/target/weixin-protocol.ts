import { randomBytes } from "node:crypto";
import type { Json, JsonObject } from "../core/types.ts";
import { numberOf, textOf } from "./conversation.ts";

// What every request of iLink has in common (https://github.com/Tencent/openclaw-weixin, src/api).

/** The version of the vendor's own client whose requests these are like. */
const clientVersion = { major: 2, minor: 4, patch: 6 } as const;

export const baseInfo = { channel_version: Object.values(clientVersion).join(".") } as const;

export function headersFor(token: string): Record<string, string> {
  const { major, minor, patch } = clientVersion;
  return {
    authorization: `Bearer ${token}`,
    authorizationtype: "ilink_bot_token",
    "ilink-app-id": "bot",
    "ilink-app-clientversion": String((major << 16) | (minor << 8) | patch),
    // Another number in each request.
    "x-wechat-uin": Buffer.from(String(randomBytes(4).readUInt32BE())).toString("base64"),
  };
}

/** Codes of iLink that are known. */
export const codes = { taken: 0, busy: -1, limited: -2, expired: -14 } as const;

/** The code of an answer, which stands in `ret` or in `errcode`; 0 when neither says anything, which is a success. */
export function codeOf({ ret, errcode }: JsonObject): number {
  const code = oneCode(ret);
  return code === codes.taken ? oneCode(errcode) : code;
}

function oneCode(value: Json | undefined): number {
  return value === undefined || value === null || value === "" ? codes.taken : (numberOf(value) ?? Number.NaN);
}

/** What the service says of a failure. */
export function wordsOf(json: JsonObject): string {
  return textOf(json.errmsg) ?? `code ${codeOf(json)}`;
}

export const expiredAdvice = 'the session has expired: log in to Weixin again and set the new "token"';
