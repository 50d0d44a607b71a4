import { differsFromHex, hmac } from "./compare.ts";
import type { Scheme } from "./scheme.ts";

const prefix = "sha256=";

/** `X-Hub-Signature-256: sha256=<hex>` over the raw body (docs.github.com, "Validating webhook deliveries"; Meta's Graph API too). */
export const github: Scheme = {
  name: "github",
  order: 1,
  headers: ["x-hub-signature-256"],
  verify({ headers, body, secret }) {
    const value = headers.get("x-hub-signature-256")?.[0] ?? "";
    if (!value.startsWith(prefix)) return `it does not start with "${prefix}"`;
    return differsFromHex(value.slice(prefix.length), hmac(secret, body));
  },
};

/** The value of `X-Hub-Signature-256` that a genuine sender would put on this body. */
export function sign(secret: string, body: Buffer | string): string {
  return prefix + hmac(secret, typeof body === "string" ? Buffer.from(body) : body).toString("hex");
}
