import type { WebhookConfig } from "../config/load.ts";

/** Where senders post to: the public address when one is configured, else this machine. */
export function webhookUrl({ publicUrl, host, port }: WebhookConfig, route: string): string {
  return `${publicUrl ?? localUrl({ host, port })}/webhooks/${encodeURIComponent(route)}`;
}

/** Where the gateway is reached from this machine. Every-address binds are reached through loopback. */
export function localUrl({ host, port }: { readonly host: string; readonly port: number }): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
