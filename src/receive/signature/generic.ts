import { differsFromHex, hmac } from "./compare.ts";
import type { Scheme } from "./scheme.ts";

/** `X-Webhook-Signature: <hex>` over the raw body, without a prefix (specification section 5). */
export const generic: Scheme = {
  name: "generic",
  order: 3,
  headers: ["x-webhook-signature"],
  verify({ headers, body, secret }) {
    const value = headers.get("x-webhook-signature")?.[0] ?? "";
    if (value.startsWith("sha256=")) return 'it starts with "sha256=" where the bare hex digest belongs';
    return differsFromHex(value, hmac(secret, body));
  },
};
