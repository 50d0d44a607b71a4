import { differsFromHex, hmac } from "./compare.ts";
import type { Scheme } from "./scheme.ts";
import { differsFromNow } from "./timestamp.ts";

/** `X-Webhook-Signature-V2: <hex>` over `timestamp.body`, the time in `X-Webhook-Timestamp` in seconds (contract section 4). */
export const generic_v2: Scheme = {
  name: "generic_v2",
  order: 5,
  headers: ["x-webhook-signature-v2"],
  verify({ headers, body, secret, nowMs }) {
    const value = headers.get("x-webhook-signature-v2")?.[0] ?? "";
    const [timestamp = "", ...more] = headers.get("x-webhook-timestamp") ?? [];
    if (timestamp === "") return 'the header "x-webhook-timestamp" is missing';
    if (more.length > 0) return 'the header "x-webhook-timestamp" is repeated';
    return differsFromNow(timestamp, nowMs) ?? differsFromHex(value, hmac(secret, `${timestamp}.`, body));
  },
};
