import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** The secrets of the routes that the requests know. */
export const secrets = {
  agent: "the-secret-of-the-agent-route",
  review: "the-secret-of-the-review-route",
  direct: "the-secret-of-the-direct-route",
  rotated: "the-newer-of-two-secrets",
  standard: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  sub: "the-secret-of-the-subscription",
} as const;

export type SignedRoute = keyof typeof secrets;

/** Longer bodies are refused with 413. */
export const maxBodyBytes = 65_536;

const filters = [
  { field: "action", in: ["opened", "reopened", 7] },
  {
    any: [
      { field: "title", regex: "^(fix|feat)(\\([a-z]+\\))?: .*\\S$" },
      { field: "labels", contains: "urgent" },
    ],
  },
  { not: { field: "draft", equals: true } },
  { field: "user.login", in_file: "lists/people.txt" },
  { field: "headers.User-Agent", exists: true },
  { field: "number", not_equals: 13 },
  { field: "blocked", missing: true },
  {
    all: [{ field: "payload.action", exists: true }, { not: [{ field: "event", equals: "ping" }] }],
  },
];

function configuration(telegram: { readonly baseUrl: string; readonly token: string }): object {
  return {
    platforms: {
      webhook: {
        ...{ enabled: true, host: "127.0.0.1", port: 0, rate_limit: 1_000_000, max_body_bytes: maxBodyBytes },
        routes: {
          agent: {
            secret: secrets.agent,
            prompt:
              "Look at {title} by {user.login}, {list.0.x}, {a.b.c.d}: {__raw__} {constructor.name} {__proto__.x}",
          },
          review: {
            ...{ secret: secrets.review, events: ["pull_request", "merge_request"], filters },
            prompt: "Review {title}: {labels} {payload} {event_type}",
          },
          direct: {
            ...{ secret: secrets.direct, prompt: "{title}\n{user}\n{__raw__}" },
            ...{ deliver: "telegram", deliver_only: true },
          },
          rotated: { secret: [secrets.rotated, "the-older-of-two-secrets"], prompt: "{message}" },
          standard: { secret: secrets.standard },
          open: { secret: "INSECURE_NO_AUTH", filters: [{ field: "pass", equals: true }] },
          off: { secret: "the-secret-of-a-route-that-is-off", enabled: false },
        },
      },
      telegram: {
        ...{ enabled: true, token: telegram.token, home_channel: "42" },
        extra: { base_url: telegram.baseUrl },
      },
    },
    agent: { backend: "preview" },
  };
}

/** Makes a home for the run in the system's folder for temporary files. */
export function makeFuzzHome(telegram: { readonly baseUrl: string; readonly token: string }): string {
  const home = mkdtempSync(join(tmpdir(), "postern-fuzz-"));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text, { mode: 0o600 });
  };
  // JSON is YAML too.
  write("config.yaml", JSON.stringify(configuration(telegram)));
  write("webhook_subscriptions.json", JSON.stringify({ sub: { secret: secrets.sub, prompt: "{title}" } }));
  write("lists/people.txt", "ada\ngrace\n");
  return home;
}
