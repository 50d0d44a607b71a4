import type { Config } from "./load.ts";

/** Keys whose values differ, and that a running gateway cannot follow: they take effect at its next start. */
export function changesThatWait(before: Config, after: Config): string[] {
  const old = keptAtStart(before);
  const next = keptAtStart(after);
  return Object.keys(old).filter((key) => old[key] !== next[key]);
}

function keptAtStart({ webhook, logLevel, store, leaseMs }: Config): Readonly<Record<string, unknown>> {
  const place =
    store.kind === "postgres" ? { url: store.url, schema: store.schema } : { url: undefined, schema: undefined };
  return {
    ...{ host: webhook.host, port: webhook.port, "log.level": logLevel },
    ...{ "store.url": place.url, "store.schema": place.schema, "store.lease": leaseMs },
  };
}
