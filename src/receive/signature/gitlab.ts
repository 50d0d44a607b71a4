import { headerNames, wireBytes } from "../../core/names.ts";
import { sameBytes } from "./compare.ts";
import type { Scheme } from "./scheme.ts";

const names = headerNames("x-gitlab-token");

/** `X-Gitlab-Token`: the secret itself (docs.gitlab.com, "Webhooks"; specification section 5). */
export const gitlab: Scheme = {
  name: "gitlab",
  order: 2,
  headers: names,
  verify({ headers, secret }) {
    const token = wireBytes(
      names.map((name) => headers.get(name)?.[0] ?? "").find((value) => value.trim() !== "") ?? "",
    );
    // Senders write a secret beyond ASCII as UTF-8 or, as `fetch` does, as one byte per character.
    const isUtf8 = sameBytes(token, Buffer.from(secret, "utf8"));
    const isLatin1 = sameBytes(token, wireBytes(secret));
    return isUtf8 || isLatin1 ? undefined : "the token differs from the secret";
  },
};
